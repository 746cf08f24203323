"""Evidence on disk and the rolling buffer it is cut from."""

import math

import numpy as np
import pytest

from failure_dialogue.errors import EvidenceError
from failure_dialogue.evidence import Evidence, Phase, RollingBuffer

NAMES = ("j1", "j2")


def window(buffer, start_s, end_s):
    return buffer.window(start_s, end_s, family="grasp", stage="lift", instruction="pick up the milk")


def filled(seconds=60.0):
    buffer = RollingBuffer(seconds)
    for i in range(1000):
        buffer.add_wrench(i * 0.002, (0.0, 0.0, float(i), 0.0, 0.0, 0.0))
        if i % 5 == 0:
            buffer.add_joints(i * 0.002, NAMES, (0.1, 0.2), (), (1.0, 2.0))
        if i % 25 == 0:
            buffer.add_frame(i * 0.002, np.full((4, 4, 3), i % 256, np.uint8))
    return buffer


def test_a_window_holds_what_was_stamped_in_it_and_nothing_else():
    evidence = window(filled(), 0.5, 1.0)
    assert (evidence.wrench.stamps_s[0], evidence.wrench.stamps_s[-1]) == (0.5, 1.0)
    assert len(evidence.wrench.stamps_s) == 251
    assert evidence.wrench.wrench_n_nm[0, 2] == 250.0
    assert len(evidence.joints.stamps_s) == 51
    assert len(evidence.frames) == 11


def test_what_a_joint_does_not_report_is_missing_not_zero():
    joints = window(filled(), 0.0, 1.0).joints
    assert np.isnan(joints.velocity).all()
    assert joints.column("j2", "effort").tolist() == [2.0] * len(joints.stamps_s)
    with pytest.raises(EvidenceError, match="'j9' is not in the joint states"):
        joints.column("j9")


def test_only_the_last_seconds_are_kept():
    evidence = window(filled(seconds=0.5), 0.0, 2.0)
    assert evidence.wrench.stamps_s[0] >= 1.998 - 0.5


@pytest.mark.parametrize("bad", [math.inf, -math.inf, 1e17])
def test_an_impossible_force_is_dropped_and_counted(bad):
    buffer = filled()
    buffer.add_wrench(2.0, (0.0, 0.0, bad, 0.0, 0.0, 0.0))
    assert buffer.dropped == 1
    assert np.isfinite(window(buffer, 0.0, 3.0).wrench.wrench_n_nm).all()


def test_nan_on_one_axis_is_an_axis_that_is_missing():
    buffer = filled()
    buffer.add_wrench(2.0, (0.0, 0.0, 1.0, math.nan, 0.0, 0.0))
    assert buffer.dropped == 0
    assert np.isnan(window(buffer, 1.999, 3.0).wrench.wrench_n_nm[-1, 3])


@pytest.mark.parametrize(
    "position, velocity, effort",
    [
        ((0.1,), (), ()),
        ((0.1, 0.2), (0.0,), ()),
        ((0.1, 0.2, 0.3), (), (1.0,)),
        ((0.1, 0.2, 0.3), (0.0,), (1.0, 2.0)),
    ],
)
def test_joint_arrays_of_other_lengths_than_the_names_are_dropped(position, velocity, effort):
    buffer = filled()
    buffer.add_joints(2.0, NAMES, position, velocity, effort)
    assert buffer.dropped == 1
    assert window(buffer, 0.0, 3.0).joints.stamps_s[-1] < 2.0


def test_a_jump_back_in_time_clears_the_buffer():
    buffer = filled()
    buffer.add_wrench(0.1, (0.0,) * 6)
    assert buffer.jumps == 1
    assert len(window(buffer, 0.0, 3.0).wrench.stamps_s) == 1
    assert not window(buffer, 0.0, 3.0).frames


def test_a_window_that_ends_before_it_starts_is_refused():
    with pytest.raises(EvidenceError, match="not after its start"):
        window(filled(), 2.0, 1.0)


def test_phases_end_where_the_next_one_begins():
    evidence = filled().window(
        0.0,
        2.0,
        family="grasp",
        stage="lift",
        instruction="x",
        phases=(Phase("rest", 0.2), Phase("close", 0.5)),
    )
    assert evidence.phase_window("rest") == (0.2, 0.5)
    assert evidence.phase_window("close") == (0.5, 2.0)
    with pytest.raises(EvidenceError, match="no phase 'lift'"):
        evidence.phase_window("lift")


def test_evidence_comes_back_from_disk_as_it_was(tmp_path):
    evidence = filled().window(
        0.0,
        2.0,
        family="grasp",
        stage="lift",
        instruction="x",
        phases=(Phase("rest", 0.2),),
        grip_setpoint_n=4.0,
    )
    evidence.save(tmp_path / "e.npz")
    again = Evidence.load(tmp_path / "e.npz")
    assert again.phases == evidence.phases
    assert again.grip_setpoint_n == 4.0 and math.isnan(again.grip_preload_n)
    np.testing.assert_allclose(again.wrench.wrench_n_nm, evidence.wrench.wrench_n_nm)
    np.testing.assert_array_equal(again.frames[-1].image_rgb, evidence.frames[-1].image_rgb)
    assert Evidence.load(tmp_path / "e.npz", frames=False).frames == ()


def test_a_damaged_file_says_so(tmp_path):
    (tmp_path / "e.npz").write_bytes(b"PK\x03\x04 cut short")
    with pytest.raises(EvidenceError, match="not an evidence file"):
        Evidence.load(tmp_path / "e.npz")
