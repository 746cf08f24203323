"""The sensors of the simulated robot as ROS 2 messages: the names, frames and rates of a real arm."""

from __future__ import annotations

import numpy as np
from failure_dialogue_msgs import msg as m
from geometry_msgs.msg import TransformStamped, WrenchStamped
from rclpy.qos import QoSProfile, ReliabilityPolicy
from rosgraph_msgs.msg import Clock as ClockMessage
from scipy.spatial.transform import Rotation
from sensor_msgs.msg import CameraInfo, Image, JointState
from std_msgs.msg import Header
from tf2_msgs.msg import TFMessage

from failure_dialogue import topics
from failure_dialogue.nodes.convert import fill_image, stamp
from failure_dialogue.nodes.node import EVENT_QOS, EXCHANGE_QOS, DialogueNode
from sim_bridge.camera import SceneCamera
from sim_bridge.robot import FRAME_EVERY, SimRobot
from sim_bridge.sensors import JOINT_NAMES, Sample

BASE_FRAME, WRENCH_FRAME, CAMERA_FRAME = "panda_link0", "panda_hand", "camera_color_optical_frame"
_CLOCK_EVERY = 5  # steps: 100 Hz


class SensorTopics:
    """Publishes what SimRobot measures. offset_s: from the robot's stamps to the published clock.

    The published clock goes on when a scene begins anew, so that no listener sees time jump back.
    """

    def __init__(self, node: DialogueNode, robot: SimRobot) -> None:
        reliable = QoSProfile(depth=100, reliability=ReliabilityPolicy.RELIABLE)
        self._robot = robot
        self.offset_s = 0.0
        self.counts = {"wrench": 0, "joints": 0, "frames": 0}
        self._steps = 0
        self._phases: tuple[list, int] = ([], 0)  # the list that was said, and how much of it
        self._clocks = node.publisher(ClockMessage, "/clock", 10)
        self._wrenches = node.publisher(WrenchStamped, topics.WRENCH, reliable)
        self._joint_states = node.publisher(JointState, topics.JOINT_STATES, reliable)
        self._images = node.publisher(Image, topics.IMAGE, QoSProfile(depth=5))
        self._infos = node.publisher(CameraInfo, topics.CAMERA_INFO, QoSProfile(depth=5))
        self._frames = node.publisher(TFMessage, topics.TF_STATIC, EXCHANGE_QOS)
        self._phase_names = node.publisher(m.Phase, topics.PHASE, EVENT_QOS)
        # One message of each is filled again and again: at 500 Hz making them anew costs more than sending.
        self._wrench = WrenchStamped(header=Header(frame_id=WRENCH_FRAME))
        self._joints = JointState(header=Header(frame_id=BASE_FRAME), name=list(JOINT_NAMES))

    def now_s(self) -> float:
        """The published clock, in seconds."""
        return self._robot.stamp_s + self.offset_s

    def publish(self, sample: Sample, camera: SceneCamera | None) -> None:
        """One step: wrench, every fifth time joints and clock, at 20 Hz a frame, and phases as they begin."""
        self._steps += 1
        now = stamp(sample.stamp_s + self.offset_s)
        if self._steps % _CLOCK_EVERY == 0:
            self._clocks.publish(ClockMessage(clock=now))
        force, torque = self._wrench.wrench.force, self._wrench.wrench.torque
        self._wrench.header.stamp = now
        force.x, force.y, force.z, torque.x, torque.y, torque.z = sample.wrench.tolist()
        self._wrenches.publish(self._wrench)
        self.counts["wrench"] += 1
        if sample.joints is not None:
            self._joints.header.stamp = now
            self._joints.position = sample.joints.position.tolist()
            self._joints.velocity = sample.joints.velocity.tolist()
            self._joints.effort = sample.joints.effort.tolist()
            self._joint_states.publish(self._joints)
            self.counts["joints"] += 1
        self._publish_phases()
        if camera is not None and self._steps % FRAME_EVERY == 0:
            self._publish_image(camera, now)

    def _publish_phases(self) -> None:
        phases = self._robot.phases
        said = self._phases[1] if phases is self._phases[0] else 0
        for phase in phases[said:]:
            self._phase_names.publish(m.Phase(name=phase.name, start=stamp(phase.start_s + self.offset_s)))
        self._phases = (phases, len(phases))

    def _publish_image(self, camera: SceneCamera, now) -> None:
        image = camera.frame(self._robot.data)
        message = Image(header=Header(stamp=now, frame_id=CAMERA_FRAME))
        fill_image(message, image)
        self._images.publish(message)
        self._infos.publish(self.camera_info(camera, image.shape[1], image.shape[0]))
        self.counts["frames"] += 1

    def camera_info(self, camera: SceneCamera, width: int, height: int) -> CameraInfo:
        """What goes with a picture of this size taken now."""
        k = camera.intrinsics(width, height)
        return CameraInfo(
            header=Header(stamp=stamp(self.now_s()), frame_id=CAMERA_FRAME),
            width=width,
            height=height,
            distortion_model="plumb_bob",
            d=[0.0] * 5,
            k=k.flatten().tolist(),
            r=np.eye(3).flatten().tolist(),
            p=np.hstack([k, np.zeros((3, 1))]).flatten().tolist(),
        )

    def still(self, camera: SceneCamera) -> tuple[Image, CameraInfo]:
        """A full-size picture taken now, with its camera."""
        image = camera.still(self._robot.data)
        message = Image(header=Header(stamp=stamp(self.now_s()), frame_id=CAMERA_FRAME))
        fill_image(message, image)
        return message, self.camera_info(camera, image.shape[1], image.shape[0])

    def publish_frames(self, camera: SceneCamera | None) -> None:
        """Where the arm's base and the camera stand; the camera stands elsewhere in each scene."""
        base = self._robot.data.body("robot0_link0")
        poses = {BASE_FRAME: (base.xmat.reshape(3, 3), base.xpos)}
        if camera is not None:
            poses[CAMERA_FRAME] = camera.extrinsics(self._robot.data)
        now = stamp(self.now_s())
        frames = []
        for child, (rotation, position) in poses.items():
            frame = TransformStamped(header=Header(stamp=now, frame_id="world"), child_frame_id=child)
            t, q = frame.transform.translation, frame.transform.rotation
            t.x, t.y, t.z = (float(v) for v in position)
            q.x, q.y, q.z, q.w = (float(v) for v in Rotation.from_matrix(rotation).as_quat())
            frames.append(frame)
        self._frames.publish(TFMessage(transforms=frames))
