"""A grasp with friction, weight and grip as the physics says, without a simulator: evidence for tests."""

from __future__ import annotations

import numpy as np

from failure_dialogue.evidence import Evidence, Frame, JointSeries, Phase, WrenchSeries
from failure_dialogue.robots.panda import PANDA

START_S = 100.0
#: Phases by their start, from START_S: the lift takes 0.8 s with the preload, then 0.8 s of relaxing.
STARTS_S = {"approach": 0.0, "rest": 1.0, "close": 1.4, "lift": 2.6, "relax": 2.9, "hold": 3.5}
END_S = 4.3
_POSTURE_RAD = np.array([0.0, 0.3, 0.0, -2.0, 0.0, 2.3, 0.8])


def _joints_at(height_m: np.ndarray) -> np.ndarray:
    """(n, 7) angles that put the tool this much above the posture, by turning the shoulder."""
    shoulder = np.linspace(0.3, -0.4, 200)
    angles = np.tile(_POSTURE_RAD, (200, 1))
    angles[:, 1] = shoulder
    z = PANDA.forward(angles)[:, 2]
    found = np.tile(_POSTURE_RAD, (len(height_m), 1))
    found[:, 1] = np.interp(height_m, z - z[0], shoulder)
    return found


def grasp_evidence(
    *,
    mass_kg: float = 0.3,
    friction: float = 0.5,
    grip_scale: float = 1.0,
    setpoint_n: float = 4.7,
    noise: float = 1.0,
    frames: int = 0,
    seed: int = 0,
) -> Evidence:
    """One lift: the load is the weight while 2 mu N carries it, else the friction; it slides 25 mm out."""
    rng = np.random.default_rng(seed)
    preload = 2.2 * setpoint_n
    t = np.arange(0.0, END_S, 0.002)
    close, lift, relax, hold = (STARTS_S[name] for name in ("close", "lift", "relax", "hold"))
    commanded = np.interp(t, [close, close + 0.6, relax, hold], [0.0, preload, preload, setpoint_n])
    force = grip_scale * commanded
    height = np.clip(0.2 * (t - lift), 0.0, 0.25)
    weight = np.interp(t, [lift, lift + 0.1], [0.0, 9.81 * mass_kg])
    load, aperture = np.zeros_like(t), np.interp(t, [close, close + 0.4], [0.08, 0.05])
    slid, gap = 0.0, 0.05
    for i in range(len(t)):
        limit = 2 * friction * force[i]
        if slid >= 0.025:
            gap = max(0.0, gap - 0.3 * 0.002)
            force[i] = min(force[i], 0.2) if gap > 0 else force[i]
        elif weight[i] > limit:
            slid += 0.2 * 0.002
            load[i] = limit
        else:
            load[i] = weight[i]
        if t[i] >= lift:
            aperture[i] = gap

    wrench = np.zeros((len(t), 6))
    wrench[:, 2] = load
    wrench += rng.uniform(-4, 4, 6) * [1, 1, 1, 0.02, 0.02, 0.02]
    wrench += noise * rng.normal(0, [0.15, 0.15, 0.15, 0.01, 0.01, 0.01], wrench.shape)
    slow = slice(None, None, 5)
    position = np.column_stack([_joints_at(height[slow]), aperture[slow] / 2, aperture[slow] / 2])
    effort = np.zeros_like(position)
    effort[:, 7:] = force[slow, None] + noise * rng.normal(0, 0.1, (len(effort), 2))
    return Evidence(
        "grasp",
        "lift",
        "pick up the ketchup",
        START_S,
        START_S + END_S,
        tuple(Phase(name, START_S + s) for name, s in STARTS_S.items()),
        WrenchSeries(START_S + t, wrench),
        JointSeries(
            START_S + t[slow],
            PANDA.arm_joints + PANDA.finger_joints,
            position,
            np.zeros_like(position),
            effort,
        ),
        tuple(
            Frame(START_S + s, rng.integers(0, 256, (64, 64, 3), np.uint8))
            for s in np.linspace(0.0, END_S, frames)
        ),
        setpoint_n,
        preload,
    )
