"""Bags: what rosbag2 of ROS 2 Jazzy needs to play them, and what happens when there is no room."""

import json
import os
import resource
import time

import pytest
import yaml
from diagnostic_msgs.msg import DiagnosticArray
from failure_dialogue_msgs.msg import Failure, Phase
from geometry_msgs.msg import TransformStamped
from mcap.reader import make_reader
from mcap_ros2.decoder import DecoderFactory
from rclpy.serialization import deserialize_message, serialize_message
from rosbags.interfaces import Qos, QosDurability, QosHistory, QosLiveliness, QosReliability, QosTime
from rosbags.rosbag2 import Reader
from tf2_msgs.msg import TFMessage

from failure_dialogue import topics
from failure_dialogue.errors import ConfigError
from failure_dialogue.scoring.recording import BagRecording, Definitions, Limits, share_folder

FOREVER = QosTime(9223372036, 854775807)
LATCHED = Qos(QosHistory.UNKNOWN, 0, QosReliability.RELIABLE, QosDurability.TRANSIENT_LOCAL, FOREVER, FOREVER,
              QosLiveliness.AUTOMATIC, FOREVER, False)
NO_LIMIT = Limits(min_free_bytes=0)
FAILURE = Failure(state_id="7.1", family="grasp", phases=[Phase(name="rest"), Phase(name="lift")])
STATIC = TFMessage(transforms=[TransformStamped(child_frame_id="panda_link0")])


def recorded(path, messages, limits=NO_LIMIT, compress=True):
    """A closed bag with (topic, type, stamp, message), and what became of it."""
    recording = BagRecording(path, Definitions(), limits, compress)
    for topic, kind in {topic: kind for topic, kind, _, _ in messages}.items():
        recording.add_topic(topic, kind, [LATCHED])
    for topic, _, stamp, message in messages:
        recording.write(topic, stamp, message if isinstance(message, bytes) else serialize_message(message))
    assert recording.close(10.0)
    return recording.progress()


def two_topics(n=3):
    return [(topics.FAILURE, "failure_dialogue_msgs/msg/Failure", 10**9 + i, FAILURE)
            for i in range(n)] + [("/tf_static", "tf2_msgs/msg/TFMessage", 2 * 10**9, STATIC)]


def ending(recording, limit_s=10.0):
    """Progress once the recording has ended."""
    deadline = time.monotonic() + limit_s
    while not recording.progress().ended and time.monotonic() < deadline:
        time.sleep(0.01)
    return recording.progress()


def noise(n):
    return serialize_message(Phase(name="x")) + os.urandom(n)


@pytest.mark.parametrize("package", ["failure_dialogue_msgs", "tf2_msgs", "sensor_msgs", "diagnostic_msgs",
                                     "rcl_interfaces", "geometry_msgs"])
def test_type_hashes_are_those_of_the_installed_messages(package):
    definitions = Definitions()
    checked = 0
    for file in sorted((share_folder(package) / "msg").glob("*.msg")):
        name = f"{package}/msg/{file.stem}"
        stated = {entry["type_name"]: entry["hash_string"]
                  for entry in json.loads(file.with_suffix(".json").read_text())["type_hashes"]}
        definitions.load(name)
        assert definitions.store.hash_rihs01(name) == stated[name]
        checked += 1
    assert checked > 0


@pytest.mark.parametrize("compress", [False, True])
def test_what_was_written_is_read_back_by_three_readers(tmp_path, compress):
    progress = recorded(tmp_path / "bag", two_topics(), compress=compress)
    assert (progress.written, progress.dropped, progress.ended, progress.broken) == (4, 0, "", False)
    with Reader(tmp_path / "bag") as reader:
        read = [(c.topic, stamp, bytes(raw)) for c, stamp, raw in reader.messages()]
    assert [stamp for _, stamp, _ in read] == [10**9, 10**9 + 1, 10**9 + 2, 2 * 10**9]
    assert deserialize_message(read[0][2], Failure) == FAILURE
    assert deserialize_message(read[3][2], TFMessage) == STATIC
    # Decoded from the schemas in the file alone, as the viewers do it.
    with (tmp_path / "bag" / "bag.mcap").open("rb") as file:
        viewed = [decoded.decoded_message for decoded in
                  make_reader(file, decoder_factories=[DecoderFactory()]).iter_decoded_messages()]
    assert [p.name for p in viewed[0].phases] == ["rest", "lift"]
    assert viewed[3].transforms[0].child_frame_id == "panda_link0"


#: Field by field what rosbag2_storage/yaml.hpp and qos.cpp (branch jazzy) convert without a default.
POLICIES = {"history": {"system_default", "keep_last", "keep_all", "unknown"},
            "reliability": {"system_default", "reliable", "best_effort", "best_available", "unknown"},
            "durability": {"system_default", "transient_local", "volatile", "best_available", "unknown"},
            "liveliness": {"system_default", "automatic", "manual_by_topic", "best_available", "unknown"}}


def assert_jazzy_reads(metadata):
    assert isinstance(metadata["version"], int) and metadata["version"] == 9
    assert metadata["storage_identifier"] == "mcap"
    assert isinstance(metadata["duration"]["nanoseconds"], int)
    assert isinstance(metadata["starting_time"]["nanoseconds_since_epoch"], int)
    assert isinstance(metadata["message_count"], int)
    # Not "message" or "file": those need the compression plugin to play.
    assert metadata["compression_format"] == "" and metadata["compression_mode"] == ""
    assert metadata["relative_file_paths"] == [file["path"] for file in metadata["files"]] == ["bag.mcap"]
    for file in metadata["files"]:
        assert {"starting_time", "duration", "message_count"} < set(file)
    assert metadata["custom_data"] is None or isinstance(metadata["custom_data"], dict)
    assert isinstance(metadata["ros_distro"], str)
    for entry in metadata["topics_with_message_count"]:
        assert isinstance(entry["message_count"], int)
        topic = entry["topic_metadata"]
        assert topic["serialization_format"] == "cdr"
        assert topic["type_description_hash"].startswith("RIHS01_")
        assert isinstance(topic["name"], str) and isinstance(topic["type"], str)
        assert isinstance(topic["offered_qos_profiles"], list)  # text up to version 8, a sequence from 9 on
        for qos in topic["offered_qos_profiles"]:
            assert all(qos[policy] in values for policy, values in POLICIES.items())
            assert isinstance(qos["depth"], int) and isinstance(qos["avoid_ros_namespace_conventions"], bool)
            for name in ("deadline", "lifespan", "liveliness_lease_duration"):
                assert isinstance(qos[name]["sec"], int) and isinstance(qos[name]["nsec"], int)


def test_metadata_has_what_jazzys_reader_converts(tmp_path):
    recorded(tmp_path / "bag", two_topics())
    metadata = yaml.safe_load((tmp_path / "bag" / "metadata.yaml").read_text())["rosbag2_bagfile_information"]
    assert_jazzy_reads(metadata)
    assert metadata["message_count"] == 4
    assert metadata["duration"]["nanoseconds"] == 10**9
    by_name = {t["topic_metadata"]["name"]: t for t in metadata["topics_with_message_count"]}
    assert by_name[topics.FAILURE]["message_count"] == 3
    (offered,) = by_name["/tf_static"]["topic_metadata"]["offered_qos_profiles"]
    assert offered["durability"] == "transient_local"


def test_a_bag_without_messages_is_still_one(tmp_path):
    recorded(tmp_path / "bag", [])
    metadata = yaml.safe_load((tmp_path / "bag" / "metadata.yaml").read_text())["rosbag2_bagfile_information"]
    assert_jazzy_reads(metadata)
    assert metadata["message_count"] == 0


def test_types_without_a_definition_are_refused_by_name(tmp_path):
    recording = BagRecording(tmp_path / "bag", Definitions(), Limits(min_free_bytes=0), False)
    with pytest.raises(ConfigError, match="nowhere_msgs/msg/Thing.*install the package nowhere_msgs"):
        recording.add_topic("/t", "nowhere_msgs/msg/Thing", [])
    with pytest.raises(ConfigError, match="parts of actions"):
        recording.add_topic("/t", "failure_dialogue_msgs/action/RunRecheck_FeedbackMessage", [])
    recording.add_topic("/d", "diagnostic_msgs/msg/DiagnosticArray", [])
    recording.write("/d", 1, serialize_message(DiagnosticArray()))
    assert recording.close(10.0) and recording.progress().written == 1


def test_a_slow_disk_costs_messages_not_memory(tmp_path):
    limits = Limits(min_free_bytes=0, queue_bytes=1000)
    progress = recorded(tmp_path / "bag", [("/p", "failure_dialogue_msgs/msg/Phase", 1, noise(2000))], limits)
    assert (progress.written, progress.dropped) == (0, 1)
    assert progress.ended == ""


def test_the_size_limit_closes_the_bag_properly(tmp_path):
    limits = Limits(max_bytes=3_000_000, min_free_bytes=0)
    recording = BagRecording(tmp_path / "bag", Definitions(), limits, False)
    recording.add_topic("/p", "failure_dialogue_msgs/msg/Phase", [LATCHED])
    for i in range(1, 200):
        recording.write("/p", i, noise(100_000))
        time.sleep(0.01)
    progress = ending(recording)
    assert "size limit of 3 MB" in progress.ended and not progress.broken
    with Reader(tmp_path / "bag") as reader:
        assert reader.message_count == progress.written
    # Checked every half second: at 10 MB/s it may run over by 5 MB.
    assert 3_000_000 <= (tmp_path / "bag" / "bag.mcap").stat().st_size < 10_000_000
    assert recording.close()


def test_too_little_room_on_the_disk_ends_the_recording_with_a_bag_that_reads(tmp_path):
    recording = BagRecording(tmp_path / "bag", Definitions(), Limits(min_free_bytes=1 << 60), True)
    recording.add_topic("/p", "failure_dialogue_msgs/msg/Phase", [LATCHED])
    recording.write("/p", 1, noise(10))
    assert "MiB free" in ending(recording).ended and not recording.progress().broken
    assert recording.close()
    with Reader(tmp_path / "bag") as reader:
        assert reader.message_count == 0


def test_a_write_error_is_told_and_does_not_raise(tmp_path):
    soft, hard = resource.getrlimit(resource.RLIMIT_FSIZE)
    recording = BagRecording(tmp_path / "bag", Definitions(), Limits(min_free_bytes=0), False)
    recording.add_topic("/p", "failure_dialogue_msgs/msg/Phase", [LATCHED])
    try:
        # The kernel then refuses writes beyond 2 MB, as a full disk would.
        resource.setrlimit(resource.RLIMIT_FSIZE, (2_000_000, hard))
        for i in range(1, 40):
            recording.write("/p", i, noise(100_000))
        progress = ending(recording)
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, (soft, hard))
    assert progress.broken and "failed: OSError" in progress.ended
    recording.write("/p", 99, noise(10))
    assert recording.close()


def test_a_path_that_cannot_be_is_refused_at_the_start(tmp_path):
    (tmp_path / "file").write_text("")
    with pytest.raises(ConfigError, match="choose another directory"):
        BagRecording(tmp_path / "file" / "bag", Definitions(), Limits(), True)
