"""The re-check judges motions of the simulated robot as the simulator's truth does, from sensors alone."""

import mujoco
import numpy as np
import pytest

from failure_dialogue.evidence import RollingBuffer
from failure_dialogue.perception.projection import camera_from_info
from failure_dialogue.recheck.motion import MotionLog
from failure_dialogue.recheck.verdict import Verdict, judge
from failure_dialogue.recheck.witnesses import camera_witness, gripper_witness
from failure_dialogue.robots.panda import PANDA
from sim_bridge.camera import SceneCamera
from sim_bridge.robot import SimRobot
from sim_bridge.sensors import JOINT_NAMES


class Observer:
    """What the re-check node gathers, without ROS: buffer, motion log, stills."""

    def __init__(self, robot):
        self.robot, self.buffer = robot, RollingBuffer(200.0)
        self.log = MotionLog(PANDA, self.buffer)
        self.camera = SceneCamera(robot.model, seed=5)

    def watch(self, sample):
        self.buffer.add_wrench(sample.stamp_s, tuple(sample.wrench.tolist()))
        if sample.joints is not None:
            j = sample.joints
            self.buffer.add_joints(sample.stamp_s, JOINT_NAMES, j.position.tolist(), j.velocity.tolist(),
                                   j.effort.tolist())

    def do(self, program):
        """Run a motion and go to the checkpoint; a still from there."""
        started = self.robot.stamp_s
        self.robot.run(program, self.watch)
        for phase in self.robot.phases:
            if phase.start_s >= started:
                self.log.begin(phase)
        self.robot.run(self.robot.go_to_checkpoint(), self.watch)
        self.log.settle(self.robot.stamp_s)
        return self.still()

    def still(self):
        mujoco.mj_forward(self.robot.model, self.robot.data)
        return self.camera.still(self.robot.data)

    def verdict(self, before, after):
        base = self.robot.data.body("robot0_link0")
        rotation, position = self.camera.extrinsics(self.robot.data)
        to_world, optical = np.eye(4), np.eye(4)
        to_world[:3, :3], to_world[:3, 3] = base.xmat.reshape(3, 3), base.xpos
        optical[:3, :3], optical[:3, 3] = rotation, position
        camera = camera_from_info(640, 480, self.camera.intrinsics(640, 480).flatten(),
                                  np.linalg.inv(optical) @ to_world)
        evidence = self.log.evidence(self.robot.stamp_s, "")
        return judge(gripper_witness(evidence, PANDA),
                     camera_witness(before, after, camera, self.log.place_m("close"),
                                    self.log.place_m("release"), 0.1))


@pytest.mark.slow
@pytest.mark.parametrize("seed, cause, task, repair", [
    (2020, "weak_grip", 4, "raise_grip"),
    (2018, "slippery_surface", 6, "payload_lift"),  # crushes the carton
    (2002, "slippery_surface", 7, "grip_pads"),
])
def test_verdicts_are_those_of_the_truth(seed, cause, task, repair):
    robot = SimRobot()
    robot.reset(seed, task, cause)
    observer = Observer(robot)
    robot.run(robot.go_to_checkpoint(), observer.watch)
    before = observer.still()
    try:
        for program in (robot.attempt, lambda: robot.repair(repair)):
            after = observer.do(program())
            judgement, truth = observer.verdict(before, after), robot.truth()
            assert (judgement.verdict is Verdict.PASS) == truth.success, judgement.reason
            if not truth.success:
                assert judgement.verdict is Verdict.FAIL, judgement.reason
            before = after
    finally:
        observer.camera.close()
