"""Where to grasp an object that stands or lies on the table: a vertical two-finger grasp over its mass."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

#: The palm hits tall objects when the hand goes deeper than this below their top.
_DEPTH_M = 0.025
#: Fingertips reach this far below the grasp point and must stay off the table.
_TIP_CLEARANCE_M = 0.010
_YAWS_RAD = np.deg2rad(np.arange(-90.0, 90.0, 7.5))
#: A wrist turn of one radian counts as this much wider a grasp.
_TURN_COST_M = 0.006


@dataclass(frozen=True)
class GraspPlan:
    """Hand position (3,) m and rotation (3, 3) at the grasp; the object's width and extent there (m)."""

    position: np.ndarray
    rotation: np.ndarray
    width_m: float
    top_m: float
    bottom_m: float


def plan_grasp(corners: np.ndarray, centre_of_mass: np.ndarray, hand_rotation: np.ndarray,
               table_z: float = 0.0) -> GraspPlan:
    """Narrowest grasp over the yaw of the hand.

    corners (n, 3): corners of the object's collision boxes, world frame; centre_of_mass (3,);
    hand_rotation (3, 3): the hand pointing straight down, its x axis the opening direction.
    """
    choices = []
    for yaw in _YAWS_RAD:
        c, s = np.cos(yaw), np.sin(yaw)
        rotation = np.array([[c, -s, 0], [s, c, 0], [0, 0, 1.0]]) @ hand_rotation
        along = corners @ rotation[:, 0]
        width = float(np.ptp(along))
        cost = width + _TURN_COST_M * abs(yaw)
        choices.append((cost, rotation, width, (along.max() + along.min()) / 2))
    _, rotation, width, middle = min(choices, key=lambda choice: choice[0])
    top, bottom = float(corners[:, 2].max()), float(corners[:, 2].min())
    # Mid-width along the opening axis; over the centre of mass along the finger plane.
    xy = middle * rotation[:2, 0] + (centre_of_mass @ rotation[:, 1]) * rotation[:2, 1]
    z = max(top - _DEPTH_M, (top + bottom) / 2, table_z + _TIP_CLEARANCE_M)
    return GraspPlan(np.array([xy[0], xy[1], z]), rotation, width, top, bottom)
