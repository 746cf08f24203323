"""The whole thing as a user starts it: real nodes, real scenes, over Fast DDS. Slow, and in every full run."""

from __future__ import annotations

import os
import re
import signal
import subprocess
import sys
import threading
import time
from pathlib import Path

import pytest

pytestmark = pytest.mark.slow


class Sim:
    """`failure-dialogue sim` as a process; its transcript line by line, its log folder, its status."""

    def __init__(self, *options: str) -> None:
        environment = {k: v for k, v in os.environ.items() if k != "ROS_DOMAIN_ID"}
        self.process = subprocess.Popen(
            [sys.executable, "-m", "failure_dialogue.cli", "sim", "--fast", *options],
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
            env=environment,
            start_new_session=True,
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
            assert self.process.poll() is None, f"ended before {what!r}:\n{self.text}\n" + "\n".join(self.errors)
            assert time.monotonic() < until, f"no {what!r} within {limit_s:g} s:\n{self.text}"
            time.sleep(0.05)

    def end(self, limit_s: float = 400.0) -> int:
        try:
            status = self.process.wait(limit_s)
        except subprocess.TimeoutExpired:
            self.kill()
            raise
        for reader in self._readers:
            reader.join(5.0)
        return status

    def pid_of(self, module: str) -> int:
        """The process of this session that runs a node's module."""
        for folder in Path("/proc").iterdir():
            if folder.name.isdigit():
                try:
                    command = (folder / "cmdline").read_bytes().decode(errors="replace").split("\0")
                    session = int((folder / "stat").read_text().rsplit(")", 1)[1].split()[3])
                except OSError:
                    continue
                if module in command and session == self.process.pid:
                    return int(folder.name)
        raise AssertionError(f"no process runs {module}")

    def left_over(self) -> list[str]:
        """Command lines of the session's processes that are still there."""
        found = []
        for folder in Path("/proc").iterdir():
            if folder.name.isdigit():
                try:
                    fields = (folder / "stat").read_text().rsplit(")", 1)[1].split()
                    if int(fields[3]) == self.process.pid and fields[0] != "Z":
                        found.append((folder / "cmdline").read_bytes().decode(errors="replace"))
                except OSError:
                    continue
        return found

    def kill(self) -> None:
        os.killpg(self.process.pid, signal.SIGKILL)


@pytest.fixture(scope="module")
def tour(tmp_path_factory):
    """One run of the tour, recorded."""
    folder = tmp_path_factory.mktemp("bags")
    sim = Sim("--record", str(folder))
    status = sim.end()
    return sim, status, folder


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
    order = [text.index(step) for step in (
        "Failed:", "The camera says", "Decision: SENSE force", "The force sensor says", "Decision: ACT",
        "Repair:", "Re-check:", "Outcome: recovered; the robot says: succeeded",
        "the object is in the basket")]
    assert order == sorted(order)
    assert "Robot asks" not in text


def test_without_the_sensor_the_robot_asks_and_acts_on_the_reply(tour):
    text = episode(tour[0].text, "ask a person")
    order = [text.index(step) for step in (
        "Decision: ASK", "Robot asks:", "Scripted person says:", "Decision: ACT", "Repair:", "Outcome:")]
    assert order == sorted(order)
    assert "The force sensor says" not in text


def test_when_nobody_answers_the_robot_holds_and_tries_no_repair(tour):
    text = episode(tour[0].text, "nobody answers")
    order = [text.index(step) for step in (
        "Robot asks:", "Nobody answers:", "Decision: HOLD", "Outcome: handed over")]
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


def test_ctrl_c_in_a_motion_ends_everything_without_a_traceback():
    sim = Sim()
    sim.wait_for("Robot tries:")
    time.sleep(1.0)
    os.kill(sim.process.pid, signal.SIGINT)
    assert sim.end(30.0) == 130
    assert "Traceback" not in sim.text + "\n".join(sim.errors) + sim.logs()
    assert sim.left_over() == []


def test_when_the_decision_node_is_killed_in_a_repair_the_robot_holds_and_the_show_says_so():
    sim = Sim()
    sim.wait_for("Repair:")
    os.kill(sim.pid_of("failure_dialogue.nodes.decision"), signal.SIGKILL)
    assert sim.end(60.0) == 1
    assert "the decision node died in the episode" in "\n".join(sim.errors)
    assert "no heartbeat" in sim.logs()
    assert sim.left_over() == []
