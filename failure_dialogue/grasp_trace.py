"""The sensors of one grasp attempt on one clock: tared load, aperture, effort, height, and the slip."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

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
