"""The scenario runner: lays scenes, starts tasks, and prints what happens as a transcript."""

from __future__ import annotations

import contextlib
import dataclasses
import json
import math
import os
import sys
import threading
import time
from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path

import rclpy
from diagnostic_msgs.msg import DiagnosticArray
from failure_dialogue_msgs import msg as m
from failure_dialogue_msgs import srv
from rcl_interfaces.srv import SetParameters
from rclpy.executors import ExternalShutdownException, SingleThreadedExecutor
from rclpy.node import Node
from rclpy.parameter import Parameter
from std_msgs.msg import String

from failure_dialogue import topics
from failure_dialogue.decision.costs import Costs, load_costs
from failure_dialogue.decision.record import record_or_reason
from failure_dialogue.decision.threshold import threshold
from failure_dialogue.nodes.node import EVENT_QOS, EXCHANGE_QOS, end_signals
from failure_dialogue.paths import config_dir
from failure_dialogue.scoring.outcomes import ScoredEpisode, summary_lines
from sim_bridge import transcript

_READY_S = 90.0  # until every node answers, the scene cache being there
_EPISODE_S = 300.0  # until an episode ends, in real seconds
_TRIES = 8  # scenes that may hold in spite of the perturbation, before one fails
_CAUSES = ("weak_grip", "heavy_object", "slippery_surface")
_NODES = ("sim_bridge", "diagnosis", "decision", "dialogue", "recheck")


class ShowError(Exception):
    """The show cannot go on; the text says what was waited for."""


@dataclass(frozen=True)
class Scenario:
    """One episode of the show: the scene, and the parameters that make it what it shows."""

    title: str
    cause: str
    task: str
    seed: int
    parameters: tuple[tuple[str, str, object], ...] = ()  # node, parameter, value
    note: str = ""
    expect: str = ""


@dataclass
class _Episode:
    """What was heard in one episode."""

    failed: bool = False
    outcome: m.Outcome | None = None
    actions: list[int] = field(default_factory=list)
    idle: bool = False
    lost: bool = False  # the decision node came up anew and knows nothing of it
    first_decision_s: float = math.nan
    failure_wall_s: float = math.nan


def tour(seed: int) -> list[Scenario]:
    """The three ways, with the costs that make each the sensible one."""
    no_force = (("diagnosis", "offered_sources", ["camera"]), ("decision", "sense_sources", [""]))
    back = (("diagnosis", "offered_sources", ["camera", "force"]), ("decision", "sense_sources", ["force"]))
    cost, why = _asking_cost()
    return [
        Scenario(
            "sense, then act",
            "slippery_surface",
            "bbq_sauce",
            seed + 1,
            back,
            "The camera alone is a poor witness; reading the force sensor is cheap.",
            "sense",
        ),
        Scenario(
            "ask a person",
            "heavy_object",
            "ketchup",
            seed + 2,
            (*no_force, ("decision", "cost_ask", cost)),
            f"The force channel is switched off. {why}",
            "ask",
        ),
        Scenario(
            "nobody answers",
            "weak_grip",
            "orange_juice",
            seed + 3,
            (
                *no_force,
                ("decision", "cost_ask", cost),
                ("scripted_person", "silent", True),
                ("dialogue", "reply_limit_s", 8.0),
            ),
            "The force channel is switched off, and nobody answers within 8 s.",
            "hold",
        ),
    ]


def _asking_cost() -> tuple[float, str]:
    """The highest of a few costs at which the camera's measured accuracy makes asking the better choice."""
    costs, answerer = load_costs()
    record, reason = record_or_reason(config_dir() / "records" / "panda_sim.yaml")
    entry = record.entry("grasp", "camera") if record else None
    if entry is None:
        return costs.ask, f"Without a measured accuracy the robot asks ({reason or 'camera not measured'})."
    for cost in (costs.ask, 2.0, 1.0, 0.5, 0.0):
        limit = threshold(Costs(costs.retry, costs.wrong_repair, cost, costs.sense), answerer)
        if limit.asks_at(entry.accuracy):
            if cost == costs.ask:
                return cost, f"A question costs {cost:g} retries, as stated in costs.yaml."
            return cost, (
                f"The camera is right in {entry.accuracy:.2f} of the cases, so at the stated cost of "
                f"{costs.ask:g} retries the robot would act; here a question costs {cost:g}."
            )
    return 0.0, "A question costs nothing here."


def mixed(seed: int, episodes: int) -> list[Scenario]:
    """So many episodes with causes in turn, objects and severities from the seed."""
    return [
        Scenario(f"mixed {i + 1}", _CAUSES[i % len(_CAUSES)], "", seed + 100 * i) for i in range(episodes)
    ]


class Show(Node):
    """Watches every topic of the exchange, and drives the scenarios from the main thread."""

    def __init__(self) -> None:
        super().__init__("show")
        self.scenario = self.declare_parameter("scenario", "tour").value
        self.seed = self.declare_parameter("seed", 0).value
        self.episodes = self.declare_parameter("episodes", 60).value
        self.report = self.declare_parameter("report", "").value
        self.human = self.declare_parameter("human", "scripted").value
        self.episode = _Episode()
        self.unread = False  # nobody reads the transcript any more
        self.truth: dict = {}
        self.health: dict[str, tuple[bytes, str]] = {}
        self.scored: list[ScoredEpisode] = []
        self.latencies_s: list[float] = []
        self.started_s = time.monotonic()
        on = self.create_subscription
        on(m.Failure, topics.FAILURE, self._on_failure, EVENT_QOS)
        on(m.Diagnosis, topics.DIAGNOSIS, self._says(transcript.diagnosis), EVENT_QOS)
        on(m.Decision, topics.DECISION, self._on_decision, EVENT_QOS)
        on(m.Question, topics.QUESTION, self._on_question, EVENT_QOS)
        on(m.ReplyMeaning, topics.REPLY_MEANING, self._says(transcript.meaning), EVENT_QOS)
        # Latched, because a decision node that comes up anew says so before it is heard.
        on(m.EpisodeStatus, topics.EPISODE, self._on_status, EXCHANGE_QOS)
        on(m.Outcome, topics.OUTCOME, self._on_outcome, EVENT_QOS)
        on(String, "/sim/ground_truth/state", self._on_truth, EXCHANGE_QOS)
        on(DiagnosticArray, "/diagnostics", self._on_health, 10)
        self.reset_client = self.create_client(srv.ResetScene, topics.RESET_SCENE)
        self.start_client = self.create_client(srv.StartTask, topics.START_TASK)
        self.parameter_clients: dict = {}

    # ---- listening (executor thread) -------------------------------------------------------------
    def _time(self) -> float:
        return time.monotonic() - self.started_s

    def _says(self, words: Callable) -> Callable:
        return lambda message: self._print(words(self._time(), message))

    @staticmethod
    def _print(lines: list[str]) -> None:
        if lines:
            print("\n".join(lines), flush=True)

    def _on_failure(self, message: m.Failure) -> None:
        self.episode.failed = True
        self.episode.failure_wall_s = time.monotonic()
        self._print(transcript.failure(self._time(), message))

    def _on_decision(self, message: m.Decision) -> None:
        if not self.episode.actions:
            self.latencies_s.append(time.monotonic() - self.episode.failure_wall_s)
        self.episode.actions.append(message.action)
        self._print(transcript.decision(self._time(), message))

    def _on_question(self, message: m.Question) -> None:
        self._print(transcript.question(self._time(), message))
        if self.human == "console":
            print("           Type your answer and press Enter:", flush=True)

    def read_replies(self) -> None:
        """Each line typed here is a reply to the open question; ends with the input."""
        replies = self.create_publisher(m.Reply, topics.REPLY, EVENT_QOS)
        for line in sys.stdin:
            reply = m.Reply(text=line.strip(), who="operator")
            reply.header.stamp = self.get_clock().now().to_msg()
            replies.publish(reply)

    def _on_status(self, message: m.EpisodeStatus) -> None:
        self._print(transcript.status(self._time(), message))
        if message.state == "idle":
            self.episode.idle = bool(message.episode_id)
            self.episode.lost = not message.episode_id

    def _on_outcome(self, message: m.Outcome) -> None:
        self._print(transcript.outcome(self._time(), message))
        self.episode.outcome = message

    def _on_truth(self, message: String) -> None:
        self.truth = json.loads(message.data)

    def _on_health(self, message: DiagnosticArray) -> None:
        for status in message.status:
            self.health[status.name.rsplit("/", 1)[-1]] = (status.level, status.message)

    # ---- driving (main thread) -------------------------------------------------------------------
    def _wait(self, what: str, ready: Callable[[], bool], limit_s: float) -> None:
        until = time.monotonic() + limit_s
        while not ready():
            if not rclpy.ok():
                raise KeyboardInterrupt
            if time.monotonic() > until:
                raise ShowError(f"{what} did not happen within {limit_s:g} s")
            time.sleep(0.05)

    def _call(self, client, request, limit_s: float = 60.0):
        self._wait(f"service {client.srv_name}", client.service_is_ready, _READY_S)
        future = client.call_async(request)
        self._wait(f"the answer of {client.srv_name}", future.done, limit_s)
        return future.result()

    def _set(self, node: str, name: str, value) -> None:
        if node not in self.parameter_clients:
            self.parameter_clients[node] = self.create_client(SetParameters, f"/{node}/set_parameters")
        result = self._call(
            self.parameter_clients[node],
            SetParameters.Request(parameters=[Parameter(name, value=value).to_parameter_msg()]),
        ).results[0]
        if not result.successful:
            raise ShowError(f"node {node} refused {name} = {value!r}: {result.reason}")

    def _wait_for_nodes(self) -> None:
        def ready() -> bool:
            failed = [
                f"{n}: {text}"
                for n, (level, text) in self.health.items()
                if "configure failed" in text or "activate failed" in text
            ]
            if failed:
                raise ShowError("a node could not start. " + "; ".join(failed))
            return all(n in self.health and self.health[n][1] != "not active" for n in _NODES)

        try:
            self._wait("the start of all nodes", ready, _READY_S)
        except ShowError as error:
            missing = [n for n in _NODES if n not in self.health]
            if missing:
                raise ShowError(f"{error}; not heard of: {', '.join(missing)}") from error
            raise

    def run_one(self, number: int, count: int, scenario: Scenario) -> _Episode:
        """Lay the scene until an attempt fails in it, and follow the episode to its outcome."""
        print(f"\n=== Episode {number} of {count}: {scenario.title} ===", flush=True)
        if scenario.note:
            print(scenario.note, flush=True)
        for node, name, value in scenario.parameters:
            if not (node == "scripted_person" and self.human != "scripted"):
                self._set(node, name, value)
        for attempt in range(_TRIES):
            self.episode = _Episode()
            answer = self._call(
                self.reset_client,
                srv.ResetScene.Request(
                    seed=scenario.seed + attempt, task=scenario.task, cause=scenario.cause, severity=math.nan
                ),
            )
            if not answer.success:
                raise ShowError(f"the scene could not be laid: {answer.error_msg}")
            started = self._call(self.start_client, srv.StartTask.Request(instruction=answer.instruction))
            if not started.accepted:
                raise ShowError(f"the task was not taken: {started.error_msg}")
            self._wait("the end of the episode", lambda: self.episode.idle or self.episode.lost, _EPISODE_S)
            if self.episode.lost:
                raise ShowError(
                    "the decision node died in the episode and was started again; the robot holds"
                )
            if self.episode.failed:
                break
            broken_off = (
                self.episode.outcome is not None and self.episode.outcome.disposition == "abandoned"
            )
            why = (
                "the attempt did not come to its end"
                if broken_off
                else "the grasp held in spite of the perturbation"
            )
            print(f"           {why}; the scene is laid anew", flush=True)
        else:
            raise ShowError(f"no attempt failed in {_TRIES} scenes")
        self._wait("the outcome", lambda: self.episode.outcome is not None, 10.0)
        time.sleep(0.2)  # the truth travels on another topic
        self._print(transcript.truth(self.truth))
        outcome = self.episode.outcome
        assert outcome is not None
        self.scored.append(
            ScoredEpisode(
                scenario.cause,
                outcome.cause,
                outcome.disposition,
                outcome.claim,
                bool(self.truth["success"]),
                bool(self.truth["recoverable"]),
                outcome.cost_spent,
                outcome.questions_asked,
                outcome.repairs_tried,
            )
        )
        return self.episode

    def run(self) -> int:
        """All scenarios; 0 when each came to its outcome and, in the tour, by the way it is to show."""
        if self.scenario not in ("tour", "mixed"):
            raise ShowError(f"there is no scenario {self.scenario!r}; tour and mixed are known")
        self._wait_for_nodes()
        scenarios = tour(self.seed) if self.scenario == "tour" else mixed(self.seed, self.episodes)
        wrong = 0
        for number, scenario in enumerate(scenarios, 1):
            episode = self.run_one(number, len(scenarios), scenario)
            if scenario.expect and not _shown(scenario.expect, episode):
                wrong += 1
                print(f"           this was to show: {scenario.expect}; it did not", flush=True)
        if self.scenario == "mixed":
            print("\n=== In sum ===", flush=True)
            self._print(summary_lines(self.scored))
        if self.latencies_s:
            ordered = sorted(self.latencies_s)
            print(
                f"\nfrom failure to decision: median {1e3 * ordered[len(ordered) // 2]:.0f} ms, largest "
                f"{1e3 * ordered[-1]:.0f} ms (n={len(ordered)})",
                flush=True,
            )
        if self.report:
            Path(self.report).write_text(
                json.dumps(
                    {
                        "scenario": self.scenario,
                        "seed": self.seed,
                        "latencies_s": self.latencies_s,
                        "episodes": [dataclasses.asdict(e) for e in self.scored],
                    },
                    indent=1,
                ),
                encoding="utf-8",
            )
        return 1 if wrong else 0


def _shown(expected: str, episode: _Episode) -> bool:
    sense, ask = m.Decision.SENSE in episode.actions, m.Decision.ASK in episode.actions
    acted = m.Decision.ACT in episode.actions
    return {
        "sense": sense and acted,
        "ask": ask and not sense,
        "hold": ask and episode.actions[-1] == m.Decision.HOLD and not acted,
    }[expected]


def main(argv: list[str] | None = None) -> int:
    """Run the scenarios and end; the exit status is the show's."""
    rclpy.init(args=argv if argv is not None else sys.argv)
    end_signals()
    node = Show()
    executor = SingleThreadedExecutor()
    executor.add_node(node)

    def spin() -> None:
        try:
            with contextlib.suppress(ExternalShutdownException):
                executor.spin()
        except BrokenPipeError:
            node.unread = True
            rclpy.try_shutdown()  # which ends every wait of the main thread

    thread = threading.Thread(target=spin, daemon=True)
    thread.start()
    if node.human == "console":
        threading.Thread(target=node.read_replies, daemon=True).start()
    try:
        status = node.run()
    except ShowError as error:
        print(f"error: {error}", file=sys.stderr, flush=True)
        status = 1
    except BrokenPipeError:
        node.unread = True
    except KeyboardInterrupt:
        status = 130
    if node.unread:  # the reader (head, less) has seen enough
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        status = 0
    rclpy.try_shutdown()
    thread.join(timeout=2.0)
    return status


if __name__ == "__main__":
    raise SystemExit(main())
