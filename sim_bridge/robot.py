"""The simulated robot: one LIBERO-Object scene, stepped at 500 Hz, with sensors, episodes and ground truth.

Motions are programs: generators that set targets, yield once per control step and return their result. The
caller owns the loop, so that it can publish every sample and drop a program at any step:

    program = robot.attempt()
    try:
        while True:
            next(program)
            sample = robot.step()
    except StopIteration as end:
        result = end.value

`run` is that loop. A program that was dropped is closed; then freeze() or go_to_checkpoint().
"""

from __future__ import annotations

import math
from collections.abc import Callable, Generator
from dataclasses import dataclass
from typing import TypeVar

import mujoco
import numpy as np

from failure_dialogue.evidence import Phase
from failure_dialogue.robots.grasp_monitor import GraspMonitor, Noticed
from failure_dialogue.vocabulary import Vocabulary, load_vocabulary
from sim_bridge import repairs, task
from sim_bridge.arm import STEP_S, ArmController
from sim_bridge.objects import GRAVITY_M_S2, USABLE_TASKS, GraspObject, object_of_task
from sim_bridge.perturbation import Scenario, draw_scenario
from sim_bridge.scene_cache import CachedScene, load_scene
from sim_bridge.sensors import Sample, SensorSuite
from sim_bridge.world import GroundTruth, World

Result = TypeVar("Result")
Program = Generator[None, None, Result]

JOINT_EVERY = 5
FRAME_EVERY = 25
_SETTLE_STEPS = 350  # LIBERO's initial states start up to 5 cm in the air


@dataclass(frozen=True)
class ResetInfo:
    """What the robot is told about a new episode. task: number in libero_object."""

    instruction: str
    object_name: str
    task: int
    seed: int
    state_id: str


class SimRobot:
    """One arm in one scene at a time. model and data are MuJoCo's, for cameras; motions go through programs.

    state_id changes whenever a motion may have changed the world.
    """

    def __init__(self, vocabulary: Vocabulary | None = None,
                 load: Callable[[int], CachedScene] = load_scene) -> None:
        self._vocabulary = vocabulary or load_vocabulary()
        self._load = load
        self._scenes: dict[int, CachedScene] = {}
        self._worlds: dict[int, World] = {}
        self._arms: dict[int, ArmController] = {}
        self._task: int | None = None

    # -- episodes ---------------------------------------------------------------------------------------

    def reset(self, seed: int, task: int | None = None, cause: str | None = None,
              severity: float = math.nan) -> ResetInfo:
        """Begin an episode; everything random comes from seed.

        task: one of objects.USABLE_TASKS, drawn when None. cause, severity: see draw_scenario.
        VocabularyError, ConfigError, SceneError say what cannot be staged.
        """
        scenario_seed, sensor_seed = np.random.SeedSequence(seed).spawn(2)
        rng = np.random.default_rng(scenario_seed)
        drawn = int(rng.choice(USABLE_TASKS))
        task = drawn if task is None else task
        target = object_of_task(task)
        scene = self._scene_of(task)
        # Drawn before anything changes: what cannot be staged leaves the present scene as it is.
        scenario = draw_scenario(rng, target, len(scene.init_states), self._vocabulary, cause, severity)
        self._task, self._target, self._scenario = task, target, scenario
        self.scene, self.world, self.arm = scene, self._worlds[task], self._arms[task]
        self.world.reset(self._scenario, target)
        self.arm.reset(target.setpoint_n, self._scenario.grip_scale)
        self._step_count = -_SETTLE_STEPS
        self.monitor: GraspMonitor | None = None
        self.phases: list[Phase] = []
        for _ in range(_SETTLE_STEPS):
            self._advance()
        self.world.mark_start()
        self._sensors = SensorSuite(sensor_seed)
        self._last_joints = self._measured_joints()
        self._force_z: list[float] = []
        self._seed, self._changes = seed, 0
        return ResetInfo(self.scene.instruction, target.words, task, seed, self.state_id)

    def _scene_of(self, task: int) -> CachedScene:
        if task not in self._scenes:
            scene = self._load(task)
            self._scenes[task] = scene
            self._worlds[task] = World(scene)
            self._arms[task] = ArmController(scene.model, self._worlds[task].data)
        return self._scenes[task]

    @property
    def model(self) -> mujoco.MjModel:
        """The model of the present scene."""
        return self.scene.model

    @property
    def data(self) -> mujoco.MjData:
        """The state of the present scene."""
        return self.world.data

    @property
    def target(self) -> GraspObject:
        """The object to pick, as the robot knows it."""
        return self._target

    @property
    def scenario(self) -> Scenario:
        """What was drawn for this episode. Ground truth, and the robot's own lift speed and hand error."""
        return self._scenario

    @property
    def stamp_s(self) -> float:
        """Simulated seconds since the episode began."""
        return self._step_count * STEP_S

    @property
    def state_id(self) -> str:
        """Names this state of the world."""
        return f"{self._seed}.{self._changes}"

    def world_changed(self) -> None:
        """Programs say so when they may have touched something."""
        self._changes += 1

    def truth(self) -> GroundTruth:
        """What really is, for scoring and labels only."""
        return self.world.truth(self._scenario)

    # -- stepping ---------------------------------------------------------------------------------------

    def step(self) -> Sample:
        """Advance by STEP_S and return what the sensors say."""
        self._advance()
        stamp = self.stamp_s
        wrench = self._sensors.wrench(stamp, self.world.wrench())
        joints = None
        self._force_z.append(wrench[2])
        if self._step_count % JOINT_EVERY == 0:
            joints = self._last_joints = self._measured_joints()
            if self.monitor is not None and self.phases:
                aperture_m = float(joints.position[7] + joints.position[8])
                self.monitor.update(stamp, self.phases[-1].name, aperture_m,
                                    sum(self._force_z) / len(self._force_z))
            self._force_z.clear()
        return Sample(stamp, wrench, joints)

    def _advance(self) -> None:
        self.arm.apply()
        self.world.step()
        self._step_count += 1

    def _measured_joints(self):
        return self._sensors.joints(*self.world.joints())

    def grip_effort_n(self) -> float:
        """Force per finger (N) as the gripper measures it now."""
        return float(self._last_joints.effort[7:].mean())

    # -- what programs use ------------------------------------------------------------------------------

    def begin_attempt(self) -> None:
        """Forget the phases of the last attempt and watch for a new failure."""
        self.phases = []
        self.monitor = GraspMonitor(self._target.mass_kg * GRAVITY_M_S2)

    def begin_phase(self, name: str) -> None:
        """The motion goes over into a phase of evidence.PHASES."""
        self.phases.append(Phase(name, self.stamp_s))

    @property
    def noticed(self) -> Noticed | None:
        """The failure the robot noticed in this attempt, if any."""
        return self.monitor.noticed if self.monitor is not None else None

    # -- programs ---------------------------------------------------------------------------------------

    def attempt(self) -> Program[task.AttemptResult]:
        """Pick the target and place it in the container, with the ordinary grasp."""
        return task.attempt(self)

    def repair(self, name: str, arguments: dict[str, float] | None = None) -> Program[repairs.RepairResult]:
        """Carry out a repair of failures.yaml, the new try at the task included. RepairError at the call
        when name or arguments are not in the closed list."""
        return repairs.repair(self, self._vocabulary, name, arguments or {})

    def go_to_checkpoint(self) -> Program[bool]:
        """Lift, then move to the safe pose out of the camera's view; True when it got there."""
        return task.go_to_checkpoint(self)

    def freeze(self) -> Program[None]:
        """Stop where the arm is (within 0.1 s) and stay; never ends, drop it to go on."""
        return task.freeze(self)

    def run(self, program: Program[Result], on_sample: Callable[[Sample], None] | None = None,
            on_frame: Callable[[mujoco.MjData, float], None] | None = None) -> Result:
        """Drive a program to its end, as fast as it goes. on_frame is called at 20 Hz with data and stamp."""
        while True:
            try:
                next(program)
            except StopIteration as end:
                return end.value
            sample = self.step()
            if on_sample is not None:
                on_sample(sample)
            if on_frame is not None and self._step_count % FRAME_EVERY == 0:
                on_frame(self.data, sample.stamp_s)
