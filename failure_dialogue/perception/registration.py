"""Registration of two stills of one scene: where a pixel of the later one lay in the earlier one."""

from __future__ import annotations

from dataclasses import dataclass

import cv2
import numpy as np

from failure_dialogue.errors import EvidenceError

#: Fewer matches than this that agree on one motion say nothing (facts: over 1,420 pairs of the same
#: scene the registration that failed had fewer; pairs of different scenes reach far fewer).
MIN_INLIERS = 15
#: A fixed camera shakes by 0 to 2 px; a match further off than this is a wrong one.
MAX_SHIFT_PX = 8.0
RANSAC_PX = 1.0
MAX_FEATURES = 1200


@dataclass(frozen=True)
class Registration:
    """matrix_px: (2, 3) similarity that takes pixels (column, row) of the later still to the earlier."""

    matrix_px: np.ndarray
    inliers: int

    @property
    def shift_px(self) -> float:
        """How far the image moved at its origin."""
        return float(np.hypot(*self.matrix_px[:, 2]))

    def warped(self, later: np.ndarray) -> np.ndarray:
        """The later still as the camera of the earlier one would have seen it."""
        height, width = later.shape[:2]
        return cv2.warpAffine(later, self.matrix_px, (width, height), flags=cv2.INTER_CUBIC,
                              borderMode=cv2.BORDER_REPLICATE)


def _grey(image_rgb: np.ndarray) -> np.ndarray:
    """Smoothed and with equalised contrast, so that noise and exposure make no features."""
    grey = cv2.cvtColor(cv2.GaussianBlur(image_rgb, (0, 0), 1.0), cv2.COLOR_RGB2GRAY)
    return cv2.createCLAHE(clipLimit=3.0, tileGridSize=(8, 8)).apply(grey)


def check_pair(before_rgb: np.ndarray, after_rgb: np.ndarray) -> None:
    """EvidenceError unless both are (H, W, 3) uint8 of one size and not black."""
    for name, image in (("before", before_rgb), ("after", after_rgb)):
        if image.ndim != 3 or image.shape[2] != 3 or image.dtype != np.uint8:
            raise EvidenceError(f"the still {name} has shape {image.shape} and type {image.dtype}; "
                                "an RGB image of 8 bits is needed")
        if np.percentile(image, 99) < 16:
            raise EvidenceError(f"the still {name} is black (99 % of its values are under 16 of 255); "
                                "check light and exposure")
    if before_rgb.shape != after_rgb.shape:
        raise EvidenceError(f"the stills have sizes {before_rgb.shape[1]}x{before_rgb.shape[0]} and "
                            f"{after_rgb.shape[1]}x{after_rgb.shape[0]}; take both with one camera")


def register(before_rgb: np.ndarray, after_rgb: np.ndarray, background: np.ndarray) -> Registration:
    """Register the later still to the earlier one on the pixels where `background` (H, W) is true.

    What may have moved must be left out of the background, or it carries the fit. SIFT features (Lowe
    2004) after CLAHE, mutual nearest neighbours, RANSAC for a similarity. EvidenceError when the stills
    cannot be compared or fewer than MIN_INLIERS matches agree.
    """
    check_pair(before_rgb, after_rgb)
    mask = background.astype(np.uint8) * 255
    sift = cv2.SIFT.create(nfeatures=MAX_FEATURES, contrastThreshold=0.015)
    before_points, before_marks = sift.detectAndCompute(_grey(before_rgb), mask)
    after_points, after_marks = sift.detectAndCompute(_grey(after_rgb), mask)
    inliers, matrix = 0, None
    if before_marks is not None and after_marks is not None:
        matches = cv2.BFMatcher(cv2.NORM_L2, crossCheck=True).match(after_marks, before_marks)
        source = np.array([after_points[m.queryIdx].pt for m in matches], dtype=np.float32).reshape(-1, 2)
        target = np.array([before_points[m.trainIdx].pt for m in matches], dtype=np.float32).reshape(-1, 2)
        near = np.linalg.norm(source - target, axis=1) < MAX_SHIFT_PX
        if near.sum() >= MIN_INLIERS:
            cv2.setRNGSeed(0)  # RANSAC draws from OpenCV's own generator: the same pair, the same verdict
            matrix, agreeing = cv2.estimateAffinePartial2D(
                source[near], target[near], ransacReprojThreshold=RANSAC_PX, maxIters=2000, confidence=0.999)
            inliers = 0 if matrix is None else int(agreeing.sum())
        else:
            inliers = int(near.sum())
    if matrix is None or inliers < MIN_INLIERS:
        raise EvidenceError(f"only {inliers} features agree between the two stills, {MIN_INLIERS} are "
                            "needed; they show different scenes or are blurred")
    return Registration(matrix, inliers)
