"""Stills of a tabletop without a simulator: textured ground, boxes that stand on it, a camera with noise."""

from __future__ import annotations

import cv2
import numpy as np

from failure_dialogue.perception.projection import Camera

WIDTH, HEIGHT = 640, 480
#: Straight down from 1 m: 500 px/m, so a place (x, y, 0) in m is seen at column 320 + 500 x, row 240 - 500 y.
CAMERA = Camera(WIDTH, HEIGHT, (500.0, 500.0), (320.0, 240.0),
                np.array([[1.0, 0, 0, 0], [0, -1.0, 0, 0], [0, 0, -1.0, 1.0], [0, 0, 0, 1.0]]))
BOX_M = 0.06


def _ground() -> np.ndarray:
    rng = np.random.default_rng(1)
    image = np.full((HEIGHT, WIDTH, 3), 110, np.float32)
    for scale in (4, 12, 40):
        coarse = rng.normal(0, 18, (HEIGHT // scale + 2, WIDTH // scale + 2, 3)).astype(np.float32)
        image += cv2.resize(coarse, (WIDTH, HEIGHT), interpolation=cv2.INTER_CUBIC)
    return image


def still(*boxes_m: tuple[float, float], seed: int = 0, shift_px: tuple[float, float] = (0.0, 0.0),
          exposure: float = 1.0, noise: float = 3.0) -> np.ndarray:
    """(480, 640, 3) uint8 RGB with red boxes of BOX_M at these places (x, y) in m."""
    image = _ground()
    half = round(BOX_M * 250)
    for x, y in boxes_m:
        column, row = round(320 + 500 * x), round(240 - 500 * y)
        image[row - half:row + half, column - half:column + half] = (190, 50, 40)
        image[row - half + 4:row - half + 10, column - half:column + half] = (230, 220, 60)
    move = np.array([[1.0, 0.0, shift_px[0]], [0.0, 1.0, shift_px[1]]])
    image = cv2.warpAffine(image, move, (WIDTH, HEIGHT), borderMode=cv2.BORDER_REPLICATE)
    image = exposure * image + np.random.default_rng(seed).normal(0, noise, image.shape)
    return np.clip(image, 0, 255).astype(np.uint8)
