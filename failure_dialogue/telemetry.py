"""What the wrench, the fingers and the joints tell of a grasp: one trace, its features, ten lines of text."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from failure_dialogue.diagnosis.protocol import Event
from failure_dialogue.errors import EvidenceError
from failure_dialogue.evidence import Evidence
from failure_dialogue.robots.profile import RobotProfile

#: All signals are brought to one clock with this step and averaged over this width (s).
STEP_S = 0.002
SMOOTH_S = 0.03
#: A longer hole in the wrench or the joints between closing and the end makes the evidence unusable (s).
MAX_GAP_S = 0.1
#: The tare needs this many samples, and may not move by more than this between its halves (N).
MIN_REST_SAMPLES = 20
MAX_BIAS_STEP_N = 1.0
#: The object is lost when the fingers are this much closer than in the grasp (m), or the load has
#: fallen to this share of its largest value.
COLLAPSE_M = 0.002
LOST_LOAD_SHARE = 0.5
#: It slips from the last moment at which the load was this share of its plateau (its 90 % quantile).
SLIP_LOAD_SHARE = 0.9
#: A load under this is none: the noise of a wrist sensor (N).
MIN_LOAD_N = 0.3
#: The window before the slip from which features are read (s).
PRE_SLIP_S = 0.15

_AXES = ("fx", "fy", "fz", "tx", "ty", "tz")


@dataclass(frozen=True)
class GraspTrace:
    """One attempt on one clock: arrays (n,) from the start of closing to the end of the evidence.

    time_s counts from the start of the lift and is negative while closing; lift_s is that start on the
    evidence's clock. load_n: tared force along the hand's axis, positive for a hanging weight;
    lateral_n, bending_nm: size of the tared force and torque across that axis; twist_nm: torque about
    it; effort_n: mean finger force; height_m: tool height above its place at the start of the lift.
    NaN: that axis, or the finger effort, is missing. slip_s and lost_s are on time_s; lost_s is NaN
    while the object is still held, and slip_s then is the last sample.
    """

    lift_s: float
    time_s: np.ndarray
    load_n: np.ndarray
    lateral_n: np.ndarray
    bending_nm: np.ndarray
    twist_nm: np.ndarray
    aperture_m: np.ndarray
    effort_n: np.ndarray
    height_m: np.ndarray
    tare_n_nm: np.ndarray
    slip_s: float
    lost_s: float

    def mean(self, signal: np.ndarray, start_s: float, end_s: float) -> float:
        """Mean of one of the signals over start_s <= time_s <= end_s; NaN when no sample lies there."""
        inside = (self.time_s >= start_s) & (self.time_s <= end_s)
        return float(signal[inside].mean()) if inside.any() else float("nan")

    def at(self, signal: np.ndarray, time_s: float) -> float:
        """One of the signals at a moment of time_s."""
        return float(np.interp(time_s, self.time_s, signal))


def grasp_trace(evidence: Evidence, profile: RobotProfile) -> GraspTrace:
    """Bring the sensors of one grasp attempt to one clock; EvidenceError names what is unusable and why.

    Needs the phases rest, close and lift, the force along the hand's axis (fz), and all joints of the
    profile. The tare is the mean wrench of the rest phase, in which nothing is touched.
    """
    close_s = evidence.phase_window("close")[0]
    lift_s = evidence.phase_window("lift")[0]
    wrench_stamps, wrench, tare = _tared_wrench(evidence)
    joints = evidence.joints
    _check_stamps("joint states", joints.stamps_s)
    _check_gaps("joint states", joints.stamps_s, close_s, evidence.end_s)
    for name in (*profile.arm_joints, *profile.finger_joints):
        if not np.isfinite(joints.column(name)).all():
            raise EvidenceError(
                f"the position of joint {name!r} is not finite in "
                f"{int((~np.isfinite(joints.column(name))).sum())} of {len(joints.stamps_s)} "
                "joint states; check its driver"
            )

    clock = np.arange(close_s, evidence.end_s, STEP_S)
    time = clock - lift_s

    def onto_clock(stamps: np.ndarray, values: np.ndarray) -> np.ndarray:
        return _smooth(np.interp(clock, stamps, values))

    axes = [onto_clock(wrench_stamps, wrench[:, i]) for i in range(6)]
    aperture = onto_clock(joints.stamps_s, profile.aperture_m(joints))
    height = onto_clock(joints.stamps_s, profile.tool_position_m(joints)[:, 2])
    height = height - np.interp(0.0, time, height)
    load = axes[2]
    slip_s, lost_s = _slip(time, load, aperture)
    return GraspTrace(
        lift_s,
        time,
        load,
        np.hypot(axes[0], axes[1]),
        np.hypot(axes[3], axes[4]),
        axes[5],
        aperture,
        onto_clock(joints.stamps_s, profile.finger_force_n(joints)),
        height,
        tare,
        slip_s,
        lost_s,
    )


def _tared_wrench(evidence: Evidence) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Stamps (n,), tared wrench (n, 6) with whole columns NaN where an axis is missing, and the tare (6,)."""
    stamps, wrench = evidence.wrench.stamps_s, evidence.wrench.wrench_n_nm
    _check_stamps("wrench", stamps)
    if np.isinf(wrench).any():
        raise EvidenceError(
            f"{int(np.isinf(wrench).any(axis=1).sum())} of {len(wrench)} wrench samples are "
            "infinite; check the force-torque sensor"
        )
    missing = np.isnan(wrench).any(axis=0)
    if missing[2]:
        raise EvidenceError(
            "the force along the hand's axis (fz) is missing from the wrench; without it the load is unknown"
        )
    wrench = np.where(missing, np.nan, wrench)
    rest_s, rest_end_s = evidence.phase_window("rest")
    rest = wrench[(stamps >= rest_s) & (stamps < rest_end_s)]
    if len(rest) < MIN_REST_SAMPLES:
        raise EvidenceError(
            f"the rest window of {rest_end_s - rest_s:.2f} s holds {len(rest)} wrench samples; "
            f"the tare needs at least {MIN_REST_SAMPLES}"
        )
    half = len(rest) // 2
    step = np.abs(rest[:half, :3].mean(axis=0) - rest[half:, :3].mean(axis=0))
    if np.nanmax(step) > MAX_BIAS_STEP_N:
        raise EvidenceError(
            f"the bias of {_AXES[int(np.nanargmax(step))]} moved by {np.nanmax(step):.1f} N "
            f"within the rest window; at most {MAX_BIAS_STEP_N:g} N can be tared"
        )
    _check_gaps("wrench", stamps, evidence.phase_window("close")[0], evidence.end_s)
    tare = rest.mean(axis=0)
    return stamps, wrench - tare, tare


def _check_stamps(what: str, stamps_s: np.ndarray) -> None:
    if len(stamps_s) == 0:
        raise EvidenceError(f"no {what} was recorded during the attempt; check that its topic is published")
    if not np.isfinite(stamps_s).all() or (np.diff(stamps_s) < 0).any():
        raise EvidenceError(
            f"the stamps of the {what} are not in order of time; check the clock of its driver"
        )


def _check_gaps(what: str, stamps_s: np.ndarray, start_s: float, end_s: float) -> None:
    inside = stamps_s[(stamps_s > start_s) & (stamps_s < end_s)]
    edges = np.concatenate([[start_s], inside, [end_s]])
    gaps = np.diff(edges)
    if gaps.max() > MAX_GAP_S:
        at = edges[int(gaps.argmax())]
        raise EvidenceError(
            f"the {what} has a gap of {gaps.max():.2f} s, {at - start_s:.2f} s after closing "
            f"began; at most {MAX_GAP_S:g} s can be bridged"
        )


def _smooth(values: np.ndarray) -> np.ndarray:
    """Centred moving average over SMOOTH_S; at the ends over what there is."""
    width = max(1, round(SMOOTH_S / STEP_S)) | 1
    kernel = np.ones(width)
    full = np.convolve(values, kernel)
    count = np.convolve(np.ones(len(values)), kernel)
    start = width // 2
    return (full / count)[start : start + len(values)]


def _slip(time: np.ndarray, load: np.ndarray, aperture: np.ndarray) -> tuple[float, float]:
    """(onset of slip, loss of the object), both from the start of the lift, from force and aperture alone."""
    lift = time >= 0
    if lift.sum() < 2:
        raise EvidenceError("the evidence ends as the lift begins; there is nothing to diagnose yet")
    grasp = np.median(aperture[(time >= -0.1) & ~lift]) if (~lift).any() else aperture[lift][0]
    time, load, aperture = time[lift], load[lift], aperture[lift]
    peak = np.maximum.accumulate(load)
    lost = (aperture < grasp - COLLAPSE_M) | ((peak > MIN_LOAD_N) & (load < LOST_LOAD_SHARE * peak))
    # Lost for good: a load that comes back was an oscillation.
    held = np.flatnonzero(~lost)
    last = int(held[-1]) if len(held) else 0
    if last == len(time) - 1:
        return float(time[-1]), float("nan")
    plateau = np.quantile(load[: last + 1], 0.9)
    carried = np.flatnonzero(load[: last + 1] >= SLIP_LOAD_SHARE * plateau)
    return float(time[carried[-1]] if len(carried) else time[last]), float(time[last])


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
    "sag_m",
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
    closing = -0.1, 0.0
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
        "load_close_ratio": trace.mean(trace.load_n, *closing) / setpoint,
        "lateral_close_ratio": trace.mean(trace.lateral_n, *closing) / setpoint,
        "lever_close_m": trace.mean(trace.bending_nm, *closing) / setpoint,
        # The pads spring back as the force falls from preload to set-point.
        "release_mm": 1e3 * (trace.mean(trace.aperture_m, *pre) - trace.mean(trace.aperture_m, *closing)),
        "sag_m": float(trace.height_m[carrying].min()),
    }
    if not finger_effort:
        return features
    if not np.isfinite(trace.effort_n).all():
        raise EvidenceError("the fingers report no effort; use the model that was trained without it")
    effort_close = trace.mean(trace.effort_n, *closing)
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
    """(k,) float32: the named features in order, as force_features, which may raise.

    Rounded to 1e-5, far below their noise, so that a decision tree's thresholds, midway between two
    values, mean the same in single and in double precision.
    """
    features = force_features(evidence, profile, finger_effort=not set(names).isdisjoint(EFFORT_FEATURES))
    return np.round([features[name] for name in names], 5).astype(np.float32)


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
    closing = -0.1, 0.0
    slip = (
        "none seen; the object is still held"
        if np.isnan(trace.lost_s)
        else (
            f"begins {trace.slip_s:.2f} s into the lift at "
            f"{1e3 * trace.at(trace.height_m, trace.slip_s):.0f} mm, object lost at {trace.lost_s:.2f} s"
        )
    )
    opened, closed, end = 1e3 * np.array(
        [trace.aperture_m[0], trace.mean(trace.aperture_m, *closing), trace.aperture_m[-1]]
    )
    peak, mean = trace.load_n[carrying].max(), trace.load_n[carrying].mean()
    sideways, bending, twist = (
        trace.mean(s, *pre) for s in (trace.lateral_n, trace.bending_nm, trace.twist_nm)
    )
    after = _against(trace.mean(trace.effort_n, *closing), evidence.grip_preload_n, "commanded preload")
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
