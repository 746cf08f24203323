"""The set-up's promises, with stand-ins for apt, Python and CMake: what runs again, what a failure says."""

from __future__ import annotations

import os
import re
import shutil
import signal
import subprocess
import sys
import textwrap
import time
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parent.parent

LOCK = "requirements/lock/py{}.{}.txt".format(*sys.version_info)

# A Python whose virtual environments hold stand-ins that note how they were called.
_PYTHON = """\
#!/bin/bash
if [ "$1" = -c ]; then
  case "$2" in *realpath*) readlink -f "$0";; *) exec {real} "$@";; esac
elif [ "$2" = venv ]; then
  echo "venv" >> {calls}
  mkdir -p "$3/bin"
  for tool in python cmake failure-dialogue; do cp {tool} "$3/bin/$tool"; done
fi
"""
_TOOL = """\
#!/bin/bash
[ "$1" = -c ] && exit 0
echo "$(basename "$0") $*" >> {calls}
[ ! -e {calls}.fail ] || ! grep -q "$(basename "$0") $1" {calls}.fail || {{ echo "went wrong"; exit 7; }}
"""


class Clone:
    """A copy of what the set-up reads, and the stand-ins."""

    def __init__(self, folder: Path) -> None:
        self.path, self.bin, self._calls = folder / "clone", folder / "bin", folder / "calls"
        self.path.mkdir()
        self.bin.mkdir()
        for name in ("scripts", "requirements", "msg", "cmake"):
            shutil.copytree(ROOT / name, self.path / name)
        for name in ("setup.py", "setup.cfg"):
            shutil.copy(ROOT / name, self.path / name)
        (self.path / "sim_bridge").mkdir()
        shutil.copy(ROOT / "sim_bridge" / "scene_build.py", self.path / "sim_bridge" / "scene_build.py")
        self.tool("python3", _PYTHON.format(real=sys.executable, calls=self._calls, tool=self.bin / "tool"))
        self.tool("tool", _TOOL.format(calls=self._calls))
        self.tool("dpkg-query", "#!/bin/sh\necho installed\n")
        (folder / "cache" / "failure_dialogue" / "scenes").mkdir(parents=True)
        self.environment = {**os.environ, "PATH": f"{self.bin}:{os.environ['PATH']}", "PYTHON": "",
                            "XDG_CACHE_HOME": str(folder / "cache")}

    def tool(self, name: str, text: str) -> None:
        path = self.bin / name
        path.write_text(textwrap.dedent(text))
        path.chmod(0o755)

    def fails(self, call: str) -> None:
        self._calls.with_name("calls.fail").write_text(call)

    def works(self) -> None:
        self._calls.with_name("calls.fail").unlink()

    def run(self, **environment: str) -> tuple[subprocess.CompletedProcess, list[str]]:
        """Run the set-up; the process, and the steps it did in order."""
        self._calls.unlink(missing_ok=True)
        done = subprocess.run(["bash", str(self.path / "scripts" / "setup.sh")], text=True, check=False,
                              capture_output=True, timeout=60, env={**self.environment, **environment})
        calls = self._calls.read_text() if self._calls.exists() else ""
        marks = {"packages": "^venv$", "messages": "cmake --install", "project": "--editable",
                 "scenes": "prepare-scenes"}
        return done, [step for step, mark in marks.items() if re.search(mark, calls, re.MULTILINE)]


@pytest.fixture
def clone(tmp_path: Path) -> Clone:
    return Clone(tmp_path)


def test_the_first_run_does_every_step_and_the_second_none(clone):
    done, steps = clone.run()
    assert done.returncode == 0, done.stdout + done.stderr
    assert steps == ["packages", "messages", "project", "scenes"]
    assert [line[:5] for line in done.stdout.splitlines() if line.startswith("[")] == [
        "[2/5]", "[3/5]", "[4/5]", "[5/5]"]
    done, steps = clone.run()
    assert (done.returncode, steps, done.stdout) == (0, [], "")


@pytest.mark.parametrize(("changed", "again"), [
    ("msg/msg/Decision.msg", ["messages"]),
    ("setup.cfg", ["project"]),
    ("sim_bridge/scene_build.py", ["scenes"]),
    (LOCK, ["packages", "messages", "project", "scenes"]),
])
def test_what_changed_is_made_again_with_what_hangs_on_it(clone, changed, again):
    clone.run()
    with (clone.path / changed).open("a") as file:
        file.write("# changed\n")
    assert clone.run()[1] == again


def test_a_new_message_file_is_built(clone):
    clone.run()
    (clone.path / "msg" / "msg" / "New.msg").write_text("bool it_is\n")
    assert clone.run()[1] == ["messages"]


def test_a_deleted_environment_or_scene_cache_is_made_again(clone):
    clone.run()
    shutil.rmtree(clone.path / ".venv")
    assert clone.run()[1] == ["packages", "messages", "project", "scenes"]
    shutil.rmtree(Path(clone.environment["XDG_CACHE_HOME"]))
    assert clone.run()[1] == ["scenes"]


def test_a_failed_step_says_which_where_and_what_to_do_and_can_be_repeated(clone):
    clone.fails("cmake -S")
    done, _ = clone.run()
    assert done.returncode == 1
    assert "went wrong" in done.stdout
    assert "step 3 of 5 failed: Messages failure_dialogue_msgs" in done.stderr
    assert "The whole log: .setup/messages.log" in done.stderr
    assert "run the same command again" in done.stderr
    clone.works()
    done, steps = clone.run()
    assert (done.returncode, steps) == (0, ["messages", "project", "scenes"])


def test_an_interrupted_step_is_done_again(clone):
    plain = (clone.bin / "tool").read_text()
    clone.tool("tool", plain + '[[ "$0 $*" != *cmake*--build* ]] || sleep 60\n')
    process = subprocess.Popen(["bash", str(clone.path / "scripts" / "setup.sh")], text=True,
                               stdout=subprocess.PIPE, stderr=subprocess.PIPE, start_new_session=True,
                               env=clone.environment)
    for line in process.stdout:
        if line.startswith("[3/5]"):
            break
    time.sleep(1.0)
    os.killpg(process.pid, signal.SIGINT)
    _, err = process.communicate(timeout=10)  # and nothing of the step goes on, holding the pipes
    assert process.returncode == 130
    assert "interrupted; run the same command again to go on" in err
    shutil.rmtree(clone.path / ".venv")  # its stand-ins sleep
    clone.tool("tool", plain)
    assert clone.run()[1] == ["packages", "messages", "project", "scenes"]


def test_a_failed_apt_names_the_packages(clone):
    clone.tool("dpkg-query", '#!/bin/sh\ncase "$*" in *espeak-ng|*libegl1) exit 1; esac\necho installed\n')
    clone.tool("apt-get", "#!/bin/sh\necho no network >&2\nexit 100\n")
    clone.tool("id", "#!/bin/sh\necho 0\n")
    done, steps = clone.run()
    assert (done.returncode, steps) == (1, [])
    assert "step 1 of 5 failed: Debian packages: libegl1 espeak-ng" in done.stderr
    assert "apt-get install --no-install-recommends libegl1 espeak-ng" in done.stderr


def test_apt_is_not_called_when_nothing_is_missing(clone):
    clone.tool("apt-get", "#!/bin/sh\nexit 100\n")
    assert clone.run()[0].returncode == 0


def test_a_later_name_of_a_package_counts(clone):
    clone.tool("dpkg-query", '#!/bin/sh\ncase "$*" in *libglib2.0-0) exit 1;; *) echo installed;; esac\n')
    clone.tool("apt-get", "#!/bin/sh\nexit 100\n")
    assert clone.run()[0].returncode == 0


def test_another_processor_is_told_what_works_there(clone):
    clone.tool("uname", '#!/bin/sh\n[ "$1" = -m ] && echo aarch64 || echo Linux\n')
    done, _ = clone.run()
    assert done.returncode == 1
    assert "this machine is Linux on aarch64; the ROS 2 wheels exist for Linux on x86-64 only" in done.stderr
    assert "colcon" in done.stderr


def test_a_python_that_will_not_do_is_named(clone):
    done, _ = clone.run(PYTHON="/nowhere/python3.9")
    assert done.returncode == 1
    assert "PYTHON=/nowhere/python3.9 is no Python 3.10 to 3.13" in done.stderr


def test_a_full_disk_is_found_out_before_the_download(clone):
    clone.tool("df", "#!/bin/sh\nprintf 'Filesystem\\n/dev/x 1 1 287 1 /\\n'\n")
    done, steps = clone.run()
    assert (done.returncode, steps) == (1, [])
    assert "287 MB are free" in done.stderr


def test_a_sourced_ros_does_not_leak_in(clone):
    clone.tool("tool", '#!/bin/sh\n[ -z "$PYTHONPATH$RMW_IMPLEMENTATION" ] || exit 9\n')
    done, _ = clone.run(PYTHONPATH="/opt/ros/jazzy/lib", RMW_IMPLEMENTATION="rmw_cyclonedds_cpp",
                        ROS_DISTRO="jazzy")
    assert done.returncode == 0, done.stdout
