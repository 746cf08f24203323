"""Repairs by physics: each cures its own cause, none is a cure for everything."""

import dataclasses
import itertools

import numpy as np
import pytest

from failure_dialogue.errors import RepairError, VocabularyError
from failure_dialogue.vocabulary import load_vocabulary
from sim_bridge.perturbation import PAD_FRICTION
from sim_bridge.repairs import RepairCode, recoverable
from sim_bridge.robot import SimRobot

VOCABULARY = load_vocabulary()
SOUP, DRESSING = 0, 2
SEVERE = {"weak_grip": 0.35, "heavy_object": 2.5, "slippery_surface": 0.15}


@pytest.fixture(scope="module")
def robot():
    return SimRobot()


def fail(robot, cause, task=DRESSING, seed=21):
    robot.reset(seed, task=task, cause=cause, severity=SEVERE[cause])
    result = robot.run(robot.attempt())
    assert result.failure is not None
    robot.run(robot.go_to_checkpoint())


@pytest.mark.slow
@pytest.mark.parametrize("cause", SEVERE)
def test_the_matching_repair_puts_the_object_in_the_basket_and_leaves_the_perturbation(robot, cause):
    fail(robot, cause)
    assert recoverable(robot.scenario, robot.target, VOCABULARY)
    mass, scale = robot.model.body_mass.copy(), robot.arm.delivered_scale
    result = robot.run(robot.repair(VOCABULARY.cause("grasp", cause).repair))
    assert result.done and result.error_code == RepairCode.DONE
    assert robot.truth().success
    assert np.array_equal(mass, robot.model.body_mass)
    assert robot.arm.delivered_scale == scale == robot.scenario.grip_scale


@pytest.mark.slow
@pytest.mark.parametrize(("cause", "repair"), [
    ("heavy_object", "raise_grip"), ("heavy_object", "grip_pads"), ("slippery_surface", "raise_grip"),
    ("weak_grip", "grip_pads")])
def test_another_causes_repair_loses_the_object_again_and_says_so(robot, cause, repair):
    fail(robot, cause)
    result = robot.run(robot.repair(repair))
    assert not result.done and result.error_code == RepairCode.LOST_AGAIN
    assert not robot.truth().success


def test_a_payload_grip_crushes_a_slippery_package_and_the_robot_feels_it_give_way(robot):
    fail(robot, "slippery_surface")
    result = robot.run(robot.repair("payload_lift"))
    assert robot.truth().damaged and not robot.truth().success
    assert result.error_code == RepairCode.GAVE_WAY


def test_raise_grip_stops_at_the_nominal_measured_force(robot):
    fail(robot, "weak_grip")
    efforts = []
    program = robot.repair("raise_grip")
    robot.run(program, lambda s: efforts.append(s.joints.effort[7:].mean()) if s.joints is not None else None)
    setpoint = robot.target.setpoint_n
    assert 0.9 * setpoint < np.percentile(efforts, 95) < 1.12 * setpoint


def test_the_pads_act_on_the_fingers_alone(robot):
    fail(robot, "slippery_surface")
    before = robot.model.geom_friction[:, 0].copy()
    program = robot.repair("grip_pads")
    while (robot.model.geom_friction[:, 0] == before).all():
        next(program)
        robot.step()
    changed = np.flatnonzero(robot.model.geom_friction[:, 0] != before)
    assert all("finger" in robot.model.geom(g).name for g in changed)
    assert set(robot.model.geom_friction[changed, 0]) == {PAD_FRICTION}


def test_a_repair_or_argument_outside_the_closed_list_is_refused_before_any_motion(robot):
    robot.reset(1, task=SOUP)
    with pytest.raises(VocabularyError, match="open_the_gripper"):
        robot.repair("open_the_gripper")
    with pytest.raises(RepairError, match="force_scale.*9"):
        robot.repair("payload_lift", {"force_scale": 9.0})
    with pytest.raises(RepairError, match="speed"):
        robot.repair("grip_pads", {"speed": 1.0})
    assert robot.stamp_s == 0.0


@pytest.mark.parametrize("place", [(0.9, 0.0), (0.0, 0.0)])
def test_an_object_out_of_reach_or_already_in_the_basket_is_not_grasped_for(robot, place):
    robot.reset(1, task=SOUP)
    joint = robot.model.body_jntadr[robot.model.body(robot.scene.objects["alphabet_soup"]).id]
    at = robot.model.jnt_qposadr[joint]
    if place == (0.0, 0.0):
        low, high = robot.world.container_box()
        robot.data.qpos[at:at + 3] = [*((low + high) / 2)[:2], low[2] + 0.06]
    else:
        robot.data.qpos[at:at + 2] = place
    for _, _ in zip(range(200), robot.freeze(), strict=False):
        robot.step()
    began = robot.stamp_s
    result = robot.run(robot.repair("raise_grip"))
    assert result.error_code == RepairCode.OUT_OF_REACH and result.attempt is None
    attempt = robot.run(robot.attempt())
    assert attempt.failure.by == "reach" and not attempt.claimed_success
    assert robot.stamp_s == began


def test_a_repair_that_takes_too_long_is_stopped_where_it_is():
    hasty = dataclasses.replace(VOCABULARY, repairs={
        name: dataclasses.replace(repair, time_limit_s=2.0) for name, repair in VOCABULARY.repairs.items()})
    robot = SimRobot(hasty)
    robot.reset(2, task=SOUP)
    result = robot.run(robot.repair("payload_lift"))
    assert result.error_code == RepairCode.TIME_LIMIT and not result.done
    assert robot.stamp_s < 2.1


def test_a_repair_dropped_half_way_leaves_an_arm_that_can_be_sent_to_its_checkpoint(robot):
    fail(robot, "heavy_object")
    program = robot.repair("payload_lift")
    for _ in itertools.islice(program, 2500):
        robot.step()
    program.close()
    assert robot.run(robot.go_to_checkpoint())


def test_recoverable_knows_the_friction_limit_and_the_crush_limit(robot):
    def case(cause, severity, task=DRESSING):
        robot.reset(30, task=task, cause=cause, severity=severity)
        return recoverable(robot.scenario, robot.target, VOCABULARY)

    assert case("weak_grip", 0.5) and case("slippery_surface", 0.05) and case("heavy_object", 1.6)
    robot.reset(30, task=DRESSING, cause="heavy_object", severity=4.0)
    limit = robot.scenario.margin(2.9 * robot.target.setpoint_n)
    assert case("heavy_object", 4.0) == (limit >= 1.1)
    robot.reset(30, task=DRESSING)
    assert not recoverable(robot.scenario, robot.target, VOCABULARY)
