"""The re-check as a process in a real graph, beside a robot that has sensors and says what it likes."""

import time

import numpy as np
import pytest
import rclpy
from failure_dialogue_msgs.action import RunRecheck
from failure_dialogue_msgs.srv import CaptureStill
from rclpy.action import ActionClient
from rclpy.executors import SingleThreadedExecutor

from failure_dialogue import topics
from failure_dialogue.domain import claim_domain
from tests.fakes import tabletop
from tests.fakes.carried_object import GRASP_PLACE_M, RELEASE_PLACE_M, carried_object
from tests.fakes.processes import ended, node_process, until
from tests.fakes.robot_sensors import RobotSensors, pixel_of

MODULE = "failure_dialogue.nodes.recheck"
BEFORE, AFTER = RunRecheck.Goal.BEFORE, RunRecheck.Goal.AFTER


def box_at(place_m):
    """Where tabletop.still() must put a box for the camera to see it at this place."""
    column, row = pixel_of(place_m)
    return (column - 320) / 500, (240 - row) / 500


HERE, THERE = box_at(GRASP_PLACE_M), box_at(RELEASE_PLACE_M)


class Graph:
    """The test's node, the robot's sensors on it, and a client of the re-check."""

    def __init__(self, domain_id, context):
        self.domain_id = domain_id
        self.node = rclpy.create_node("robot", context=context)
        self.executor = SingleThreadedExecutor(context=context)
        self.executor.add_node(self.node)
        self.robot = RobotSensors(self.node)
        self.client = ActionClient(self.node, RunRecheck, topics.RUN_RECHECK)

    def spin(self):
        self.executor.spin_once(timeout_sec=0.01)

    def ready(self):
        robot = self.robot
        until(lambda: self.client.server_is_ready() and all(
            p.get_subscription_count() for p in (robot.wrenches, robot.joints, robot.phases, robot.frames)),
            "the re-check", limit_s=30, step=self.spin)
        self.pause(0.3)

    def pause(self, seconds):
        end = self.node.get_clock().now().nanoseconds + seconds * 1e9
        while self.node.get_clock().now().nanoseconds < end:
            self.spin()

    def ask(self, phase, episode="e1", limit_s=40):
        goal = RunRecheck.Goal(phase=phase, episode_id=episode, state_id="7.1", task="put it in the basket")
        sent = self.client.send_goal_async(goal)
        # The server may answer before it has found who asked; such an answer is lost, so ask once more.
        end = time.monotonic() + 5.0
        while not sent.done() and time.monotonic() < end:
            self.spin()
        if not sent.done():
            sent = self.client.send_goal_async(goal)
        until(sent.done, "acceptance", step=self.spin)
        result = sent.result().get_result_async()
        until(result.done, "the verdict", limit_s=limit_s, step=self.spin)
        return result.result().result


@pytest.fixture
def graph(monkeypatch):
    monkeypatch.setenv("ROS_AUTOMATIC_DISCOVERY_RANGE", "LOCALHOST")
    claim = claim_domain("test")
    context = rclpy.Context()
    rclpy.init(context=context, domain_id=claim.domain_id)
    made = Graph(claim.domain_id, context)
    yield made
    made.executor.shutdown()
    made.node.destroy_node()
    rclpy.try_shutdown(context=context)
    claim.release()


def readings(result):
    return {m.name: m for m in result.measurements}


def test_the_verdict_follows_the_measurements_and_never_the_claim(graph, tmp_path):
    robot = graph.robot
    robot.serve_stills(graph.node)
    with node_process(MODULE, graph.domain_id, log=tmp_path / "log") as process:
        graph.ready()
        # A first attempt that lost the object, which stands where it was.
        robot.play(carried_object(lost_at_s=104.3, last="relax"), graph.spin)
        robot.image = tabletop.still(HERE, seed=1)
        before = graph.ask(BEFORE)
        assert (before.verdict, before.error_code) == ("pass", 0)

        # "Done", says a robot that did not move: the object still stands there.
        robot.image = tabletop.still(HERE, seed=2, shift_px=(1.0, -0.7))
        nothing = graph.ask(AFTER)
        assert nothing.verdict == "fail" and "still stands there" in nothing.reason
        assert readings(nothing)["change where the object stood"].verdict == "fail"

        # A repair that loses it again, and one that carries it over.
        graph.ask(BEFORE)
        robot.play(carried_object(lost_at_s=106.0, last="transport"), graph.spin, shift_s=100.0)
        again = graph.ask(AFTER)
        assert again.verdict == "fail" and "lost" in again.reason, (again.verdict, again.reason)

        graph.ask(BEFORE)
        robot.play(carried_object(), graph.spin, shift_s=200.0)
        robot.image = tabletop.still(THERE, seed=3, shift_px=(-1.2, 0.4), exposure=1.05)
        done = graph.ask(AFTER)
        assert done.verdict == "pass", done.reason
        assert readings(done)["load in the lift"].value == pytest.approx(3.0, abs=0.1)
        assert readings(done)["change where it was let go"].verdict == "pass"

        # The same motion, but the still of the scene shows it where it was: the witnesses disagree.
        robot.image = tabletop.still(HERE, seed=4)
        graph.ask(BEFORE)
        robot.play(carried_object(), graph.spin, shift_s=300.0)
        robot.image = tabletop.still(HERE, seed=5)
        split = graph.ask(AFTER)
        assert split.verdict == "abstain" and "disagree" in split.reason

        other = graph.ask(AFTER, episode="e2")
        assert other.verdict == "abstain" and "no still was taken before" in other.reason
        status, seconds = ended(process)
    assert status == 0 and seconds < 4
    assert "Traceback" not in (tmp_path / "log").read_text()


def test_what_is_missing_is_named_and_nothing_waits_for_ever(graph, tmp_path):
    robot = graph.robot
    with node_process(MODULE, graph.domain_id, "still_timeout_s:=1.0", log=tmp_path / "log"):
        graph.ready()
        none = graph.ask(BEFORE)
        assert (none.verdict, none.error_code) == ("abstain", 300)
        assert "start the robot's bridge" in none.reason

        robot.serve_stills(graph.node)
        graph.pause(1.0)
        refused = graph.ask(BEFORE)
        assert (refused.verdict, refused.error_code) == ("abstain", 302) and "switched off" in refused.reason

        robot.image = np.zeros((480, 640, 3), np.uint8)
        robot.camera_frame = "nowhere"
        unplaced = graph.ask(BEFORE)
        assert unplaced.verdict == "pass" and "'nowhere'" in unplaced.reason
        robot.play(carried_object(), graph.spin, shift_s=100.0)
        blind = graph.ask(AFTER)
        assert blind.verdict == "abstain" and "'nowhere'" in blind.reason

        wrong = graph.ask(7)
        assert wrong.error_code == 304 and "phase is 7" in wrong.reason


def test_a_still_that_never_comes_ends_in_time(graph, tmp_path):
    with node_process(MODULE, graph.domain_id, "still_timeout_s:=0.5", log=tmp_path / "log"):
        # A server whose callbacks are never run: it is found, and never answers.
        context = rclpy.Context()
        rclpy.init(context=context, domain_id=graph.domain_id)
        dumb = rclpy.create_node("dumb", context=context)
        dumb.create_service(CaptureStill, topics.CAPTURE_STILL, lambda request, response: response)
        graph.ready()
        graph.pause(1.0)
        late = graph.ask(BEFORE, limit_s=10)
        assert (late.verdict, late.error_code) == ("abstain", 301) and "within 0.5 s" in late.reason
        after = graph.ask(AFTER, limit_s=10)
        assert (after.verdict, after.error_code) == ("abstain", 301)
        dumb.destroy_node()
        rclpy.try_shutdown(context=context)


def test_readings_of_a_light_scene_with_the_wrist_silent(graph, tmp_path):
    robot = graph.robot
    robot.serve_stills(graph.node)
    with node_process(MODULE, graph.domain_id, log=tmp_path / "log"):
        graph.ready()
        robot.image = tabletop.still(HERE, seed=1)
        graph.ask(BEFORE)
        robot.play(carried_object(), graph.spin, wrench=False)
        robot.image = tabletop.still(THERE, seed=2)
        result = graph.ask(AFTER)
    # One witness alone is not enough: the camera passes, the gripper could not weigh.
    assert result.verdict == "abstain" and "wrench" in result.reason
    assert readings(result)["change where the object stood"].verdict == "pass"
