"""Where the hand goes for objects that stand, lie, or are turned."""

import numpy as np
import pytest

from sim_bridge.grasp_plan import plan_grasp
from sim_bridge.task import HAND_DOWN

SIGNS = np.array([[a, b, c] for a in (-1, 1) for b in (-1, 1) for c in (-1, 1)], dtype=float)


def box(size, yaw_deg=0.0, at=(0.1, -0.2)):
    """Corners and centre of a box of full size (x, y, z) that stands on the table."""
    c, s = np.cos(np.deg2rad(yaw_deg)), np.sin(np.deg2rad(yaw_deg))
    turn = np.array([[c, -s, 0], [s, c, 0], [0, 0, 1.0]])
    centre = np.array([*at, size[2] / 2])
    return (SIGNS * np.array(size) / 2) @ turn.T + centre, centre


@pytest.mark.parametrize("yaw_deg", [0.0, 30.0, -60.0, 82.5])
def test_the_fingers_close_on_the_narrow_side_however_the_box_is_turned(yaw_deg):
    corners, centre = box((0.08, 0.03, 0.05), yaw_deg)
    plan = plan_grasp(corners, centre, HAND_DOWN)
    assert plan.width_m == pytest.approx(0.03, abs=0.005)
    assert plan.position[:2] == pytest.approx(centre[:2], abs=1e-6)


def test_the_palm_stays_off_a_tall_object_and_the_fingertips_off_the_table():
    tall = plan_grasp(*box((0.05, 0.05, 0.15)), HAND_DOWN)
    flat = plan_grasp(*box((0.08, 0.04, 0.012)), HAND_DOWN)
    assert tall.position[2] == pytest.approx(0.125)
    assert flat.position[2] == pytest.approx(0.010)


def test_the_hand_goes_over_the_centre_of_mass_along_its_finger_plane():
    corners, centre = box((0.12, 0.03, 0.05))
    heavy_end = centre + [0.03, 0.0, 0.0]
    assert plan_grasp(corners, heavy_end, HAND_DOWN).position[:2] == pytest.approx(heavy_end[:2], abs=1e-6)
