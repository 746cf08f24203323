"""The Panda's chain against the model that the simulated scenes are built from."""

import xml.etree.ElementTree as ET

import mujoco
import numpy as np
import pytest

from failure_dialogue.errors import EvidenceError
from failure_dialogue.evidence import JointSeries
from failure_dialogue.robots.panda import PANDA


def bare_panda_model() -> mujoco.MjModel:
    """The arm and gripper of LIBERO's scenes without meshes."""
    from robosuite.models.grippers import PandaGripper
    from robosuite.models.robots import Panda

    robot = Panda(idn=0)
    robot.add_gripper(PandaGripper(idn=0))
    root = ET.fromstring(robot.get_xml())
    for parent in root.iter():
        for child in [c for c in parent if c.tag in ("geom", "mesh", "material", "texture")]:
            parent.remove(child)
    return mujoco.MjModel.from_xml_string(ET.tostring(root, encoding="unicode"))


# robosuite logs with a deprecated call while it is imported.
@pytest.mark.filterwarnings("ignore::DeprecationWarning")
def test_the_chain_ends_where_the_simulated_grip_point_is():
    model = bare_panda_model()
    data = mujoco.MjData(model)
    low, high = model.jnt_range[:7].T
    angles = np.random.default_rng(0).uniform(low, high, (200, 7))
    expected = []
    for row in angles:
        data.qpos[:7] = row
        mujoco.mj_kinematics(model, data)
        base = data.body("robot0_link0")
        expected.append(base.xmat.reshape(3, 3).T @ (data.site("gripper0_grip_site").xpos - base.xpos))
    # The model's rotations are rounded to six digits, which is worth some 10 um at arm's length.
    assert np.abs(PANDA.forward(angles) - expected).max() < 5e-5


def joints(names, position, effort) -> JointSeries:
    position = np.asarray(position, dtype=float)
    return JointSeries(
        np.arange(len(position)) * 0.01,
        names,
        position,
        np.zeros_like(position),
        np.asarray(effort, dtype=float),
    )


def test_the_aperture_is_the_sum_of_both_fingers():
    series = joints(PANDA.finger_joints, [[0.04, 0.04], [0.03, 0.02]], [[0, 0], [4.0, -5.0]])
    assert PANDA.aperture_m(series) == pytest.approx([0.08, 0.05])
    assert PANDA.finger_force_n(series) == pytest.approx([0.0, 4.5])


def test_a_missing_finger_joint_is_named():
    series = joints(("panda_finger_joint1",), [[0.04]], [[0.0]])
    with pytest.raises(EvidenceError, match="panda_finger_joint2"):
        PANDA.aperture_m(series)


def test_a_chain_of_six_angles_is_refused():
    with pytest.raises(EvidenceError, match="6 joint angles"):
        PANDA.forward(np.zeros((1, 6)))
