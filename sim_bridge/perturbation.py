"""What is wrong in a grasp episode, and the small differences every episode has; all drawn from its seed."""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np

from failure_dialogue.errors import ConfigError
from failure_dialogue.vocabulary import Vocabulary
from sim_bridge.objects import GRAVITY_M_S2, NOMINAL_FRICTION, GraspObject

#: Friction of the high-friction finger pads against anything (contact friction is the larger of the two).
PAD_FRICTION = 0.45

#: Spread of the nominal grasp: each factor is uniform in 1 +- this.
_GRIP_SPREAD, _MASS_SPREAD, _FRICTION_SPREAD, _SPEED_SPREAD = 0.05, 0.10, 0.10, 0.10
_HAND_OFFSET_M = 0.002

_WEAK_GRIP, _HEAVY_OBJECT, _SLIPPERY_SURFACE = "weak_grip", "heavy_object", "slippery_surface"
#: The grasp causes this simulator can stage.
STAGED_CAUSES = (_WEAK_GRIP, _HEAVY_OBJECT, _SLIPPERY_SURFACE)


@dataclass(frozen=True)
class Scenario:
    """Everything that is drawn for one episode. Ground truth: only the simulator and scoring see it.

    grip_scale: delivered over commanded force; mass_kg, friction: of the object as it is;
    lift_speed_m_s and hand_offset_m (2,): of the robot's own motion; severity: NaN without a cause.
    """

    cause: str | None
    severity: float
    init_state: int
    grip_scale: float
    mass_kg: float
    friction: float
    lift_speed_m_s: float
    hand_offset_m: tuple[float, float]

    def margin(self, commanded_n: float, friction: float | None = None) -> float:
        """M = 2 mu N / (m g) with this commanded force per finger (N); below 1 the object slips."""
        mu = self.friction if friction is None else friction
        return 2 * mu * commanded_n * self.grip_scale / (self.mass_kg * GRAVITY_M_S2)

    @property
    def full(self) -> bool:
        """A container heavier than stated is full to the brim, and stiff."""
        return self.cause == _HEAVY_OBJECT


def severity_range(vocabulary: Vocabulary, cause: str) -> tuple[float, float]:
    """(low, high) of a staged grasp cause as failures.yaml states it."""
    low, high = vocabulary.cause("grasp", cause).severity["range"]
    return float(low), float(high)


def draw_scenario(rng: np.random.Generator, target: GraspObject, n_init_states: int,
                  vocabulary: Vocabulary, cause: str | None = None,
                  severity: float = math.nan) -> Scenario:
    """Draw one episode. The nominal draws are the same with and without a cause.

    severity NaN: drawn from the range of the cause. ConfigError when it is out of range or the cause
    cannot be staged, VocabularyError when the cause is unknown.
    """
    init_state = int(rng.integers(n_init_states))
    grip = rng.uniform(1 - _GRIP_SPREAD, 1 + _GRIP_SPREAD)
    mass = target.mass_kg * rng.uniform(1 - _MASS_SPREAD, 1 + _MASS_SPREAD)
    friction = NOMINAL_FRICTION * rng.uniform(1 - _FRICTION_SPREAD, 1 + _FRICTION_SPREAD)
    speed = 0.2 * rng.uniform(1 - _SPEED_SPREAD, 1 + _SPEED_SPREAD)
    offset = rng.normal(0.0, _HAND_OFFSET_M, 2)
    unit_severity = rng.uniform()
    if cause is None:
        if not math.isnan(severity):
            raise ConfigError(f"severity {severity:g} was given without a cause; name the cause as well")
    else:
        low, high = severity_range(vocabulary, cause)
        if math.isnan(severity):
            severity = low + (high - low) * unit_severity
        elif not low <= severity <= high:
            raise ConfigError(f"severity {severity:g} of {cause!r} is outside {low:g}..{high:g}")
        if cause == _WEAK_GRIP:
            grip *= severity
        elif cause == _HEAVY_OBJECT:
            mass *= severity
        elif cause == _SLIPPERY_SURFACE:
            friction = severity
        else:
            raise ConfigError(f"cause {cause!r} cannot be staged in a grasp; use one of "
                              + ", ".join(STAGED_CAUSES))
    return Scenario(cause, float(severity), init_state, float(grip), float(mass), float(friction),
                    float(speed), (float(offset[0]), float(offset[1])))
