"""What the scene looks like in one episode: camera azimuth, table texture, light."""

from __future__ import annotations

import math
from dataclasses import dataclass

import mujoco
import numpy as np

from failure_dialogue.errors import SceneError
from sim_bridge.camera import CAMERA

#: LIBERO's images that can lie under the objects; the first is the one LIBERO uses in these scenes.
SURFACES = (
    "light-gray-floor-tile", "brown_ceramic_tile", "ceramic", "dapper_gray_floor", "gray_ceramic_tile",
    "gray_floor", "kona_gotham", "light_floor", "marble_floor", "martin_novak_wood_table",
    "meeka-beige-plaster", "rustic_floor", "seamless_wood_planks_floor", "table_light_wood",
    "white_marble_floor",
)
#: The scene cache holds each of them as a texture of this prefix and name.
SURFACE_PREFIX = "surface_"

#: The camera turns about the vertical through this point (world, metres), the middle of where objects stand.
_TURN_CENTRE_M = np.zeros(3)


@dataclass(frozen=True)
class AppearanceRange:
    """What draws lie in: azimuth in +- degrees, light as a factor, the textures that may come up."""

    azimuth_deg: float = 25.0
    light: tuple[float, float] = (0.8, 1.1)
    textures: tuple[str, ...] = SURFACES


NOMINAL = AppearanceRange()


@dataclass(frozen=True)
class Look:
    """The model's own camera, texture and lights, to which every Appearance is relative."""

    camera_pos: np.ndarray
    camera_quat: np.ndarray
    surface_material: int
    surface_texture: int
    lights: tuple[np.ndarray, ...]
    headlight: tuple[np.ndarray, ...]

    @classmethod
    def of(cls, model: mujoco.MjModel) -> Look:
        """Read it from a model that no Appearance was applied to."""
        camera, material = model.camera(CAMERA).id, model.geom_matid[model.geom("floor").id]
        return cls(model.cam_pos[camera].copy(), model.cam_quat[camera].copy(), int(material),
                   int(model.mat_texid[material, mujoco.mjtTextureRole.mjTEXROLE_RGB]),
                   tuple(array.copy() for array in _lights(model)),
                   tuple(array.copy() for array in _headlight(model)))


@dataclass(frozen=True)
class Appearance:
    """One look of the scene; the default is LIBERO's own. `dataclasses.asdict` gives what to log."""

    azimuth_deg: float = 0.0
    texture: str = SURFACES[0]
    light: float = 1.0

    @classmethod
    def draw(cls, rng: np.random.Generator, within: AppearanceRange = NOMINAL) -> Appearance:
        """A random look: azimuth and light uniform, one texture of the list."""
        return cls(azimuth_deg=float(rng.uniform(-within.azimuth_deg, within.azimuth_deg)),
                   texture=within.textures[int(rng.integers(len(within.textures)))],
                   light=float(rng.uniform(*within.light)))

    def apply(self, model: mujoco.MjModel, original: Look) -> None:
        """Give the model this look, whatever look it has now; Appearance() brings back LIBERO's.

        It shows after the next mj_forward or mj_step. SceneError when the scene has no such texture.
        """
        camera = model.camera(CAMERA).id
        half = 0.5 * math.radians(self.azimuth_deg)
        turn, rotation = np.array([math.cos(half), 0.0, 0.0, math.sin(half)]), np.zeros(9)
        mujoco.mju_quat2Mat(rotation, turn)
        model.cam_pos[camera] = (_TURN_CENTRE_M
                                 + rotation.reshape(3, 3) @ (original.camera_pos - _TURN_CENTRE_M))
        mujoco.mju_mulQuat(model.cam_quat[camera], turn, original.camera_quat)
        role = mujoco.mjtTextureRole.mjTEXROLE_RGB
        model.mat_texid[original.surface_material, role] = self._texture_id(model, original)
        owns = original.lights + original.headlight
        for now, own in zip(_lights(model) + _headlight(model), owns, strict=True):
            now[...] = own * self.light

    def _texture_id(self, model: mujoco.MjModel, original: Look) -> int:
        if self.texture == SURFACES[0]:
            return original.surface_texture
        texture = mujoco.mj_name2id(model, mujoco.mjtObj.mjOBJ_TEXTURE, SURFACE_PREFIX + self.texture)
        if texture < 0:
            raise SceneError(f"the scene has no table texture {self.texture!r}; known: {', '.join(SURFACES)}")
        return texture


def _lights(model: mujoco.MjModel) -> tuple[np.ndarray, ...]:
    return model.light_diffuse, model.light_specular, model.light_ambient


def _headlight(model: mujoco.MjModel) -> tuple[np.ndarray, ...]:
    light = model.vis.headlight
    return light.diffuse, light.specular, light.ambient
