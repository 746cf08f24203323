"""The camera shows the world upright, where its calibration says, and its noise is what it claims."""

import threading

import cv2
import mujoco
import numpy as np
import pytest

from failure_dialogue.errors import SceneError
from sim_bridge import offscreen
from sim_bridge.camera import FRAME_SIZE, NO_NOISE, STILL_SIZE, CameraNoise, SceneCamera
from sim_bridge.scene_cache import load_scene

#: Glowing balls of 12 mm: colour and place in the world, metres.
MARKERS = {"red": ((1, 0, 0, 1), (0.0, -0.2, 0.05)), "green": ((0, 1, 0, 1), (0.0, -0.2, 0.35)),
           "blue": ((0, 0, 1, 1), (0.1, 0.3, 0.25))}


@pytest.fixture(scope="module")
def scene():
    return load_scene("milk")


@pytest.fixture()
def camera(scene):
    model, data = _at_rest(scene)
    made = SceneCamera(model, seed=1, noise=NO_NOISE)
    yield made, model, data
    made.close()


@pytest.fixture()
def marked(scene):
    spec = mujoco.MjSpec.from_file(str(scene.xml))
    for name, (colour, place) in MARKERS.items():
        material = spec.add_material(name=name, rgba=colour, emission=1.0, specular=0.0)
        spec.worldbody.add_geom(name=name, type=mujoco.mjtGeom.mjGEOM_SPHERE, size=[0.012, 0, 0], pos=place,
                                material=material.name, group=1, contype=0, conaffinity=0)
    model = spec.compile()
    data = mujoco.MjData(model)
    data.qpos[:] = scene.init_states[0]
    mujoco.mj_forward(model, data)
    made = SceneCamera(model, seed=1, noise=NO_NOISE)
    yield made, model, data
    made.close()


def _at_rest(scene):
    model = load_scene(scene.task_id).model
    data = mujoco.MjData(model)
    data.qpos[:] = scene.init_states[0]
    mujoco.mj_forward(model, data)
    return model, data


def _project(camera, data, size, points_m):
    """(n, 2) pixels (column, row) of world points (n, 3)."""
    rotation, position = camera.extrinsics(data)
    seen = (np.asarray(points_m) - position) @ rotation
    assert (seen[:, 2] > 0).all()
    pixels = seen @ camera.intrinsics(*size).T
    return pixels[:, :2] / pixels[:, 2:]


def _middle(mask):
    rows, columns = np.nonzero(mask)
    assert len(rows) > 5
    return np.array([columns.mean(), rows.mean()])


def _coloured(picture, channel):
    others = [other for other in range(3) if other != channel]
    return (picture[..., channel] > 200) & (picture[..., others].max(axis=-1) < 30)


def test_pictures_are_upright_rgb_and_not_mirrored(marked):
    camera, _, data = marked
    for picture in (camera.frame(data), camera.still(data)):
        red, green, blue = (_middle(_coloured(picture, channel)) for channel in range(3))
        assert green[1] < red[1] - 10  # the green ball hangs above the red one
        assert abs(green[0] - red[0]) < 0.06 * picture.shape[1]
        assert blue[0] > red[0] + 10  # the camera looks at the robot along -x, so +y is to the right


@pytest.mark.parametrize("size", [FRAME_SIZE, STILL_SIZE])
def test_calibration_projects_markers_to_where_they_are_seen(marked, size):
    camera, model, data = marked
    picture = camera.frame(data) if size == FRAME_SIZE else camera.still(data)
    ids = camera.geom_ids(data, *size)
    for channel, (name, (_, place)) in enumerate(MARKERS.items()):
        expected = _project(camera, data, size, [place])[0]
        assert np.abs(_middle(ids == model.geom(name).id) - expected).max() < 0.7
        assert np.abs(_middle(_coloured(picture, channel)) - expected).max() < 1.0


@pytest.mark.parametrize("name", ["basket", "orange_juice", "butter"])
def test_calibration_projects_an_object_to_where_it_is_seen(scene, camera, name):
    camera, model, data = camera
    joint = model.body(scene.objects[name]).jntadr[0]
    data.qpos[model.jnt_qposadr[joint]:][:3] = [0.3, 0.0, 0.25]  # in the air, before everything else
    mujoco.mj_forward(model, data)
    geoms = [geom for geom in range(model.ngeom) if model.geom_group[geom] == 1
             and model.body(model.geom_bodyid[geom]).name == scene.objects[name]]
    rows, columns = np.nonzero(np.isin(camera.geom_ids(data, *STILL_SIZE), geoms))
    points = np.concatenate([_vertices(model, data, geom) for geom in geoms])
    projected = _project(camera, data, STILL_SIZE, points)
    assert abs(columns.min() - projected[:, 0].min()) < 2 and abs(columns.max() - projected[:, 0].max()) < 2
    assert abs(rows.min() - projected[:, 1].min()) < 2 and abs(rows.max() - projected[:, 1].max()) < 2


def _vertices(model, data, geom):
    mesh = model.geom_dataid[geom]
    start, count = model.mesh_vertadr[mesh], model.mesh_vertnum[mesh]
    return model.mesh_vert[start:start + count] @ data.geom_xmat[geom].reshape(3, 3).T + data.geom_xpos[geom]


def test_pictures_have_the_promised_shape_and_see_the_scene(scene, camera):
    camera, model, data = camera
    frame, still = camera.frame(data), camera.still(data)
    assert (frame.shape, frame.dtype) == ((256, 256, 3), np.uint8)
    assert (still.shape, still.dtype) == ((480, 640, 3), np.uint8)
    geoms = np.unique(camera.geom_ids(data))
    seen = {model.body(model.geom_bodyid[geom]).name for geom in geoms if geom >= 0}
    assert set(scene.objects.values()) <= seen


def test_the_same_seed_gives_the_same_bits(scene):
    pictures = {}
    for label, seed, stills in (("one", 7, 0), ("again", 7, 3), ("other", 8, 0)):
        model, data = _at_rest(scene)
        camera = SceneCamera(model, seed)
        for _ in range(stills):  # stills in between must not move the frames' noise
            camera.still(data)
        pictures[label] = [camera.frame(data) for _ in range(5)]
        camera.close()
    assert all(map(np.array_equal, pictures["one"], pictures["again"]))
    assert not any(map(np.array_equal, pictures["one"], pictures["other"]))
    assert not np.array_equal(pictures["one"][0], pictures["one"][1])


def test_sensor_noise_has_the_stated_variance(scene, camera):
    clean_camera, model, data = camera
    clean = clean_camera.frame(data).astype(float)
    noisy_camera = SceneCamera(model, 3, CameraNoise(shot=0.05, read=2.0, exposure=0.0, shake_px=0.0))
    error = np.stack([noisy_camera.frame(data) for _ in range(40)]).astype(float) - clean
    noisy_camera.close()
    middle = (clean > 20) & (clean < 230)  # away from the clipped ends
    variance = error[:, middle].var()
    expected = (0.05 * clean[middle] + 2.0**2).mean() + 1 / 12  # rounding to whole levels adds a twelfth
    assert variance == pytest.approx(expected, rel=0.02)
    assert abs(error[:, middle].mean()) < 0.05


def test_exposure_and_shake_are_what_the_log_says(scene, camera):
    clean_camera, model, data = camera
    clean = cv2.cvtColor(clean_camera.still(data), cv2.COLOR_RGB2GRAY).astype(np.float32)
    shaky = SceneCamera(model, 5, CameraNoise(shot=0.0, read=0.0, exposure=0.02, shake_px=2.0))
    lengths = []
    for index in range(25):
        picture = cv2.cvtColor(shaky.still(data), cv2.COLOR_RGB2GRAY).astype(np.float32)
        draw = shaky.last_draw
        assert (draw.still, draw.index) == (True, index)
        assert picture.mean() / clean.mean() == pytest.approx(draw.exposure, abs=0.01)
        warp = np.eye(2, 3, dtype=np.float32)
        _, warp = cv2.findTransformECC(clean, picture, warp, cv2.MOTION_TRANSLATION)
        assert np.abs(warp[:, 2] - draw.shift_px).max() < 0.15
        lengths.append(np.hypot(*draw.shift_px))
    shaky.close()
    assert max(lengths) <= 2.0 and min(lengths) < 0.5 and max(lengths) > 1.5


def test_a_closed_camera_opens_again_and_goes_on(camera):
    camera, _, data = camera
    first = camera.frame(data)
    camera.close()
    assert np.array_equal(camera.frame(data), first)


def test_use_in_another_thread_is_refused(camera):
    camera, _, data = camera
    camera.frame(data)
    caught = []

    def use():
        try:
            camera.frame(data)
        except SceneError as error:
            caught.append(str(error))

    thread = threading.Thread(target=use)
    thread.start()
    thread.join(timeout=30)
    assert caught and "thread" in caught[0]


def test_a_display_backend_is_refused_with_the_remedy(camera, monkeypatch):
    camera, _, data = camera
    monkeypatch.setenv("MUJOCO_GL", "glfw")
    with pytest.raises(SceneError, match="MUJOCO_GL is 'glfw'.*egl or osmesa"):
        camera.frame(data)


def test_without_rendering_libraries_the_error_names_the_packages(camera, monkeypatch):
    camera, _, data = camera
    monkeypatch.delenv("MUJOCO_GL", raising=False)
    monkeypatch.setattr(offscreen, "_LIBRARIES", {"egl": ("libNone.so.1",), "osmesa": ("libNone.so.2",)})
    with pytest.raises(SceneError, match="egl: libNone.so.1 is not installed.*libegl1"):
        camera.frame(data)
