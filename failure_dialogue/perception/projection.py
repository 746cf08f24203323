"""From places in the arm's base frame to pixels: static frames, a pinhole camera, image regions."""

from __future__ import annotations

import math
from collections.abc import Iterable
from dataclasses import dataclass

import numpy as np

from failure_dialogue.errors import EvidenceError


@dataclass(frozen=True)
class StaticFrame:
    """A fixed transform as /tf_static states it: pose of `child` in `parent`.

    translation_m: (x, y, z); rotation_xyzw: unit quaternion in ROS order.
    """

    parent: str
    child: str
    translation_m: tuple[float, float, float]
    rotation_xyzw: tuple[float, float, float, float]


def transform_matrix(frame: StaticFrame) -> np.ndarray:
    """(4, 4) matrix that takes points in `child` to `parent`. EvidenceError on a zero quaternion."""
    x, y, z, w = frame.rotation_xyzw
    norm = math.sqrt(x * x + y * y + z * z + w * w)
    if not norm > 1e-6:
        raise EvidenceError(f"the rotation of {frame.child!r} in {frame.parent!r} is {frame.rotation_xyzw}, "
                            "no unit quaternion; mend the static transform")
    x, y, z, w = x / norm, y / norm, z / norm, w / norm
    matrix = np.eye(4)
    matrix[:3, :3] = [[1 - 2 * (y * y + z * z), 2 * (x * y - z * w), 2 * (x * z + y * w)],
                      [2 * (x * y + z * w), 1 - 2 * (x * x + z * z), 2 * (y * z - x * w)],
                      [2 * (x * z - y * w), 2 * (y * z + x * w), 1 - 2 * (x * x + y * y)]]
    matrix[:3, 3] = frame.translation_m
    return matrix


class FrameTree:
    """Static frames, chained: the little of tf2 that fixed transforms need."""

    def __init__(self) -> None:
        self._parents: dict[str, tuple[str, np.ndarray]] = {}

    def update(self, frames: Iterable[StaticFrame]) -> None:
        """Take over transforms; a frame stated again replaces the older statement."""
        for frame in frames:
            self._parents[frame.child] = (frame.parent, transform_matrix(frame))

    def _to_root(self, name: str) -> tuple[str, np.ndarray]:
        matrix, seen = np.eye(4), {name}
        while name in self._parents:
            name, step = self._parents[name]
            if name in seen:
                raise EvidenceError(f"the static transforms form a ring at frame {name!r}")
            seen.add(name)
            matrix = step @ matrix
        return name, matrix

    def between(self, target: str, source: str) -> np.ndarray:
        """(4, 4) matrix that takes points in `source` to `target`; EvidenceError when they are not joined."""
        source_root, from_source = self._to_root(source)
        target_root, from_target = self._to_root(target)
        if source_root != target_root:
            raise EvidenceError(f"no static transform joins {source!r} (root {source_root!r}) and {target!r} "
                                f"(root {target_root!r}); publish it on /tf_static")
        return np.linalg.inv(from_target) @ from_source


@dataclass(frozen=True)
class Region:
    """A rectangle of pixels: columns left..right and rows top..bottom, right and bottom excluded."""

    left: int
    top: int
    right: int
    bottom: int

    @property
    def area_px(self) -> int:
        """Pixels inside."""
        return max(0, self.right - self.left) * max(0, self.bottom - self.top)

    def of(self, image: np.ndarray) -> np.ndarray:
        """That part of an image, without a copy."""
        return image[self.top:self.bottom, self.left:self.right]

    def grown(self, margin_px: int, width: int, height: int) -> Region:
        """The region with a margin round it, cut at the image's border."""
        return Region(max(0, self.left - margin_px), max(0, self.top - margin_px),
                      min(width, self.right + margin_px), min(height, self.bottom + margin_px))


@dataclass(frozen=True)
class Camera:
    """Pinhole camera without lens distortion (REP 104: K of an image that is rectified already).

    focal_px (fx, fy), centre_px (cx, cy); base_to_optical: (4, 4), points in the arm's base frame to
    the optical frame (z forward, x right, y down).
    """

    width: int
    height: int
    focal_px: tuple[float, float]
    centre_px: tuple[float, float]
    base_to_optical: np.ndarray

    def project(self, points_base_m: np.ndarray) -> np.ndarray:
        """(n, 3) points in the base frame, in m -> (n, 2) pixels (column, row).

        EvidenceError when a point lies behind the camera or nearer than 1 cm.
        """
        points = np.atleast_2d(points_base_m)
        optical = points @ self.base_to_optical[:3, :3].T + self.base_to_optical[:3, 3]
        if np.any(optical[:, 2] < 0.01):
            raise EvidenceError(f"the place {np.round(points[np.argmin(optical[:, 2])], 3).tolist()} m lies "
                                "behind the camera; check /tf_static and the camera's frame")
        return np.stack([self.focal_px[0] * optical[:, 0] / optical[:, 2] + self.centre_px[0],
                         self.focal_px[1] * optical[:, 1] / optical[:, 2] + self.centre_px[1]], axis=1)

    def region(self, place_base_m: np.ndarray, size_m: float) -> Region:
        """The rectangle round a cube with this edge whose centre is at the place.

        EvidenceError when more than half of it lies outside the image.
        """
        signs = np.array([[i, j, k] for i in (-1, 1) for j in (-1, 1) for k in (-1, 1)])
        corners = self.project(np.asarray(place_base_m) + 0.5 * size_m * signs)
        low, high = np.floor(corners.min(axis=0)).astype(int), np.ceil(corners.max(axis=0)).astype(int)
        region = Region(max(0, low[0]), max(0, low[1]), min(self.width, high[0]), min(self.height, high[1]))
        if region.area_px < 0.5 * np.prod(high - low):
            raise EvidenceError(f"the place {np.round(place_base_m, 3).tolist()} m is not in the camera's "
                                f"view (columns {low[0]}..{high[0]} and rows {low[1]}..{high[1]} of an "
                                f"image of {self.width}x{self.height})")
        return region


def camera_from_info(width: int, height: int, k: Iterable[float], base_to_optical: np.ndarray) -> Camera:
    """Camera from the fields of a sensor_msgs/CameraInfo; k is its row-major 3x3 matrix.

    EvidenceError when the camera states no calibration (fx or fy not above 0) or no size.
    """
    k = [float(x) for x in k]
    if len(k) != 9 or not (k[0] > 0 and k[4] > 0) or width <= 0 or height <= 0:
        raise EvidenceError(f"the camera states size {width}x{height} and K {k}; "
                            "a calibrated camera is needed")
    return Camera(width, height, (k[0], k[4]), (k[2], k[5]), base_to_optical)
