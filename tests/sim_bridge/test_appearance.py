"""A look can be drawn, seen, logged and taken back."""

from dataclasses import asdict

import mujoco
import numpy as np
import pytest

from failure_dialogue.errors import SceneError
from sim_bridge.appearance import NOMINAL, SURFACES, Appearance, Look
from sim_bridge.camera import NO_NOISE, SceneCamera
from sim_bridge.scene_cache import load_scene


@pytest.fixture(scope="module")
def world():
    scene = load_scene(2)
    data = mujoco.MjData(scene.model)
    data.qpos[:] = scene.init_states[0]
    look = Look.of(scene.model)
    camera = SceneCamera(scene.model, seed=0, noise=NO_NOISE)

    def picture(appearance):
        appearance.apply(scene.model, look)
        mujoco.mj_forward(scene.model, data)
        return camera.frame(data).astype(float)

    yield scene, data, camera, picture
    camera.close()


def test_draws_stay_within_the_nominal_range_and_repeat():
    draws = [Appearance.draw(np.random.default_rng(seed)) for seed in range(300)]
    assert all(abs(draw.azimuth_deg) <= 25 and 0.8 <= draw.light <= 1.1 for draw in draws)
    assert min(draw.azimuth_deg for draw in draws) < -20 and max(draw.azimuth_deg for draw in draws) > 20
    assert {draw.texture for draw in draws} == set(SURFACES) == set(NOMINAL.textures)
    assert draws[4] == Appearance.draw(np.random.default_rng(4)) == Appearance(**asdict(draws[4]))


def test_a_look_is_absolute_and_can_be_taken_back(world):
    _, _, _, picture = world
    own = picture(Appearance())
    strange = Appearance(azimuth_deg=-18.0, texture="kona_gotham", light=0.5)
    once = picture(strange)
    assert np.abs(once - own).mean() > 10
    assert np.array_equal(picture(strange), once)
    assert np.array_equal(picture(Appearance()), own)


def test_light_scales_the_whole_picture(world):
    _, _, _, picture = world
    own = picture(Appearance())
    for light in (0.1, 0.4, 0.8):
        assert picture(Appearance(light=light)).mean() / own.mean() == pytest.approx(light, abs=0.05)


def test_every_texture_shows_on_the_table(world):
    scene, data, camera, picture = world
    means = []
    for texture in SURFACES:
        shown = picture(Appearance(texture=texture))
        table = camera.geom_ids(data) == scene.model.geom("floor").id
        means.append(shown[table].mean(axis=0))
    apart = np.linalg.norm(np.array(means)[:, None] - np.array(means)[None], axis=-1)
    assert apart[~np.eye(len(means), dtype=bool)].min() > 1.0
    assert np.array(means).mean(axis=1).min() > 15  # none is all but black


def test_the_camera_turns_about_the_table_and_keeps_all_objects_in_view(world):
    scene, data, camera, picture = world
    picture(Appearance())
    home = camera.extrinsics(data)[1]
    for azimuth in (-25.0, 25.0):
        picture(Appearance(azimuth_deg=azimuth))
        there = camera.extrinsics(data)[1]
        assert there[2] == pytest.approx(home[2])
        turned = np.degrees(np.arctan2(there[1], there[0]) - np.arctan2(home[1], home[0]))
        assert turned == pytest.approx(azimuth)
        geoms = np.unique(camera.geom_ids(data))
        seen = {scene.model.body(scene.model.geom_bodyid[geom]).name for geom in geoms if geom >= 0}
        assert set(scene.objects.values()) <= seen


def test_an_unknown_texture_names_those_there_are(world):
    _, _, _, picture = world
    with pytest.raises(SceneError, match="no table texture 'lava'; known: .*marble_floor"):
        picture(Appearance(texture="lava"))
