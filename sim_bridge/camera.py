"""The simulated colour camera: upright frames with seeded sensor noise, exposure jitter and shake."""

from __future__ import annotations

import math
from dataclasses import dataclass

import cv2
import mujoco
import numpy as np

from failure_dialogue.errors import SceneError
from sim_bridge.offscreen import Offscreen

CAMERA = "agentview"
FRAME_SIZE = (256, 256)
STILL_SIZE = (640, 480)


@dataclass(frozen=True)
class CameraNoise:
    """How bad the camera is, in grey levels of 0 to 255 where no unit stands.

    A pixel of level I gets normal noise of variance shot * I + read^2, the usual normal approximation of
    photon and readout noise (Foi et al. 2008, IEEE Transactions on Image Processing 17(10)). Each frame is
    scaled by 1 + exposure * N(0, 1), cut at three deviations, and shifted as a whole by U(0, shake_px) pixels
    in a random direction.
    """

    shot: float = 0.03
    read: float = 1.5
    exposure: float = 0.02
    shake_px: float = 2.0


NO_NOISE = CameraNoise(shot=0.0, read=0.0, exposure=0.0, shake_px=0.0)


@dataclass(frozen=True)
class Draw:
    """What was drawn for one picture; with the seed and the noise it repeats the picture bit for bit."""

    still: bool
    index: int
    exposure: float
    shift_px: tuple[float, float]


class SceneCamera:
    """LIBERO's agentview camera with noise from one seed.

    The k-th frame's noise depends on (seed, k) alone, and the k-th still's likewise: stills do not disturb
    the frames. Opens its picture buffer at the first picture, in the thread that takes it; use and close it
    there. Changes of the model's camera show once `data` has been through mj_forward or mj_step.
    """

    def __init__(self, model: mujoco.MjModel, seed: int, noise: CameraNoise = CameraNoise()):
        self._model = model
        self._camera = mujoco.mj_name2id(model, mujoco.mjtObj.mjOBJ_CAMERA, CAMERA)
        if self._camera < 0:
            raise SceneError(f"the scene has no camera {CAMERA!r}; delete the scene cache and build it again")
        self.seed = int(seed)
        self.noise = noise
        self.last_draw: Draw | None = None
        self._taken = {False: 0, True: 0}
        self._offscreen: Offscreen | None = None

    def restart(self, seed: int) -> None:
        """Noise from this seed on, as of a new camera; the open picture buffer is kept (0.9 s to open)."""
        self.seed = int(seed)
        self._taken = {False: 0, True: 0}
        self.last_draw = None

    def frame(self, data: mujoco.MjData) -> np.ndarray:
        """The next frame of the stream: (256, 256, 3) uint8 RGB, top row first."""
        return self._take(data, FRAME_SIZE, still=False)

    def still(self, data: mujoco.MjData) -> np.ndarray:
        """The next still: (480, 640, 3) uint8 RGB, top row first."""
        return self._take(data, STILL_SIZE, still=True)

    def geom_ids(self, data: mujoco.MjData, width: int = FRAME_SIZE[0],
                 height: int = FRAME_SIZE[1]) -> np.ndarray:
        """(height, width) int32: the geom each pixel shows, -1 for none. Ground truth: no noise, no shake."""
        return self._buffer().draw(data, self._camera, width, height, segment=True)

    def intrinsics(self, width: int, height: int) -> np.ndarray:
        """K (3, 3) in pixels for pictures of this size; pixel centres are whole numbers, as in OpenCV."""
        focal = 0.5 * height / math.tan(0.5 * math.radians(self._model.cam_fovy[self._camera]))
        return np.array([[focal, 0.0, 0.5 * (width - 1)], [0.0, focal, 0.5 * (height - 1)], [0.0, 0.0, 1.0]])

    def extrinsics(self, data: mujoco.MjData) -> tuple[np.ndarray, np.ndarray]:
        """R (3, 3), t (3,) in metres with p_world = R p_optical + t; optical x right, y down, z forward."""
        # MuJoCo's camera looks along its -z with y up.
        rotation = data.cam_xmat[self._camera].reshape(3, 3) * np.array([1.0, -1.0, -1.0])
        return rotation, data.cam_xpos[self._camera].copy()

    def close(self) -> None:
        """Free the picture buffer; a later picture opens a new one."""
        if self._offscreen is not None:
            self._offscreen.close()
            self._offscreen = None

    def _buffer(self) -> Offscreen:
        if self._offscreen is None:
            self._offscreen = Offscreen(self._model, *STILL_SIZE)
        return self._offscreen

    def _take(self, data: mujoco.MjData, size: tuple[int, int], still: bool) -> np.ndarray:
        picture = self._buffer().draw(data, self._camera, *size)
        index = self._taken[still]
        self._taken[still] += 1
        rng = np.random.Generator(np.random.SFC64([self.seed, int(still), index]))
        exposure = 1.0 + self.noise.exposure * float(np.clip(rng.standard_normal(), -3.0, 3.0))
        length, angle = self.noise.shake_px * rng.random(), 2.0 * math.pi * rng.random()
        shift = (length * math.cos(angle), length * math.sin(angle))
        self.last_draw = Draw(still, index, exposure, shift)
        return _spoil(picture, self.noise, exposure, shift, rng)


def _spoil(picture: np.ndarray, noise: CameraNoise, exposure: float, shift: tuple[float, float],
           rng: np.random.Generator) -> np.ndarray:
    if shift != (0.0, 0.0):
        move = np.array([[1.0, 0.0, shift[0]], [0.0, 1.0, shift[1]]])
        picture = cv2.warpAffine(picture, move, picture.shape[1::-1], borderMode=cv2.BORDER_REPLICATE)
    if exposure == 1.0 and noise.shot == noise.read == 0.0:
        return picture
    level = picture.astype(np.float32) * np.float32(exposure)
    if noise.shot or noise.read:
        deviation = np.sqrt(noise.shot * level + noise.read**2)
        level += deviation * rng.standard_normal(level.shape, dtype=np.float32)
    return np.clip(level + 0.5, 0.0, 255.0).astype(np.uint8)
