"""The arm's controller in the scene: it reaches poses, and its grip is limited in force."""

import mujoco
import numpy as np
import pytest

from sim_bridge.arm import ArmController
from sim_bridge.scene_cache import load_scene
from sim_bridge.task import HAND_DOWN

SETPOINT_N = 5.0


class Rig:
    """Arm and physics only."""

    def __init__(self):
        scene = load_scene(0)
        self.model, self.data = scene.model, mujoco.MjData(scene.model)
        self.arm = ArmController(self.model, self.data)
        self.start = scene.init_states[0]

    def reset(self, grip_n=SETPOINT_N, delivered_scale=1.0):
        mujoco.mj_resetData(self.model, self.data)
        self.data.qpos[:] = self.start
        mujoco.mj_forward(self.model, self.data)
        self.arm.reset(grip_n, delivered_scale)

    def run(self, seconds):
        for _ in range(round(seconds / 0.002)):
            self.arm.apply()
            mujoco.mj_step(self.model, self.data)


@pytest.fixture(scope="module")
def rig():
    return Rig()


def test_the_hand_reaches_a_pose_and_stays(rig):
    rig.reset()
    rig.arm.target_position = rig.arm.position + [0.05, -0.04, 0.06]
    rig.arm.target_rotation = HAND_DOWN
    rig.run(2.0)
    assert np.linalg.norm(rig.arm.position - rig.arm.target_position) < 0.002
    assert np.allclose(rig.arm.rotation, HAND_DOWN, atol=0.02)
    assert np.abs(rig.data.qvel[:7]).max() < 0.05


@pytest.mark.parametrize("scale", [1.0, 0.2])
def test_fingers_held_apart_push_with_the_commanded_force_times_what_is_delivered(rig, scale):
    rig.reset(delivered_scale=scale)
    rig.arm.close_fingers()
    for _ in range(20):
        rig.run(0.05)
        rig.data.qpos[7:9] = 0.03, -0.03  # as an object between them would
        rig.data.qvel[7:9] = 0.0
    rig.arm.apply()
    mujoco.mj_step(rig.model, rig.data)
    assert -rig.data.actuator_force[7] == pytest.approx(SETPOINT_N * scale, rel=0.02)


def test_a_gripper_of_a_fifth_of_its_force_can_still_open(rig):
    rig.reset(delivered_scale=0.2)
    rig.arm.close_fingers()
    rig.run(1.5)
    assert rig.data.qpos[7] < 0.005
    rig.arm.open_fingers()
    rig.run(1.5)
    assert rig.data.qpos[7] > 0.038
    assert rig.data.qpos[8] == pytest.approx(-rig.data.qpos[7], abs=1e-3)


def test_the_grip_force_changes_at_a_bounded_rate(rig):
    rig.reset()
    rig.arm.command_force(15.0)
    rig.run(0.1)
    assert -rig.model.actuator_forcerange[7, 0] == pytest.approx(SETPOINT_N + 2.0, abs=0.1)
    rig.run(0.6)
    assert -rig.model.actuator_forcerange[7, 0] == pytest.approx(15.0)
