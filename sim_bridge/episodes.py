"""One generated grasp episode: run it from its seed and cut the evidence that a diagnoser would get."""

from __future__ import annotations

import dataclasses
from dataclasses import dataclass

import mujoco
import numpy as np

from failure_dialogue.evidence import Evidence, Frame, RollingBuffer
from sim_bridge.appearance import Appearance, Look
from sim_bridge.camera import SceneCamera
from sim_bridge.robot import SimRobot
from sim_bridge.sensors import JOINT_NAMES, Sample
from sim_bridge.task import AttemptResult

FAMILY = "grasp"
#: The evidence begins this long before the rest phase (s).
LEAD_S = 0.2
_LOOK_STREAM = 1  # beside the scenario and the sensors, which SimRobot draws from the same seed


@dataclass(frozen=True)
class Episode:
    """What came of one seed: the attempt, the truth as a flat dict, the evidence (None unless asked for)."""

    attempt: AttemptResult
    facts: dict
    evidence: Evidence | None

    @property
    def lost(self) -> bool:
        """A failure as a data set keeps it: the robot noticed it, and the object is not in place."""
        return self.facts["outcome"] == "lost"


class EpisodeRunner:
    """Runs seeded episodes in one process; keeps one camera per scene, as opening one takes a second."""

    def __init__(self) -> None:
        self.robot = SimRobot()
        self._cameras: dict[int, tuple[SceneCamera, Look, mujoco.MjData]] = {}

    def run(self, seed: int, cause: str | None, task: int, frames: int) -> Episode:
        """frames: number of camera frames, evenly from closing to the end; evidence for failures only."""
        robot = self.robot
        info = robot.reset(seed, task, cause)
        buffer = RollingBuffer()
        snapshots: list[tuple[float, np.ndarray]] = []

        def keep(sample: Sample) -> None:
            buffer.add_wrench(sample.stamp_s, tuple(sample.wrench.tolist()))
            if sample.joints is not None:
                joints = sample.joints
                buffer.add_joints(sample.stamp_s, JOINT_NAMES, joints.position.tolist(),
                                  joints.velocity.tolist(), joints.effort.tolist())

        def snap(data: mujoco.MjData, stamp: float) -> None:
            snapshots.append((stamp, data.qpos.copy()))

        attempt = robot.run(robot.attempt(), keep, snap)
        truth, scenario = robot.truth(), robot.scenario
        facts = {
            "seed": seed, "cause": cause, "severity": truth.severity,
            "object": robot.target.name, "task": task,
            "scene": f"libero_object/{task}", "init_state": scenario.init_state,
            "margin": round(scenario.margin(robot.target.setpoint_n), 4),
            "outcome": _outcome(attempt, truth.success), "where": where_failed(attempt, truth.rise_m),
            "rise_m": round(truth.rise_m, 4), "damaged": truth.damaged,
            "moved": list(truth.moved), "noticed_stage": attempt.failure.phase if attempt.failure else "",
            "noticed_by": attempt.failure.by if attempt.failure else ""}
        if facts["outcome"] != "lost" or attempt.failure is None:
            return Episode(attempt, facts, None)
        starts = {p.name: p.start_s for p in attempt.phases}
        pictures, look = self._pictures(seed, task, snapshots, starts["close"], attempt.end_s, frames)
        for frame in pictures:
            buffer.add_frame(frame.stamp_s, frame.image_rgb)
        evidence = buffer.window(
            starts["rest"] - LEAD_S, attempt.end_s, family=FAMILY, stage=attempt.failure.phase,
            instruction=info.instruction, phases=attempt.phases, grip_setpoint_n=attempt.grip_setpoint_n,
            grip_preload_n=attempt.grip_preload_n)
        return Episode(attempt, facts | look, evidence)

    def _pictures(self, seed: int, task: int, snapshots, start_s: float, end_s: float,
                  count: int) -> tuple[list[Frame], dict]:
        if count == 0:
            return [], {}
        robot = self.robot
        if task not in self._cameras:
            model = robot.model
            self._cameras[task] = SceneCamera(model, 0), Look.of(model), mujoco.MjData(model)
        camera, original, drawn = self._cameras[task]
        rng = np.random.default_rng([seed, _LOOK_STREAM])
        appearance, camera_seed = Appearance.draw(rng), int(rng.integers(2**31))
        camera.restart(camera_seed)
        appearance.apply(robot.model, original)
        stamps = np.array([stamp for stamp, _ in snapshots])
        pictures = []
        for wanted in np.linspace(start_s, end_s, count):
            stamp, qpos = snapshots[int(np.argmin(np.abs(stamps - wanted)))]
            drawn.qpos[:] = qpos
            mujoco.mj_forward(robot.model, drawn)
            pictures.append(Frame(stamp, camera.frame(drawn)))
        return pictures, {"appearance": dataclasses.asdict(appearance), "camera_seed": camera_seed}


def _outcome(attempt: AttemptResult, success: bool) -> str:
    """held: done, and the robot says so; lost: failed, and noticed; missed: failed, unnoticed;
    dropped_in: lost over the basket, so that it lies where it should."""
    if attempt.failure is None:
        return "held" if success else "missed"
    return "dropped_in" if success else "lost"


def where_failed(attempt: AttemptResult, rise_m: float) -> str:
    """Where it failed: table (never lifted by 1 cm), lift, transport; '' when it did not."""
    if attempt.failure is None:
        return ""
    if rise_m < 0.01:
        return "table"
    return "transport" if attempt.failure.phase == "transport" else "lift"
