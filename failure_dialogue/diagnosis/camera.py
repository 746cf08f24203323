"""The camera diagnoser: eight frames of the attempt, what moves in them, and a frozen image backbone."""

from __future__ import annotations

import time
from collections.abc import Sequence

import cv2
import numpy as np

from failure_dialogue.diagnosis.onnx_model import OnnxModel
from failure_dialogue.diagnosis.protocol import Diagnosis
from failure_dialogue.errors import EvidenceError, ModelError
from failure_dialogue.evidence import Evidence, Frame

#: Frames taken, evenly between the start of closing and the end of the evidence.
FRAMES = 8
#: Fewer than this show no motion.
MIN_FRAMES = 4
#: Side of the images the backbone takes (pixels), and of the square round the hand (share of the frame).
IMAGE_SIDE = 224
SQUARE_SHARE = 0.4
#: What moves is looked for on this many cells each way, among this share of them.
_CELLS = 64
_MOVING_SHARE = 0.05
#: Optical flow is measured on squares of this side (pixels), between each of the last pairs of frames.
_FLOW_SIDE = 64
_FLOW_STEPS = 5

_FLOW = ("p02", "p10", "p50", "p90", "p98", "upper", "lower", "spread", "lower_p02", "lower_p98")
#: Vertical flow (share of the square, down is positive) by step, and when the last frame was taken.
MOTION_SEEN = (
    *(f"flow_{step}_{what}" for step in range(1, _FLOW_STEPS + 1) for what in _FLOW),
    "seconds_from_closing",
    "seconds_from_lift",
)
#: How much of a row is the backbone's; MOTION_SEEN follow.
BACKBONE_COLUMNS = 2 * 4 * 1280


def choose_frames(evidence: Evidence) -> tuple[Frame, ...]:
    """The FRAMES frames nearest to even times from the start of closing to the end, in order.

    EvidenceError: fewer than MIN_FRAMES there, or they are not (H, W, 3) uint8 RGB of one size.
    """
    start_s = evidence.phase_window("close")[0]
    # The frame at the start of closing may have been taken just before it.
    frames = [f for f in evidence.frames if start_s - 0.1 <= f.stamp_s <= evidence.end_s]
    if len(frames) < MIN_FRAMES:
        raise EvidenceError(
            f"{len(frames)} camera frames lie between closing and the end of the attempt; at least "
            f"{MIN_FRAMES} are needed: check the camera's topic and rate"
        )
    for frame in frames:
        if frame.image_rgb.dtype != np.uint8 or frame.image_rgb.ndim != 3 or frame.image_rgb.shape[2] != 3:
            raise EvidenceError(
                f"a camera frame is {frame.image_rgb.dtype} of shape {frame.image_rgb.shape}; it must be "
                "(H, W, 3) uint8 RGB"
            )
    if len({frame.image_rgb.shape for frame in frames}) != 1:
        raise EvidenceError("the camera frames differ in size; record with one resolution")
    stamps = np.array([f.stamp_s for f in frames])
    wanted = np.linspace(start_s, evidence.end_s, FRAMES)
    return tuple(frames[int(np.abs(stamps - t).argmin())] for t in wanted)


def moving_place(images_rgb: Sequence[np.ndarray]) -> tuple[float, float]:
    """(row, column) of the lower end of what moves, as shares of the height and width of the images.

    Of the cells whose brightness varies most over time, the lowest: an arm that grasps from above ends in
    its hand and in what it holds.
    """
    grey = [cv2.cvtColor(image, cv2.COLOR_RGB2GRAY) for image in images_rgb]
    small = np.stack([cv2.resize(image, (_CELLS, _CELLS), interpolation=cv2.INTER_AREA) for image in grey])
    # Exposure differs from frame to frame, and a shaking camera moves every edge a little: neither counts.
    levels = small / small.mean(axis=(1, 2), keepdims=True).clip(1e-3)
    change = cv2.GaussianBlur(levels.std(axis=0), (0, 0), 1.5)
    rows, columns = np.nonzero(change >= np.quantile(change, 1 - _MOVING_SHARE))
    lowest = rows >= np.quantile(rows, 0.8)
    return (float(rows[lowest].mean()) + 0.5) / _CELLS, (float(columns[lowest].mean()) + 0.5) / _CELLS


def hand_squares(images_rgb: Sequence[np.ndarray]) -> list[np.ndarray]:
    """The same square round moving_place() cut from each image, SQUARE_SHARE of the shorter side wide."""
    height, width = images_rgb[0].shape[:2]
    side = round(SQUARE_SHARE * min(height, width))
    row, column = moving_place(images_rgb)
    top = int(np.clip(round(row * height - side / 2), 0, height - side))
    left = int(np.clip(round(column * width - side / 2), 0, width - side))
    return [np.ascontiguousarray(image[top : top + side, left : left + side]) for image in images_rgb]


def views(frames: Sequence[Frame]) -> np.ndarray:
    """(2 n, 224, 224, 3) uint8: the n whole frames, then the n squares round the hand."""
    images = [np.ascontiguousarray(frame.image_rgb) for frame in frames]
    return np.stack([cv2.resize(image, (IMAGE_SIDE, IMAGE_SIDE)) for image in images + hand_squares(images)])


def clip_features(embeddings: np.ndarray, motion: np.ndarray) -> np.ndarray:
    """(2 n, 1280) embeddings of views() and (52,) motion_features() -> (10292,) float32, what a head reads.

    Of whole frames and of squares, over the frames: mean, last - first, spread, mean step; then the motion.
    """
    parts = []
    for view in np.split(np.asarray(embeddings, dtype=np.float32), 2):
        steps = np.abs(np.diff(view, axis=0)).mean(axis=0)
        parts += [view.mean(axis=0), view[-1] - view[0], view.std(axis=0), steps]
    return np.concatenate([*parts, motion]).astype(np.float32)


def motion_features(evidence: Evidence, frames: Sequence[Frame]) -> np.ndarray:
    """(52,) float32 in the order of MOTION_SEEN, from dense flow in the squares round the hand.

    Flow: Farneback, "Two-frame motion estimation based on polynomial expansion", SCIA 2003.
    """
    size = (_FLOW_SIDE, _FLOW_SIDE)
    squares = [
        cv2.cvtColor(cv2.resize(square, size, interpolation=cv2.INTER_AREA), cv2.COLOR_RGB2GRAY)
        for square in hand_squares([frame.image_rgb for frame in frames])
    ]
    values: list[float] = []
    for before, after in zip(squares[-_FLOW_STEPS - 1 : -1], squares[-_FLOW_STEPS:], strict=True):
        flow = np.zeros((*size, 2), np.float32)
        down = (
            cv2.calcOpticalFlowFarneback(before, after, flow, 0.5, 4, 15, 3, 5, 1.1, 0)[..., 1] / _FLOW_SIDE
        )
        upper, lower = np.split(down, 2)
        values += [*np.quantile(down, (0.02, 0.1, 0.5, 0.9, 0.98)), upper.mean(), lower.mean(), down.std()]
        values += [*np.quantile(lower, (0.02, 0.98))]
    last_s = frames[-1].stamp_s
    values += [last_s - evidence.phase_window("close")[0], last_s - evidence.phase_window("lift")[0]]
    # Rounded, so that a last bit that differs between machines decides no branch of a tree.
    return np.round(values, 5).astype(np.float32)


class CameraDiagnoser:
    """Diagnoses one family from what the robot saw. Source "camera"."""

    source = "camera"

    def __init__(self, family: str, backbone: OnnxModel, head: OnnxModel) -> None:
        """ModelError when the head was trained on another backbone."""
        expected, found = head.card.get("backbone_sha256"), backbone.card["sha256"]
        if expected != found:
            raise ModelError(
                f"head {head.model_id} was trained on backbone {str(expected)[:12]}..., the one given is "
                f"{found[:12]}...; train the head again"
            )
        self.family = family
        self.backbone = backbone
        self.head = head
        self.model_id = head.model_id

    def diagnose(self, evidence: Evidence) -> Diagnosis:
        """A distribution over the causes, or an abstention that says why."""
        start = time.perf_counter()
        if evidence.family != self.family:
            reason = f"the failure is of family {evidence.family!r}, this model of {self.family!r}"
            return Diagnosis.abstention(self.source, evidence.family, self.model_id, reason)
        try:
            frames = choose_frames(evidence)
            embeddings = self.backbone.run(views(frames))
            row = clip_features(embeddings, motion_features(evidence, frames))
            probabilities = self.head.run(row[None])[0]
        except (EvidenceError, ModelError) as error:
            return Diagnosis.abstention(self.source, self.family, self.model_id, str(error))
        return Diagnosis(
            self.source,
            self.family,
            self.head.classes,
            tuple(float(p) for p in probabilities),
            self.model_id,
            time.perf_counter() - start,
        )
