"""The grasp repairs by physics: what each does, when it may, and how it ends.

raise_grip    raises the command until the measured finger effort is nominal, then lifts and places
payload_lift  grips with force_scale set-points, lifts and carries slowly
grip_pads     changes to high-friction finger pads at the tool stand, then makes an ordinary attempt

Each needs the object on the table within reach, plans the grasp anew from where it lies now, touches nothing
but it (and the fingers' pads), and ends with the object placed, with a failure noticed, or at its time limit
(failures.yaml).
None reads the cause or touches the perturbation. Dropped half way (program.close()), nothing is left
running: the arm keeps its last target until freeze() or go_to_checkpoint().
"""

from __future__ import annotations

import math
from collections.abc import Generator
from dataclasses import dataclass
from enum import IntEnum
from typing import TYPE_CHECKING

import numpy as np

from failure_dialogue.errors import RepairError
from failure_dialogue.vocabulary import Vocabulary
from sim_bridge import task
from sim_bridge.objects import MAX_GRIP_N, PRELOAD, GraspObject
from sim_bridge.perturbation import PAD_FRICTION, Scenario

if TYPE_CHECKING:
    from sim_bridge.robot import SimRobot

_TOOL_STAND_M = np.array([-0.20, -0.40, 0.35])
_TOOL_CHANGE_S = 3.0
_PAYLOAD_CARRY_M_S = 0.1
_PAYLOAD_EXTRA_LIFT_M = 0.05
#: The least friction margin with which a case counts as recoverable before it is tried.
RECOVERABLE_MARGIN = 1.1


class RepairCode(IntEnum):
    """error_code of execute_repair, range 100 to 199; 0 is success."""

    DONE = 0
    OUT_OF_REACH = 100
    LOST_AGAIN = 101
    TIME_LIMIT = 102
    GAVE_WAY = 103


@dataclass(frozen=True)
class RepairResult:
    """How a repair ended, from the robot's own sensors; attempt is None when no try was made."""

    done: bool
    error_code: RepairCode
    error_msg: str
    attempt: task.AttemptResult | None


def repair(robot: SimRobot, vocabulary: Vocabulary, name: str,
           arguments: dict[str, float]) -> Generator[None, None, RepairResult]:
    """The program of one repair. VocabularyError or RepairError, before any motion, when it is not in the
    closed list or an argument is out of range."""
    spec = vocabulary.repair(name)
    values = spec.checked(arguments)
    if name not in _REPAIRS:
        raise RepairError(f"this robot has no repair {name!r}; it has: {', '.join(_REPAIRS)}")
    return _bounded(robot, _REPAIRS[name], values, spec.time_limit_s)


def _bounded(robot: SimRobot, motion, values: dict[str, float],
             limit_s: float) -> Generator[None, None, RepairResult]:
    if not task.graspable(robot):
        return RepairResult(False, RepairCode.OUT_OF_REACH, "the object is not where it can be grasped; "
                            "put it back on the table within reach", None)
    start_s = robot.stamp_s
    program = motion(robot, values)
    while True:
        try:
            next(program)
        except StopIteration as end:
            result: task.AttemptResult = end.value
            break
        if robot.stamp_s - start_s > limit_s:
            program.close()
            robot.monitor = None
            robot.arm.hold_here()
            return RepairResult(False, RepairCode.TIME_LIMIT, f"the repair took longer than {limit_s:g} s; "
                                "it was stopped where it was", None)
        yield
    if result.failure is not None and result.failure.by == "gave way":
        return RepairResult(False, RepairCode.GAVE_WAY,
                            f"{result.failure.text}; it may be damaged, look at it", result)
    if result.failure is not None:
        return RepairResult(False, RepairCode.LOST_AGAIN, f"the object was lost again: {result.failure.text}",
                            result)
    return RepairResult(True, RepairCode.DONE, "", result)


def _raise_grip(robot: SimRobot, values: dict[str, float]) -> Generator[None, None, task.AttemptResult]:
    setpoint = robot.target.setpoint_n
    scenario = robot.scenario
    return (yield from task.pick_and_place(robot, task.GraspStyle(
        setpoint, setpoint, scenario.lift_speed_m_s, hand_error_m=scenario.hand_offset_m,
        effort_target_n=values["target_effort_scale"] * setpoint)))


def _payload_lift(robot: SimRobot, values: dict[str, float]) -> Generator[None, None, task.AttemptResult]:
    force = values["force_scale"] * robot.target.setpoint_n
    scenario = robot.scenario
    return (yield from task.pick_and_place(robot, task.GraspStyle(
        force, force, scenario.lift_speed_m_s, values["lift_time_s"], _PAYLOAD_CARRY_M_S,
        _PAYLOAD_EXTRA_LIFT_M, hand_error_m=scenario.hand_offset_m)))


def _grip_pads(robot: SimRobot, values: dict[str, float]) -> Generator[None, None, task.AttemptResult]:
    yield from task.go_to(robot, _TOOL_STAND_M)
    robot.arm.open_fingers()
    yield from task.wait(robot, _TOOL_CHANGE_S)
    robot.world.fit_pads(PAD_FRICTION)
    return (yield from task.attempt(robot))


_REPAIRS = {"raise_grip": _raise_grip, "payload_lift": _payload_lift, "grip_pads": _grip_pads}


def recoverable(scenario: Scenario, target: GraspObject, vocabulary: Vocabulary) -> bool:
    """Whether the matching repair can recover this case, before it is tried: ground truth, for scoring.

    True when the friction limit leaves a margin of at least RECOVERABLE_MARGIN with the force the repair
    uses, and that force stays under the crush limit.
    """
    if scenario.cause is None:
        return False
    name = vocabulary.cause("grasp", scenario.cause).repair
    defaults = {a.name: a.default for a in vocabulary.repair(name).arguments.values()}
    setpoint, friction, peak = target.setpoint_n, scenario.friction, math.nan
    if name == "raise_grip":
        command = min(MAX_GRIP_N, defaults["target_effort_scale"] * setpoint / scenario.grip_scale)
        peak = command
    elif name == "payload_lift":
        command = peak = defaults["force_scale"] * setpoint
    else:
        command, peak, friction = setpoint, PRELOAD * setpoint, max(friction, PAD_FRICTION)
    delivered = peak * scenario.grip_scale
    return (scenario.margin(command, friction) >= RECOVERABLE_MARGIN
            and delivered <= target.crush_limit_n(scenario.full))
