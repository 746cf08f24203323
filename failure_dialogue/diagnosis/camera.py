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
#: Side of the images the backbone takes (pixels), and the share of the frame that the centre crop keeps.
IMAGE_SIDE = 224
CROP_SHARE = 0.5


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


def views(frames: Sequence[Frame]) -> np.ndarray:
    """(2 n, 224, 224, 3) uint8: the n whole frames, then their n centre crops."""
    whole: list[np.ndarray] = []
    crops: list[np.ndarray] = []
    for frame in frames:
        image = frame.image_rgb
        height, width = (round(CROP_SHARE * side) for side in image.shape[:2])
        top, left = (image.shape[0] - height) // 2, (image.shape[1] - width) // 2
        for kept, part in ((whole, image), (crops, image[top : top + height, left : left + width])):
            kept.append(
                cv2.resize(np.ascontiguousarray(part), (IMAGE_SIDE, IMAGE_SIDE), interpolation=cv2.INTER_AREA)
            )
    return np.stack(whole + crops)


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
