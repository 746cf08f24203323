"""Where the tool was as the phases of the last motion began."""

import numpy as np
import pytest

from failure_dialogue.errors import EvidenceError
from failure_dialogue.evidence import Phase, RollingBuffer
from failure_dialogue.recheck.motion import MotionLog
from failure_dialogue.robots.panda import PANDA

NAMES = PANDA.arm_joints + PANDA.finger_joints
POSE = np.array([0.0, 0.3, 0.0, -2.0, 0.0, 2.3, 0.8])


def turned(angle):
    return POSE + np.array([angle, 0, 0, 0, 0, 0, 0])


@pytest.fixture
def log():
    """A log whose arm turns at 1 rad/s from 0 at 100 s."""
    buffer = RollingBuffer(20.0)
    for t in np.arange(100.0, 105.0, 0.01):
        buffer.add_joints(float(t), NAMES, tuple(turned(t - 100.0)) + (0.02, 0.02), (), ())
    return MotionLog(PANDA, buffer)


def test_the_place_is_that_of_the_arm_when_the_phase_began(log):
    log.begin(Phase("close", 101.0))
    log.settle(101.1)
    assert log.place_m("close") is None  # joints of that time may still be on their way
    log.settle(101.3)
    assert log.place_m("close") == pytest.approx(PANDA.forward(turned(1.0))[0], abs=1e-6)
    assert log.place_m("release") is None


def test_a_place_is_kept_when_its_samples_are_long_gone(log):
    log.begin(Phase("close", 101.0))
    log.settle(102.0)
    place = log.place_m("close")
    for t in np.arange(130.0, 131.0, 0.01):
        log._buffer.add_joints(float(t), NAMES, tuple(POSE) + (0.02, 0.02), (), ())
    log.settle(131.0)
    assert log.place_m("close") == pytest.approx(place)


def test_an_earlier_phase_begins_a_new_motion(log):
    for name, start in (("approach", 100.5), ("rest", 101.0), ("close", 101.5), ("lift", 102.0)):
        log.begin(Phase(name, start))
    log.settle(102.5)
    log.begin(Phase("approach", 103.0))
    assert [p.name for p in log.phases] == ["approach"] and log.start_s == 103.0
    assert log.place_m("close") is None


def test_no_joints_no_place(log):
    log.begin(Phase("close", 110.0))
    log.settle(120.0)
    assert log.place_m("close") is None


def test_the_evidence_runs_from_the_motions_start(log):
    with pytest.raises(EvidenceError, match="no motion"):
        log.evidence(101.0, "")
    log.begin(Phase("rest", 101.0))
    evidence = log.evidence(103.0, "put it away")
    assert evidence.joints.stamps_s[[0, -1]] == pytest.approx([101.0, 103.0], abs=0.011)
    assert [p.name for p in evidence.phases] == ["rest"]


def test_an_unknown_phase_is_refused(log):
    with pytest.raises(EvidenceError, match="'dance'"):
        log.begin(Phase("dance", 101.0))
