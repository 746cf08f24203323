"""The camera diagnoser: a frozen image backbone over eight frames of the attempt, and a small head."""

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
#: Side of the images the backbone takes (pixels), and of the square round what moves (share of the frame).
IMAGE_SIDE = 224
CROP_SHARE = 0.4
#: What moves is looked for on this many cells each way, among this share of them.
_CELLS = 64
_MOVING_SHARE = 0.05


def choose_frames(evidence: Evidence) -> tuple[Frame, ...]:
    """The FRAMES frames nearest to even times from the start of closing to the end, in order.

    EvidenceError with fewer than MIN_FRAMES in that window, or one that is not (H, W, 3) uint8.
    """
    start_s = evidence.phase_window("close")[0]
    frames = [f for f in evidence.frames if start_s <= f.stamp_s <= evidence.end_s]
    if len(frames) < MIN_FRAMES:
        raise EvidenceError(
            f"{len(frames)} camera frames lie between closing and the end of the attempt; "
            f"at least {MIN_FRAMES} are needed: check the camera's topic and rate"
        )
    for frame in frames:
        if frame.image_rgb.dtype != np.uint8 or frame.image_rgb.ndim != 3 or frame.image_rgb.shape[2] != 3:
            raise EvidenceError(
                f"a camera frame is {frame.image_rgb.dtype} of shape {frame.image_rgb.shape}; "
                "it must be (H, W, 3) uint8 RGB"
            )
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


def views(frames: Sequence[Frame]) -> np.ndarray:
    """(2 n, 224, 224, 3) uint8: the n whole frames, then of each the square round moving_place().

    EvidenceError when the frames differ in size.
    """
    images = [frame.image_rgb for frame in frames]
    if len({image.shape for image in images}) != 1:
        raise EvidenceError("the camera frames differ in size; record with one resolution")
    height, width = images[0].shape[:2]
    side = round(CROP_SHARE * min(height, width))
    row, column = moving_place(images)
    top = int(np.clip(round(row * height - side / 2), 0, height - side))
    left = int(np.clip(round(column * width - side / 2), 0, width - side))
    crops = [image[top : top + side, left : left + side] for image in images]
    size = (IMAGE_SIDE, IMAGE_SIDE)
    return np.stack(
        [
            cv2.resize(np.ascontiguousarray(image), size, interpolation=cv2.INTER_LINEAR)
            for image in images + crops
        ]
    )


def clip_features(embeddings: np.ndarray) -> np.ndarray:
    """(2 n, d) embeddings of views() -> (8 d,) float32: mean, last - first, spread and steps of both."""
    parts = []
    for view in np.split(np.asarray(embeddings, dtype=np.float32), 2):
        parts += [
            view.mean(axis=0),
            view[-1] - view[0],
            view.std(axis=0),
            np.abs(np.diff(view, axis=0)).mean(axis=0),
        ]
    return np.concatenate(parts)


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

    def embed(self, evidence: Evidence) -> np.ndarray:
        """The (8 d,) row the head reads. EvidenceError when the frames do not allow it."""
        return clip_features(self.backbone.run(views(choose_frames(evidence))))

    def diagnose(self, evidence: Evidence) -> Diagnosis:
        """A distribution over the causes, or an abstention that says why."""
        start = time.perf_counter()
        if evidence.family != self.family:
            return Diagnosis.abstention(
                self.source,
                evidence.family,
                self.model_id,
                f"the failure is of family {evidence.family!r}, this model of {self.family!r}",
            )
        try:
            probabilities = self.head.run(self.embed(evidence)[None])[0]
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
