"""What the telemetry makes of grasps whose physics is known."""

import dataclasses

import numpy as np
import pytest

from failure_dialogue.errors import EvidenceError
from failure_dialogue.evidence import Evidence, JointSeries, WrenchSeries
from failure_dialogue.grasp_trace import grasp_trace
from failure_dialogue.robots.panda import PANDA
from failure_dialogue.telemetry import (
    EFFORT_FEATURES,
    FEATURE_NAMES,
    MOTION_FEATURES,
    force_features,
    slip_event,
    telemetry_text,
)
from tests.fakes.grasp_evidence import START_S, STARTS_S, grasp_evidence


def with_wrench(evidence: Evidence, change) -> Evidence:
    wrench = evidence.wrench.wrench_n_nm.copy()
    change(evidence.wrench.stamps_s - START_S, wrench)
    return dataclasses.replace(evidence, wrench=WrenchSeries(evidence.wrench.stamps_s, wrench))


def keep_wrench(evidence: Evidence, kept) -> Evidence:
    inside = kept(evidence.wrench.stamps_s - START_S)
    series = WrenchSeries(evidence.wrench.stamps_s[inside], evidence.wrench.wrench_n_nm[inside])
    return dataclasses.replace(evidence, wrench=series)


def test_the_load_of_a_held_object_is_its_weight_whatever_the_bias():
    trace = grasp_trace(grasp_evidence(mass_kg=0.3), PANDA)
    assert trace.mean(trace.load_n, 0.5, 1.5) == pytest.approx(0.3 * 9.81, abs=0.1)
    assert abs(trace.tare_n_nm[2]) > 0.2


def test_a_held_object_has_not_slipped():
    assert slip_event(grasp_evidence(), PANDA) is None


def test_the_slip_is_found_where_weight_exceeds_friction():
    # 2 mu N falls from 3.1 to 1.4 N while relaxing and passes the weight of 2.94 N early in it.
    event = slip_event(grasp_evidence(friction=0.15), PANDA)
    assert event is not None and event.name == "slip"
    assert event.start_s - START_S == pytest.approx(STARTS_S["relax"] + 0.1, abs=0.12)
    assert event.start_s < event.end_s <= event.start_s + 0.2


def test_a_weak_grip_shows_in_the_effort_against_the_command():
    features = force_features(grasp_evidence(grip_scale=0.4), PANDA)
    assert np.exp(features["effort_close_log"]) == pytest.approx(0.4, abs=0.03)
    assert np.exp(features["friction_slip_log"]) == pytest.approx(0.5, abs=0.05)


def test_a_slippery_surface_shows_in_the_mobilised_friction():
    features = force_features(grasp_evidence(friction=0.15), PANDA)
    assert np.exp(features["friction_slip_log"]) == pytest.approx(0.15, abs=0.02)
    assert features["effort_close_log"] == pytest.approx(0.0, abs=0.03)


def test_a_heavy_object_shows_in_the_load_against_the_set_point():
    heavy = force_features(grasp_evidence(mass_kg=0.9), PANDA)
    assert np.exp(heavy["load_slip_log"]) == pytest.approx(0.9 * 9.81 / 4.7, rel=0.07)


def test_features_do_not_tell_the_size_of_the_job():
    # Twice the mass with twice the set-point is the same failure.
    small = force_features(grasp_evidence(mass_kg=0.6, setpoint_n=4.7, noise=0.0), PANDA)
    large = force_features(grasp_evidence(mass_kg=1.2, setpoint_n=9.4, noise=0.0), PANDA)
    for name in EFFORT_FEATURES + ("load_slip_log", "load_peak_log", "slip_time_s", "slip_height_m"):
        assert small[name] == pytest.approx(large[name], abs=0.02), name


def test_what_happens_after_the_loss_changes_no_feature():
    evidence = grasp_evidence(friction=0.15, noise=0.0)
    lost_s = slip_event(evidence, PANDA).end_s
    slower = evidence.joints.position.copy()
    after = evidence.joints.stamps_s > lost_s + 0.05
    slower[after, 7:] = np.maximum(slower[after, 7:], 0.01)
    other = dataclasses.replace(evidence, joints=dataclasses.replace(evidence.joints, position=slower))
    assert force_features(other, PANDA) == force_features(evidence, PANDA)


def test_without_finger_effort_five_features_are_left_out():
    features = force_features(grasp_evidence(friction=0.15), PANDA, finger_effort=False)
    assert tuple(features) == MOTION_FEATURES
    assert set(force_features(grasp_evidence(), PANDA)) == set(FEATURE_NAMES)


def test_a_missing_torque_axis_leaves_only_its_features_open():
    def drop_bending(_, wrench):
        wrench[:, 3] = np.nan

    features = force_features(with_wrench(grasp_evidence(friction=0.15), drop_bending), PANDA)
    open_features = {name for name, value in features.items() if np.isnan(value)}
    bending = {f"bending_closing_{what}" for what in ("peak", "lowest", "spread")}
    assert open_features == bending | {"lever_m", "lever_close_m"}


def _nan_fz(_, wrench):
    wrench[:, 2] = np.nan


def _infinite(_, wrench):
    wrench[1500, 0] = np.inf


def _bias_moves(t, wrench):
    wrench[t > 1.2, 1] += 3.0


@pytest.mark.parametrize(
    ("change", "message"),
    [(_nan_fz, r"fz\) is missing"), (_infinite, "infinite"), (_bias_moves, "bias of fy moved by 3")],
)
def test_a_wrench_that_cannot_be_used_is_named(change, message):
    with pytest.raises(EvidenceError, match=message):
        force_features(with_wrench(grasp_evidence(), change), PANDA)


@pytest.mark.parametrize(
    ("kept", "message"),
    [
        (lambda t: (t < 1.01) | (t >= 1.4), "rest window of 0.40 s holds 5 wrench samples"),
        (lambda t: (t < 3.0) | (t > 3.4), "wrench has a gap of 0.40 s"),
        (lambda t: t < 3.5, "wrench has a gap of 0.80 s"),
        (lambda t: t < -1, "no wrench was recorded"),
    ],
)
def test_a_wrench_with_holes_is_named(kept, message):
    with pytest.raises(EvidenceError, match=message):
        force_features(keep_wrench(grasp_evidence(), kept), PANDA)


def test_an_attempt_without_a_lift_is_named():
    evidence = grasp_evidence()
    with pytest.raises(EvidenceError, match="no phase 'lift'"):
        force_features(dataclasses.replace(evidence, phases=evidence.phases[:3]), PANDA)


def test_a_robot_that_states_no_set_point_is_told_so():
    with pytest.raises(EvidenceError, match="states no grip set-point"):
        force_features(dataclasses.replace(grasp_evidence(), grip_setpoint_n=float("nan")), PANDA)


def test_fingers_without_effort_are_named():
    joints = grasp_evidence().joints
    silent = JointSeries(
        joints.stamps_s, joints.names, joints.position, joints.velocity, np.full_like(joints.effort, np.nan)
    )
    evidence = dataclasses.replace(grasp_evidence(), joints=silent)
    with pytest.raises(EvidenceError, match="report no effort"):
        force_features(evidence, PANDA)
    assert np.isfinite(list(force_features(evidence, PANDA, finger_effort=False).values())).all()


def test_stamps_that_run_backwards_are_named():
    evidence = grasp_evidence()
    stamps = evidence.wrench.stamps_s.copy()
    stamps[1000] -= 1.0
    shuffled = dataclasses.replace(evidence, wrench=WrenchSeries(stamps, evidence.wrench.wrench_n_nm))
    with pytest.raises(EvidenceError, match="not in order of time"):
        force_features(shuffled, PANDA)


def test_the_text_has_ten_lines_with_the_facts():
    lines = telemetry_text(grasp_evidence(grip_scale=0.4), PANDA).splitlines()
    assert len(lines) == 10
    assert "40 % of the commanded preload of 10.3 N" in lines[3]
    assert "load: peak 3." in lines[5] or "load: peak 2.9" in lines[5]
    assert lines[7].startswith("slip: begins 0.")
