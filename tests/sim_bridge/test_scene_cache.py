"""The scene cache holds LIBERO's ten scenes, loads fast, and mends itself."""

import os
import shutil
import signal
import subprocess
import sys
import time
from pathlib import Path

import mujoco
import numpy as np
import pytest

from failure_dialogue.errors import SceneError
from sim_bridge import scene_cache
from sim_bridge.scene_cache import ensure_scenes, load_scene

ROOT = Path(__file__).resolve().parents[2]
TARGETS = ["alphabet_soup", "cream_cheese", "salad_dressing", "bbq_sauce", "ketchup", "tomato_sauce",
           "butter", "milk", "chocolate_pudding", "orange_juice"]


@pytest.fixture(scope="module")
def scenes():
    ensure_scenes()  # one build of all is much faster than ten builds of one
    return [load_scene(task) for task in range(10)]


def test_all_ten_tasks_load_with_their_objects(scenes):
    assert [scene.target for scene in scenes] == TARGETS
    for scene in scenes:
        assert scene.container == "basket" and scene.target in scene.objects
        assert scene.target.replace("_", " ") in scene.instruction
        assert len(scene.objects) == 7
        assert scene.init_states.shape == (50, scene.model.nq)
        for body in scene.objects.values():
            joint = scene.model.body(body).jntadr[0]
            assert scene.model.jnt_type[joint] == mujoco.mjtJoint.mjJNT_FREE


def test_initial_states_put_every_object_above_the_table_and_in_reach(scenes):
    for scene in scenes:
        data = mujoco.MjData(scene.model)
        for state in scene.init_states[::10]:
            data.qpos[:] = state
            mujoco.mj_forward(scene.model, data)
            for body in scene.objects.values():
                x, y, z = data.body(body).xpos
                assert -0.35 < x < 0.35 and -0.4 < y < 0.45 and -0.02 < z < 0.2


def test_a_scene_is_found_by_number_name_and_target():
    by_number, by_text, by_target = load_scene(7), load_scene("7"), load_scene("milk")
    by_name = load_scene("pick_up_the_milk_and_place_it_in_the_basket")
    assert {scene.task_id for scene in (by_number, by_text, by_target, by_name)} == {7}
    by_number.model.body_mass[:] = 0.0
    assert by_target.model.body_mass.sum() > 1.0  # every caller has a model of its own


@pytest.mark.parametrize("task", ["teapot", 10, -1, "10", ""])
def test_an_unknown_task_names_those_there_are(task):
    with pytest.raises(SceneError, match=r"unknown task .*alphabet_soup.*orange_juice"):
        load_scene(task)


def test_asking_for_a_task_that_does_not_exist_is_an_error():
    with pytest.raises(SceneError, match="no LIBERO-Object task 12; the tasks are 0 to 9"):
        ensure_scenes(tasks=[0, 12])


def test_fingers_move_as_one():
    scene = load_scene(0)
    data = mujoco.MjData(scene.model)
    data.qpos[:] = scene.init_states[0]
    scene.model.opt.gravity[:] = 0.0
    scene.model.opt.disableflags |= mujoco.mjtDisableBit.mjDSBL_ACTUATION
    first, second = (scene.model.joint(f"gripper0_finger_joint{i}") for i in (1, 2))
    start = data.qpos[first.qposadr[0]]
    data.qfrc_applied[first.dofadr[0]] = 10.0  # push one finger only
    for _ in range(500):
        mujoco.mj_step(scene.model, data)
    assert data.qpos[first.qposadr[0]] - start > 0.005
    assert abs(data.qpos[first.qposadr[0]] + data.qpos[second.qposadr[0]]) < 0.001


def test_visual_meshes_are_light_and_contact_geoms_are_not_seen(scenes):
    for scene in scenes:
        model = scene.model
        drawn = [geom for geom in range(model.ngeom) if model.geom_group[geom] == 1]
        faces = sum(model.mesh_facenum[model.geom_dataid[geom]] for geom in drawn
                    if model.geom_type[geom] == mujoco.mjtGeom.mjGEOM_MESH)
        assert faces < 70_000
        assert model.tex_data.size < 20_000_000


def test_a_filled_cache_answers_at_once():
    ensure_scenes()
    durations = []
    for _ in range(3):
        start = time.perf_counter()
        ensure_scenes()
        durations.append(time.perf_counter() - start)
    assert min(durations) < 0.3


def test_without_libero_the_error_says_what_to_install(monkeypatch):
    monkeypatch.setattr(scene_cache, "_LIBERO_PACKAGES", ("no-such-package",))
    with pytest.raises(SceneError, match="LIBERO scenes are not installed.*make sim"):
        load_scene(0)


def _start_build(task, cache, home):
    """Another process that builds one task's scene and prints its progress."""
    code = ("from sim_bridge.scene_cache import ensure_scenes; "
            f"ensure_scenes(lambda line: print(line, flush=True), [{task}])")
    environment = dict(os.environ, PYTHONPATH=str(ROOT), XDG_CACHE_HOME=str(cache), HOME=str(home))
    return subprocess.Popen([sys.executable, "-c", code], env=environment, stdout=subprocess.PIPE,
                            stderr=subprocess.PIPE, text=True, start_new_session=True)


@pytest.mark.slow
def test_the_physics_is_that_of_libero(tmp_path):
    code = (f"import sys; from pathlib import Path; from sim_bridge.scene_build import export_task; "
            f"Path({str(tmp_path / 'libero.xml')!r}).write_text(export_task(3)[0])")
    subprocess.run([sys.executable, "-c", code], check=True, timeout=200, capture_output=True,
                   env=dict(os.environ, PYTHONPATH=str(ROOT), MUJOCO_GL="glx"))
    theirs = mujoco.MjModel.from_xml_path(str(tmp_path / "libero.xml"))
    ours = load_scene(3).model
    for field in ("body_mass", "body_inertia", "body_ipos", "dof_damping", "dof_frictionloss", "jnt_range",
                  "actuator_forcerange", "actuator_gainprm", "geom_friction", "geom_contype",
                  "geom_conaffinity", "geom_solref", "geom_condim", "cam_pos", "cam_quat"):
        np.testing.assert_array_equal(getattr(ours, field), getattr(theirs, field), err_msg=field)
    touching = (ours.geom_contype | ours.geom_conaffinity) != 0
    for field in ("geom_size", "geom_pos", "geom_quat", "geom_type"):
        mine, original = getattr(ours, field)[touching], getattr(theirs, field)[touching]
        np.testing.assert_allclose(mine, original, atol=1e-9, err_msg=field)
    # What is drawn keeps its outline: no visual geom's bounding box changes by more than 4 mm.
    for geom in np.flatnonzero(~touching):
        assert np.abs(_box(ours, geom) - _box(theirs, geom)).max() < 0.004, ours.geom(geom).name


def _box(model, geom):
    """(2, 3) metres: corners of the mesh's bounding box in the frame of the geom's body."""
    mesh = model.geom_dataid[geom]
    if mesh < 0:
        return np.zeros((2, 3))
    start, count = model.mesh_vertadr[mesh], model.mesh_vertnum[mesh]
    rotation = np.zeros(9)
    mujoco.mju_quat2Mat(rotation, model.geom_quat[geom])
    points = model.mesh_vert[start:start + count] @ rotation.reshape(3, 3).T + model.geom_pos[geom]
    return np.stack([points.min(axis=0), points.max(axis=0)])


@pytest.mark.slow
def test_a_damaged_scene_is_built_again(monkeypatch, tmp_path):
    good = ensure_scenes(tasks=[3])
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path))
    root = tmp_path / "failure_dialogue" / "scenes" / good.name
    for folder in ("03", "assets"):
        shutil.copytree(good / folder, root / folder)
    assert ensure_scenes(pytest.fail, tasks=[3]) == root  # a whole copy needs no build
    binary = root / "03" / "scene.mjb"

    binary.write_bytes(binary.read_bytes()[:1000])
    said = []
    ensure_scenes(said.append, tasks=[3])
    assert any("task 3 is damaged" in line and "1000 bytes" in line for line in said)
    whole = binary.read_bytes()
    assert len(whole) > 1_000_000

    binary.write_bytes(whole[:5000] + bytes([whole[5000] ^ 255]) + whole[5001:])  # size unchanged
    assert load_scene(3).target == "bbq_sauce"
    assert binary.read_bytes() == whole  # a build gives the same bytes each time


@pytest.mark.slow
def test_a_killed_build_is_done_again_and_leaves_nothing(monkeypatch, tmp_path):
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path))
    child = _start_build(5, tmp_path, tmp_path)
    assert child.stdout.readline().startswith("building")
    time.sleep(1.0)
    os.killpg(child.pid, signal.SIGKILL)  # the builder and the process it runs in
    child.communicate(timeout=30)
    root = next((tmp_path / "failure_dialogue" / "scenes").iterdir())
    assert not (root / "05").exists()
    assert list(root.glob("building-*"))
    assert load_scene(5).target == "tomato_sauce"
    assert not list(root.glob("building-*"))


@pytest.mark.slow
def test_two_builds_at_once_do_the_work_once_and_write_only_to_the_cache(tmp_path):
    home, cache = tmp_path / "home", tmp_path / "cache"
    home.mkdir()
    children = [_start_build(8, cache, home) for _ in range(2)]
    said = [child.communicate(timeout=300) for child in children]
    assert [child.returncode for child in children] == [0, 0], said
    assert sum("scene 1 of 1" in out for out, _ in said) == 1
    assert [errors for _, errors in said] == ["", ""]  # nothing of LIBERO's chatter
    assert list(home.iterdir()) == []
    assert [path.name for path in cache.iterdir()] == ["failure_dialogue"]


def test_a_build_that_hangs_is_stopped_with_a_plain_message(monkeypatch, tmp_path):
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path))
    monkeypatch.setattr(scene_cache, "_TASK_TIMEOUT_S", 0.2)  # less than starting Python with MuJoCo takes
    with pytest.raises(SceneError, match="took over .* was stopped; try again.*finished scenes are kept"):
        ensure_scenes(tasks=[1])
    assert not list(tmp_path.rglob("building-*"))
