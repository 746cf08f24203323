"""RobotProfile: the little that telemetry must know of an arm: joint names, chain, fingers."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from failure_dialogue.errors import ConfigError, EvidenceError
from failure_dialogue.evidence import JointSeries


@dataclass(frozen=True)
class RobotProfile:
    """Names and geometry of one arm with a parallel gripper.

    dh_a_d_alpha: one (a in m, d in m, alpha in rad) for each arm joint, modified (Craig) convention;
    tool_offset_m: from the last joint's frame along its z to the point between the finger tips;
    finger_joints: prismatic joints whose positions (m) add up to the aperture;
    finger_effort: whether the gripper reports the force of its fingers.
    """

    robot_id: str
    arm_joints: tuple[str, ...]
    finger_joints: tuple[str, ...]
    dh_a_d_alpha: tuple[tuple[float, float, float], ...]
    tool_offset_m: float
    finger_effort: bool = True

    def aperture_m(self, joints: JointSeries) -> np.ndarray:
        """(n,) distance between the finger pads in m. EvidenceError when a finger joint is missing."""
        return np.sum([joints.column(name) for name in self.finger_joints], axis=0)

    def finger_force_n(self, joints: JointSeries) -> np.ndarray:
        """(n,) mean force of the fingers in N, by size: drivers differ in its sign; NaN: not reported."""
        return np.mean([np.abs(joints.column(name, "effort")) for name in self.finger_joints], axis=0)

    def tool_position_m(self, joints: JointSeries) -> np.ndarray:
        """(n, 3) tool position in m relative to the arm's base, from the arm joint positions (rad)."""
        return self.forward(np.stack([joints.column(name) for name in self.arm_joints], axis=1))

    def forward(self, angles_rad: np.ndarray) -> np.ndarray:
        """(n, joints) angles in rad -> (n, 3) tool position in m.

        Product of the modified Denavit-Hartenberg transforms (Craig, Introduction to Robotics, Eq. 3.6).
        """
        angles_rad = np.atleast_2d(angles_rad)
        if angles_rad.shape[1] != len(self.dh_a_d_alpha):
            raise EvidenceError(
                f"{angles_rad.shape[1]} joint angles were given for robot {self.robot_id!r}; "
                f"its chain has {len(self.dh_a_d_alpha)}"
            )
        position = np.broadcast_to([0.0, 0.0, self.tool_offset_m], (len(angles_rad), 3))
        for (a, d, alpha), theta in zip(self.dh_a_d_alpha[::-1], angles_rad.T[::-1], strict=True):
            x = np.cos(theta) * position[:, 0] - np.sin(theta) * position[:, 1]
            y = np.sin(theta) * position[:, 0] + np.cos(theta) * position[:, 1]
            z = position[:, 2] + d
            position = np.stack(
                [x + a, np.cos(alpha) * y - np.sin(alpha) * z, np.sin(alpha) * y + np.cos(alpha) * z], axis=1
            )
        return position


def load_profile(robot: str) -> RobotProfile:
    """The profile of a robot by name; ConfigError lists those there are."""
    from failure_dialogue.robots.panda import PANDA, PANDA_SIM

    known = {profile.robot_id: profile for profile in (PANDA, PANDA_SIM)}
    if robot not in known:
        raise ConfigError(f"unknown robot {robot!r}; known: {', '.join(known)}")
    return known[robot]
