"""The bridge node: the simulated robot behind the topics, services and actions of a real arm."""

from __future__ import annotations

import contextlib
import dataclasses
import json
import math
import resource
import signal
import sys
import threading
import time
from collections.abc import Callable

import mujoco
import numpy as np
import rclpy
from failure_dialogue_msgs import action, srv
from failure_dialogue_msgs import msg as m
from rclpy.action import ActionServer, CancelResponse, GoalResponse
from rclpy.callback_groups import ReentrantCallbackGroup
from rclpy.executors import ExternalShutdownException, MultiThreadedExecutor
from rclpy.signals import SignalHandlerOptions
from std_msgs.msg import Header, String

from failure_dialogue import topics
from failure_dialogue.errors import FailureDialogueError, SceneError
from failure_dialogue.nodes.convert import stamp
from failure_dialogue.nodes.node import (
    ERROR,
    EVENT_QOS,
    EXCHANGE_QOS,
    OK,
    WARN,
    DialogueNode,
    Health,
    Parameter,
    spin,
)
from failure_dialogue.vocabulary import load_vocabulary
from sim_bridge.appearance import Appearance, Look
from sim_bridge.arm import STEP_S
from sim_bridge.camera import SceneCamera
from sim_bridge.loop import Mode, Motion, PhysicsLoop
from sim_bridge.objects import TASK_OF_OBJECT
from sim_bridge.repairs import RepairCode, recoverable
from sim_bridge.robot import ResetInfo, SimRobot
from sim_bridge.sensor_topics import SensorTopics

ERROR_REFUSED = 150  # nothing was moved
ERROR_DROPPED = 151  # a motion was ended before its end

#: The family of failures this robot can notice.
FAMILY = "grasp"
_BLOCKED = {
    Mode.STOPPED: "the robot was stopped; call the hand_back service to allow motions again",
    Mode.PERSON: "a person has the arm; it moves again after the hand_back service",
}

PARAMETERS = (
    Parameter(
        "real_time_factor", 1.0, "Pace of motions against real time; 0: as fast as it goes.", 0.0, 100.0
    ),
    Parameter("seed", 0, "Seed of the first scene.", 0, 2**31 - 1),
    Parameter("heartbeat_limit_s", 0.5, "The arm holds when the decision was silent for so long.", 0.1, 10.0),
    Parameter("camera", True, "Render and publish camera frames."),
)


class BridgeNode(DialogueNode):
    """Publishes the sensors of SimRobot and serves its motions. MuJoCo stays in the loop's thread."""

    def __init__(self) -> None:
        super().__init__("sim_bridge", PARAMETERS)
        self.group = ReentrantCallbackGroup()
        self.loop: PhysicsLoop | None = None

    def configure(self) -> None:
        """Load the robot; the scene cache is built when it is not there yet."""
        self.vocabulary = load_vocabulary()
        self.robot = SimRobot(self.vocabulary)
        self.scene_camera: SceneCamera | None = None
        self.cameras: dict[int, SceneCamera] = {}
        self.looks: dict[int, Look] = {}  # each scene's own look, to which an Appearance is relative
        self.loop = PhysicsLoop(
            self.robot,
            lambda sample: self.sensors.publish(sample, self.scene_camera),
            self._publish_mode,
            float(self.value("real_time_factor")),
            float(self.value("heartbeat_limit_s")),
            lambda name, why: self.get_logger().warning(f"{name} was broken off: {why}"),
        )

    def activate(self) -> None:
        """Open all ends; the loop itself is run by main()."""
        self.sensors = SensorTopics(self, self.robot)
        self.failures = self.publisher(m.Failure, topics.FAILURE, EVENT_QOS)
        self.modes = self.publisher(String, topics.ROBOT_MODE, EXCHANGE_QOS)
        self.truths = self.publisher(String, "/sim/ground_truth/state", EXCHANGE_QOS)
        self.subscription(m.Stop, topics.STOP, self._on_stop, EVENT_QOS)
        self.subscription(Header, topics.HEARTBEAT, lambda _: self.loop.heartbeat(), EVENT_QOS)
        for kind, name, callback in (
            (srv.Hold, topics.HOLD, self._on_hold),
            (srv.Takeover, topics.TAKEOVER, self._on_takeover),
            (srv.Takeover, topics.HAND_BACK, self._on_hand_back),
            (srv.CaptureStill, topics.CAPTURE_STILL, self._on_still),
            (srv.ResetScene, topics.RESET_SCENE, self._on_reset),
        ):
            self.service(kind, name, callback, group=self.group)
        for kind, name, execute in (
            (action.AttemptTask, topics.ATTEMPT_TASK, self._on_attempt),
            (action.ExecuteRepair, topics.EXECUTE_REPAIR, self._on_repair),
        ):
            self.action(
                ActionServer(
                    self,
                    kind,
                    name,
                    execute,
                    callback_group=self.group,
                    goal_callback=lambda _: GoalResponse.ACCEPT,
                    cancel_callback=lambda _: CancelResponse.ACCEPT,
                )
            )
        self.info: ResetInfo | None = None
        self._reset(int(self.value("seed")), None, None, math.nan)
        self._publish_mode(Mode.READY)

    # ---- the scene (loop's thread) ---------------------------------------------------------------
    def _reset(self, seed: int, task: int | None, cause: str | None, severity: float):
        before = self.sensors.now_s() + STEP_S if self.info is not None else 0.0
        info = self.robot.reset(seed, task, cause, severity)
        self.sensors.offset_s = before - self.robot.stamp_s
        self.info = info
        self.recoverable = recoverable(self.robot.scenario, self.robot.target, self.vocabulary)
        if self.value("camera"):
            rng = np.random.default_rng([seed, 7])
            if info.task not in self.looks:
                self.looks[info.task] = Look.of(self.robot.model)
            look = self.looks[info.task]
            self.appearance = Appearance.draw(rng)
            self.appearance.apply(self.robot.model, look)
            mujoco.mj_forward(self.robot.model, self.robot.data)
            if info.task not in self.cameras:
                self.cameras[info.task] = SceneCamera(self.robot.model, 0)
            if self.scene_camera not in (None, self.cameras[info.task]):
                self.scene_camera.close()  # an open picture buffer takes 170 MB
            self.scene_camera = self.cameras[info.task]
            self.scene_camera.restart(int(rng.integers(2**31)))
            self.get_logger().info(
                f"scene {info.task}, seed {seed}, camera seed {self.scene_camera.seed}, {self.appearance}"
            )
        self.sensors.publish_frames(self.scene_camera)
        self._publish_truth()
        return info

    def _publish_truth(self) -> None:
        truth = dataclasses.asdict(self.robot.truth())
        truth |= {
            "success": self.robot.truth().success,
            "recoverable": self.recoverable,
            "family": FAMILY,
            "task": self.info.task,
            "seed": self.info.seed,
            "state_id": self.robot.state_id,
            "object": self.info.object_name,
        }
        self.truths.publish(String(data=json.dumps(truth)))

    def _publish_mode(self, mode: Mode) -> None:
        self.modes.publish(String(data=mode.value))

    # ---- motions (executor threads) --------------------------------------------------------------
    def _begin(self, name: str, program: Callable, after: Mode, needs_heartbeat: bool = True) -> Motion:
        """Start a motion in the loop; RuntimeError with the reason when none may start now."""

        def begin() -> Motion:
            if self.loop.mode in _BLOCKED:
                raise RuntimeError(_BLOCKED[self.loop.mode])
            return self.loop.start(Motion(name, program(), after, needs_heartbeat))

        return self.loop.call(begin)

    def _follow(
        self, motion: Motion, limit_s: float, goal=None, say: Callable[[], None] = lambda: None
    ) -> None:
        """Wait for the end of a motion; a cancelled goal or the time limit drops it."""
        until = time.monotonic() + limit_s
        while not motion.done.wait(0.05):
            say()
            if goal is not None and goal.is_cancel_requested:
                self.loop.call(lambda: self.loop.freeze("cancelled", Mode.HOLDING))
            elif time.monotonic() > until:
                self.loop.call(lambda: self.loop.freeze(f"not done within {limit_s:g} s", Mode.HOLDING))
            elif not self.is_active:
                raise RuntimeError("the bridge is being shut down")

    def _on_attempt(self, goal) -> action.AttemptTask.Result:
        result = action.AttemptTask.Result()
        try:
            if goal.request.instruction and goal.request.instruction != self.info.instruction:
                raise RuntimeError(
                    f"this scene is laid for {self.info.instruction!r}, not for {goal.request.instruction!r}"
                )
            motion = self._begin("attempt", self.robot.attempt, Mode.READY)
            self._follow(
                motion,
                120.0,
                goal,
                lambda: goal.publish_feedback(action.AttemptTask.Feedback(phase=self._phase())),
            )
        except (RuntimeError, TimeoutError) as error:
            result.error_code, result.error_msg = ERROR_REFUSED, str(error)
            goal.abort()
            return result
        if motion.result is None:
            result.error_code, result.error_msg = ERROR_DROPPED, motion.dropped
        else:
            self.loop.call(lambda: self._after_attempt(motion.result))
            result.claimed_success = motion.result.claimed_success
            result.message = (
                motion.result.failure.text if motion.result.failure else "placed in the container"
            )
        self._close_goal(goal, motion)
        return result

    def _close_goal(self, goal, motion: Motion) -> None:
        if goal.is_cancel_requested:
            goal.canceled()
        elif motion.result is None:
            goal.abort()
        else:
            goal.succeed()

    def _phase(self) -> str:
        return self.robot.phases[-1].name if self.robot.phases else ""

    def _after_attempt(self, attempt) -> None:
        """Report the failure the robot noticed, and what is true for those behind the wall."""
        self._publish_truth()
        if attempt.failure is None:
            return
        message = m.Failure(
            state_id=self.robot.state_id,
            family=FAMILY,
            stage=attempt.failure.phase,
            instruction=self.info.instruction,
            object=self.info.object_name,
            attempt_start=stamp(attempt.start_s + self.sensors.offset_s),
            attempt_end=stamp(attempt.end_s + self.sensors.offset_s),
            noticed_at=stamp(attempt.failure.stamp_s + self.sensors.offset_s),
            phases=[
                m.Phase(name=p.name, start=stamp(p.start_s + self.sensors.offset_s)) for p in attempt.phases
            ],
            grip_setpoint_n=attempt.grip_setpoint_n,
            grip_preload_n=attempt.grip_preload_n,
            noticed_by=attempt.failure.text,
        )
        message.header.stamp = stamp(self.sensors.now_s())
        self.failures.publish(message)

    def _on_repair(self, goal) -> action.ExecuteRepair.Result:
        request, result = goal.request, action.ExecuteRepair.Result()
        try:
            if request.state_id != self.robot.state_id:
                raise RuntimeError(
                    f"the repair was decided in state {request.state_id!r}, but the world is in "
                    f"state {self.robot.state_id!r}; diagnose again"
                )
            if len(request.argument_names) != len(request.argument_values):
                raise RuntimeError(
                    f"{len(request.argument_names)} argument names and "
                    f"{len(request.argument_values)} values were given; give one value for each"
                )
            arguments = dict(zip(request.argument_names, request.argument_values, strict=False))
            motion = self._begin("repair", lambda: self.robot.repair(request.repair, arguments), Mode.READY)
            limit_s = self.vocabulary.repair(request.repair).time_limit_s
            began = self.robot.stamp_s
            self._follow(
                motion,
                3 * limit_s,
                goal,
                lambda: goal.publish_feedback(
                    action.ExecuteRepair.Feedback(
                        phase=self._phase(), progress=min(1.0, (self.robot.stamp_s - began) / limit_s)
                    )
                ),
            )
        except (RuntimeError, TimeoutError, FailureDialogueError) as error:
            result.state_id = self.robot.state_id
            result.refused, result.error_code, result.error_msg = True, ERROR_REFUSED, str(error)
            goal.abort()
            return result
        if motion.result is None:
            self.loop.call(self.robot.world_changed)
            result.error_code, result.error_msg = ERROR_DROPPED, motion.dropped
        else:
            repair = motion.result
            self.loop.call(
                lambda: self._after_attempt(repair.attempt) if repair.attempt else self._publish_truth()
            )
            result.done, result.error_code, result.error_msg = (
                repair.done,
                int(repair.error_code),
                repair.error_msg,
            )
            result.refused = repair.error_code is RepairCode.OUT_OF_REACH
        result.state_id = self.robot.state_id
        self._close_goal(goal, motion)
        return result

    # ---- services (executor threads) -------------------------------------------------------------
    def _on_hold(self, request: srv.Hold.Request, response: srv.Hold.Response):
        try:
            # Going to the checkpoint is what the robot does when in doubt, so it needs no heartbeat.
            motion = self._begin("hold", self.robot.go_to_checkpoint, Mode.HOLDING, needs_heartbeat=False)
            self._follow(motion, 60.0)
            response.at_checkpoint = bool(motion.result)
            if not response.at_checkpoint:
                response.error_code = ERROR_DROPPED
                response.error_msg = motion.dropped or "the checkpoint was not reached"
        except (RuntimeError, TimeoutError) as error:
            response.error_code, response.error_msg = ERROR_REFUSED, str(error)
        return response

    def _on_stop(self, message: m.Stop) -> None:
        self.get_logger().warning(f"stopped by {message.who or 'somebody'} {message.reason}".rstrip())
        self.loop.call(lambda: self.loop.freeze("stopped", Mode.STOPPED))

    def _on_takeover(self, request: srv.Takeover.Request, response: srv.Takeover.Response):
        self.loop.call(lambda: self.loop.freeze(f"{request.who or 'a person'} took over", Mode.PERSON))
        response.success = True
        return response

    def _on_hand_back(self, request: srv.Takeover.Request, response: srv.Takeover.Response):
        def release() -> None:
            self.robot.world_changed()
            self.loop.release()

        self.loop.call(release)
        response.success = True
        return response

    def _on_still(self, request: srv.CaptureStill.Request, response: srv.CaptureStill.Response):
        def take():
            if self.scene_camera is None:
                raise RuntimeError("the camera is switched off (parameter 'camera')")
            return self.sensors.still(self.scene_camera)

        try:
            response.image, response.camera_info = self.loop.call(take)
        except (RuntimeError, TimeoutError) as error:
            response.error_code, response.error_msg = ERROR_REFUSED, str(error)
            return response
        response.success = True
        return response

    def _on_reset(self, request: srv.ResetScene.Request, response: srv.ResetScene.Response):
        def reset():
            if request.task and request.task not in TASK_OF_OBJECT:
                raise SceneError(f"no task picks {request.task!r}; known: {', '.join(TASK_OF_OBJECT)}")
            task = TASK_OF_OBJECT.get(request.task)
            self.loop.forget()
            return self._reset(int(request.seed), task, request.cause or None, request.severity)

        try:
            info = self.loop.call(reset, 60.0)
        except (FailureDialogueError, RuntimeError, TimeoutError) as error:
            response.error_code, response.error_msg = ERROR_REFUSED, str(error)
            return response
        response.success, response.instruction, response.state_id = True, info.instruction, info.state_id
        return response

    def health(self) -> Health:
        """Rates, pace and mode."""
        rates, self.sensors.counts = self.sensors.counts, dict.fromkeys(self.sensors.counts, 0)
        values = {f"{k} per second": str(v) for k, v in rates.items()}
        values |= {
            "real-time factor": f"{self.loop.measured_factor:.2f}",
            "mode": self.loop.mode.value,
            "peak memory MB": f"{resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024:.0f}",
            "heartbeats lost in motion": str(self.loop.lost_heartbeats),
        }
        if rates["wrench"] == 0:
            return Health(ERROR, "the physics loop stands still", values)
        if self.loop.mode in _BLOCKED:
            return Health(WARN, _BLOCKED[self.loop.mode], values)
        return Health(OK, "running", values)

    def deactivate(self) -> None:
        """End the loop."""
        if self.loop is not None:
            self.loop.end()


def main(argv: list[str] | None = None) -> int:
    """Run the node: the executor in threads of its own, the physics in this one."""
    # Our own handlers: the context must outlive the loop, which publishes at every step.
    rclpy.init(args=argv if argv is not None else sys.argv, signal_handler_options=SignalHandlerOptions.NO)
    ended = threading.Event()
    sys.setswitchinterval(5e-4)  # the physics loop must not wait 5 ms for the executor's threads
    try:
        node = BridgeNode()
    except Exception as error:
        print(f"error: {type(error).__name__}: {error}", file=sys.stderr)
        rclpy.try_shutdown()
        return 2
    executor = MultiThreadedExecutor(num_threads=4)
    executor.add_node(node)

    def serve() -> None:
        with contextlib.suppress(ExternalShutdownException):
            spin(node, executor, ended)

    def end(*_) -> None:
        ended.set()
        if node.loop is not None:
            node.loop.end()

    signal.signal(signal.SIGINT, end)
    signal.signal(signal.SIGTERM, end)
    thread = threading.Thread(target=serve, daemon=True)
    node.autostart()
    thread.start()
    try:
        while not ended.wait(0.05):  # while not active, a lifecycle manager may configure it
            if node.is_active and node.loop is not None:
                node.loop.run()
    finally:  # after an error in the physics as well, or the executor's threads keep the process alive
        ended.set()
        thread.join(timeout=2.0)
        executor.shutdown(timeout_sec=2.0)  # lets open goals say how they ended while ROS is still up
        rclpy.try_shutdown()
    return 0


if __name__ == "__main__":
    raise SystemExit(main())
