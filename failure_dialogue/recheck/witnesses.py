"""The two witnesses of the re-check: the gripper with the wrist's load, and the camera."""

from __future__ import annotations

import cv2
import numpy as np

from failure_dialogue.errors import EvidenceError
from failure_dialogue.evidence import Evidence
from failure_dialogue.perception.projection import Camera, Region
from failure_dialogue.perception.registration import register
from failure_dialogue.recheck.verdict import Reading, Verdict, Witness, abstention, not_measured
from failure_dialogue.robots.profile import RobotProfile

GRIPPER = "gripper"
CAMERA = "camera"

# The gripper witness ------------------------------------------------------------------------------
#: Fingers that close by this much after the grasp have lost what they held.
LOST_M = 0.003
#: Fingers this close together hold nothing.
EMPTY_M = 0.004
#: Fingers count as open when they are this much wider than the grasp (less for an object that is
#: nearly as wide as the open hand: then half of what is left).
OPENED_M = 0.005
#: The load that must vanish as the fingers open, as a share of the load in the lift. Both are taken against
#: the empty hand after the release, not the rest before the grasp: a wrist sensor drifts by newtons in a
#: motion, and a hand that reaches for an object that fell may lean on it (50 N were seen).
RELEASED_SHARE = 0.5
#: Under this load in the lift (N) nothing can be said: noise and drift are as large.
MIN_LOAD_N = 0.5
#: Windows in s: the grasp before the lift, the tare, the load at the end of the lift, and, after the
#: fingers opened, a pause and the load again.
GRASP_S, TARE_S, LIFTED_S, SETTLE_S, AFTER_S = 0.2, 0.5, 0.4, 0.2, 0.8
#: The load before the release is the largest median of BLOCK_S in this time before it (s): a hand that sets
#: the object down carries nothing, or is pushed up, in the last moments.
BEFORE_RELEASE_S, BLOCK_S = 2.0, 0.2
#: An object that gives way by this much between the fingers, once they have touched it, is crushed. In 143
#: simulated grasps it was at most 1.8 mm where the object stayed whole; where it did not, 8.7 mm and more.
GAVE_WAY_M = 0.003
#: Fingers that close this much slower than at their fastest have met the object.
TOUCH_SPEED_SHARE, TOUCH_SPAN_S = 0.1, 0.1
#: No longer silence of a sensor than this during the motion (s).
MAX_GAP_S = 0.5
MIN_SAMPLES = 4

# The camera witness -------------------------------------------------------------------------------
#: A pixel has changed when a channel differs by more than this (of 255) plus this share of its value,
#: after smoothing and after the exposure has been evened out.
PIXEL_CHANGE, PIXEL_CHANGE_SHARE = 12.0, 0.15
SMOOTHING_PX = 1.2
#: Share of the pixels that changed where the object stood: at or over CHANGED it is gone, at or under
#: UNCHANGED it still stands there, between them the camera cannot tell. In simulation: at most 0.007 in 42
#: still pairs with twice the camera's noise, at least 0.064 when it was moved by 1 cm, 0.28 when taken away.
CHANGED, UNCHANGED = 0.08, 0.03
#: Share of the pixels that changed where it was let go, from which on something new is there (still pairs: at
#: most 0.003). An object low in a basket may show nothing: 27 of 132 did not.
ARRIVED = 0.03
#: Room round each region that registration leaves out (px): shadow, and the rest of a large object.
REGION_MARGIN_PX = 20


def _window(stamps_s: np.ndarray, values: np.ndarray, start_s: float, end_s: float, what: str) -> np.ndarray:
    chosen = values[(stamps_s >= start_s) & (stamps_s <= end_s)]
    if len(chosen) < MIN_SAMPLES:
        raise EvidenceError(f"only {len(chosen)} samples of the {what} in {start_s:.2f}..{end_s:.2f} s")
    if not np.all(np.isfinite(chosen)):
        raise EvidenceError(f"the {what} is not measured (NaN) in {start_s:.2f}..{end_s:.2f} s")
    return chosen


def _check_gaps(stamps_s: np.ndarray, start_s: float, end_s: float, what: str) -> None:
    inside = stamps_s[(stamps_s >= start_s) & (stamps_s <= end_s)]
    gap = float(np.max(np.diff(np.concatenate([[start_s], inside, [end_s]]))))
    if gap > MAX_GAP_S:
        raise EvidenceError(f"the {what} was silent for {gap:.2f} s of the motion, {MAX_GAP_S} s are allowed")


def _smooth(values: np.ndarray) -> np.ndarray:
    """Running median of five, which a single bad sample cannot move."""
    if len(values) < 5:
        return values
    padded = np.concatenate([values[:1], values[:1], values, values[-1:], values[-1:]])
    return np.median(np.lib.stride_tricks.sliding_window_view(padded, 5), axis=1)


def gripper_witness(motion: Evidence, profile: RobotProfile) -> Witness:
    """Was the object held from the lift until the release, and let go there?

    motion: the phases of the last motion and what the sensors recorded in it. The wrench's third column
    is the load that hangs on the hand (N, up to a tare). Never reads what the robot commanded.
    """
    names = [phase.name for phase in motion.phases]
    if "close" not in names:
        return abstention(GRIPPER, "the last motion has no grasp ("
                          + (", ".join(names) or "no motion was seen") + ")")
    try:
        return _held_and_released(motion, profile) if "lift" in names else _never_lifted(motion, profile)
    except EvidenceError as error:
        return abstention(GRIPPER, str(error), (not_measured("load", "N", str(error)),))


def _never_lifted(motion: Evidence, profile: RobotProfile) -> Witness:
    close = motion.phase_window("close")[0]
    gave_way_m = _giving_way(motion.joints.stamps_s, _smooth(profile.aperture_m(motion.joints)), close,
                             motion.end_s)
    whole = _wholeness(gave_way_m)
    if whole.verdict is Verdict.FAIL:
        return _crushed(gave_way_m, (whole,))
    return Witness(GRIPPER, Verdict.FAIL, "the motion ended with the grasp: nothing was lifted", (whole,))


def _wholeness(gave_way_m: float) -> Reading:
    return Reading("giving way between the fingers", gave_way_m, "m", GAVE_WAY_M,
                   Verdict.FAIL if gave_way_m > GAVE_WAY_M else Verdict.PASS)


def _crushed(gave_way_m: float, read: tuple[Reading, ...]) -> Witness:
    return Witness(GRIPPER, Verdict.FAIL, f"the object gave way {1e3 * gave_way_m:.1f} mm under the grip: "
                   "it is damaged", read, damage=True)


def _held_and_released(motion: Evidence, profile: RobotProfile) -> Witness:
    aperture_m, stamps_s = _smooth(profile.aperture_m(motion.joints)), motion.joints.stamps_s
    lift_start = motion.phase_window("lift")[0]
    released = any(phase.name == "release" for phase in motion.phases)
    held_until = motion.phase_window("release")[0] if released else motion.end_s
    _check_gaps(stamps_s, lift_start, held_until, "aperture")

    grasp_m = float(np.median(_window(stamps_s, aperture_m, lift_start - GRASP_S, lift_start, "aperture")))
    if grasp_m < EMPTY_M:
        reading = Reading("aperture at the grasp", grasp_m, "m", EMPTY_M, Verdict.FAIL)
        return Witness(GRIPPER, Verdict.FAIL, f"the fingers closed on nothing ({1e3 * grasp_m:.1f} mm)",
                       (reading,))
    closing = grasp_m - float(np.min(_window(stamps_s, aperture_m, lift_start, held_until, "aperture")))
    lost = closing > LOST_M
    held = Reading("closing after the grasp", closing, "m", LOST_M, Verdict.FAIL if lost else Verdict.PASS,
                   f"the fingers closed to {1e3 * grasp_m:.1f} mm at the grasp")
    if lost:
        return Witness(GRIPPER, Verdict.FAIL, f"the fingers closed {1e3 * closing:.1f} mm further before a "
                       "release: the object was lost", (held,))
    gave_way_m = _giving_way(stamps_s, aperture_m, motion.phase_window("close")[0], lift_start)
    whole = _wholeness(gave_way_m)
    if whole.verdict is Verdict.FAIL:
        return _crushed(gave_way_m, (held, whole))
    if not released:
        return _without_release(stamps_s, aperture_m, grasp_m, motion, (held, whole))
    return _release_step(motion, stamps_s, aperture_m, grasp_m, (held, whole))


def _giving_way(stamps_s, aperture_m, close_start: float, close_end: float) -> float:
    """How far (m) the fingers went on closing after they had met the object."""
    chosen = (stamps_s >= close_start) & (stamps_s <= close_end)
    _window(stamps_s, aperture_m, close_start, close_end, "aperture")
    stamps_s, aperture_m = stamps_s[chosen], aperture_m[chosen]
    later = np.interp(stamps_s + TOUCH_SPAN_S, stamps_s, aperture_m)
    speed = (aperture_m - later) / TOUCH_SPAN_S
    first_fast = int(np.argmax(speed > 0.5 * np.max(speed)))
    slow = np.flatnonzero(speed[first_fast:] < TOUCH_SPEED_SHARE * np.max(speed))
    touched = first_fast + int(slow[0]) if len(slow) else len(aperture_m) - 1
    return float(aperture_m[touched] - np.min(aperture_m[touched:]))


def _open_from(stamps_s: np.ndarray, aperture_m: np.ndarray, motion: Evidence, grasp_m: float,
               start_s: float) -> tuple[float | None, float]:
    """(time from which the fingers are open, or None; the aperture that counts as open in m)."""
    rest = motion.phase_window("rest") if any(p.name == "rest" for p in motion.phases) else None
    room = OPENED_M
    if rest is not None:
        wide = _window(stamps_s, aperture_m, rest[1] - TARE_S, rest[1], "aperture")
        room = min(OPENED_M, 0.5 * max(0.0, float(np.median(wide)) - grasp_m))
    opened = stamps_s[(stamps_s >= start_s) & (aperture_m >= grasp_m + room)]
    return (float(opened[0]) if len(opened) else None), grasp_m + room


def _without_release(stamps_s, aperture_m, grasp_m: float, motion: Evidence,
                     read: tuple[Reading, ...]) -> Witness:
    opened, _ = _open_from(stamps_s, aperture_m, motion, grasp_m, motion.phase_window("lift")[0])
    if opened is not None:
        return Witness(GRIPPER, Verdict.FAIL, f"the fingers opened in {motion.phases[-1].name}, "
                       "before any release", read)
    return abstention(GRIPPER, f"the motion ended in {motion.phases[-1].name} with the fingers still at "
                      "the grasp", read)


def _release_step(motion: Evidence, stamps_s, aperture_m, grasp_m: float,
                  read: tuple[Reading, ...]) -> Witness:
    release = motion.phase_window("release")[0]
    opened, open_m = _open_from(stamps_s, aperture_m, motion, grasp_m, release)
    if opened is None:
        widest = float(np.max(_window(stamps_s, aperture_m, release, motion.end_s, "aperture")))
        shut = Reading("aperture after the release", widest, "m", open_m, Verdict.FAIL)
        return Witness(GRIPPER, Verdict.FAIL, "the fingers did not open to release the object", (*read, shut))

    lift_start = motion.phase_window("lift")[0]
    lifted_s = next(p.start_s for p in motion.phases if p.name in ("transport", "release"))
    _check_gaps(motion.wrench.stamps_s, lift_start, opened, "wrench")
    empty_n = _load_n(motion, opened + SETTLE_S, opened + SETTLE_S + AFTER_S)
    lift_n = _load_n(motion, lifted_s - LIFTED_S, lifted_s) - empty_n
    blocks = np.arange(max(lift_start, release - BEFORE_RELEASE_S), release - 0.5 * BLOCK_S, BLOCK_S)
    carried_n = max(_load_n(motion, start, start + BLOCK_S) for start in blocks)
    step_n = carried_n - empty_n
    lifted = Reading("load in the lift", lift_n, "N", MIN_LOAD_N,
                     Verdict.PASS if lift_n >= MIN_LOAD_N else Verdict.ABSTAIN)
    if lift_n < MIN_LOAD_N:
        return abstention(GRIPPER, f"the load in the lift was {lift_n:.2f} N, too small to follow",
                          (*read, lifted))
    needed_n = RELEASED_SHARE * lift_n
    dropped = Reading("load let go at the release", step_n, "N", needed_n,
                      Verdict.PASS if step_n >= needed_n else Verdict.ABSTAIN)
    if step_n < needed_n:
        return abstention(GRIPPER, f"only {step_n:.2f} N of the {lift_n:.2f} N lifted left the hand at the "
                          "release, though the fingers kept their width", (*read, lifted, dropped))
    return Witness(GRIPPER, Verdict.PASS, f"{lift_n:.1f} N were held until the release and left the hand "
                   "there", (*read, lifted, dropped))


def _load_n(motion: Evidence, start_s: float, end_s: float) -> float:
    """Median load on the hand in a window (N, up to the sensor's bias)."""
    return float(np.median(_window(motion.wrench.stamps_s, motion.wrench.wrench_n_nm[:, 2], start_s, end_s,
                                   "load")))


def _even_exposure(before: np.ndarray, after: np.ndarray, background: np.ndarray) -> np.ndarray:
    """The later still (float) with the gain of each channel fitted to the earlier one's background."""
    gain = np.median((before[background] + 4.0) / (after[background] + 4.0), axis=0)
    return after * gain.astype(np.float32)


def changed_share(before_rgb: np.ndarray, after_rgb: np.ndarray,
                  regions: dict[str, Region]) -> dict[str, float]:
    """Share of each region's pixels (0..1) whose colour changed between two stills of one camera.

    Registration and exposure are fitted outside the regions. EvidenceError when the stills cannot be
    compared. Shadows and light that fall into a region count as change.
    """
    height, width = before_rgb.shape[:2]
    background = np.ones((height, width), dtype=bool)
    for region in regions.values():
        region.grown(REGION_MARGIN_PX, width, height).of(background)[...] = False
    registration = register(before_rgb, after_rgb, background)
    before = cv2.GaussianBlur(before_rgb, (0, 0), SMOOTHING_PX).astype(np.float32)
    after = cv2.GaussianBlur(registration.warped(after_rgb), (0, 0), SMOOTHING_PX).astype(np.float32)
    after = _even_exposure(before, after, background)
    changed = np.any(np.abs(before - after) > PIXEL_CHANGE + PIXEL_CHANGE_SHARE * before, axis=2)
    return {name: float(np.mean(region.of(changed))) for name, region in regions.items()}


def camera_witness(before_rgb: np.ndarray, after_rgb: np.ndarray, camera: Camera, grasp_place_m: np.ndarray,
                   release_place_m: np.ndarray | None, object_size_m: float) -> Witness:
    """Is the object gone from where it stood, and is something new where it was let go?

    Two stills (H, W, 3) uint8 RGB of a camera that stands still, the arm at one pose in both; places
    (3,) in m in the arm's base frame, release_place_m None when nothing was let go.
    """
    try:
        regions = {"grasp": camera.region(grasp_place_m, object_size_m)}
        if release_place_m is not None:
            regions["release"] = camera.region(release_place_m, object_size_m)
        if before_rgb.shape[:2] != (camera.height, camera.width):
            raise EvidenceError(f"the still is {before_rgb.shape[1]}x{before_rgb.shape[0]}, its camera "
                                f"states {camera.width}x{camera.height}")
        shares = changed_share(before_rgb, after_rgb, regions)
    except EvidenceError as error:
        unread = not_measured("change where the object stood", "1", str(error))
        return abstention(CAMERA, str(error), (unread,))
    gone = True if shares["grasp"] >= CHANGED else (False if shares["grasp"] <= UNCHANGED else None)
    arrived = shares.get("release", 0.0) >= ARRIVED
    readings = [Reading("change where the object stood", shares["grasp"], "1", CHANGED,
                        {True: Verdict.PASS, False: Verdict.FAIL, None: Verdict.ABSTAIN}[gone])]
    if "release" in shares:
        readings.append(Reading("change where it was let go", shares["release"], "1", ARRIVED,
                                Verdict.PASS if arrived else Verdict.ABSTAIN))
    if gone is False:
        return Witness(CAMERA, Verdict.FAIL, f"where the object stood {100 * shares['grasp']:.0f} % of the "
                       "pixels changed: it still stands there", tuple(readings))
    if gone is None:
        return abstention(CAMERA, f"{100 * shares['grasp']:.0f} % of the pixels changed where the object "
                          "stood, too much for the same and too little for another sight", tuple(readings))
    if "release" not in shares:
        return abstention(CAMERA, "it left its place, but nothing was let go", tuple(readings))
    if arrived:
        return Witness(CAMERA, Verdict.PASS, "it left its place and something new is where it was let go",
                       tuple(readings))
    return Witness(CAMERA, Verdict.ABSTAIN, "it left its place, but where it was let go nothing new is seen",
                   tuple(readings), release_unseen=True)
