"""A robot's side of the graph without a robot: motions and sensors' diagnoses as a test scripts them."""

from __future__ import annotations

import threading
import time
from dataclasses import dataclass, field

from failure_dialogue_msgs import action, srv
from failure_dialogue_msgs import msg as m
from rclpy.action import ActionServer, CancelResponse, GoalResponse
from rclpy.callback_groups import ReentrantCallbackGroup
from sensor_msgs.msg import CameraInfo
from std_msgs.msg import Header, String

from failure_dialogue import topics
from failure_dialogue.nodes.node import EVENT_QOS, EXCHANGE_QOS
from tests.fakes.graph import Graph
from tests.fakes.processes import until

CAUSES = ("weak_grip", "heavy_object", "slippery_surface")
#: An answer that is held back longer than this is given up, so that a failed test ends.
_GATE_LIMIT_S = 60.0


@dataclass
class Script:
    """How one server answers: these fields, once the gate is open.

    Of an action, refuses turns its goals away, and admits must be set before one is accepted.
    """

    answer: dict = field(default_factory=dict)
    refuses: bool = False
    gate: threading.Event = field(default_factory=threading.Event)
    admits: threading.Event = field(default_factory=threading.Event)

    def __post_init__(self) -> None:
        self.gate.set()
        self.admits.set()

    def passed(self, give_up=lambda: False) -> bool:
        """Wait for the gate; False when give_up() came first."""
        until_s = time.monotonic() + _GATE_LIMIT_S
        while not self.gate.wait(0.02):
            if give_up() or time.monotonic() > until_s:
                return False
        return True


class FakeRobot:
    """Serves what a robot serves and keeps what it was asked, in order, in `asked`: pairs (name, request).

    scripts: by the last part of each server's name; state_id changes with every repair. Like the real one it
    obeys a stop and a takeover by itself, and says so as its mode. vanish(name) and appear(name) end and
    offer one of its services or actions.
    """

    def __init__(self, graph: Graph, camera: tuple[int, int] = (256, 256)) -> None:
        self.node = graph.add("fake_robot")
        self._group = ReentrantCallbackGroup()
        self.camera = camera
        self.mode = ""
        self._states = 0
        self.failure = m.Failure()
        self._modes = self.node.create_publisher(String, topics.ROBOT_MODE, EXCHANGE_QOS)
        self._infos = self.node.create_publisher(CameraInfo, topics.CAMERA_INFO, 5)
        self._failures = self.node.create_publisher(m.Failure, topics.FAILURE, EVENT_QOS)
        self.node.create_subscription(m.Stop, topics.STOP, self._on_stop, EVENT_QOS)
        self.node.create_subscription(Header, topics.HEARTBEAT, self._on_heartbeat, EVENT_QOS)
        self.node.create_timer(0.1, self._publish_info)
        self.reset()
        self._servers: dict[str, object] = {}
        for name in ("hold", "takeover", "hand_back", "attempt_task", "execute_repair"):
            self.appear(name)
        self.say_mode("ready")

    def reset(self) -> None:
        """As at the start: every answer is yes, nothing was asked."""
        self.scripts = {
            "hold": Script({"at_checkpoint": True}),
            "takeover": Script({"success": True}),
            "hand_back": Script({"success": True}),
            "attempt_task": Script({"claimed_success": True, "message": "placed"}),
            "execute_repair": Script({"done": True}),
        }
        self.asked: list[tuple[str, object]] = []
        self.stops: list[m.Stop] = []
        self.cancelled: list[str] = []
        self.heartbeats = 0

    # ---- what a test does with it ----------------------------------------------------------------
    @property
    def state_id(self) -> str:
        """Of the world as it is now."""
        return f"7.{self._states}"

    def requests(self, name: str) -> list:
        """What one server was asked, in order."""
        return [request for server, request in self.asked if server == name]

    def say_mode(self, mode: str) -> None:
        """Publish ready, moving, holding, stopped or person."""
        self.mode = mode
        self._modes.publish(String(data=mode))

    def fail(self, family: str = "grasp", listeners: int = 1, **fields) -> str:
        """Report a failed lift once so many nodes listen; the state it left."""
        until(lambda: self._failures.get_subscription_count() >= listeners, "listeners to failures", 30.0)
        self._states += 1
        fields = {"stage": "lift", "instruction": "pick up the milk", "object": "milk"} | fields
        self.failure = m.Failure(state_id=self.state_id, family=family, **fields)
        self.say_failed()
        return self.state_id

    def say_failed(self) -> None:
        """Report the last failure, once more."""
        self._failures.publish(self.failure)

    def vanish(self, name: str) -> None:
        """Offer a service or action no longer."""
        server = self._servers.pop(name)
        if isinstance(server, ActionServer):
            server.destroy()
        else:
            self.node.destroy_service(server)

    def appear(self, name: str) -> None:
        """Offer a service or action."""
        if name in self._servers:
            return
        kinds = {
            "hold": srv.Hold,
            "takeover": srv.Takeover,
            "hand_back": srv.Takeover,
            "attempt_task": action.AttemptTask,
            "execute_repair": action.ExecuteRepair,
        }
        where, kind = topics.PREFIX + name, kinds[name]
        if name in ("attempt_task", "execute_repair"):
            self._servers[name] = ActionServer(
                self.node,
                kind,
                where,
                lambda goal: self._move(name, kind, goal),
                callback_group=self._group,
                goal_callback=lambda request: self._admit(name, request),
                cancel_callback=lambda _: CancelResponse.ACCEPT,
            )
        else:
            self._servers[name] = self.node.create_service(
                kind,
                where,
                lambda request, response: self._serve(name, request, response),
                callback_group=self._group,
            )

    # ---- what it does by itself ------------------------------------------------------------------
    def _publish_info(self) -> None:
        self._infos.publish(CameraInfo(width=self.camera[0], height=self.camera[1]))

    def _on_heartbeat(self, _) -> None:
        self.heartbeats += 1

    def _on_stop(self, message: m.Stop) -> None:
        self.stops.append(message)
        self.say_mode("stopped")

    def _serve(self, name: str, request, response):
        self.asked.append((name, request))
        self.scripts[name].passed()
        for key, value in self.scripts[name].answer.items():
            setattr(response, key, value)
        mode = {"hold": "holding", "takeover": "person", "hand_back": "ready"}[name]
        if getattr(response, "success", False) or getattr(response, "at_checkpoint", False):
            self.say_mode(mode)
        return response

    def _admit(self, name: str, request) -> GoalResponse:
        self.asked.append((name, request))
        self.scripts[name].admits.wait(_GATE_LIMIT_S)
        return GoalResponse.REJECT if self.scripts[name].refuses else GoalResponse.ACCEPT

    def _move(self, name: str, kind, goal):
        script = self.scripts[name]
        passed = script.passed(lambda: goal.is_cancel_requested or self.mode in ("stopped", "person"))
        if goal.is_cancel_requested:
            self.cancelled.append(name)
            goal.canceled()
            return kind.Result()
        if not passed:
            goal.abort()
            return kind.Result()
        answer = dict(script.answer)
        if name == "execute_repair":
            if not answer.get("refused"):
                self._states += 1
            answer.setdefault("state_id", self.state_id)
        goal.succeed()
        return kind.Result(**answer)


class FakeSources:
    """The diagnosing side: the first sources answer every failure, the others the sense service.

    said: the cause each source names, with the model it says it is; refuses: sources the service turns down.
    """

    def __init__(self, graph: Graph, model_ids: dict[str, str]) -> None:
        self.node = graph.add("fake_sources")
        self.model_ids = model_ids
        self._diagnoses = self.node.create_publisher(m.Diagnosis, topics.DIAGNOSIS, EXCHANGE_QOS)
        self.node.create_subscription(m.Failure, topics.FAILURE, self._on_failure, EVENT_QOS)
        self.node.create_service(srv.Sense, topics.SENSE, self._on_sense)
        self.reset()

    def reset(self) -> None:
        """As at the start: the camera sees a weak grip, the force sensor feels a heavy object."""
        self.said = {"camera": "weak_grip", "force": "heavy_object"}
        self.first = ["camera"]
        self.refuses: set[str] = set()
        self.consulted: list[str] = []

    def _on_failure(self, message: m.Failure) -> None:
        for source in self.first:
            self.diagnose(source, message.state_id)

    def _on_sense(self, request: srv.Sense.Request, response: srv.Sense.Response):
        self.consulted.append(request.source)
        if request.source in self.refuses:
            response.error_code, response.error_msg = 201, "there is no data"
            return response
        response.accepted = True
        self.diagnose(request.source, request.state_id)
        return response

    def diagnose(self, source: str, state_id: str, **fields) -> None:
        """Publish one diagnosis; fields overrides what it would hold."""
        said = self.said[source]
        fields = {
            "family": "grasp",
            "causes": list(CAUSES),
            "model_id": self.model_ids[source],
            "probabilities": [0.8 if cause == said else 0.1 for cause in CAUSES],
        } | fields
        self._diagnoses.publish(m.Diagnosis(source=source, state_id=state_id, **fields))


class FakeRecheck:
    """Serves the re-check: what it says before and after a repair stands in `verdicts`; `goals` is kept."""

    def __init__(self, graph: Graph) -> None:
        self.node = graph.add("fake_recheck")
        self.reset()
        self._server = ActionServer(
            self.node,
            action.RunRecheck,
            topics.RUN_RECHECK,
            self._judge,
            callback_group=ReentrantCallbackGroup(),
        )

    def reset(self) -> None:
        """As at the start: every repair has worked."""
        self.verdicts = {
            action.RunRecheck.Goal.BEFORE: ("pass", "remembered"),
            action.RunRecheck.Goal.AFTER: ("pass", "the wrist carries the milk"),
        }
        self.goals: list[action.RunRecheck.Goal] = []

    def _judge(self, goal) -> action.RunRecheck.Result:
        self.goals.append(goal.request)
        verdict, reason = self.verdicts[goal.request.phase]
        goal.succeed()
        return action.RunRecheck.Result(verdict=verdict, reason=reason)
