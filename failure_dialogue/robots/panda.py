"""The Franka Panda with its own parallel gripper, as LIBERO's scenes model it."""

from __future__ import annotations

from dataclasses import replace
from math import pi

from failure_dialogue.robots.profile import RobotProfile

#: Chain: Franka's published parameters (FCI documentation, "Denavit-Hartenberg parameters").
#: Tool: the scenes mount the hand at 0.1065 m and put the grip point 0.097 m beyond it; Franka's own
#: tool centre point lies 6.9 mm further out. Features use differences in height, which are the same.
PANDA = RobotProfile(
    robot_id="panda",
    arm_joints=tuple(f"panda_joint{i}" for i in range(1, 8)),
    finger_joints=("panda_finger_joint1", "panda_finger_joint2"),
    dh_a_d_alpha=(
        (0.0, 0.333, 0.0),
        (0.0, 0.0, -pi / 2),
        (0.0, 0.316, pi / 2),
        (0.0825, 0.0, pi / 2),
        (-0.0825, 0.384, -pi / 2),
        (0.0, 0.0, pi / 2),
        (0.088, 0.0, pi / 2),
    ),
    tool_offset_m=0.1065 + 0.097,
)

#: The same arm in simulation. It has an id of its own: what was measured on it holds for it alone.
PANDA_SIM = replace(PANDA, robot_id="panda_sim")
