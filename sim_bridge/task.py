"""The robot's motion programs: the pick-and-place attempt, the way to the safe checkpoint, the freeze.

Where to grasp comes from the simulator's poses, as a perception system would give it; whether the grasp
holds is judged from the robot's own sensors alone (robots.grasp_monitor).
"""

from __future__ import annotations

from collections.abc import Generator
from dataclasses import dataclass
from typing import TYPE_CHECKING

import mujoco
import numpy as np

from failure_dialogue.evidence import Phase
from failure_dialogue.robots.grasp_monitor import Noticed
from sim_bridge.arm import STEP_S
from sim_bridge.grasp_plan import GraspPlan, plan_grasp
from sim_bridge.objects import MAX_GRIP_N, PRELOAD

if TYPE_CHECKING:
    from sim_bridge.robot import SimRobot

Motion = Generator[None, None, None]

#: Hand pose of the safe checkpoint (m, world): behind and above the table, out of the camera's view of it.
CHECKPOINT_M = np.array([-0.36, -0.15, 0.50])
#: Opening direction of the hand that points straight down, as its x axis.
HAND_DOWN = np.array([[0.0, 1.0, 0.0], [1.0, 0.0, 0.0], [0.0, 0.0, -1.0]])

_TRAVEL_Z_M = 0.27
_OVER_M = 0.12
_FAST_M_S, _APPROACH_M_S, _CARRY_M_S, _LOWER_M_S = 0.5, 0.25, 0.3, 0.25
_REST_S, _HOLD_S, _EVIDENCE_AFTER_S = 0.2, 0.4, 0.4
_PRELOADED_LIFT_M, _LIFT_M = 0.04, 0.20
_CLOSE_S, _FORCE_RISE_N_S = 0.75, 45.0
_RELEASE_CLEARANCE_M = 0.02
_HAND_ABOVE_WALL_M = 0.035
#: Horizontal distance from the arm's base within which it grasps from the table (m), and the highest an
#: object may lie (its lowest point, m).
REACH_M = (0.30, 0.82)
_HIGHEST_SUPPORT_M = 0.08


@dataclass(frozen=True)
class GraspStyle:
    """How to grasp, lift and carry. Forces are commands per finger (N).

    The lift begins with preload_n, which relaxes to setpoint_n after 4 cm; equal forces: no such stage.
    lift_time_s is a least duration; effort_target_n: after closing, raise the command until the measured
    effort is this (None: trust the command).
    """

    setpoint_n: float
    preload_n: float
    lift_speed_m_s: float
    lift_time_s: float = 0.0
    carry_m_s: float = _CARRY_M_S
    extra_lift_m: float = 0.0
    effort_target_n: float | None = None
    hand_error_m: tuple[float, float] = (0.0, 0.0)


@dataclass(frozen=True)
class AttemptResult:
    """One try at the task as the robot itself knows it. Stamps in s since the episode began."""

    claimed_success: bool
    failure: Noticed | None
    phases: tuple[Phase, ...]
    grip_setpoint_n: float
    grip_preload_n: float
    start_s: float
    end_s: float


class _Lost(Exception):
    """The monitor noticed the failure: leave the motion that was under way."""


def wait(robot: SimRobot, seconds: float) -> Motion:
    """Stay for a time; raises _Lost when the monitor notices a failure."""
    for _ in range(round(seconds / STEP_S)):
        yield
        if robot.noticed is not None:
            raise _Lost


def move(robot: SimRobot, target: np.ndarray, speed_m_s: float, rotation: np.ndarray | None = None,
         least_s: float = 0.0, settle_s: float = 0.0) -> Motion:
    """Move the hand's target along a straight line, smoothly; raises _Lost like wait."""
    arm = robot.arm
    start, start_rotation = arm.target_position.copy(), arm.target_rotation.copy()
    turn = _turn(start_rotation, start_rotation if rotation is None else rotation)
    duration = max(1.5 * np.linalg.norm(target - start) / speed_m_s, least_s,
                   0.0 if rotation is None else float(np.linalg.norm(turn)) / 1.5)
    steps = max(1, round(duration / STEP_S))
    for step in range(1, steps + 1):
        u = step / steps
        u = u * u * (3 - 2 * u)
        arm.target_position = start + (target - start) * u
        if rotation is not None:
            arm.target_rotation = _rotated(start_rotation, turn * u)
        yield
        if robot.noticed is not None:
            raise _Lost
    yield from wait(robot, settle_s)


def _turn(start: np.ndarray, end: np.ndarray) -> np.ndarray:
    """(3,) rotation vector from start to end, world frame."""
    quaternion, vector = np.zeros(4), np.zeros(3)
    mujoco.mju_mat2Quat(quaternion, (end @ start.T).flatten())
    mujoco.mju_quat2Vel(vector, quaternion, 1.0)
    return vector


def _rotated(start: np.ndarray, vector: np.ndarray) -> np.ndarray:
    angle = float(np.linalg.norm(vector))
    if angle < 1e-9:
        return start
    quaternion, matrix = np.zeros(4), np.zeros(9)
    mujoco.mju_axisAngle2Quat(quaternion, vector / angle, angle)
    mujoco.mju_quat2Mat(matrix, quaternion)
    return matrix.reshape(3, 3) @ start


def graspable(robot: SimRobot) -> bool:
    """The target lies on the table within reach, and not in the container already."""
    world = robot.world
    distance = float(np.linalg.norm(world.target_centre_of_mass()[:2] - world.base_position()[:2]))
    lies = float(world.target_corners()[:, 2].min()) < _HIGHEST_SUPPORT_M
    return REACH_M[0] < distance < REACH_M[1] and lies and not world.target_in_container()


def attempt(robot: SimRobot) -> Generator[None, None, AttemptResult]:
    """The ordinary attempt: set-point grasp with a preload at the start of the lift.

    An object that is not within reach on the table is reported as a failure before any motion.
    """
    setpoint = robot.target.setpoint_n
    scenario = robot.scenario
    if not graspable(robot):
        now = robot.stamp_s
        unreachable = Noticed(now, "approach", "reach", "the object is not where it can be grasped")
        return AttemptResult(False, unreachable, (), setpoint, PRELOAD * setpoint, now, now)
    return (yield from pick_and_place(robot, GraspStyle(
        setpoint, PRELOAD * setpoint, scenario.lift_speed_m_s, hand_error_m=scenario.hand_offset_m)))


def pick_and_place(robot: SimRobot, style: GraspStyle) -> Generator[None, None, AttemptResult]:
    """One try in a given style; ends early, with some evidence after it, when the robot notices a failure."""
    robot.begin_attempt()
    robot.world.mark_rise()
    start_s = robot.stamp_s
    try:
        plan = yield from _pick(robot, style)
        yield from _place(robot, style, plan.position[2] - plan.bottom_m)
    except _Lost:
        robot.arm.hold_here()
        yield from _wait_anyway(_EVIDENCE_AFTER_S)
    robot.world_changed()
    return AttemptResult(robot.noticed is None, robot.noticed, tuple(robot.phases), style.setpoint_n,
                         style.preload_n, start_s, robot.stamp_s)


def _pick(robot: SimRobot, style: GraspStyle) -> Generator[None, None, GraspPlan]:
    arm = robot.arm
    robot.begin_phase("approach")
    arm.open_fingers()
    arm.command_force(style.preload_n)
    plan = plan_grasp(robot.world.target_corners(), robot.world.target_centre_of_mass(), HAND_DOWN)
    grasp = plan.position.copy()
    grasp[:2] += style.hand_error_m
    over_z = max(plan.top_m + _OVER_M, _TRAVEL_Z_M)
    here = arm.target_position
    yield from move(robot, np.array([here[0], here[1], max(here[2], over_z)]), _FAST_M_S)
    yield from move(robot, np.array([grasp[0], grasp[1], over_z]), _FAST_M_S, plan.rotation, settle_s=0.1)
    yield from move(robot, grasp, _APPROACH_M_S, settle_s=0.15)
    robot.begin_phase("rest")
    yield from wait(robot, _REST_S)
    robot.begin_phase("close")
    robot.world_changed()
    arm.close_fingers()
    yield from wait(robot, _CLOSE_S + style.preload_n / _FORCE_RISE_N_S)
    setpoint = style.setpoint_n
    if style.effort_target_n is not None:
        setpoint = yield from _raise_grip(robot, style.setpoint_n, style.effort_target_n)
    robot.begin_phase("lift")
    top = grasp + [0, 0, _LIFT_M + style.extra_lift_m]
    if style.preload_n > style.setpoint_n:
        yield from move(robot, grasp + [0, 0, _PRELOADED_LIFT_M], style.lift_speed_m_s)
    robot.begin_phase("relax")
    arm.command_force(setpoint)
    yield from move(robot, top, style.lift_speed_m_s, least_s=style.lift_time_s)
    robot.begin_phase("hold")
    yield from wait(robot, _HOLD_S)
    return plan


def _raise_grip(robot: SimRobot, command_n: float, target_n: float) -> Generator[None, None, float]:
    """Raise (or lower) the command until the measured effort is target_n; returns the last command."""
    for _ in range(4):
        measured = yield from _measured_effort(robot)
        if abs(measured - target_n) < 0.03 * target_n:
            break
        new = min(MAX_GRIP_N, command_n * target_n / max(measured, 0.05 * command_n))
        robot.arm.command_force(new)
        yield from wait(robot, abs(new - command_n) / 20.0 + 0.1)
        command_n = new
    return command_n


def _measured_effort(robot: SimRobot) -> Generator[None, None, float]:
    total = 0.0
    for _ in range(100):
        yield
        total += robot.grip_effort_n()
    return total / 100


def _place(robot: SimRobot, style: GraspStyle, grasp_height_m: float) -> Motion:
    arm = robot.arm
    robot.begin_phase("transport")
    low, high = robot.world.container_box()
    middle = (low + high) / 2
    here = arm.target_position
    yield from move(robot, np.array([middle[0], middle[1], here[2]]), style.carry_m_s, settle_s=0.2)
    # Low, but with the palm above the container's walls.
    z = max(low[2] + grasp_height_m + _RELEASE_CLEARANCE_M, high[2] - _HAND_ABOVE_WALL_M)
    lower_m_s = min(style.carry_m_s, _LOWER_M_S)
    yield from move(robot, np.array([middle[0], middle[1], z]), lower_m_s, settle_s=0.1)
    robot.begin_phase("release")
    arm.open_fingers()
    yield from wait(robot, 0.7)
    yield from move(robot, np.array([middle[0], middle[1], here[2]]), _FAST_M_S, settle_s=0.1)


def _wait_anyway(seconds: float) -> Motion:
    for _ in range(round(seconds / STEP_S)):
        yield


def go_to(robot: SimRobot, place: np.ndarray) -> Motion:
    """Straight up to travel height, then to a place (3,) m away from the table; no failure is watched for."""
    robot.monitor = None
    arm = robot.arm
    arm.hold_here()
    here = arm.target_position
    yield from move(robot, np.array([here[0], here[1], max(here[2], _TRAVEL_Z_M + 0.05)]), _APPROACH_M_S)
    yield from move(robot, place, _FAST_M_S, HAND_DOWN, settle_s=0.5)


def go_to_checkpoint(robot: SimRobot) -> Generator[None, None, bool]:
    """Lift straight up, then move to CHECKPOINT_M; bounded in speed and time. True: the hand is there."""
    yield from go_to(robot, CHECKPOINT_M)
    return bool(np.linalg.norm(robot.arm.position - CHECKPOINT_M) < 0.02)


def freeze(robot: SimRobot) -> Motion:
    """Hold the pose the arm has now; the grip stays as it is. Never ends."""
    robot.monitor = None
    robot.arm.hold_here()
    while True:
        yield
