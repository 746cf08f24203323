"""Renders a MuJoCo scene without a display, through EGL or OSMesa, whichever this machine has."""

from __future__ import annotations

import atexit
import contextlib
import ctypes
import importlib
import os
import sys
import threading
import weakref
from typing import Any

import mujoco
import numpy as np

from failure_dialogue.errors import SceneError

_LIBRARIES = {"egl": ("libEGL.so.1",), "osmesa": ("libOSMesa.so.8", "libOSMesa.so.6", "libOSMesa.so")}
_REMEDY = "install the packages libegl1 and libgl1-mesa-dri (`make sim` does)"


class Offscreen:
    """A picture buffer of at most `width` x `height` pixels in which a model is drawn.

    Use it in the thread that made it: an OpenGL context belongs to one thread. It shows the geoms that LIBERO
    means to be seen (groups 1 and 2), no sites. One buffer serves all smaller sizes, for each holds a copy of
    the model's meshes and textures.
    """

    def __init__(self, model: mujoco.MjModel, width: int, height: int):
        model.vis.quality.offsamples = 0  # multisampling costs two thirds of the frames in software
        model.vis.global_.offwidth, model.vis.global_.offheight = width, height
        self._model = model
        self._thread = threading.get_ident()
        self.backend, self._context = _open_context(width, height)
        self._context.make_current()
        self._mjr = mujoco.MjrContext(model, mujoco.mjtFontScale.mjFONTSCALE_100)
        mujoco.mjr_setBuffer(mujoco.mjtFramebuffer.mjFB_OFFSCREEN, self._mjr)
        self._scene = mujoco.MjvScene(model, maxgeom=2000)
        self._option = mujoco.MjvOption()
        self._option.geomgroup[:] = [0, 1, 1, 0, 0, 0]
        self._option.sitegroup[:] = 0
        self._view = mujoco.MjvCamera()
        self._view.type = mujoco.mjtCamera.mjCAMERA_FIXED
        # Freed before the library's own exit handler ends the display, or it complains.
        _OPEN.add(self)

    def draw(self, data: mujoco.MjData, camera: int, width: int, height: int,
             segment: bool = False) -> np.ndarray:
        """(height, width, 3) uint8 RGB, top row first; with `segment` (height, width) geom ids, or -1."""
        if threading.get_ident() != self._thread:
            raise SceneError("a camera was made in one thread and used in another; make it where it is used")
        self._context.make_current()
        self._view.fixedcamid = camera
        mujoco.mjv_updateScene(self._model, data, self._option, None, self._view, mujoco.mjtCatBit.mjCAT_ALL,
                               self._scene)
        for flag in (mujoco.mjtRndFlag.mjRND_SEGMENT, mujoco.mjtRndFlag.mjRND_IDCOLOR):
            self._scene.flags[flag] = segment
        area = mujoco.MjrRect(0, 0, width, height)
        mujoco.mjr_render(area, self._scene, self._mjr)
        picture = np.empty((height, width, 3), dtype=np.uint8)
        mujoco.mjr_readPixels(picture, None, area, self._mjr)
        picture = picture[::-1]  # OpenGL's first row is the lowest
        return self._geom_ids(picture) if segment else np.ascontiguousarray(picture)

    def _geom_ids(self, picture: np.ndarray) -> np.ndarray:
        drawn = picture.astype(np.int32) @ np.array([1, 1 << 8, 1 << 16])  # 1 + index in the drawn scene
        ids = np.full(self._scene.ngeom + 1, -1, dtype=np.int32)
        for geom in self._scene.geoms[:self._scene.ngeom]:
            if geom.objtype == mujoco.mjtObj.mjOBJ_GEOM and geom.segid >= 0:
                ids[geom.segid + 1] = geom.objid
        return ids[drawn]

    def close(self) -> None:
        """Free the buffer; drawing afterwards is an error."""
        _OPEN.discard(self)
        if self._context is not None:
            with contextlib.suppress(RuntimeError):
                self._context.make_current()
                self._mjr.free()
            self._context.free()
            self._context = None


_OPEN: weakref.WeakSet[Offscreen] = weakref.WeakSet()


def _close_all() -> None:
    for offscreen in list(_OPEN):
        offscreen.close()


def _open_context(width: int, height: int) -> tuple[str, Any]:
    """A GL context and its kind: what MUJOCO_GL names, else EGL, else OSMesa; SceneError when none opens."""
    named = os.environ.get("MUJOCO_GL", "").lower().strip()
    if named not in ("", "egl", "osmesa"):
        raise SceneError(f"MUJOCO_GL is {named!r}; cameras render without a display: set it to egl or "
                         "osmesa, or leave it unset")
    problems = []
    for kind in [named] if named else list(_LIBRARIES):
        if not any(_loads(library) for library in _LIBRARIES[kind]):
            problems.append(f"{kind}: {_LIBRARIES[kind][0]} is not installed")
            continue
        try:
            context = importlib.import_module(f"mujoco.{kind}").GLContext(width, height)
        except Exception as error:  # each library fails in its own ways
            problems.append(f"{kind}: {str(error).splitlines()[0] if str(error) else type(error).__name__}")
            _forget_opengl()
            continue
        os.environ["MUJOCO_GL"] = kind  # MuJoCo's own loader of OpenGL goes by it
        atexit.unregister(_close_all)
        atexit.register(_close_all)
        return kind, context
    raise SceneError("no way to render the camera (" + "; ".join(problems) + f"); {_REMEDY}")


def _loads(library: str) -> bool:
    try:
        ctypes.CDLL(library)
    except OSError:
        return False
    return True


def _forget_opengl() -> None:
    """PyOpenGL binds itself to one platform on import; let the next try import it afresh."""
    os.environ.pop("PYOPENGL_PLATFORM", None)
    for name in list(sys.modules):
        if name.split(".")[0] == "OpenGL" or name.startswith(("mujoco.egl", "mujoco.osmesa")):
            del sys.modules[name]
