"""The re-check node: takes a still before and after a repair and judges the result from measurements.

It listens to the wrist, the joints, the phases the robot announces and the static frames, and asks the robot
for stills. It never asks whether the repair was done.
"""

from __future__ import annotations

import concurrent.futures
from dataclasses import dataclass
from typing import Any

import numpy as np
from failure_dialogue_msgs import msg as m
from failure_dialogue_msgs.action import RunRecheck
from failure_dialogue_msgs.srv import CaptureStill
from geometry_msgs.msg import WrenchStamped
from rclpy.action import ActionServer, CancelResponse
from rclpy.qos import QoSProfile, ReliabilityPolicy
from rclpy.task import Future
from sensor_msgs.msg import JointState
from tf2_msgs.msg import TFMessage

from failure_dialogue import topics
from failure_dialogue.errors import EvidenceError
from failure_dialogue.evidence import Evidence, Phase, RollingBuffer
from failure_dialogue.nodes.convert import image_rgb, seconds
from failure_dialogue.nodes.node import (
    EVENT_QOS,
    EXCHANGE_QOS,
    OK,
    WARN,
    DialogueNode,
    Health,
    Parameter,
    run,
)
from failure_dialogue.nodes.polled import PolledGroup, take_all, unused
from failure_dialogue.perception.projection import Camera, FrameTree, StaticFrame, camera_from_info
from failure_dialogue.recheck.motion import MotionLog
from failure_dialogue.recheck.verdict import Judgement, Reading, Verdict, Witness, abstention, judge
from failure_dialogue.recheck.witnesses import CAMERA, GRIPPER, camera_witness, gripper_witness
from failure_dialogue.robots.profile import load_profile

ERROR_NO_STILL_SERVICE = 300
ERROR_STILL_TIMED_OUT = 301
ERROR_STILL_REFUSED = 302
ERROR_BUSY = 303
ERROR_UNKNOWN_PHASE = 304
ERROR_JUDGING = 305

PARAMETERS = (
    Parameter("robot", "panda", "Robot profile: joint names, gripper units, kinematics."),
    Parameter("base_frame", "panda_link0", "Frame the robot profile's kinematics start from."),
    Parameter("object_size_m", 0.1, "Edge of the cube looked at round a place (m): the object and little "
              "else.", 0.02, 0.5),
    Parameter("buffer_s", 120.0, "Seconds of wrench and joints that are kept: longer than one repair.",
              10.0, 600.0),
    Parameter("still_timeout_s", 5.0, "How long the robot may take for a still (s).", 0.1, 60.0),
    Parameter("wrench_sign", 1.0, "1: a load that hangs on the hand is positive along z; -1: the opposite.",
              -1.0, 1.0),
)

_POLL_S = 0.02
_JUDGE_TIMEOUT_S = 30.0
#: 4 s of a 500 Hz wrench: a machine may be busy with something else for as long.
_SENSOR_QOS = QoSProfile(depth=2000, reliability=ReliabilityPolicy.BEST_EFFORT)


class _NoStill(Exception):
    """No still came: the code and text for the result."""

    def __init__(self, code: int, text: str) -> None:
        super().__init__(text)
        self.code = code


@dataclass(frozen=True)
class Still:
    """One still, the camera it was taken with and when; camera None: camera_problem says why."""

    stamp_s: float
    image_rgb: np.ndarray
    frame_id: str
    camera: Camera | None
    camera_problem: str = ""


@dataclass(frozen=True)
class Before:
    """What is remembered of the scene before a repair. grasp_place_m: of the failed attempt, or None."""

    episode_id: str
    state_id: str
    still: Still
    grasp_place_m: np.ndarray | None


class RecheckNode(DialogueNode):
    """Serves run_recheck: BEFORE remembers the scene, AFTER judges it."""

    def __init__(self) -> None:
        super().__init__("recheck", PARAMETERS)

    def configure(self) -> None:
        self.profile = load_profile(self.value("robot"))
        self.buffer = RollingBuffer(self.value("buffer_s"))
        self.motion = MotionLog(self.profile, self.buffer)
        self.frames = FrameTree()
        self.before: Before | None = None
        self.counts = {"wrench": 0, "joints": 0, "stills": 0, "verdicts": 0}
        self.last_stamp_s = 0.0
        self.last_verdict = ""
        self.busy = False

    def activate(self) -> None:
        self.sign = float(self.value("wrench_sign"))
        self.waiting: list[tuple[Future, Any, float]] = []
        self.worker = concurrent.futures.ThreadPoolExecutor(1, "judge")
        group = PolledGroup()
        self.wrenches, self.joint_states = (
            self._track(self.destroy_subscription, self.create_subscription(
                kind, topic, unused, _SENSOR_QOS, callback_group=group))
            for kind, topic in ((WrenchStamped, topics.WRENCH), (JointState, topics.JOINT_STATES)))
        self.subscription(m.Phase, topics.PHASE, self._on_phase, EVENT_QOS)
        self.subscription(TFMessage, topics.TF_STATIC, self._on_frames, EXCHANGE_QOS)
        self.stills = self.client(CaptureStill, topics.CAPTURE_STILL)
        self.action(ActionServer(self, RunRecheck, topics.RUN_RECHECK, self._on_goal,
                                 cancel_callback=lambda _: CancelResponse.REJECT))
        self.timer(_POLL_S, self._poll)

    def deactivate(self) -> None:
        for outcome, _, _ in self.waiting:
            outcome.set_result(False)
        self.waiting.clear()
        self.worker.shutdown(wait=False, cancel_futures=True)

    def health(self) -> Health:
        values = {name: str(count) for name, count in self.counts.items()}
        values |= {"dropped": str(self.buffer.dropped), "last verdict": self.last_verdict or "none"}
        if not self.stills.service_is_ready():
            return Health(WARN, f"nobody serves {topics.CAPTURE_STILL}: the camera cannot testify", values)
        return Health(OK, "running", values)

    # sensors ----------------------------------------------------------------
    def _drain(self) -> None:
        sign = self.sign
        for message, _ in take_all(self.wrenches):
            force, torque = message.wrench.force, message.wrench.torque
            self.last_stamp_s = seconds(message.header.stamp)
            self.counts["wrench"] += 1
            self.buffer.add_wrench(self.last_stamp_s, (sign * force.x, sign * force.y, sign * force.z,
                                                       sign * torque.x, sign * torque.y, sign * torque.z))
        for message, _ in take_all(self.joint_states):
            self.last_stamp_s = seconds(message.header.stamp)
            self.counts["joints"] += 1
            self.buffer.add_joints(self.last_stamp_s, tuple(message.name), message.position, message.velocity,
                                   message.effort)
        self.motion.settle(self.last_stamp_s)

    def _poll(self) -> None:
        self._drain()
        now = self.steady_s()
        for entry in list(self.waiting):
            outcome, awaited, deadline = entry
            if awaited.done() or now > deadline:
                self.waiting.remove(entry)
                outcome.set_result(awaited.done())

    def _on_phase(self, message: m.Phase) -> None:
        self._drain()
        try:
            self.motion.begin(Phase(message.name, seconds(message.start)))
        except EvidenceError as error:
            self.get_logger().warning(str(error))

    def _on_frames(self, message: TFMessage) -> None:
        try:
            self.frames.update(
                StaticFrame(t.header.frame_id, t.child_frame_id,
                            (t.transform.translation.x, t.transform.translation.y, t.transform.translation.z),
                            (t.transform.rotation.x, t.transform.rotation.y, t.transform.rotation.z,
                             t.transform.rotation.w)) for t in message.transforms)
        except EvidenceError as error:
            self.get_logger().warning(str(error))

    # the action -------------------------------------------------------------
    def _within(self, awaited, seconds_: float) -> Future:
        """A future that says, at the latest after this time, whether the awaited one is done."""
        outcome = Future()
        self.waiting.append((outcome, awaited, self.steady_s() + seconds_))
        return outcome

    async def _on_goal(self, goal) -> RunRecheck.Result:
        request: RunRecheck.Goal = goal.request
        if self.busy:
            goal.abort()
            return _refusal(ERROR_BUSY, "another re-check is under way; wait for it")
        self.busy = True
        try:
            if request.phase == RunRecheck.Goal.BEFORE:
                result = await self._remember(goal)
            elif request.phase == RunRecheck.Goal.AFTER:
                result = await self._judge(goal)
            else:
                goal.abort()
                return _refusal(ERROR_UNKNOWN_PHASE, f"phase is {request.phase}; it must be "
                                f"{RunRecheck.Goal.BEFORE} (before) or {RunRecheck.Goal.AFTER} (after)")
        finally:
            self.busy = False
        self.last_verdict = f"{result.verdict}: {result.reason}"
        goal.succeed()
        return result

    async def _remember(self, goal) -> RunRecheck.Result:
        request: RunRecheck.Goal = goal.request
        self.before = None
        try:
            still = await self._take_still(goal)
        except _NoStill as problem:
            return _refusal(problem.code, str(problem))
        place = self.motion.place_m("close")
        self.before = Before(request.episode_id, request.state_id, still, place)
        result = RunRecheck.Result(verdict=Verdict.PASS.value,
                                   reason="the scene before the repair is remembered")
        if place is None:
            result.reason += "; where the failed attempt grasped is not known"
        if still.camera_problem:
            result.reason += f"; {still.camera_problem}"
        return result

    async def _judge(self, goal) -> RunRecheck.Result:
        request: RunRecheck.Goal = goal.request
        code, after, problem = 0, None, ""
        try:
            after = await self._take_still(goal)
        except _NoStill as error:
            code, problem = error.code, str(error)
        before = self.before
        if before is None or before.episode_id != request.episode_id:
            problem = problem or f"no still was taken before the repair in episode {request.episode_id!r}"
            before = None
        goal.publish_feedback(RunRecheck.Feedback(step="comparing"))
        self._drain()
        moved = self.motion.start_s is not None and (
            before is None or self.motion.start_s >= before.still.stamp_s)
        evidence = self.motion.evidence(self.last_stamp_s, request.task) if moved else None
        if problem or before is None or after is None:
            look = None
        else:
            grasp = self.motion.place_m("close") if moved else None
            look = (before.still, after, before.grasp_place_m if grasp is None else grasp,
                    self.motion.place_m("release") if moved else None, float(self.value("object_size_m")))
        judging = self.worker.submit(self._compare, evidence, look, problem)
        if not await self._within(judging, _JUDGE_TIMEOUT_S):
            return _refusal(ERROR_JUDGING, f"comparing took longer than {_JUDGE_TIMEOUT_S:.0f} s")
        if judging.exception() is not None:
            return _refusal(ERROR_JUDGING, f"comparing failed: {judging.exception()}")
        self.counts["verdicts"] += 1
        return _result(judging.result(), code, problem)

    def _compare(self, evidence: Evidence | None, look, problem: str) -> Judgement:
        """Runs in the worker thread and touches nothing that changes."""
        gripper = (abstention(GRIPPER, "the robot announced no motion since the scene was remembered")
                   if evidence is None else gripper_witness(evidence, self.profile))
        return judge(gripper, abstention(CAMERA, problem) if look is None else _compare_stills(*look))

    async def _take_still(self, goal) -> Still:
        goal.publish_feedback(RunRecheck.Feedback(step="taking a still"))
        if not self.stills.service_is_ready():
            raise _NoStill(ERROR_NO_STILL_SERVICE, f"nobody serves {topics.CAPTURE_STILL}; "
                           "start the robot's bridge")
        limit = float(self.value("still_timeout_s"))
        call = self.stills.call_async(CaptureStill.Request())
        if not await self._within(call, limit):
            self.stills.remove_pending_request(call)
            raise _NoStill(ERROR_STILL_TIMED_OUT, f"no still came from {topics.CAPTURE_STILL} "
                           f"within {limit:g} s")
        response = call.result()
        if response is None or not response.success:
            raise _NoStill(ERROR_STILL_REFUSED, "the robot gave no still: "
                           + (response.error_msg if response else "the call failed"))
        try:
            image = image_rgb(response.image).copy()
        except EvidenceError as error:
            raise _NoStill(ERROR_STILL_REFUSED, str(error)) from error
        self.counts["stills"] += 1
        return self._still(response, image)

    def _still(self, response: CaptureStill.Response, image: np.ndarray) -> Still:
        info = response.camera_info
        frame = info.header.frame_id or response.image.header.frame_id
        stamp_s = seconds(response.image.header.stamp)
        try:
            camera = camera_from_info(info.width, info.height, info.k,
                                      self.frames.between(frame, self.value("base_frame")))
        except EvidenceError as error:
            return Still(stamp_s, image, frame, None, str(error))
        return Still(stamp_s, image, frame, camera)


def _compare_stills(before: Still, after: Still, grasp_m: np.ndarray | None, release_m: np.ndarray | None,
                    size_m: float) -> Witness:
    if before.camera is None or after.camera is None:
        return abstention(CAMERA, before.camera_problem or after.camera_problem)
    if before.frame_id != after.frame_id or not np.allclose(before.camera.base_to_optical,
                                                            after.camera.base_to_optical, atol=1e-3):
        return abstention(CAMERA, f"the stills come from different cameras or the camera was moved "
                          f"(frames {before.frame_id!r} and {after.frame_id!r})")
    if grasp_m is None:
        return abstention(CAMERA, "where the object was grasped is not known")
    return camera_witness(before.image_rgb, after.image_rgb, before.camera, grasp_m, release_m, size_m)


def _measurement(reading: Reading) -> m.Measurement:
    return m.Measurement(name=reading.name, value=float(reading.value), unit=reading.unit,
                         threshold=float(reading.threshold), verdict=reading.verdict.value,
                         detail=reading.detail)


def _result(judgement: Judgement, code: int, problem: str) -> RunRecheck.Result:
    return RunRecheck.Result(verdict=judgement.verdict.value, reason=judgement.reason,
                             measurements=[_measurement(reading) for reading in judgement.readings],
                             error_code=code, error_msg=problem if code else "")


def _refusal(code: int, text: str) -> RunRecheck.Result:
    return RunRecheck.Result(verdict=Verdict.ABSTAIN.value, reason=text, error_code=code, error_msg=text)


def main(argv: list[str] | None = None) -> int:
    """Run the node until it is ended."""
    return run(RecheckNode, argv)


if __name__ == "__main__":
    raise SystemExit(main())
