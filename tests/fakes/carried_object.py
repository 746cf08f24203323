"""A pick-and-place motion as the sensors would record it, without a simulator: aperture, load, phases."""

from __future__ import annotations

import numpy as np

from failure_dialogue.evidence import Evidence, JointSeries, Phase, WrenchSeries
from failure_dialogue.robots.panda import PANDA

STARTS_S = {"approach": 100.0, "rest": 102.0, "close": 102.5, "lift": 104.0, "relax": 104.5, "hold": 105.0,
            "transport": 105.5, "release": 109.0}
END_S = 111.5
OPEN_M, WIDTH_M = 0.08, 0.05
_POSE_RAD = np.array([0.0, 0.3, 0.0, -2.0, 0.0, 2.3, 0.8])
#: How far the arm turns about its base while it carries (rad).
TURN_RAD = 0.8
GRASP_PLACE_M = PANDA.forward(_POSE_RAD)[0]
RELEASE_PLACE_M = PANDA.forward(_POSE_RAD + TURN_RAD * np.eye(7)[0])[0]
_NAMES = PANDA.arm_joints + PANDA.finger_joints


def carried_object(*, load_n: float = 3.0, lost_at_s: float | None = None, crushed_m: float = 0.0,
                   set_down_s: float = 0.0, opens: bool = True, sticks: bool = False, last: str = "release",
                   width_m: float = WIDTH_M, drift_n_s: float = 0.0, leans_n: float = 0.0,
                   seed: int = 0) -> Evidence:
    """One motion that carries an object of load_n until the release at 109 s.

    lost_at_s: it slips out then; crushed_m: gives way by this under the grip; set_down_s: stands on the
    ground for this long before the release, the hand pressing 5 N on it; opens: the fingers do at the
    release; sticks: the load stays all the same; last: the phase the motion ends in; leans_n: the hand leans
    on the object with this force from the rest until the lift.
    """
    rng = np.random.default_rng(seed)
    names = list(STARTS_S)
    phases = tuple(Phase(name, STARTS_S[name]) for name in names[:names.index(last) + 1])
    release = STARTS_S["release"] if last == "release" else np.inf
    t = np.arange(STARTS_S["approach"], END_S, 0.01)
    closing = np.clip(OPEN_M - 0.1 * (t - STARTS_S["close"]), width_m, OPEN_M)
    aperture = closing - crushed_m * np.clip((t - 103.3) / 0.1, 0, 1)
    if lost_at_s is not None:
        aperture -= width_m * np.clip((t - lost_at_s) / 0.2, 0, 1)
    if opens:
        aperture += (OPEN_M - width_m) * np.clip((t - release) / 0.3, 0, 1)
    aperture += rng.normal(0, 3e-5, len(t))
    position = np.tile(np.concatenate([_POSE_RAD, [0.0, 0.0]]), (len(t), 1))
    position[:, 0] = TURN_RAD * np.clip((t - STARTS_S["transport"]) / 3.0, 0, 1)
    position[:, 7] = position[:, 8] = aperture / 2
    zeros = np.zeros_like(position)

    w = np.arange(STARTS_S["approach"], END_S, 0.002)
    gone_s = release + 0.1 if opens and not sticks else np.inf
    gone_s = min(gone_s, np.inf if lost_at_s is None else lost_at_s)
    force = load_n * ((w > STARTS_S["lift"] + 0.1) & (w < gone_s))
    force[(w > STARTS_S["rest"]) & (w < STARTS_S["lift"] + 0.1)] -= leans_n
    if set_down_s:
        force[(w > release - set_down_s) & (w < release + 0.1)] = -5.0
    wrench = rng.normal(0, 0.15, (len(w), 6))
    wrench[:, 2] += 2.7 + force + drift_n_s * (w - w[0])
    return Evidence("", "", "put the soup in the basket", float(t[0]), END_S, phases, WrenchSeries(w, wrench),
                    JointSeries(t, _NAMES, position, zeros, zeros), ())
