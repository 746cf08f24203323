"""Every test process in a ROS domain of its own, and nodes of a test that end with it."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import suppress
from pathlib import Path

import pytest

from failure_dialogue.domain import claim_domain, set_domain

# A shell that starts the tests in the background has them ignore Ctrl-C, and their children with them.
signal.signal(signal.SIGINT, signal.default_int_handler)
# Before any test imports rclpy. Parallel runs and graphs of this machine's users do not hear each other.
_CLAIM = claim_domain("test")
set_domain(_CLAIM.domain_id)
os.environ["ROS_AUTOMATIC_DISCOVERY_RANGE"] = "LOCALHOST"
os.environ.setdefault("AMENT_PREFIX_PATH", sys.prefix)


class SpunNodes:
    """Nodes in this process, spun in a thread until the test ends."""

    def __init__(self) -> None:
        import rclpy
        from rclpy.executors import MultiThreadedExecutor

        self.context = rclpy.Context()
        rclpy.init(context=self.context)
        self._executor = MultiThreadedExecutor(num_threads=2, context=self.context)
        self._nodes: list = []
        self._thread = threading.Thread(target=self._spin, daemon=True)
        self._thread.start()

    def _spin(self) -> None:
        from rclpy.executors import ExternalShutdownException, ShutdownException

        with suppress(ExternalShutdownException, ShutdownException):
            self._executor.spin()

    def add(self, factory: Callable[..., object], *arguments, **options):
        """Make a node with factory(..., context=...) and spin it."""
        node = factory(*arguments, context=self.context, **options)
        self._nodes.append(node)
        self._executor.add_node(node)
        return node

    def wait(self, what: str, ready: Callable[[], object], limit_s: float = 20.0):
        """The first true value of ready(); the test fails when there is none within limit_s."""
        until = time.monotonic() + limit_s
        while not (value := ready()):
            assert time.monotonic() < until, f"{what} did not happen within {limit_s:g} s"
            time.sleep(0.02)
        return value

    def close(self) -> None:
        """End the spinning, then the nodes."""
        import rclpy

        self._executor.shutdown(timeout_sec=5.0)
        self._thread.join(timeout=5.0)
        for node in self._nodes:
            node.destroy_node()
        rclpy.try_shutdown(context=self.context)


@pytest.fixture
def nodes() -> Iterator[SpunNodes]:
    """Nodes that live as long as the test: nodes.add(rclpy.create_node, "listener"), nodes.wait(...)."""
    spun = SpunNodes()
    yield spun
    spun.close()


def pytest_unconfigure() -> None:
    """Remove the shared memory of processes that tests have killed; that of running ones stays."""
    _CLAIM.release()
    tool = Path(sys.prefix) / "bin" / "fastdds"
    if tool.exists():
        path = f"{Path(sys.prefix) / 'bin'}{os.pathsep}{os.environ['PATH']}"
        subprocess.run([tool, "shm", "clean"], env={**os.environ, "PATH": path}, timeout=60, check=False,
                       stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
