"""The recorder as a process in a real graph: what it catches, how it ends, and what it says of trouble."""

import signal
import struct
import time
from collections import Counter

import pytest
import rclpy
import yaml
from diagnostic_msgs.msg import DiagnosticArray, DiagnosticStatus
from failure_dialogue_msgs.action import RunRecheck
from failure_dialogue_msgs.msg import Failure, Phase
from geometry_msgs.msg import TransformStamped, WrenchStamped
from rclpy.action import ActionServer
from rclpy.executors import SingleThreadedExecutor
from rclpy.qos import DurabilityPolicy, QoSProfile, ReliabilityPolicy
from rclpy.serialization import deserialize_message
from rosbags.rosbag2 import Reader
from rosgraph_msgs.msg import Clock
from std_msgs.msg import String
from tf2_msgs.msg import TFMessage

from failure_dialogue import topics
from failure_dialogue.domain import claim_domain
from tests.fakes.processes import ended, node_process, until

MODULE = "failure_dialogue.nodes.recorder"
LATCHED = QoSProfile(depth=10, durability=DurabilityPolicy.TRANSIENT_LOCAL)
BEST_EFFORT = QoSProfile(depth=100, reliability=ReliabilityPolicy.BEST_EFFORT)


@pytest.fixture
def graph(monkeypatch):
    """A node of the test's own in a domain of its own, spun by until()."""
    monkeypatch.setenv("ROS_AUTOMATIC_DISCOVERY_RANGE", "LOCALHOST")
    claim = claim_domain("test")
    context = rclpy.Context()
    rclpy.init(context=context, domain_id=claim.domain_id)
    node = rclpy.create_node("publishers", context=context)
    executor = SingleThreadedExecutor(context=context)
    executor.add_node(node)
    node.domain_id = claim.domain_id
    node.spin = lambda: executor.spin_once(timeout_sec=0.02)
    yield node
    executor.shutdown()
    node.destroy_node()
    rclpy.try_shutdown(context=context)
    claim.release()


def health_of(node):
    """Filled with the recorder's own words, once a second."""
    said = []
    node.create_subscription(DiagnosticArray, "/diagnostics",
                             lambda m: said.extend(s for s in m.status if s.name == "/recorder"), 10)
    return said


def bag(folder):
    (path,) = folder.iterdir()
    return path


def messages(folder):
    with Reader(bag(folder)) as reader:
        return [(c.topic, stamp, bytes(raw)) for c, stamp, raw in reader.messages()]


@pytest.mark.parametrize("how", [signal.SIGINT, signal.SIGTERM])
def test_all_topics_are_in_the_bag_whatever_their_qos(graph, tmp_path, how):
    latched = graph.create_publisher(TFMessage, "/tf_static", LATCHED)
    # Before the recorder is there.
    latched.publish(TFMessage(transforms=[TransformStamped(child_frame_id="panda_link0")]))
    wrench = graph.create_publisher(WrenchStamped, "/wrench", BEST_EFFORT)
    failure = graph.create_publisher(Failure, topics.FAILURE, LATCHED)
    secret = graph.create_publisher(String, "/left/out", 10)
    server = ActionServer(graph, RunRecheck, topics.RUN_RECHECK, lambda goal: RunRecheck.Result())
    folder, log = tmp_path / "bags", tmp_path / "log"
    with node_process(MODULE, graph.domain_id, f"directory:={folder}", "exclude:=/left/.*",
                      log=log) as process:
        until(lambda: wrench.get_subscription_count() and failure.get_subscription_count(), "the recorder",
              step=graph.spin)
        for i in range(200):
            message = WrenchStamped()
            message.wrench.force.z = float(i)
            wrench.publish(message)
            time.sleep(0.004)
        failure.publish(Failure(state_id="7.1", phases=[Phase(name="lift")]))
        secret.publish(String(data="not for the bag"))
        time.sleep(0.5)
        status, seconds = ended(process, how)
    server.destroy()
    assert (status, seconds < 2.0) == (0, True)
    said = log.read_text()
    assert "Traceback" not in said
    assert "/failure_dialogue/run_recheck/_action/feedback is not recorded" in said
    read = messages(folder)
    by_topic = Counter(topic for topic, _, _ in read)
    assert (by_topic["/wrench"], by_topic["/tf_static"], by_topic[topics.FAILURE]) == (200, 1, 1)
    assert by_topic["/diagnostics"] >= 1 and "/left/out" not in by_topic
    forces = [deserialize_message(raw, WrenchStamped).wrench.force.z
              for topic, _, raw in read if topic == "/wrench"]
    assert forces == [float(i) for i in range(200)]
    (own,) = (deserialize_message(raw, Failure) for topic, _, raw in read if topic == topics.FAILURE)
    assert (own.state_id, own.phases[0].name) == ("7.1", "lift")
    # Stamped on receipt: 200 messages 4 ms apart.
    stamps = [stamp for topic, stamp, _ in read if topic == "/wrench"]
    assert 0.7e9 < stamps[-1] - stamps[0] < 3e9 and abs(stamps[-1] - time.time_ns()) < 60e9
    metadata = yaml.safe_load((bag(folder) / "metadata.yaml").read_text())["rosbag2_bagfile_information"]
    offered = {t["topic_metadata"]["name"]: t["topic_metadata"]["offered_qos_profiles"][0]
               for t in metadata["topics_with_message_count"]}
    assert offered["/tf_static"]["durability"] == "transient_local"
    assert offered["/wrench"]["reliability"] == "best_effort"


def test_a_publisher_that_asks_for_less_is_heard_as_well(graph, tmp_path):
    strict = graph.create_publisher(String, "/words", 10)
    folder = tmp_path / "bags"
    with node_process(MODULE, graph.domain_id, f"directory:={folder}", log=tmp_path / "log") as process:
        until(lambda: strict.get_subscription_count() == 1, "the recorder", step=graph.spin)
        loose = graph.create_publisher(String, "/words", BEST_EFFORT)
        until(lambda: loose.get_subscription_count() == 1, "the looser subscription", step=graph.spin)
        loose.publish(String(data="loose"))
        strict.publish(String(data="strict"))
        time.sleep(0.5)
        ended(process)
    words = {deserialize_message(raw, String).data for topic, _, raw in messages(folder) if topic == "/words"}
    assert words == {"loose", "strict"}


def test_simulated_time_stamps_the_bag(graph, tmp_path):
    clock = graph.create_publisher(Clock, "/clock", 10)
    words = graph.create_publisher(String, "/words", 10)
    folder = tmp_path / "bags"
    with node_process(MODULE, graph.domain_id, f"directory:={folder}", "use_sim_time:=true",
                      log=tmp_path / "log") as process:
        until(lambda: words.get_subscription_count() == 1 and clock.get_subscription_count() >= 2,
              "the recorder", step=graph.spin)
        words.publish(String(data="early"))
        time.sleep(0.2)
        for second in (40, 41, 42):
            message = Clock()
            message.clock.sec = second
            clock.publish(message)
            time.sleep(0.1)
            words.publish(String(data=str(second)))
            time.sleep(0.1)
        ended(process)
    read = messages(folder)
    said = [(deserialize_message(raw, String).data, stamp // 10**9)
            for topic, stamp, raw in read if topic == "/words"]
    assert said == [("early", 40), ("40", 40), ("41", 41), ("42", 42)]
    assert all(struct.unpack_from("<i", raw, 4)[0] == stamp // 10**9
               for topic, stamp, raw in read if topic == "/clock")


def test_the_size_limit_is_said_in_diagnostics_and_the_node_lives_on(graph, tmp_path):
    words = graph.create_publisher(String, "/words", 10)
    said = health_of(graph)
    with node_process(MODULE, graph.domain_id, f"directory:={tmp_path / 'bags'}", "max_size_mb:=1",
                      "compress:=false", log=tmp_path / "log") as process:
        until(lambda: words.get_subscription_count() == 1, "the recorder", step=graph.spin)

        def publish():
            words.publish(String(data="x" * 200_000))
            graph.spin()

        until(lambda: any("size limit of 1 MB" in s.message for s in said), "the size limit", step=publish)
        assert said[-1].level == DiagnosticStatus.ERROR
        assert process.poll() is None
        assert ended(process)[0] == 0
    with Reader(bag(tmp_path / "bags")) as reader:
        assert reader.message_count > 0


@pytest.mark.parametrize("parameters, words", [
    ((), "the parameter directory is empty"),
    (("directory:=/dev/null/bags",), "cannot be made"),
    (("directory:=/tmp", "exclude:='['"), "no regular expression"),
])
def test_a_recorder_that_cannot_record_says_why_and_stays(graph, tmp_path, parameters, words):
    said = health_of(graph)
    with node_process(MODULE, graph.domain_id, *parameters, log=tmp_path / "log") as process:
        until(lambda: any(words in s.message and s.level == DiagnosticStatus.ERROR for s in said),
              "its diagnostics", step=graph.spin)
        assert process.poll() is None
        assert ended(process)[0] == 0
