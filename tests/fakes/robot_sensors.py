"""A robot as the re-check sees it: sensors, phases, static frames and stills, and none of its motors."""

from __future__ import annotations

import array
import time

import numpy as np
from failure_dialogue_msgs.msg import Phase
from failure_dialogue_msgs.srv import CaptureStill
from geometry_msgs.msg import TransformStamped, WrenchStamped
from rclpy.node import Node
from rclpy.qos import DurabilityPolicy, QoSProfile, ReliabilityPolicy
from sensor_msgs.msg import JointState
from tf2_msgs.msg import TFMessage

from failure_dialogue import topics
from failure_dialogue.evidence import Evidence
from failure_dialogue.nodes.convert import fill_image, stamp

CAMERA_FRAME = "camera_optical"
#: The camera hangs here over the table (m, in the base frame) and looks straight down.
CAMERA_AT_M = (0.5, 0.1, 1.2)
FOCAL_PX = 500.0


def pixel_of(place_m: np.ndarray) -> tuple[float, float]:
    """Column and row at which that camera sees a place of the base frame."""
    x, y, z = np.asarray(place_m) - CAMERA_AT_M
    return 320.0 + FOCAL_PX * x / -z, 240.0 - FOCAL_PX * y / -z


class RobotSensors:
    """Topics and the still service on a node of the test's."""

    def __init__(self, node: Node, frames: bool = True) -> None:
        self.image: np.ndarray | None = None  # None: the still is refused
        self.silent = False                   # the service never answers
        self.now_s = 99.0
        self.camera_frame = CAMERA_FRAME
        latched = QoSProfile(depth=10, durability=DurabilityPolicy.TRANSIENT_LOCAL)
        sensor = QoSProfile(depth=5000, reliability=ReliabilityPolicy.RELIABLE)
        self.wrenches = node.create_publisher(WrenchStamped, topics.WRENCH, sensor)
        self.joints = node.create_publisher(JointState, topics.JOINT_STATES, sensor)
        self.phases = node.create_publisher(Phase, topics.PHASE, sensor)
        self.frames = node.create_publisher(TFMessage, topics.TF_STATIC, latched)
        if frames:
            self.frames.publish(TFMessage(transforms=[
                self._frame("world", "panda_link0", (-0.6, 0.0, 0.0), (0.0, 0.0, 0.0, 1.0)),
                # Half a turn about x: z looks down, y back.
                self._frame("world", CAMERA_FRAME, (CAMERA_AT_M[0] - 0.6, *CAMERA_AT_M[1:]),
                            (1.0, 0.0, 0.0, 0.0))]))

    def serve_stills(self, node: Node) -> None:
        """Open the still service."""
        node.create_service(CaptureStill, topics.CAPTURE_STILL, self._capture)

    @staticmethod
    def _frame(parent, child, position, quaternion) -> TransformStamped:
        message = TransformStamped(child_frame_id=child)
        message.header.frame_id = parent
        t, r = message.transform.translation, message.transform.rotation
        t.x, t.y, t.z = position
        r.x, r.y, r.z, r.w = quaternion
        return message

    def _capture(self, request, response: CaptureStill.Response) -> CaptureStill.Response:
        if self.image is None:
            response.error_code, response.error_msg = 150, "the camera is switched off"
            return response
        response.success = True
        fill_image(response.image, self.image)
        response.image.header.stamp = stamp(self.now_s)
        response.image.header.frame_id = response.camera_info.header.frame_id = self.camera_frame
        response.camera_info.height, response.camera_info.width = self.image.shape[:2]
        response.camera_info.k = array.array("d", [FOCAL_PX, 0, 320, 0, FOCAL_PX, 240, 0, 0, 1])
        return response

    def play(self, motion: Evidence, spin, shift_s: float = 0.0, wrench: bool = True) -> None:
        """Publish a recorded motion, some ten times faster than it was, its stamps moved by shift_s."""
        series = [(s, 0, p.name) for p in motion.phases for s in [p.start_s]]
        series += [(s, 1, i) for i, s in enumerate(motion.joints.stamps_s)]
        series += [(s, 2, i) for i, s in enumerate(motion.wrench.stamps_s)] if wrench else []
        pause_s = 0.0
        for stamp_s, kind, what in sorted(series):
            now = stamp(stamp_s + shift_s)
            if kind == 0:
                self.phases.publish(Phase(name=what, start=now))
            elif kind == 1:
                message = JointState(name=list(motion.joints.names),
                                     position=motion.joints.position[what].tolist())
                message.header.stamp = now
                self.joints.publish(message)
            else:
                message = WrenchStamped()
                message.header.stamp = now
                force = message.wrench.force
                force.x, force.y, force.z = (float(v) for v in motion.wrench.wrench_n_nm[what, :3])
                self.wrenches.publish(message)
            if stamp_s > pause_s:
                pause_s = stamp_s + 0.1
                spin()
                time.sleep(0.005)
        self.now_s = motion.end_s + shift_s
        arrived = time.monotonic() + 0.5
        while time.monotonic() < arrived:
            spin()
