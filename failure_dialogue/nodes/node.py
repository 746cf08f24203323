"""What all our nodes share: lifecycle with autostart, checked parameters, diagnostics at 1 Hz, clean exit."""

from __future__ import annotations

import signal
import sys
import threading
from collections.abc import Callable
from dataclasses import dataclass

import rclpy
from diagnostic_msgs.msg import DiagnosticArray, DiagnosticStatus, KeyValue
from rcl_interfaces.msg import FloatingPointRange, IntegerRange, ParameterDescriptor, SetParametersResult
from rclpy._rclpy_pybind11 import RCLError
from rclpy.clock import Clock, ClockType
from rclpy.exceptions import ParameterException, ParameterUninitializedException
from rclpy.executors import Executor, ExternalShutdownException, SingleThreadedExecutor
from rclpy.lifecycle import LifecycleNode, LifecycleState, TransitionCallbackReturn
from rclpy.qos import DurabilityPolicy, QoSProfile, ReliabilityPolicy
from rclpy.signals import SignalHandlerOptions

from failure_dialogue.errors import ConfigError, FailureDialogueError

#: Topics of the exchange: nothing is lost, and who comes late sees the last ones.
EXCHANGE_QOS = QoSProfile(depth=10, reliability=ReliabilityPolicy.RELIABLE,
                          durability=DurabilityPolicy.TRANSIENT_LOCAL)
#: A state of which only the latest counts, also for who comes late.
STATE_QOS = QoSProfile(depth=1, reliability=ReliabilityPolicy.RELIABLE,
                       durability=DurabilityPolicy.TRANSIENT_LOCAL)
#: Events that are over when they are over (replies, stop, heartbeat).
EVENT_QOS = QoSProfile(depth=10, reliability=ReliabilityPolicy.RELIABLE)
#: Sensors: some drivers publish best effort only, so we subscribe so.
SENSOR_QOS = QoSProfile(depth=50, reliability=ReliabilityPolicy.BEST_EFFORT)

OK, WARN, ERROR = DiagnosticStatus.OK, DiagnosticStatus.WARN, DiagnosticStatus.ERROR


@dataclass(frozen=True)
class Parameter:
    """One ROS parameter: name, default (which fixes the type), a sentence, and a closed range."""

    name: str
    default: object
    description: str
    low: float | None = None
    high: float | None = None


@dataclass(frozen=True)
class Health:
    """What a node says of itself on /diagnostics."""

    level: bytes
    message: str
    values: dict[str, str]


class DialogueNode(LifecycleNode):
    """Lifecycle node whose subclasses fill four hooks.

    configure(): load files and models; a FailureDialogueError makes the transition fail with its text.
    activate(): open publishers, subscriptions, servers and timers through track().
    deactivate(): stop what runs; everything that was tracked is destroyed afterwards.
    parameters_changed(changed): take over live changes; raise FailureDialogueError to refuse them.
    health(): a Health, asked for once a second.
    """

    def __init__(self, name: str, parameters: tuple[Parameter, ...] = (), **kwargs) -> None:
        super().__init__(name, **kwargs)
        self.steady = Clock(clock_type=ClockType.STEADY_TIME)
        self.is_active = False
        self.failure_text = ""
        self._tracked: list[tuple[Callable, object]] = []
        self.declare_parameter("autostart", True, ParameterDescriptor(
            description="Configure and activate at start, without a lifecycle manager."))
        for p in parameters:
            self.declare_parameter(p.name, p.default, _descriptor(p))
        self.add_on_set_parameters_callback(self._on_set_parameters)
        self._diagnostics = self.create_publisher(DiagnosticArray, "/diagnostics", 10)
        self._diagnostics_timer = self.create_timer(1.0, self._publish_health, clock=self.steady)

    # hooks ------------------------------------------------------------------
    def configure(self) -> None:
        """Load what the node needs."""

    def activate(self) -> None:
        """Open the node's ends of topics, services and actions."""

    def deactivate(self) -> None:
        """Stop what runs."""

    def parameters_changed(self, changed: dict) -> None:
        """Take over parameters that were changed while running."""

    def health(self) -> Health:
        """State of the node for /diagnostics."""
        return Health(OK, "running", {})

    # for subclasses ---------------------------------------------------------
    def value(self, name: str):
        """Value of a declared parameter."""
        try:
            return self.get_parameter(name).value
        except ParameterUninitializedException:
            return []  # what ROS makes of [] on a command line or in a file: a list without a type

    def now_s(self) -> float:
        """The node's time (simulated where use_sim_time is set) in seconds."""
        return self.get_clock().now().nanoseconds * 1e-9

    def steady_s(self) -> float:
        """A clock that never jumps, for time-outs and people, in seconds."""
        return self.steady.now().nanoseconds * 1e-9

    def publisher(self, kind, topic: str, qos):
        """A publisher that lives while the node is active."""
        return self._track(self.destroy_publisher, self.create_publisher(kind, topic, qos))

    def subscription(self, kind, topic: str, callback, qos):
        """A subscription that lives while the node is active."""
        return self._track(self.destroy_subscription, self.create_subscription(kind, topic, callback, qos))

    def service(self, kind, name: str, callback, group=None):
        """A service that lives while the node is active."""
        return self._track(self.destroy_service,
                           self.create_service(kind, name, callback, callback_group=group))

    def client(self, kind, name: str):
        """A service client that lives while the node is active."""
        return self._track(self.destroy_client, self.create_client(kind, name))

    def timer(self, seconds: float, callback):
        """A timer on the steady clock that lives while the node is active."""
        return self._track(self.destroy_timer, self.create_timer(seconds, callback, clock=self.steady))

    def action(self, server_or_client):
        """An action server or client that lives while the node is active."""
        return self._track(lambda entity: entity.destroy(), server_or_client)

    # machinery --------------------------------------------------------------
    def _track(self, destroy: Callable, entity):
        self._tracked.append((destroy, entity))
        return entity

    def _guard(self, what: str, hook: Callable[[], None]) -> bool:
        try:
            hook()
        except FailureDialogueError as error:
            self.failure_text = f"{what}: {error}"
        except Exception as error:  # anything else is a defect: say which, and let it be tried again
            self.failure_text = f"{what}: {type(error).__name__}: {error}"
        else:
            self.failure_text = ""
            return True
        self.get_logger().error(self.failure_text)
        return False

    def on_configure(self, state: LifecycleState) -> TransitionCallbackReturn:
        done = self._guard("configure failed", self.configure)
        return TransitionCallbackReturn.SUCCESS if done else TransitionCallbackReturn.FAILURE

    def on_activate(self, state: LifecycleState) -> TransitionCallbackReturn:
        if not self._guard("activate failed", self.activate):
            self._destroy_tracked()
            return TransitionCallbackReturn.FAILURE
        self.is_active = True
        return super().on_activate(state)

    def on_deactivate(self, state: LifecycleState) -> TransitionCallbackReturn:
        self._close()
        return super().on_deactivate(state)

    def on_cleanup(self, state: LifecycleState) -> TransitionCallbackReturn:
        return TransitionCallbackReturn.SUCCESS

    def on_shutdown(self, state: LifecycleState) -> TransitionCallbackReturn:
        self._close()
        return TransitionCallbackReturn.SUCCESS

    def _close(self) -> None:
        if self.is_active:
            self.is_active = False
            self._guard("deactivate failed", self.deactivate)
        self._destroy_tracked()

    def _destroy_tracked(self) -> None:
        for destroy, entity in reversed(self._tracked):
            destroy(entity)
        self._tracked.clear()

    def destroy_node(self) -> None:
        self._close()
        super().destroy_node()

    def _on_set_parameters(self, parameters) -> SetParametersResult:
        if self.is_active:
            try:
                self.parameters_changed({p.name: p.value for p in parameters})
            except FailureDialogueError as error:
                return SetParametersResult(successful=False, reason=str(error))
        return SetParametersResult(successful=True)

    def _publish_health(self) -> None:
        if self.failure_text:
            health = Health(ERROR, self.failure_text, {})
        elif not self.is_active:
            health = Health(WARN, "not active", {})
        else:
            health = self.health()
        status = DiagnosticStatus(level=health.level, name=self.get_fully_qualified_name(),
                                  message=health.message, hardware_id="failure_dialogue",
                                  values=[KeyValue(key=k, value=str(v)) for k, v in health.values.items()])
        message = DiagnosticArray(status=[status])
        message.header.stamp = self.get_clock().now().to_msg()
        self._diagnostics.publish(message)

    def autostart(self) -> None:
        """Configure and activate when the parameter says so; a failure stays visible and can be retried."""
        if self.value("autostart") and self.trigger_configure() == TransitionCallbackReturn.SUCCESS:
            self.trigger_activate()


def _descriptor(p: Parameter) -> ParameterDescriptor:
    descriptor = ParameterDescriptor(description=p.description)
    if p.low is not None or p.high is not None:
        low = -1e308 if p.low is None else p.low
        high = 1e308 if p.high is None else p.high
        if isinstance(p.default, bool) or not isinstance(p.default, (int, float)):
            raise ConfigError(f"parameter {p.name!r} of type {type(p.default).__name__} cannot have a range")
        if isinstance(p.default, int):
            descriptor.integer_range = [IntegerRange(from_value=int(low), to_value=int(high))]
        else:
            descriptor.floating_point_range = [FloatingPointRange(from_value=float(low),
                                                                  to_value=float(high))]
    return descriptor


def end_signals() -> None:
    """Ctrl-C and SIGTERM end the spinning; the node then closes without a traceback."""
    signal.signal(signal.SIGTERM, lambda *_: rclpy.try_shutdown())


#: How soon a node that waits sees that it is to end (s).
_END_POLL_S = 0.2


def spin(node: DialogueNode, executor: Executor, ended: threading.Event) -> None:
    """Spin until ended is set or ROS is shut down.

    rclpy raises when somebody asks a lifecycle node for a transition its state does not have (configure while
    active, say). That must not end the node.
    """
    while not ended.is_set():
        try:
            executor.spin_once(timeout_sec=_END_POLL_S)
        except RCLError as error:
            if "lifecycle" not in str(error):
                raise
            node.get_logger().error("a transition that this state does not have was asked for and ignored")


def run(factory: Callable[[], DialogueNode], argv: list[str] | None = None) -> int:
    """Start a node, spin it until Ctrl-C or SIGTERM, and end without a traceback. Exit status.

    Arguments or a parameter file that cannot be read, and a parameter value of the wrong type or out of its
    range, end with status 2 and one clear line.
    """
    # While models are loaded both signals cut that off. Afterwards they only say that the end has come: a
    # callback must not be torn up, and a publisher whose context is gone would raise in the middle of one.
    for number in (signal.SIGINT, signal.SIGTERM):
        signal.signal(number, signal.default_int_handler)
    node: DialogueNode | None = None
    try:
        try:
            rclpy.init(args=argv if argv is not None else sys.argv,
                       signal_handler_options=SignalHandlerOptions.NO)
        except RuntimeError as error:  # the base of rcl's own kinds
            return _refused(error)
        try:
            node = factory()
        except (ParameterException, FailureDialogueError) as error:
            return _refused(error)
        executor = SingleThreadedExecutor()
        executor.add_node(node)
        node.autostart()
        ended = threading.Event()
        for number in (signal.SIGINT, signal.SIGTERM):
            signal.signal(number, lambda *_: ended.set())
        spin(node, executor, ended)
    except (KeyboardInterrupt, ExternalShutdownException):
        pass
    finally:
        for number in (signal.SIGINT, signal.SIGTERM):
            signal.signal(number, signal.SIG_IGN)  # the end is under way
        if node is not None and rclpy.ok():
            node.destroy_node()
        rclpy.try_shutdown()
    return 0


def _refused(error: Exception) -> int:
    text = " ".join(str(error).split())
    print("error:", text.partition(", at /")[0], file=sys.stderr)  # rcl adds places in its own source
    return 2
