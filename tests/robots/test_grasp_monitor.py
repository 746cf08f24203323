"""The grasp monitor, fed with the signals of a real grasp: apertures, wrist forces, phases."""

import math

import pytest

from failure_dialogue.errors import ConfigError
from failure_dialogue.robots.grasp_monitor import GraspMonitor

WEIGHT_N = 3.0
BIAS_N = 7.5


def feed(monitor, apertures_by_phase, load_n=WEIGHT_N):
    """10 ms a sample; the wrist carries load_n from the lift on."""
    stamp = 0.0
    for phase, apertures in apertures_by_phase:
        for aperture in apertures:
            stamp += 0.01
            carried = load_n if phase in ("lift", "relax", "hold", "transport") else 0.0
            noticed = monitor.update(stamp, phase, aperture, BIAS_N + carried)
            if noticed is not None:
                return noticed
    return None


def closing(width_m, seconds=0.9):
    """Fingers close at 0.1 m/s of aperture and stop at the object's width."""
    return [max(width_m, 0.08 - 0.001 * k) for k in range(int(seconds * 100))]


def grasp(width_m):
    return [("approach", [0.08] * 20), ("rest", [0.08] * 20), ("close", closing(width_m))]


CARRY = [("lift", [0.04] * 20), ("relax", [0.04] * 80), ("hold", [0.04] * 40), ("transport", [0.04] * 150)]


def test_an_object_carried_to_the_end_is_no_failure():
    assert feed(GraspMonitor(WEIGHT_N), grasp(0.04) + CARRY + [("release", [0.08] * 50)]) is None


def test_fingers_that_close_further_in_the_lift_have_lost_the_object():
    monitor = GraspMonitor(WEIGHT_N)
    slip = grasp(0.04) + [("lift", [0.04] * 20), ("relax", [0.04] * 10 + [0.036, 0.03, 0.02, 0.01, 0.0, 0.0])]
    noticed = feed(monitor, slip)
    assert (noticed.phase, noticed.by) == ("relax", "aperture")
    assert "40.0 mm" in noticed.text
    assert monitor.noticed is noticed


def test_one_bad_aperture_sample_is_no_failure():
    assert feed(GraspMonitor(WEIGHT_N), grasp(0.04) + [("lift", [0.04] * 9 + [0.0] + [0.04] * 9)]) is None


def test_fingers_that_met_nothing_are_noticed_as_soon_as_the_lift_begins():
    empty = [("rest", [0.08] * 20), ("close", closing(0.001)), ("lift", [0.001] * 9)]
    noticed = feed(GraspMonitor(WEIGHT_N), empty)
    assert noticed.phase == "lift"
    assert "nothing" in noticed.text


def test_a_wrist_without_the_objects_weight_is_noticed_in_the_hold_although_the_fingers_stand_apart():
    noticed = feed(GraspMonitor(WEIGHT_N), grasp(0.04) + CARRY, load_n=0.3)
    assert (noticed.phase, noticed.by) == ("hold", "load")


def test_the_bias_of_the_sensor_is_no_load():
    assert feed(GraspMonitor(WEIGHT_N), grasp(0.04) + CARRY, load_n=WEIGHT_N * 0.8) is None


def test_an_object_that_gives_way_under_the_grip_is_noticed_while_closing():
    crushed = closing(0.04) + [0.04 - 0.0005 * k for k in range(16)] + [0.032] * 10
    noticed = feed(GraspMonitor(WEIGHT_N), [("rest", [0.08] * 20), ("close", crushed)])
    assert (noticed.phase, noticed.by) == ("close", "gave way")


def test_a_missing_force_axis_leaves_the_aperture_check():
    monitor = GraspMonitor(WEIGHT_N)
    for k in range(20):
        monitor.update(0.01 * k, "rest", 0.08, math.nan)
    for k, aperture in enumerate(closing(0.04)):
        monitor.update(0.2 + 0.01 * k, "close", aperture, math.nan)
    assert all(monitor.update(2 + 0.01 * k, "hold", 0.04, math.nan) is None for k in range(50))
    assert [monitor.update(3 + 0.01 * k, "hold", 0.0, math.nan) for k in range(3)][-1].by == "aperture"


def test_it_reports_once():
    monitor = GraspMonitor(WEIGHT_N)
    assert feed(monitor, grasp(0.04) + [("lift", [0.0] * 5)]) is not None
    assert monitor.update(9.0, "lift", 0.0, BIAS_N) is None


@pytest.mark.parametrize("load", [0.0, -1.0, math.nan])
def test_an_impossible_expected_load_is_refused(load):
    with pytest.raises(ConfigError, match="expected load"):
        GraspMonitor(load)
