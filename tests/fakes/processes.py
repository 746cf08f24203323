"""Starting a node in a process of its own, in a test's ROS domain, and ending it as a person would."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path

REPOSITORY = Path(__file__).resolve().parents[2]


@contextmanager
def node_process(module: str, domain_id: int, *parameters: str, log: Path) -> Iterator[subprocess.Popen]:
    """`python -m module` with `-p` parameters, its output in the log; killed if it outlives the test."""
    arguments = [text for parameter in parameters for text in ("-p", parameter)]
    environment = dict(os.environ, ROS_DOMAIN_ID=str(domain_id), ROS_AUTOMATIC_DISCOVERY_RANGE="LOCALHOST",
                       PYTHONPATH=str(REPOSITORY), PYTHONUNBUFFERED="1")
    with log.open("w") as output:
        command = [sys.executable, "-m", module, *(["--ros-args", *arguments] if arguments else [])]
        process = subprocess.Popen(command, stdout=output, stderr=subprocess.STDOUT, env=environment,
                                   cwd=REPOSITORY)
    try:
        yield process
    finally:
        process.kill()
        process.wait()


def ended(process: subprocess.Popen, how: signal.Signals = signal.SIGINT,
          limit_s: float = 20.0) -> tuple[int, float]:
    """Send the signal; (exit status, seconds until the process was gone)."""
    start = time.monotonic()
    process.send_signal(how)
    return process.wait(limit_s), time.monotonic() - start


def until(condition: Callable[[], bool], what: str, limit_s: float = 30.0,
          step: Callable[[], None] | None = None) -> None:
    """Wait for a condition, doing `step` meanwhile; AssertionError names what did not come."""
    deadline = time.monotonic() + limit_s
    while not condition():
        assert time.monotonic() < deadline, f"{what} did not come within {limit_s:g} s"
        step() if step is not None else time.sleep(0.02)
