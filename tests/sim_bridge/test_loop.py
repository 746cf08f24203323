"""Who may move the simulated arm, and what stops it. The robot here is a counter: tests take no time."""

import threading
import time

import pytest

from sim_bridge.loop import Mode, Motion, PhysicsLoop


class CountingRobot:
    """Steps nothing; its motions count their own steps and say when they were closed."""

    def __init__(self):
        self.frozen = 0
        self.closed = []

    def step(self):
        time.sleep(0.0005)
        return object()

    def motion(self, name, steps):
        try:
            for _ in range(steps):
                yield
            return name
        finally:
            self.closed.append(name)

    def freeze(self):
        self.frozen += 1
        while True:
            yield


@pytest.fixture
def loop():
    robot = CountingRobot()
    modes = []
    loop = PhysicsLoop(robot, lambda sample: None, modes.append, real_time_factor=0.0, heartbeat_limit_s=0.1)
    loop.modes = modes
    thread = threading.Thread(target=loop.run)
    thread.start()
    yield loop
    loop.end()
    thread.join(timeout=5)
    assert not thread.is_alive()


def begin(loop, steps=10**6, needs_heartbeat=False, name="attempt"):
    return loop.call(
        lambda: loop.start(Motion(name, loop.robot.motion(name, steps), Mode.READY, needs_heartbeat))
    )


def test_a_motion_runs_to_its_end_and_gives_its_result(loop):
    motion = begin(loop, steps=20)
    assert motion.done.wait(5)
    assert motion.result == "attempt"
    assert loop.modes == [Mode.MOVING, Mode.READY]


def test_a_lost_heartbeat_freezes_the_arm_in_motion(loop):
    motion = begin(loop, needs_heartbeat=True)
    started = time.monotonic()
    assert motion.done.wait(5)
    assert time.monotonic() - started < 1.0
    assert motion.result is None and "heartbeat" in motion.dropped
    loop.call(lambda: None)  # two turns of the loop: the freeze has begun
    loop.call(lambda: None)
    assert (loop.mode, loop.robot.frozen, loop.lost_heartbeats) == (Mode.HOLDING, 1, 1)


def test_heartbeats_keep_a_motion_going(loop):
    motion = begin(loop, needs_heartbeat=True)
    for _ in range(10):
        loop.heartbeat()
        assert not motion.done.wait(0.04)


def test_going_to_the_checkpoint_needs_no_heartbeat(loop):
    motion = begin(loop, steps=600, needs_heartbeat=False)
    assert motion.done.wait(5)
    assert motion.result == "attempt"


def test_a_new_motion_drops_the_old_one(loop):
    first = begin(loop)
    second = begin(loop, steps=5, name="hold")
    assert second.done.wait(5)
    assert first.done.is_set() and first.result is None
    assert loop.robot.closed == ["attempt", "hold"]


def test_a_stop_freezes_at_once_and_stays(loop):
    motion = begin(loop)
    loop.call(lambda: loop.freeze("stopped", Mode.STOPPED))
    assert motion.done.is_set() and motion.dropped == "stopped"
    assert loop.mode is Mode.STOPPED
    loop.call(loop.release)
    assert loop.mode is Mode.READY


def test_what_goes_wrong_in_a_call_is_raised_in_the_caller(loop):
    def broken():
        raise ValueError("no such scene")

    with pytest.raises(ValueError, match="no such scene"):
        loop.call(broken)
    assert loop.call(lambda: 7) == 7


def test_a_call_to_a_loop_that_stands_still_does_not_wait_for_ever():
    loop = PhysicsLoop(CountingRobot(), lambda s: None, lambda m: None)
    with pytest.raises(TimeoutError):
        loop.call(lambda: 1, limit_s=0.05)


def test_idle_time_passes_no_faster_than_real_time():
    steps = []
    loop = PhysicsLoop(CountingRobot(), steps.append, lambda m: None, real_time_factor=0.0)
    thread = threading.Thread(target=loop.run)
    thread.start()
    time.sleep(0.5)
    loop.end()
    thread.join(5)
    assert len(steps) <= 0.5 / 0.002 * 1.2


def test_an_error_in_the_physics_ends_motions_and_calls_at_once():
    robot = CountingRobot()
    broken = PhysicsLoop(robot, lambda sample: None, lambda mode: None, real_time_factor=0.0)
    motion = Motion("attempt", robot.motion("attempt", 10**6), Mode.READY, needs_heartbeat=False)
    errors = []

    def fail():
        raise ArithmeticError("singular")

    def physics():
        try:
            broken.run()
        except ArithmeticError as error:
            errors.append(str(error))

    thread = threading.Thread(target=physics)
    thread.start()
    broken.call(lambda: broken.start(motion))
    robot.step = fail
    assert motion.done.wait(5)
    assert motion.result is None and motion.dropped == "the simulation ended"
    began = time.monotonic()
    with pytest.raises(RuntimeError, match="has ended"):
        broken.call(lambda: None)
    assert time.monotonic() - began < 2.0
    thread.join(timeout=5)
    assert errors == ["singular"]
