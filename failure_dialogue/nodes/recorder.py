"""The recorder node: every topic of the graph into one rosbag2 (mcap) that `ros2 bag play` accepts.

Time of a message in the bag: when the recorder received it, on the ROS clock. Without use_sim_time that is
the time of receipt that DDS stamped; with it, the last /clock received before the message (what came before
the first /clock gets that first time).
"""

from __future__ import annotations

import importlib
import re
import struct
import time
from pathlib import Path

from rclpy.qos import DurabilityPolicy, QoSProfile, ReliabilityPolicy
from rclpy.subscription import Subscription
from rosbags.interfaces import Qos, QosDurability, QosHistory, QosLiveliness, QosReliability, QosTime

from failure_dialogue.errors import ConfigError
from failure_dialogue.nodes.node import ERROR, OK, WARN, DialogueNode, Health, Parameter, run
from failure_dialogue.nodes.polled import PolledGroup, take_all, unused
from failure_dialogue.scoring.recording import BagRecording, Definitions, Limits

CLOCK_TOPIC = "/clock"
_POLL_S = 0.02
_DISCOVERY_S = 0.25
#: Usually 0.1 s; a supervisor kills what does not end within 5 s.
_CLOSE_LIMIT_S = 4.0
#: Messages of one topic that may wait between two polls (2 s of a 500 Hz wrench).
_DEPTH = 1000
#: Messages kept while waiting for the first /clock.
_HELD_BACK = 5000

PARAMETERS = (
    Parameter("directory", "", "Folder to write to; each run makes a new bag in it."),
    Parameter("exclude", "", "Regular expression; a topic whose whole name matches it is not recorded."),
    Parameter("max_size_mb", 0, "Size of the bag at which recording ends, in MB; 0: no limit.", 0, 10**7),
    Parameter("compress", True, "Compress the bag with zstd, chunk by chunk."),
)


def offered_qos(profile: QoSProfile) -> Qos:
    """A publisher's QoS as rosbag2's metadata writes it."""
    def duration(value) -> QosTime:
        return QosTime(*divmod(value.nanoseconds, 10**9))

    return Qos(QosHistory[profile.history.name], profile.depth, QosReliability[profile.reliability.name],
               QosDurability[profile.durability.name], duration(profile.deadline), duration(profile.lifespan),
               QosLiveliness[profile.liveliness.name], duration(profile.liveliness_lease_duration), False)


def matching_qos(offers: list[QoSProfile]) -> QoSProfile:
    """The strictest QoS that every one of these publishers serves."""
    reliable = all(o.reliability == ReliabilityPolicy.RELIABLE for o in offers)
    latched = all(o.durability == DurabilityPolicy.TRANSIENT_LOCAL for o in offers)
    return QoSProfile(
        depth=_DEPTH,
        reliability=ReliabilityPolicy.RELIABLE if reliable else ReliabilityPolicy.BEST_EFFORT,
        durability=DurabilityPolicy.TRANSIENT_LOCAL if latched else DurabilityPolicy.VOLATILE)


def new_bag_path(directory: Path) -> Path:
    """A name in the directory that is not taken yet."""
    stem = time.strftime("run_%Y_%m_%d-%H_%M_%S")
    names = [stem] + [f"{stem}_{i}" for i in range(2, 1000)]
    return next(directory / name for name in names if not (directory / name).exists())


class RecorderNode(DialogueNode):
    """Finds topics as they appear and writes what they carry."""

    def __init__(self) -> None:
        super().__init__("recorder", PARAMETERS)
        self._recording: BagRecording | None = None
        self._group = PolledGroup()
        self._forget()

    def _forget(self) -> None:
        self._subscriptions_of: dict[str, Subscription] = {}
        self._requested: dict[str, QoSProfile] = {}
        self._skipped: dict[str, str] = {}
        self._held_back: list[tuple[str, bytes]] = []
        self._clock_ns = 0
        self._said_end = False

    @property
    def _bag(self) -> BagRecording:
        """The bag; there is one while the node is active."""
        assert self._recording is not None
        return self._recording

    def configure(self) -> None:
        if not self.value("directory"):
            raise ConfigError("the parameter directory is empty; name the folder to record to")
        self._directory = Path(self.value("directory")).expanduser()
        try:
            self._exclude = re.compile(self.value("exclude")) if self.value("exclude") else None
            self._directory.mkdir(parents=True, exist_ok=True)
        except re.error as error:
            raise ConfigError(f"the parameter exclude, {self.value('exclude')!r}, is no regular expression: "
                              f"{error}") from error
        except OSError as error:
            raise ConfigError(f"the directory {self._directory} cannot be made ({error}); "
                              "name another") from error

    def activate(self) -> None:
        self._forget()
        self._simulated = bool(self.get_parameter("use_sim_time").value)
        self._recording = BagRecording(new_bag_path(self._directory), Definitions(),
                                       Limits(max_bytes=self.value("max_size_mb") * 1_000_000),
                                       self.value("compress"))
        self.get_logger().info(f"recording to {self._bag.path}")
        self._discover()
        self.timer(_DISCOVERY_S, self._discover)
        self.timer(_POLL_S, self._poll)

    def deactivate(self) -> None:
        if self._recording is not None and self._recording.progress().ended == "":
            self._poll()
        for subscription in self._subscriptions_of.values():
            self.destroy_subscription(subscription)
        self.finish()

    def finish(self) -> None:
        """Close the bag; needs no running ROS."""
        recording, self._recording = self._recording, None
        if recording is not None and not recording.close(_CLOSE_LIMIT_S):
            print(f"error: {recording.path} was not closed within {_CLOSE_LIMIT_S:g} s; it lacks its index",
                  flush=True)

    def health(self) -> Health:
        progress = self._bag.progress()
        values = {"bag": str(self._bag.path), "topics": str(len(self._subscriptions_of)),
                  "messages": str(progress.written), "dropped": str(progress.dropped),
                  "megabytes": f"{progress.bytes_taken / 1e6:.1f}", "skipped": ", ".join(self._skipped)}
        if progress.ended:
            return Health(ERROR, f"recording has ended: {progress.ended}", values)
        if progress.dropped:
            return Health(WARN, f"{progress.dropped} messages were dropped: the disk is too slow", values)
        return Health(OK, "recording", values)

    # topics -----------------------------------------------------------------
    def _discover(self) -> None:
        for topic, types in self.get_topic_names_and_types():
            if topic in self._skipped or self._excluded(topic):
                continue
            offers = [info.qos_profile for info in self.get_publishers_info_by_topic(topic)]
            if not offers:
                continue
            try:
                if topic not in self._requested:
                    self._begin(topic, types, offers)
                elif self._must_loosen(topic, offers):
                    self.destroy_subscription(self._subscriptions_of.pop(topic))
                    self._subscribe(topic, types[0], offers)
            except (ConfigError, ImportError, AttributeError) as error:
                self._skipped[topic] = str(error)
                # Parts of actions are no plain messages, in every run: nothing to warn of.
                say = self.get_logger().info if "/_action/" in topic else self.get_logger().warning
                say(f"{topic} is not recorded: {error}")

    def _excluded(self, topic: str) -> bool:
        if topic == CLOCK_TOPIC and self._simulated:
            return False  # it stamps the others
        return self._exclude is not None and self._exclude.fullmatch(topic) is not None

    def _must_loosen(self, topic: str, offers: list[QoSProfile]) -> bool:
        """Whether a publisher joined that cannot serve what was asked of the first ones."""
        asked, served = self._requested[topic], matching_qos(offers)
        too_reliable = (asked.reliability == ReliabilityPolicy.RELIABLE
                        and served.reliability != ReliabilityPolicy.RELIABLE)
        too_durable = (asked.durability == DurabilityPolicy.TRANSIENT_LOCAL
                       and served.durability != DurabilityPolicy.TRANSIENT_LOCAL)
        return too_reliable or too_durable

    def _begin(self, topic: str, types: list[str], offers: list[QoSProfile]) -> None:
        if len(types) != 1:
            raise ConfigError(f"it has several types ({', '.join(types)})")
        self._bag.add_topic(topic, types[0], [offered_qos(offer) for offer in offers])
        self._subscribe(topic, types[0], offers)

    def _subscribe(self, topic: str, type_name: str, offers: list[QoSProfile]) -> None:
        package, _, name = type_name.split("/")
        kind = getattr(importlib.import_module(f"{package}.msg"), name)
        self._requested[topic] = matching_qos(offers)
        self._subscriptions_of[topic] = self.create_subscription(
            kind, topic, unused, self._requested[topic], raw=True, callback_group=self._group)

    # messages ---------------------------------------------------------------
    def _poll(self) -> None:
        arrived = [(received_ns, topic, data) for topic, subscription in self._subscriptions_of.items()
                   for data, received_ns in take_all(subscription)]
        arrived.sort(key=lambda item: item[0])
        for received_ns, topic, data in arrived:
            if not self._simulated:
                self._bag.write(topic, received_ns, data)
                continue
            if topic == CLOCK_TOPIC:
                self._tick(data)
            if self._clock_ns:
                self._bag.write(topic, self._clock_ns, data)
            elif len(self._held_back) < _HELD_BACK:
                self._held_back.append((topic, data))
        ended = self._bag.progress().ended
        if ended and not self._said_end:
            self._said_end = True
            self.get_logger().error(f"recording has ended: {ended}")

    def _tick(self, clock: bytes) -> None:
        """Take over a serialised rosgraph_msgs/Clock: 4 bytes of CDR header, int32 s, uint32 ns."""
        seconds, nanoseconds = struct.unpack_from("<iI" if clock[1] & 1 else ">iI", clock, 4)
        first, self._clock_ns = self._clock_ns == 0, max(1, seconds * 10**9 + nanoseconds)
        if first:
            for topic, data in self._held_back:
                self._bag.write(topic, self._clock_ns, data)
            self._held_back.clear()


def main(argv: list[str] | None = None) -> int:
    """Run the node until it is ended; the bag is closed also when ROS was shut down first."""
    nodes: list[RecorderNode] = []

    def make() -> RecorderNode:
        nodes.append(RecorderNode())
        return nodes[-1]

    try:
        return run(make, argv)
    finally:
        for node in nodes:
            node.finish()


if __name__ == "__main__":
    raise SystemExit(main())
