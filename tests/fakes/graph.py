"""A ROS graph of a test's own: a domain, nodes spun in threads, real nodes as processes beside them."""

from __future__ import annotations

import subprocess
import threading
import time
from collections.abc import Callable
from contextlib import ExitStack
from pathlib import Path

import rclpy
from diagnostic_msgs.msg import DiagnosticArray, DiagnosticStatus
from lifecycle_msgs.msg import State, Transition
from lifecycle_msgs.srv import ChangeState, GetState
from rcl_interfaces.srv import SetParametersAtomically
from rclpy.callback_groups import ReentrantCallbackGroup
from rclpy.client import Client
from rclpy.exceptions import InvalidHandle
from rclpy.executors import ExternalShutdownException, MultiThreadedExecutor, ShutdownException
from rclpy.node import Node
from rclpy.parameter import Parameter

from failure_dialogue.domain import claim_domain
from failure_dialogue.nodes.node import EXCHANGE_QOS
from tests.fakes.processes import node_process, until

#: Longest wait for what should happen at once: discovery takes up to 3 s on an idle machine.
LIMIT_S = 30.0
#: Longest wait for a process that loads models: 2 s on an idle machine.
START_LIMIT_S = 120.0


class Graph:
    """Domain, executor and observer; leaving it ends everything that was started through it."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self._claim = claim_domain("test")
        self.context = rclpy.Context()
        rclpy.init(context=self.context, domain_id=self._claim.domain_id)
        self._executor = MultiThreadedExecutor(num_threads=8, context=self.context)
        self._nodes: list[Node] = []
        self._clients: dict[str, Client] = {}
        self._processes = ExitStack()
        self.node = self.add("observer")
        self._thread = threading.Thread(target=self._spin, daemon=True)
        self._thread.start()

    @property
    def domain_id(self) -> int:
        """The ROS domain that nobody else is in."""
        return self._claim.domain_id

    def _spin(self) -> None:
        while True:
            try:
                return self._executor.spin()
            except (ExternalShutdownException, ShutdownException):
                return None
            except InvalidHandle:
                continue  # a server vanished before it had answered: that is what the test wanted

    def add(self, name: str) -> Node:
        """A node in this process."""
        node = rclpy.create_node(name, context=self.context)
        self._nodes.append(node)
        self._executor.add_node(node)
        return node

    def start(self, module: str, *parameters: str, name: str = "") -> RealNode:
        """A node of ours in its own process, by its module in failure_dialogue.nodes; name: its log's."""
        log = self.folder / f"{name or module}.log"
        process = self._processes.enter_context(
            node_process(f"failure_dialogue.nodes.{module}", self.domain_id, *parameters, log=log)
        )
        return RealNode(self, module, process, log)

    def hear(self, kind, topic: str, qos=EXCHANGE_QOS) -> list:
        """What is said on a topic from now on, and what its publishers still keep."""
        heard: list = []
        self.node.create_subscription(kind, topic, heard.append, qos)
        return heard

    def call(self, kind, name: str, request, limit_s: float = LIMIT_S):
        """The answer of a service, waited for as long as the limit allows."""
        if name not in self._clients:
            self._clients[name] = self.node.create_client(kind, name, callback_group=ReentrantCallbackGroup())
        client = self._clients[name]
        until(client.service_is_ready, f"service {name}", limit_s)
        future = client.call_async(request)
        try:
            until(future.done, f"the answer of {name}", limit_s)
        finally:
            client.remove_pending_request(future)
        return future.result()

    def __enter__(self) -> Graph:
        return self

    def __exit__(self, *_) -> None:
        """Kill the processes that are left, then end the nodes."""
        self._processes.close()
        self._executor.shutdown(timeout_sec=5.0)
        self._thread.join(timeout=5.0)
        for node in self._nodes:
            node.destroy_node()
        rclpy.try_shutdown(context=self.context)
        self._claim.release()


class RealNode:
    """One of our nodes in its process, as seen from outside: state, parameters, /diagnostics, log."""

    def __init__(self, graph: Graph, name: str, process: subprocess.Popen, log: Path) -> None:
        self.graph, self.name, self.process, self.log = graph, name, process, log
        self.said: list[tuple[float, DiagnosticStatus]] = []
        self._subscription = graph.node.create_subscription(
            DiagnosticArray, "/diagnostics", self._on_health, 10
        )

    def _on_health(self, message: DiagnosticArray) -> None:
        self.said += [
            (time.monotonic(), status) for status in message.status if status.name == f"/{self.name}"
        ]

    def says(self, condition: Callable[[DiagnosticStatus], bool], what: str) -> DiagnosticStatus:
        """The first status on /diagnostics from now on for which the condition holds."""
        start = len(self.said)
        found: list[DiagnosticStatus] = []

        def look() -> bool:
            found.extend(status for _, status in self.said[start:] if condition(status))
            return bool(found)

        until(look, f"{what} on /diagnostics from {self.name}", LIMIT_S)
        return found[0]

    def state(self, limit_s: float = LIMIT_S) -> int:
        """Its lifecycle state (lifecycle_msgs/State)."""
        return self.graph.call(
            GetState, f"/{self.name}/get_state", GetState.Request(), limit_s
        ).current_state.id

    def wait_state(self, state: int = State.PRIMARY_STATE_ACTIVE) -> RealNode:
        """Wait for a lifecycle state."""

        def reached() -> bool:
            try:
                return self.state(1.0) == state
            except AssertionError:  # not there yet; or asked of a killed one, which others see for 20 s more
                return False

        until(reached, f"lifecycle state {state} of {self.name}", START_LIMIT_S)
        return self

    def change(self, transition: int) -> bool:
        """Ask for a lifecycle transition; whether it was done."""
        return self.graph.call(
            ChangeState,
            f"/{self.name}/change_state",
            ChangeState.Request(transition=Transition(id=transition)),
        ).success

    def set(self, **values) -> str:
        """Set parameters, all or none; '' or the reason of the refusal."""
        lists = Parameter.Type.STRING_ARRAY  # an empty list does not tell of what
        request = SetParametersAtomically.Request(
            parameters=[
                Parameter(name, lists if isinstance(value, list) else None, value).to_parameter_msg()
                for name, value in values.items()
            ]
        )
        result = self.graph.call(
            SetParametersAtomically, f"/{self.name}/set_parameters_atomically", request
        ).result
        return "" if result.successful else result.reason or "refused without a reason"

    def logged(self) -> str:
        """What it has printed so far."""
        return self.log.read_text(errors="replace")
