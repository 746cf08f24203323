"""What the supervisor promises: restarts with a bound, one end for all, a transcript free of log lines."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest

_RUNNER = """
import os, sys
from pathlib import Path
from failure_dialogue import supervise
supervise._RESTART_DELAY_S = 0.05
jobs = [supervise.Job(*job) for job in {jobs!r}]
sys.exit(supervise.run_jobs(jobs, Path({logs!r}), os.environ, verbose={verbose!r}))
"""


def _script(*lines: str) -> list[str]:
    return [sys.executable, "-u", "-c", "\n".join(("import os, signal, sys, time", *lines))]


_SLEEPER = _script("print('awake', os.getpid())", "time.sleep(60)")


@pytest.fixture
def start(tmp_path: Path):
    """Start jobs (name, command, respawn, terminal) under a supervisor; it is gone at the end of the test."""
    started: list[subprocess.Popen] = []

    def _start(*jobs: tuple, verbose: bool = False) -> subprocess.Popen:
        process = subprocess.Popen(
            [sys.executable, "-c", _RUNNER.format(jobs=jobs, logs=str(tmp_path / "logs"), verbose=verbose)],
            stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True,
            start_new_session=True)
        started.append(process)
        return process

    yield _start
    for process in started:
        if process.poll() is None:
            os.killpg(process.pid, signal.SIGKILL)
        process.communicate()


def _wait_for(condition, limit_s: float = 15.0):
    until = time.monotonic() + limit_s
    while not (value := condition()):
        assert time.monotonic() < until, "waited too long"
        time.sleep(0.05)
    return value


def _pid_in(log: Path, word: str = "awake") -> int | None:
    lines = log.read_text().split("\n") if log.exists() else []
    pids = [int(line.split()[1]) for line in lines[:-1] if line.startswith(word)]
    return pids[-1] if pids else None


def _runs(pid: int) -> bool:
    try:
        return Path(f"/proc/{pid}/stat").read_text().rsplit(")", 1)[1].split()[0] != "Z"
    except FileNotFoundError:
        return False


@pytest.mark.parametrize("status", [0, 7])
def test_the_end_of_the_show_ends_all_with_its_status(start, tmp_path, status):
    show = _script("time.sleep(1)", f"sys.exit({status})")
    process = start(("node", _SLEEPER), ("show", show, False, True))
    assert process.wait(20) == status
    assert not _runs(_pid_in(tmp_path / "logs" / "node.log"))


def test_a_killed_node_is_started_again(start, tmp_path):
    process = start(("node", _SLEEPER), ("show", _script("time.sleep(60)"), False, True))
    first = _wait_for(lambda: _pid_in(tmp_path / "logs" / "node.log"))
    os.kill(first, signal.SIGKILL)
    second = _wait_for(lambda: (pid := _pid_in(tmp_path / "logs" / "node.log")) != first and pid)
    assert _runs(second)
    process.send_signal(signal.SIGTERM)
    assert process.wait(20) == 143
    assert "node ended (signal SIGKILL) and is started again, 1 of at most 3 times" in process.stderr.read()


def test_a_node_that_keeps_dying_ends_the_graph_after_three_restarts(start, tmp_path):
    process = start(("node", _script("print('up')", "sys.exit(5)")), ("show", _SLEEPER, False, True))
    assert process.wait(30) == 5
    assert (tmp_path / "logs" / "node.log").read_text().splitlines().count("up") == 4
    assert "node ended 4 times (now exit status 5); everything ends" in process.stderr.read()


def test_a_configuration_error_is_not_tried_again(start, tmp_path):
    refusing = _script("print('error: seed -1 is out of range', file=sys.stderr)", "sys.exit(2)")
    process = start(("node", refusing), ("show", _SLEEPER, False, True))
    assert process.wait(20) == 2
    assert process.stderr.read().count("error: seed -1 is out of range") == 1


def test_ctrl_c_ends_all_without_a_traceback(start, tmp_path):
    process = start(("node", _SLEEPER), ("show", _SLEEPER, False, True))
    node = _wait_for(lambda: _pid_in(tmp_path / "logs" / "node.log"))
    os.killpg(process.pid, signal.SIGINT)  # as a terminal sends it
    out, err = process.communicate(timeout=20)
    assert process.returncode == 130
    assert "Traceback" not in out + err
    assert not _runs(node)


def test_ctrl_c_while_processes_start_ends_all(start):
    process = start(*((f"node{i}", _SLEEPER) for i in range(6)))
    time.sleep(0.5)
    os.killpg(process.pid, signal.SIGINT)
    _, err = process.communicate(timeout=20)
    assert process.returncode in (130, -signal.SIGINT)  # the latter: it had not come to its handler yet
    assert "multiprocessing" not in err


def test_a_node_that_ignores_sigterm_is_killed(start, tmp_path):
    stubborn = _script("signal.signal(signal.SIGTERM, signal.SIG_IGN)", "print('awake', os.getpid())",
                       "time.sleep(60)")
    process = start(("node", stubborn), ("show", _script("time.sleep(1.5)"), False, True))
    assert process.wait(25) == 0
    assert not _runs(_pid_in(tmp_path / "logs" / "node.log"))


def test_nothing_outlives_a_killed_supervisor(start, tmp_path):
    process = start(("node", _SLEEPER), ("show", _SLEEPER, False, True))
    node = _wait_for(lambda: _pid_in(tmp_path / "logs" / "node.log"))
    process.kill()
    _wait_for(lambda: not _runs(node))


def test_the_transcript_is_plain_and_warnings_are_prefixed(start, tmp_path):
    talkative = _script("for level in ('INFO', 'WARN'): print(f'[{level}] [1.0] [n]: text of {level}', "
                        "file=sys.stderr)", "time.sleep(60)")
    show = _script("time.sleep(1.5)", "print('the transcript')")
    process = start(("node", talkative), ("show", show, False, True))
    out, err = process.communicate(timeout=20)
    assert out == "the transcript\n"
    assert "text of INFO" not in err
    assert [line.partition("| ")[2] for line in err.splitlines() if "text of WARN" in line] == [
        "[WARN] [1.0] [n]: text of WARN"]
    assert "text of INFO" in (tmp_path / "logs" / "node.log").read_text()


def test_verbose_shows_all(start):
    process = start(("node", _script("print('[INFO] [1.0] [n]: hello')", "time.sleep(60)")),
                    ("show", _script("time.sleep(1.5)"), False, True), verbose=True)
    assert "node   | [INFO] [1.0] [n]: hello" in process.communicate(timeout=20)[1]


def test_the_show_reads_what_the_user_types(start):
    process = start(("show", _script("print('heard', sys.stdin.readline())"), False, True))
    out, _ = process.communicate("squeeze harder\n", timeout=20)
    assert out.startswith("heard squeeze harder")
