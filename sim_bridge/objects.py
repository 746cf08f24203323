"""What the robot is told about the objects it can pick: mass, grip set-point, crush limit.

LIBERO's own objects weigh 5 to 32 g and never slip from a 20 N gripper. Here each target gets the mass of
the real thing and the friction of a dry package, and the grip set-point follows from both:

    M = 2 mu N / (m g)     friction margin of a two-finger grasp with N newtons per finger

M = 1 is the edge of slipping. NOMINAL_MARGIN is what the robot plans with.

Crush limits. The lift begins with PRELOAD times the set-point, delivered with a gain of up to 1.05, which is
2.31 times the set-point: an ordinary package must stand that, so its limit is 2.6. A payload grip of 2.9
(2.76 to 3.05 delivered) therefore crushes an ordinary package. Steel cans take 3.5, and so does anything
that is heavier than stated because it is filled to the brim: its content carries the squeeze. That is why
gripping for a heavy load is right for a heavy object and wrong for a slippery one.
"""

from __future__ import annotations

from dataclasses import dataclass

from failure_dialogue.errors import SceneError

GRAVITY_M_S2 = 9.81
NOMINAL_FRICTION = 0.5
NOMINAL_MARGIN = 1.6
#: Grip at the start of the lift, in set-points; it relaxes to the set-point while lifting on.
PRELOAD = 2.2
#: The strongest command the gripper takes, per finger (N); what the fingers can deliver ends at 20 N.
MAX_GRIP_N = 40.0

_ORDINARY_CRUSH = 2.6
_STIFF_CRUSH = 3.5


@dataclass(frozen=True)
class GraspObject:
    """One object as the robot knows it; crush limits in set-points per finger."""

    name: str
    mass_kg: float
    crush_scale: float = _ORDINARY_CRUSH
    crush_scale_full: float = _STIFF_CRUSH
    held_out: bool = False

    @property
    def words(self) -> str:
        """How the robot calls it."""
        return self.name.replace("_", " ")

    @property
    def setpoint_n(self) -> float:
        """Holding force per finger (N) for the nominal margin."""
        return NOMINAL_MARGIN * self.mass_kg * GRAVITY_M_S2 / (2 * NOMINAL_FRICTION)

    def crush_limit_n(self, full: bool) -> float:
        """Force per finger (N) beyond which the object is damaged."""
        return self.setpoint_n * (self.crush_scale_full if full else self.crush_scale)


#: Targets of the libero_object suite. held_out: never in train, calibration or test, only in new_object.
#: cream_cheese loads as a scene but is no target: the palm is blocked near the 18 mm flat box.
OBJECTS: dict[str, GraspObject] = {o.name: o for o in (
    GraspObject("alphabet_soup", 0.30, crush_scale=_STIFF_CRUSH),
    GraspObject("salad_dressing", 0.26),
    GraspObject("bbq_sauce", 0.28),
    GraspObject("ketchup", 0.32),
    GraspObject("tomato_sauce", 0.34, crush_scale=_STIFF_CRUSH, held_out=True),
    GraspObject("butter", 0.25),
    GraspObject("milk", 0.38, held_out=True),
    GraspObject("chocolate_pudding", 0.24),
    GraspObject("orange_juice", 0.36),
)}

#: Task number in the libero_object suite of each target.
TASK_OF_OBJECT = {"alphabet_soup": 0, "salad_dressing": 2, "bbq_sauce": 3, "ketchup": 4, "tomato_sauce": 5,
                  "butter": 6, "milk": 7, "chocolate_pudding": 8, "orange_juice": 9}

USABLE_TASKS: tuple[int, ...] = tuple(sorted(TASK_OF_OBJECT.values()))


def object_of_task(task: int) -> GraspObject:
    """The target of a task of libero_object; SceneError for a task without a usable target."""
    for name, number in TASK_OF_OBJECT.items():
        if number == task:
            return OBJECTS[name]
    raise SceneError(f"task {task} of libero_object has no target that can be grasped; "
                     f"use one of {', '.join(map(str, USABLE_TASKS))}")
