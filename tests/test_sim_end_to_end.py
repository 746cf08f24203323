"""The whole thing as a user starts it: real nodes and scenes, over Fast DDS. Slow; in every full run."""

from __future__ import annotations

import contextlib
import os
import re
import signal
import subprocess
import sys
import threading
import time
import uuid
from pathlib import Path

import pytest

pytestmark = pytest.mark.slow

#: Environment variable that all processes of one run inherit.
MARK = "FAILURE_DIALOGUE_TEST_RUN"


class Sim:
    """`failure-dialogue sim` as a process; its transcript line by line, its log folder, its status."""

    def __init__(self, *options: str) -> None:
        self.mark = uuid.uuid4().hex
        environment = {k: v for k, v in os.environ.items() if k != "ROS_DOMAIN_ID"} | {MARK: self.mark}
        self.process = subprocess.Popen(
            [sys.executable, "-m", "failure_dialogue.cli", "sim", "--fast", *options],
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
            env=environment,
        )
        self.lines: list[str] = []
        self.errors: list[str] = []
        self._readers = [
            threading.Thread(target=self._read, args=(self.process.stdout, self.lines), daemon=True),
            threading.Thread(target=self._read, args=(self.process.stderr, self.errors), daemon=True),
        ]
        for reader in self._readers:
            reader.start()

    @staticmethod
    def _read(stream, into: list[str]) -> None:
        for line in stream:
            into.append(line.rstrip("\n"))

    @property
    def text(self) -> str:
        return "\n".join(self.lines)

    @property
    def log_dir(self) -> Path:
        return Path(re.search(r"logs in (\S+?)[;,]", "\n".join(self.errors)).group(1))

    def logs(self) -> str:
        return "\n".join(p.read_text(errors="replace") for p in sorted(self.log_dir.glob("*.log")))

    def wait_for(self, what: str, limit_s: float = 180.0) -> None:
        until = time.monotonic() + limit_s
        while what not in self.text:
            assert self.process.poll() is None, f"ended before {what!r}:\n{self.text}\n" + "\n".join(
                self.errors
            )
            assert time.monotonic() < until, f"no {what!r} within {limit_s:g} s:\n{self.text}"
            time.sleep(0.05)

    def end(self, limit_s: float = 400.0) -> int:
        status = self.process.wait(limit_s)
        for reader in self._readers:
            reader.join(5.0)
        return status

    def _processes(self) -> dict[int, list[str]]:
        """Command lines, by id, of all that this run started and that is still there."""
        found = {}
        for folder in Path("/proc").iterdir():
            if folder.name.isdigit():
                try:
                    mine = f"{MARK}={self.mark}".encode() in (folder / "environ").read_bytes().split(b"\0")
                    command = (folder / "cmdline").read_bytes().decode(errors="replace").split("\0")
                except OSError:
                    continue
                if mine:
                    found[int(folder.name)] = command
        return found

    def pid_of(self, module: str) -> int:
        """The process that runs a node's module."""
        found = [pid for pid, command in self._processes().items() if module in command]
        assert found, f"no process runs {module}"
        return found[0]

    def left_over(self) -> list[str]:
        """Command lines of processes that outlived the run."""
        until = time.monotonic() + 3.0
        while (found := self._processes()) and time.monotonic() < until:
            time.sleep(0.1)
        return [" ".join(command) for command in found.values()]

    def kill(self) -> None:
        """End whatever is left of the run."""
        for pid in self._processes():
            with contextlib.suppress(ProcessLookupError):
                os.kill(pid, signal.SIGKILL)
        self.process.wait(10.0)
        for stream in (self.process.stdout, self.process.stderr):
            stream.close()


@pytest.fixture(scope="module")
def tour(tmp_path_factory):
    """One run of the tour, recorded."""
    folder = tmp_path_factory.mktemp("bags")
    sim = Sim("--record", str(folder))
    try:
        status = sim.end()
        yield sim, status, folder
    finally:
        sim.kill()


@pytest.fixture
def sim():
    """A run of its own, ended with the test."""
    run = Sim()
    yield run
    run.kill()


def episode(text: str, title: str) -> str:
    """The part of the transcript under one title."""
    found = re.search(rf"=== Episode \d of 3: {title} ===\n(.*?)(?=\n===|\Z)", text, re.S)
    assert found, f"no episode {title!r} in:\n{text}"
    return re.sub(r"\s+", " ", found.group(1))


def test_the_tour_ends_well(tour):
    sim, status, _ = tour
    assert status == 0, sim.text + "\n".join(sim.errors)
    assert "Traceback" not in sim.text + sim.logs()
    assert sim.left_over() == []


def test_a_cheap_sensor_is_read_before_anything_is_done(tour):
    text = episode(tour[0].text, "sense, then act")
    order = [
        text.index(step)
        for step in (
            "Failed:",
            "The camera says",
            "Decision: SENSE force",
            "The force sensor says",
            "Decision: ACT",
            "Repair:",
            "Re-check:",
            "Outcome: recovered; the robot says: succeeded",
            "the object is in the basket",
        )
    ]
    assert order == sorted(order)
    assert "Robot asks" not in text


def test_without_the_sensor_the_robot_asks_and_acts_on_the_reply(tour):
    text = episode(tour[0].text, "ask a person")
    order = [
        text.index(step)
        for step in (
            "Decision: ASK",
            "Robot asks:",
            "Scripted person says:",
            "Decision: ACT",
            "Repair:",
            "Outcome:",
        )
    ]
    assert order == sorted(order)
    assert "The force sensor says" not in text


def test_when_nobody_answers_the_robot_holds_and_tries_no_repair(tour):
    text = episode(tour[0].text, "nobody answers")
    order = [
        text.index(step)
        for step in ("Robot asks:", "Nobody answers:", "Decision: HOLD", "Outcome: handed over")
    ]
    assert order == sorted(order)
    assert "Repair:" not in text and "0 repairs" in text


def test_every_decision_shows_p_with_interval_and_n_and_the_cost_of_each_action(tour):
    for title in ("sense, then act", "ask a person", "nobody answers"):
        text = episode(tour[0].text, title)
        assert re.search(r"right with p = 0\.\d\d \(95 % interval 0\.\d\d to \d\.\d\d, n=\d+\)", text)
        assert re.search(r"expected cost: act \([a-z ]+\) \d+\.\d\d; (sense \(force\)|ask)", text)


def test_the_bag_holds_every_step_of_the_exchange(tour):
    from rosbags.highlevel import AnyReader

    bag = next(path.parent for path in tour[2].rglob("metadata.yaml"))
    counts: dict[str, int] = {}
    outcomes = []
    with AnyReader([bag]) as reader:
        for connection, _, raw in reader.messages():
            counts[connection.topic] = counts.get(connection.topic, 0) + 1
            if connection.topic == "/failure_dialogue/outcome":
                outcomes.append(reader.deserialize(raw, connection.msgtype))
    assert [o.disposition for o in outcomes] == ["recovered", "recovered", "handed_over"]
    for topic in ("failure", "diagnosis", "decision", "question", "reply", "reply_meaning", "episode"):
        assert counts[f"/failure_dialogue/{topic}"] >= 1, topic
    assert counts["/force_torque_sensor_broadcaster/wrench"] > 10 * counts["/camera/color/image_raw"] > 1000


def test_ctrl_c_in_a_motion_ends_everything_without_a_traceback(sim):
    sim.wait_for("Robot tries:")
    time.sleep(1.0)
    os.kill(sim.process.pid, signal.SIGINT)
    assert sim.end(30.0) == 130
    assert "Traceback" not in sim.text + "\n".join(sim.errors) + sim.logs()
    assert sim.left_over() == []


def test_when_the_decision_node_is_killed_in_a_repair_the_robot_holds_and_the_show_says_so(sim):
    sim.wait_for("Repair:")
    time.sleep(0.7)  # the goal is on its way, the motion begun
    os.kill(sim.pid_of("failure_dialogue.nodes.decision"), signal.SIGKILL)
    assert sim.end(60.0) == 1
    assert "the decision node died in the episode" in "\n".join(sim.errors)
    assert "no heartbeat" in sim.logs()
    assert sim.left_over() == []
