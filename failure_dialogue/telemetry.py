"""What a grasp attempt's sensors tell of its failure: features for a classifier, ten lines for people."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from failure_dialogue.diagnosis.protocol import Event
from failure_dialogue.errors import EvidenceError
from failure_dialogue.evidence import Evidence
from failure_dialogue.grasp_trace import MIN_LOAD_N, STEP_S, grasp_trace
from failure_dialogue.robots.profile import RobotProfile

#: The window before the slip from which features are read (s).
PRE_SLIP_S = 0.15
#: The end of closing, relative to the start of the lift (s).
CLOSED_S = (-0.1, 0.0)


def _log_ratio(value: float, reference: float) -> float:
    """Natural log of value/reference, at least that of 1/100: no load is a small load, not minus infinity."""
    return float(np.log(max(value / reference, 0.01))) if np.isfinite(value) else float("nan")


#: Features that need the force of the fingers.
EFFORT_FEATURES = (
    "effort_close_log",
    "effort_slip_log",
    "friction_slip_log",
    "friction_max_log",
    "peak_per_effort_log",
)
#: Features of the wrench, the aperture and the chain.
MOTION_FEATURES = (
    "load_slip_log",
    "load_peak_log",
    "load_early_log",
    "load_mid_log",
    "peak_to_slip_log",
    "early_to_slip_log",
    "load_ripple",
    "load_slope",
    "slip_time_s",
    "slip_height_m",
    "slide_m",
    "lateral_ratio",
    "lever_m",
    "twist_lever_m",
    "load_close_ratio",
    "lateral_close_ratio",
    "lever_close_m",
    "release_mm",
    *(
        f"{signal}_closing_{what}"
        for signal in ("load", "lateral", "bending", "twist")
        for what in ("peak", "lowest", "spread")
    ),
)
FEATURE_NAMES = EFFORT_FEATURES + MOTION_FEATURES


def force_features(
    evidence: Evidence, profile: RobotProfile, *, finger_effort: bool = True
) -> dict[str, float]:
    """Named features of one grasp failure, scaled by the robot's own set-points and tare.

    Forces stand as logarithms of their ratio to the commanded finger force, so that the features of a
    light and a heavy object, or of a mild and a severe fault, lie on one line. Left out on purpose: the
    size of the object (aperture), forces in newtons, and all that happens after the loss; the speed at
    which empty fingers close is a property of one gripper. A missing wrench axis gives NaN in its
    features. With finger_effort=False the five EFFORT_FEATURES are left out.

    EvidenceError: the evidence is unusable, the robot states no set-point, or its fingers report no effort.
    """
    setpoint, preload = evidence.grip_setpoint_n, evidence.grip_preload_n
    if not setpoint > 0:
        raise EvidenceError(
            f"the robot states no grip set-point (it is {setpoint} N); give grip_setpoint_n with the failure"
        )
    if not preload > 0:
        preload = setpoint
    trace = grasp_trace(evidence, profile)
    pre = max(0.0, trace.slip_s - PRE_SLIP_S), trace.slip_s
    carrying = (trace.time_s >= 0) & (trace.time_s <= trace.slip_s)
    load_slip = trace.mean(trace.load_n, *pre)
    load_peak = float(trace.load_n[carrying].max())
    load_early = trace.mean(trace.load_n, 0.0, min(0.2, trace.slip_s))
    load_mid = trace.mean(trace.load_n, 0.5 * trace.slip_s, trace.slip_s)
    firm = max(load_slip, MIN_LOAD_N)
    lost_s = trace.slip_s if np.isnan(trace.lost_s) else trace.lost_s
    rate = min(0.1, trace.slip_s)
    features = {
        "load_slip_log": _log_ratio(load_slip, setpoint),
        "load_peak_log": _log_ratio(load_peak, setpoint),
        "load_early_log": _log_ratio(load_early, setpoint),
        "load_mid_log": _log_ratio(load_mid, setpoint),
        "peak_to_slip_log": _log_ratio(load_peak, firm),
        "early_to_slip_log": _log_ratio(load_early, firm),
        "load_ripple": float(trace.load_n[carrying].std()) / firm,
        "load_slope": (trace.at(trace.load_n, rate) - trace.at(trace.load_n, 0.0)) / setpoint,
        "slip_time_s": trace.slip_s,
        "slip_height_m": trace.at(trace.height_m, trace.slip_s),
        "slide_m": trace.at(trace.height_m, lost_s) - trace.at(trace.height_m, trace.slip_s),
        "lateral_ratio": trace.mean(trace.lateral_n, *pre) / firm,
        "lever_m": trace.mean(trace.bending_nm, *pre) / firm,
        "twist_lever_m": trace.mean(trace.twist_nm, *pre) / firm,
        "load_close_ratio": trace.mean(trace.load_n, *CLOSED_S) / setpoint,
        "lateral_close_ratio": trace.mean(trace.lateral_n, *CLOSED_S) / setpoint,
        "lever_close_m": trace.mean(trace.bending_nm, *CLOSED_S) / setpoint,
        # The pads spring back as the force falls from preload to set-point.
        "release_mm": 1e3 * (trace.mean(trace.aperture_m, *pre) - trace.mean(trace.aperture_m, *CLOSED_S)),
    }
    # How the fingers push the object about before they hold it.
    before = trace.time_s < 0
    for signal in ("load_n", "lateral_n", "bending_nm", "twist_nm"):
        closing = getattr(trace, signal)[before] / setpoint
        name = signal.rpartition("_")[0] + "_closing"
        features[f"{name}_peak"] = float(np.abs(closing).max())
        features[f"{name}_lowest"] = float(closing.min())
        features[f"{name}_spread"] = float(closing.std())
    if not finger_effort:
        return features
    if not np.isfinite(trace.effort_n).all():
        raise EvidenceError("the fingers report no effort; use the model that was trained without it")
    effort_close = trace.mean(trace.effort_n, *CLOSED_S)
    effort_slip = trace.mean(trace.effort_n, *pre)
    # Mobilised friction, load / (2 N): it cannot exceed the coefficient, and equals it while sliding.
    mobilised = trace.load_n[carrying] / np.maximum(2 * trace.effort_n[carrying], 0.2)
    window = max(1, round(0.1 / STEP_S))
    steady = mobilised
    if len(mobilised) > window:
        steady = np.convolve(mobilised, np.ones(window) / window, mode="valid")
    return {
        "effort_close_log": _log_ratio(effort_close, preload),
        "effort_slip_log": _log_ratio(effort_slip, setpoint),
        "friction_slip_log": _log_ratio(load_slip, max(2 * effort_slip, 0.2)),
        "friction_max_log": _log_ratio(float(steady.max()), 1.0),
        "peak_per_effort_log": _log_ratio(load_peak, max(2 * effort_close, 0.2)),
        **features,
    }


def feature_row(evidence: Evidence, profile: RobotProfile, names: Sequence[str]) -> np.ndarray:
    """(k,) float32: the named features in order, as force_features, which may raise."""
    features = force_features(evidence, profile, finger_effort=not set(names).isdisjoint(EFFORT_FEATURES))
    return np.array([features[name] for name in names], np.float32)


def slip_event(evidence: Evidence, profile: RobotProfile) -> Event | None:
    """From the onset of slip to the loss of the object; None when it is still held. Raises as grasp_trace."""
    trace = grasp_trace(evidence, profile)
    if np.isnan(trace.lost_s):
        return None
    return Event(
        "slip",
        trace.lift_s + trace.slip_s,
        trace.lift_s + trace.lost_s,
        f"{trace.slip_s:.2f} s into the lift, {1e3 * trace.at(trace.height_m, trace.slip_s):.0f} mm up, "
        f"under a load of {trace.at(trace.load_n, trace.slip_s):.1f} N",
    )


def _against(value: float, commanded: float, what: str) -> str:
    if not np.isfinite(value):
        return "not reported"
    if not commanded > 0:
        return f"{value:.1f} N per finger; the robot states no {what}"
    return f"{value:.1f} N per finger, {100 * value / commanded:.0f} % of the {what} of {commanded:.1f} N"


def telemetry_text(evidence: Evidence, profile: RobotProfile) -> str:
    """Ten fixed lines that a person or a language model can read. Raises as grasp_trace."""
    trace = grasp_trace(evidence, profile)
    pre = max(0.0, trace.slip_s - PRE_SLIP_S), trace.slip_s
    carrying = (trace.time_s >= 0) & (trace.time_s <= trace.slip_s)
    load, effort = trace.mean(trace.load_n, *pre), trace.mean(trace.effort_n, *pre)
    ratio = f"{load / (2 * effort):.2f}" if effort > 0.1 else "not known"
    slip = (
        "none seen; the object is still held"
        if np.isnan(trace.lost_s)
        else (
            f"begins {trace.slip_s:.2f} s into the lift at "
            f"{1e3 * trace.at(trace.height_m, trace.slip_s):.0f} mm, object lost at {trace.lost_s:.2f} s"
        )
    )
    opened, closed, end = 1e3 * np.array(
        [trace.aperture_m[0], trace.mean(trace.aperture_m, *CLOSED_S), trace.aperture_m[-1]]
    )
    peak, mean = trace.load_n[carrying].max(), trace.load_n[carrying].mean()
    sideways, bending, twist = (
        trace.mean(s, *pre) for s in (trace.lateral_n, trace.bending_nm, trace.twist_nm)
    )
    after = _against(trace.mean(trace.effort_n, *CLOSED_S), evidence.grip_preload_n, "commanded preload")
    before = _against(effort, evidence.grip_setpoint_n, "commanded holding force")
    seconds = evidence.end_s - evidence.start_s
    return "\n".join(
        [
            f"attempt: robot {profile.robot_id}, failed in {evidence.stage!r} after {seconds:.1f} s",
            f"tare: {trace.tare_n_nm[2]:.1f} N along the hand, measured at rest before closing",
            f"aperture: {opened:.1f} mm open, {closed:.1f} mm in the grasp, {end:.1f} mm at the end",
            f"grip after closing: {after}",
            f"grip before the slip: {before}",
            f"load: peak {peak:.1f} N, mean {mean:.1f} N, before the slip {load:.1f} N",
            f"load per grip: {ratio} (load / both fingers' force; the friction coefficient while sliding)",
            f"slip: {slip}",
            f"sideways: {sideways:.1f} N, {bending:.2f} Nm bending, {twist:.2f} Nm twist before the slip",
            f"end: load {trace.load_n[-1]:.1f} N, hand {1e3 * trace.height_m[-1]:.0f} mm above the grasp",
        ]
    )
