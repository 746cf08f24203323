"""The diagnosis node: keeps the last minute of sensor data and diagnoses a failure from it."""

from __future__ import annotations

from pathlib import Path

from failure_dialogue_msgs import msg as m
from failure_dialogue_msgs import srv
from geometry_msgs.msg import WrenchStamped
from rclpy.qos import QoSProfile, ReliabilityPolicy
from sensor_msgs.msg import Image, JointState

from failure_dialogue import topics
from failure_dialogue.diagnosis.load import load_diagnosers
from failure_dialogue.diagnosis.protocol import Diagnosis
from failure_dialogue.errors import ConfigError, EvidenceError
from failure_dialogue.evidence import RollingBuffer
from failure_dialogue.nodes.convert import diagnosis_message, image_rgb, phases, seconds
from failure_dialogue.nodes.node import (
    EVENT_QOS,
    EXCHANGE_QOS,
    OK,
    SENSOR_QOS,
    WARN,
    DialogueNode,
    Health,
    Parameter,
    run,
)
from failure_dialogue.nodes.polled import PolledGroup, take_all, unused
from failure_dialogue.robots.profile import load_profile
from failure_dialogue.vocabulary import load_vocabulary

ERROR_UNKNOWN_SOURCE = 200
ERROR_NO_FAILURE = 201

PARAMETERS = (
    Parameter("robot", "panda", "Robot profile: joint names, gripper units, kinematics."),
    Parameter("models", "", "Folder of the models; empty: those that ship with the package. As for the "
              "decision node."),
    Parameter("first_sources", ["camera"], "Sources that diagnose every failure without being asked to."),
    Parameter("offered_sources", ["camera", "force"], "Sources that may be consulted; leave one out to "
              "switch its channel off."),
    Parameter("buffer_s", 60.0, "Seconds of sensor data that are kept.", 5.0, 600.0),
    Parameter("frame_period_s", 0.05, "Shortest time between two kept frames (s).", 0.0, 10.0),
    Parameter("wrench_sign", 1.0, "1: the sensor reports the force of the environment on the tool; "
              "-1: the opposite.", -1.0, 1.0),
)
#: 4 s of a 500 Hz wrench: nothing is taken from the queues while the camera's model runs.
_STREAM_QOS = QoSProfile(depth=2000, reliability=ReliabilityPolicy.BEST_EFFORT)
_DRAIN_S = 0.05


class DiagnosisNode(DialogueNode):
    """Answers each failure from the first sources, and the sense service from any other one."""

    def __init__(self) -> None:
        super().__init__("diagnosis", PARAMETERS)

    def configure(self) -> None:
        """Load every diagnoser of every family; a missing or altered model fails here, by name."""
        if abs(self.value("wrench_sign")) != 1.0:
            raise ConfigError(f"the parameter wrench_sign is {self.value('wrench_sign'):g}; "
                              "it must be 1 or -1")
        vocabulary = load_vocabulary()
        profile = load_profile(self.value("robot"))
        folder = Path(self.value("models")) if self.value("models") else None
        self.diagnosers = {family: load_diagnosers(vocabulary, family, profile, folder)
                           for family in vocabulary.families}
        self.buffer = RollingBuffer(self.value("buffer_s"), self.value("frame_period_s"))
        self.failure: m.Failure | None = None
        self.episode_id = ""
        self.counts = {"wrench": 0, "joints": 0, "frames": 0, "bad images": 0}
        self.last_latency_s = 0.0

    def activate(self) -> None:
        """Open the sensors, the failure topic and the sense service."""
        self.sign = float(self.value("wrench_sign"))
        self.diagnoses = self.publisher(m.Diagnosis, topics.DIAGNOSIS, EXCHANGE_QOS)
        group = PolledGroup()
        self.wrenches, self.joint_states = (
            self._track(self.destroy_subscription, self.create_subscription(
                kind, topic, unused, _STREAM_QOS, callback_group=group))
            for kind, topic in ((WrenchStamped, topics.WRENCH), (JointState, topics.JOINT_STATES)))
        self.subscription(Image, topics.IMAGE, self._on_image, SENSOR_QOS)
        self.subscription(m.Failure, topics.FAILURE, self._on_failure, EVENT_QOS)
        self.subscription(m.EpisodeStatus, topics.EPISODE, self._on_episode, EXCHANGE_QOS)
        self.service(srv.Sense, topics.SENSE, self._on_sense)
        self.timer(_DRAIN_S, self._drain)

    # sensors: as little as possible for each message ------------------------
    def _drain(self) -> None:
        """Take what has come from the fast sensors; also right before it is looked at."""
        for message, _ in take_all(self.wrenches):
            self._on_wrench(message)
        for message, _ in take_all(self.joint_states):
            self._on_joints(message)

    def _on_wrench(self, message: WrenchStamped) -> None:
        f, t, s = message.wrench.force, message.wrench.torque, self.sign
        self.counts["wrench"] += 1
        self.buffer.add_wrench(seconds(message.header.stamp),
                               (s * f.x, s * f.y, s * f.z, s * t.x, s * t.y, s * t.z))

    def _on_joints(self, message: JointState) -> None:
        self.counts["joints"] += 1
        self.buffer.add_joints(seconds(message.header.stamp), tuple(message.name), message.position,
                               message.velocity, message.effort)

    def _on_image(self, message: Image) -> None:
        try:
            self.buffer.add_frame(seconds(message.header.stamp), image_rgb(message))
            self.counts["frames"] += 1
        except EvidenceError as error:
            self.counts["bad images"] += 1
            self.get_logger().warning(str(error), once=True)

    # failures ---------------------------------------------------------------
    def _on_episode(self, message: m.EpisodeStatus) -> None:
        # After the end of an episode the next failure belongs to another one.
        self.episode_id = message.episode_id if message.state != "idle" else ""

    def _on_failure(self, message: m.Failure) -> None:
        self.failure = message
        for source in filter(None, self.value("first_sources")):
            self._publish(source)

    def _on_sense(self, request: srv.Sense.Request, response: srv.Sense.Response):
        failure = self.failure
        if failure is None or (request.state_id and request.state_id != failure.state_id):
            response.error_code = ERROR_NO_FAILURE
            response.error_msg = (f"no failure in state {request.state_id!r} is known here; "
                                  "the last one is " + (repr(failure.state_id) if failure else "none"))
        elif request.source not in self.value("offered_sources") or \
                request.source not in self.diagnosers.get(failure.family, {}):
            response.error_code = ERROR_UNKNOWN_SOURCE
            response.error_msg = (f"source {request.source!r} is not offered for family {failure.family!r}; "
                                  f"offered: {', '.join(self._offered(failure.family)) or 'none'}")
        else:
            self.episode_id = request.episode_id or self.episode_id
            self._publish(request.source)
            response.accepted = True
        return response

    def _offered(self, family: str) -> list[str]:
        return [s for s in self.value("offered_sources") if s in self.diagnosers.get(family, {})]

    def _publish(self, source: str) -> None:
        assert self.failure is not None
        diagnosis = self._diagnose(source)
        self.last_latency_s = diagnosis.latency_s
        self.diagnoses.publish(diagnosis_message(diagnosis, self.episode_id, self.failure.state_id,
                                                 self.get_clock().now().to_msg()))

    def _diagnose(self, source: str) -> Diagnosis:
        failure = self.failure
        assert failure is not None
        diagnoser = self.diagnosers.get(failure.family, {}).get(source)
        if diagnoser is None:
            return Diagnosis.abstention(source, failure.family, "", f"there is no {source} diagnoser for "
                                        f"family {failure.family!r}; train one or add it to the vocabulary")
        if source not in self.value("offered_sources"):
            # Said at once, or the decision would wait for it until its time limit.
            return Diagnosis.abstention(source, failure.family, diagnoser.model_id,
                                        f"the {source} is switched off here (parameter offered_sources)")
        self._drain()
        try:
            evidence = self.buffer.window(
                seconds(failure.attempt_start), seconds(failure.attempt_end), family=failure.family,
                stage=failure.stage, instruction=failure.instruction, phases=phases(failure.phases),
                grip_setpoint_n=failure.grip_setpoint_n, grip_preload_n=failure.grip_preload_n)
        except EvidenceError as error:
            return Diagnosis.abstention(source, failure.family, diagnoser.model_id, str(error))
        return diagnoser.diagnose(evidence)

    def health(self) -> Health:
        """Rates since the last report, samples dropped, jumps in time."""
        rates, self.counts = self.counts, dict.fromkeys(self.counts, 0)
        values = {f"{k} per second": str(v) for k, v in rates.items()}
        values |= {"samples dropped": str(self.buffer.dropped), "time jumps": str(self.buffer.jumps),
                   "last latency s": f"{self.last_latency_s:.3f}"}
        missing = [k for k in ("wrench", "joints", "frames") if rates[k] == 0]
        if missing:
            return Health(WARN, "no data in the last second: " + ", ".join(missing), values)
        return Health(OK, "receiving", values)


def main(argv: list[str] | None = None) -> int:
    """Run the node."""
    return run(DiagnosisNode, argv)


if __name__ == "__main__":
    raise SystemExit(main())
