"""Builds cached scenes out of LIBERO; runs as a process of its own, started by scene_cache.

LIBERO pulls in robosuite, which sets MUJOCO_GL and installs log handlers for the whole process, so no
other process of this project imports it.
"""

from __future__ import annotations

import contextlib
import hashlib
import json
import logging
import os
import sys
import unittest.mock
from pathlib import Path

import mujoco
import numpy as np

from sim_bridge.appearance import SURFACE_PREFIX, SURFACES
from sim_bridge.meshes import AssetStore, lighten

SUITE = "libero_object"
INDEX = "index.json"
SURFACE_SIZE = 256

#: LIBERO leaves the Panda's fingers free of each other; the real ones share one drive.
_FINGERS = ("gripper0_finger_joint1", "gripper0_finger_joint2")


def _import_libero():
    # robosuite opens /tmp/robosuite.log on import, which fails when another user owns that file.
    with unittest.mock.patch.object(logging, "FileHandler", lambda *args, **kwargs: logging.NullHandler()):
        from libero.libero import benchmark, get_libero_path
        from libero.libero.envs.env_wrapper import ControlEnv
    return benchmark, get_libero_path, ControlEnv


def _plain(name: str) -> str:
    """'alphabet_soup' of LIBERO's instance name 'alphabet_soup_1'."""
    stem, _, number = name.rpartition("_")
    return stem if number.isdigit() else name


def export_task(task_id: int) -> tuple[str, np.ndarray, dict]:
    """MJCF text, initial states (50, nq) and facts of one LIBERO-Object task, as LIBERO itself makes them."""
    benchmark, get_libero_path, control_env = _import_libero()
    suite = benchmark.get_benchmark(SUITE)()
    task = suite.get_task(task_id)
    bddl = Path(get_libero_path("bddl_files")) / task.problem_folder / task.bddl_file
    env = control_env(bddl_file_name=str(bddl), use_camera_obs=False, has_offscreen_renderer=False)
    xml = env.env.sim.model.get_xml()
    states = np.asarray(suite.get_task_init_states(task_id), dtype=np.float64)
    nq, nv = env.env.sim.model.nq, env.env.sim.model.nv
    if states.ndim != 2 or states.shape[1] != 1 + nq + nv:
        raise RuntimeError(f"initial states of task {task_id} have shape {states.shape}; "
                           f"(n, {1 + nq + nv}) was expected")
    target, container = (_plain(name) for name in env.obj_of_interest)
    objects = {_plain(name): obj.root_body for name, obj in env.env.objects_dict.items()}
    facts = {"task_id": task_id, "name": task.name, "instruction": task.language,
             "target": target, "container": container, "objects": objects}
    return xml, states[:, 1:1 + nq], facts  # a LIBERO state is time, qpos, qvel; the velocities are all zero


def couple_fingers(spec: mujoco.MjSpec) -> None:
    """Make the second finger mirror the first, as the one motor of a real Panda hand does."""
    coupling = spec.add_equality(name="finger_coupling", type=mujoco.mjtEq.mjEQ_JOINT,
                                 objtype=mujoco.mjtObj.mjOBJ_JOINT, name1=_FINGERS[1], name2=_FINGERS[0])
    coupling.data[:5] = [0, -1, 0, 0, 0]  # q2 = -q1, as a polynomial


def add_surfaces(spec: mujoco.MjSpec, assets: AssetStore) -> None:
    """Add LIBERO's floor and table images as textures: an Appearance then needs no upload to choose one."""
    _, get_libero_path, _ = _import_libero()
    images = Path(get_libero_path("assets")) / "textures"
    for name in SURFACES[1:]:  # the first is in the scene already
        image = assets.texture(str(images / f"{name}.png"), SURFACE_SIZE)
        spec.add_texture(name=SURFACE_PREFIX + name, type=mujoco.mjtTexture.mjTEXTURE_2D, file=str(image),
                         colorspace=mujoco.mjtColorSpace.mjCOLORSPACE_SRGB)


def build_task(task_id: int, folder: Path, assets: AssetStore) -> dict:
    """Write one finished cache entry into `folder`; returns its facts."""
    folder.mkdir(parents=True)
    xml, states, facts = export_task(task_id)
    spec = mujoco.MjSpec.from_string(xml)
    spec.meshdir = spec.texturedir = ""  # all files are named by their full path
    lighten(spec, assets)
    add_surfaces(spec, assets)
    couple_fingers(spec)
    model = spec.compile()
    model.vis.quality.offsamples = 0
    mujoco.mj_saveModel(model, str(folder / "scene.mjb"))
    # Absolute paths in LIBERO's MJCF; relative ones survive the move to the entry's final place.
    xml = spec.to_xml().replace(str(assets.folder), "../assets")
    (folder / "scene.xml").write_text(xml, encoding="utf-8")
    np.save(folder / "init_states.npy", states, allow_pickle=False)
    (folder / "scene.json").write_text(json.dumps(facts, indent=2), encoding="utf-8")
    own = {path.name: _entry(path) for path in sorted(folder.iterdir())}
    used = {Path(thing.file).name for thing in [*spec.meshes, *spec.textures] if thing.file}
    shared = {f"../assets/{name}": _entry(assets.folder / name) for name in sorted(used)}
    (folder / INDEX).write_text(json.dumps({"files": own | shared}), encoding="utf-8")
    return facts


def _entry(path: Path) -> dict:
    return {"bytes": path.stat().st_size, "sha256": hashlib.sha256(path.read_bytes()).hexdigest()}


def main(arguments: list[str]) -> None:
    """Arguments: folder for new entries, folder of shared assets, task ids. Prints a JSON line a task."""
    building, assets = Path(arguments[0]), AssetStore(Path(arguments[1]))
    report = os.fdopen(os.dup(sys.stdout.fileno()), "w")
    with contextlib.redirect_stdout(sys.stderr):
        for task_id in (int(text) for text in arguments[2:]):
            facts = build_task(task_id, building / f"{task_id:02d}", assets)
            print(json.dumps(facts), file=report, flush=True)


if __name__ == "__main__":
    main(sys.argv[1:])
