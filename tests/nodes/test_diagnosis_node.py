"""The diagnosis node as a process: an attempt's sensor data over real topics, then a failure."""

import shutil
import time

import numpy as np
import pytest
from diagnostic_msgs.msg import DiagnosticStatus
from failure_dialogue_msgs import msg as m
from failure_dialogue_msgs import srv
from geometry_msgs.msg import WrenchStamped
from lifecycle_msgs.msg import State, Transition
from sensor_msgs.msg import Image, JointState

from failure_dialogue import topics
from failure_dialogue.diagnosis.load import load_diagnosers
from failure_dialogue.evidence import Evidence
from failure_dialogue.nodes.convert import fill_image, seconds, stamp
from failure_dialogue.nodes.node import EVENT_QOS
from failure_dialogue.robots.panda import PANDA
from failure_dialogue.vocabulary import load_vocabulary
from tests.fakes.graph import LIMIT_S, Graph
from tests.fakes.grasp_evidence import grasp_evidence
from tests.fakes.processes import until
from tests.fakes.trained import trained_models

#: rclpy 7.1 (through lark) uses a module that later Pythons have renamed.
pytestmark = pytest.mark.filterwarnings("ignore:module 'sre_:DeprecationWarning")

#: How much faster than it happened an attempt is published.
PACE = 2.0
#: An attempt is published this many seconds after the one before it, on its own clock.
APART_S = 100.0


class Cell:
    """The diagnosis node between the sensors of an arm and whoever wants a diagnosis."""

    def __init__(self, graph):
        self.graph = graph
        node = graph.node
        self.wrenches = node.create_publisher(WrenchStamped, topics.WRENCH, 100)
        self.joints = node.create_publisher(JointState, topics.JOINT_STATES, 100)
        self.images = node.create_publisher(Image, topics.IMAGE, 10)
        self.failures = node.create_publisher(m.Failure, topics.FAILURE, EVENT_QOS)
        self.diagnoses = graph.hear(m.Diagnosis, topics.DIAGNOSIS)
        self.node = graph.start("diagnosis", f"models:={trained_models()}", "buffer_s:=30.0").wait_state()
        self.states = 0
        for publisher in (self.wrenches, self.joints, self.images, self.failures):
            until(lambda p=publisher: p.get_subscription_count() == 1, "the node's subscriptions", LIMIT_S)

    def play(self, evidence: Evidence, shift_s: float = 0.0, encoding: str = "rgb8"):
        """Publish all that the sensors recorded, in order and paced."""
        told = [
            (t, self.wrench(t + shift_s, w))
            for t, w in zip(evidence.wrench.stamps_s, evidence.wrench.wrench_n_nm, strict=True)
        ]
        told += [
            (t, self.joint(t + shift_s, evidence.joints, i)) for i, t in enumerate(evidence.joints.stamps_s)
        ]
        told += [(f.stamp_s, self.image(f.stamp_s + shift_s, f.image_rgb, encoding)) for f in evidence.frames]
        told.sort(key=lambda item: item[0])
        start = time.monotonic()
        for t, message in told:
            ahead_s = (t - evidence.start_s) / PACE - (time.monotonic() - start)
            if ahead_s > 0.01:
                time.sleep(ahead_s)
            publisher = {WrenchStamped: self.wrenches, JointState: self.joints, Image: self.images}[
                type(message)
            ]
            publisher.publish(message)

    @staticmethod
    def wrench(stamp_s, values) -> WrenchStamped:
        message = WrenchStamped()
        message.header.stamp = stamp(float(stamp_s))
        f, t = message.wrench.force, message.wrench.torque
        f.x, f.y, f.z, t.x, t.y, t.z = (float(v) for v in values)
        return message

    @staticmethod
    def joint(stamp_s, joints, i) -> JointState:
        message = JointState(
            name=list(joints.names),
            position=joints.position[i].tolist(),
            velocity=joints.velocity[i].tolist(),
            effort=joints.effort[i].tolist(),
        )
        message.header.stamp = stamp(float(stamp_s))
        return message

    @staticmethod
    def image(stamp_s, pixels, encoding) -> Image:
        message = Image()
        fill_image(message, pixels)
        message.encoding = encoding
        message.header.stamp = stamp(float(stamp_s))
        return message

    def fail(self, evidence: Evidence, shift_s: float = 0.0, **fields) -> str:
        """Report the attempt as failed; the id of the state it left. What was heard before is forgotten."""
        self.diagnoses.clear()
        self.states += 1
        message = m.Failure(
            state_id=f"7.{self.states}",
            family="grasp",
            stage=evidence.stage,
            instruction=evidence.instruction,
            object="ketchup",
            attempt_start=stamp(evidence.start_s + shift_s),
            attempt_end=stamp(evidence.end_s + shift_s),
            phases=[m.Phase(name=p.name, start=stamp(p.start_s + shift_s)) for p in evidence.phases],
            grip_setpoint_n=evidence.grip_setpoint_n,
            grip_preload_n=evidence.grip_preload_n,
        )
        for name, value in fields.items():
            setattr(message, name, value)
        self.failures.publish(message)
        return message.state_id

    def sense(self, source: str, state_id: str, episode_id: str = "e-1") -> srv.Sense.Response:
        return self.graph.call(
            srv.Sense,
            topics.SENSE,
            srv.Sense.Request(source=source, state_id=state_id, episode_id=episode_id),
        )

    def diagnosis(self, number: int = 1) -> m.Diagnosis:
        until(lambda: len(self.diagnoses) >= number, f"diagnosis {number}", LIMIT_S)
        return self.diagnoses[number - 1]


@pytest.fixture(scope="module")
def cell(tmp_path_factory):
    with Graph(tmp_path_factory.mktemp("diagnosis")) as graph:
        yield Cell(graph)


def thinned(evidence: Evidence) -> Evidence:
    """Every second sample of the wrench: 250 Hz, which is enough and half the work."""
    wrench = type(evidence.wrench)(evidence.wrench.stamps_s[::2], evidence.wrench.wrench_n_nm[::2])
    return Evidence(**{**evidence.__dict__, "wrench": wrench})


@pytest.fixture(scope="module")
def attempt(cell):
    """A heavy object slipped: the sensors have told all of it."""
    evidence = thinned(grasp_evidence(mass_kg=0.9, frames=40, seed=77))
    cell.play(evidence)
    return evidence


def test_the_camera_answers_first_and_force_only_when_it_is_consulted(cell, attempt):
    state_id = cell.fail(attempt)
    camera = cell.diagnosis()
    assert (camera.source, camera.state_id, camera.abstained) == ("camera", state_id, False)
    assert sum(camera.probabilities) == pytest.approx(1.0, abs=1e-3)
    answer = cell.sense("force", state_id)
    assert answer.accepted, answer.error_msg
    force = cell.diagnosis(2)
    assert (force.source, force.state_id, force.episode_id) == ("force", state_id, "e-1")
    assert force.causes[int(np.argmax(force.probabilities))] == "heavy_object"
    assert [d.source for d in cell.diagnoses] == ["camera", "force"]


def test_it_says_live_what_the_same_data_say_offline(cell, attempt):
    offline = load_diagnosers(load_vocabulary(), "grasp", PANDA, trained_models())["force"].diagnose(attempt)
    cell.sense("force", cell.fail(attempt))
    live = cell.diagnosis(2)
    assert list(live.causes) == list(offline.causes)
    assert list(live.probabilities) == pytest.approx(offline.probabilities, abs=0.02)
    assert live.model_id == offline.model_id
    (slip,) = live.events
    assert seconds(slip.start) == pytest.approx(offline.events[0].start_s, abs=0.01)


def test_both_answer_at_once_where_a_parameter_says_so(cell, attempt):
    assert cell.node.set(first_sources=["camera", "force"]) == ""
    try:
        cell.fail(attempt)
        assert {cell.diagnosis(1).source, cell.diagnosis(2).source} == {"camera", "force"}
    finally:
        assert cell.node.set(first_sources=["camera"]) == ""


def test_a_channel_that_is_switched_off_says_so_at_once(cell, attempt):
    assert cell.node.set(offered_sources=["force"]) == ""
    try:
        cell.fail(attempt)
        camera = cell.diagnosis()
        assert camera.abstained and "switched off" in camera.reason
        assert cell.node.set(offered_sources=["camera"]) == ""
        answer = cell.sense("force", cell.fail(attempt))
        assert not answer.accepted and "offered: camera" in answer.error_msg
    finally:
        assert cell.node.set(offered_sources=["camera", "force"]) == ""


def test_what_cannot_be_consulted_is_refused_with_the_reason(cell, attempt):
    state_id = cell.fail(attempt)
    answer = cell.sense("force", "6.6")
    assert not answer.accepted and f"the last one is '{state_id}'" in answer.error_msg
    answer = cell.sense("radar", state_id)
    assert not answer.accepted and "'radar' is not offered" in answer.error_msg


def test_a_failure_that_makes_no_sense_is_an_abstention_that_says_why(cell, attempt):
    for fields, words in (
        ({"family": "cooking"}, "family 'cooking'"),
        ({"attempt_end": stamp(1.0)}, "not after its start"),
        ({"phases": []}, "no phase 'close'"),
        ({"attempt_start": stamp(5000.0), "attempt_end": stamp(5010.0)}, "0 camera frames"),
    ):
        cell.fail(attempt, **fields)
        camera = cell.diagnosis()
        assert camera.abstained and words in camera.reason


def test_images_in_an_encoding_it_cannot_read_are_counted_and_the_camera_abstains(cell, attempt):
    shift_s = APART_S
    cell.play(
        Evidence(**{**attempt.__dict__, "wrench": type(attempt.wrench)(np.zeros(0), np.zeros((0, 6)))}),
        shift_s,
        encoding="mono8",
    )
    until(
        lambda: (
            sum(
                int(value.value)
                for _, status in cell.node.said
                for value in status.values
                if value.key == "bad images per second"
            )
            == len(attempt.frames)
        ),
        "their count",
        LIMIT_S,
    )
    assert "image encoding 'mono8' is not understood; publish rgb8 or bgr8" in cell.node.logged()
    cell.fail(attempt, shift_s)
    camera = cell.diagnosis()
    assert camera.abstained and "0 camera frames" in camera.reason


def test_bad_wrench_samples_are_dropped_and_counted_and_a_missing_axis_is_not_bad(cell, attempt):
    shift_s = 2 * APART_S
    bad = attempt.wrench.wrench_n_nm.copy()
    bad[500] = [0, 0, np.inf, 0, 0, 0]
    bad[700] = [0, 1e17, 0, 0, 0, 0]
    bad[:, 3] = np.nan  # the sensor has no torque about x
    cell.play(
        Evidence(**{**attempt.__dict__, "wrench": type(attempt.wrench)(attempt.wrench.stamps_s, bad)}),
        shift_s,
    )
    status = cell.node.says(lambda s: True, "a report")
    assert {v.key: v.value for v in status.values}["samples dropped"] == "2"
    cell.sense("force", cell.fail(attempt, shift_s))
    force = cell.diagnosis(2)
    assert force.causes[int(np.argmax(force.probabilities))] == "heavy_object"


def test_a_jump_back_in_time_forgets_what_was_before(cell, attempt):
    shift_s = 3 * APART_S
    cell.play(attempt, shift_s)
    cell.fail(attempt, shift_s)
    assert not cell.diagnosis().abstained
    cell.wrenches.publish(cell.wrench(attempt.start_s, np.zeros(6)))  # a bag that begins anew
    cell.node.says(lambda s: ("time jumps", "1") in [(v.key, v.value) for v in s.values], "the jump")
    cell.fail(attempt, shift_s)
    camera = cell.diagnosis()
    assert camera.abstained and "0 camera frames" in camera.reason


def test_a_missing_model_is_named_and_configuring_works_once_it_is_there(cell, tmp_path):
    models = shutil.copytree(trained_models(), tmp_path / "models")
    force = models / "grasp_force.onnx"
    kept = force.rename(tmp_path / "kept.onnx")
    node = cell.node
    assert node.change(Transition.TRANSITION_DEACTIVATE) and node.change(Transition.TRANSITION_CLEANUP)
    assert node.set(models=str(models)) == ""
    assert not node.change(Transition.TRANSITION_CONFIGURE)
    status = node.says(lambda s: str(force) in s.message, "the missing file")
    assert status.level == DiagnosticStatus.ERROR and "is missing" in status.message
    assert f"{force} is missing" in node.logged()
    assert node.process.poll() is None and node.state() == State.PRIMARY_STATE_UNCONFIGURED
    kept.rename(force)
    assert node.change(Transition.TRANSITION_CONFIGURE) and node.change(Transition.TRANSITION_ACTIVATE)
    node.says(lambda s: s.level != DiagnosticStatus.ERROR, "recovery")
    altered = models / "grasp_camera.onnx"
    altered.write_bytes(altered.read_bytes() + b"x")
    assert node.change(Transition.TRANSITION_DEACTIVATE) and node.change(Transition.TRANSITION_CLEANUP)
    assert not node.change(Transition.TRANSITION_CONFIGURE)
    assert str(altered) in node.says(lambda s: "SHA-256" in s.message, "the altered file").message


def test_a_sign_that_is_neither_is_refused(cell):
    assert cell.node.set(models=str(trained_models()), wrench_sign=0.5) == ""
    assert not cell.node.change(Transition.TRANSITION_CONFIGURE)
    cell.node.says(lambda s: "wrench_sign is 0.5; it must be 1 or -1" in s.message, "the reason")
    assert cell.node.set(wrench_sign=-1.0) == ""
    assert cell.node.change(Transition.TRANSITION_CONFIGURE)
