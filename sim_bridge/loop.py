"""The physics loop of the bridge: one motion at a time, calls from other threads, pace, who may move."""

from __future__ import annotations

import queue
import threading
import time
from collections.abc import Callable
from dataclasses import dataclass, field
from enum import Enum
from typing import Any

from sim_bridge.arm import STEP_S
from sim_bridge.robot import Program, SimRobot
from sim_bridge.sensors import Sample

#: Longest time a caller in another thread waits for the loop to take its call (s).
CALL_LIMIT_S = 20.0


class Mode(Enum):
    """What the arm is doing, as published on robot_mode."""

    READY = "ready"
    MOVING = "moving"
    HOLDING = "holding"
    STOPPED = "stopped"
    PERSON = "person"


@dataclass
class Motion:
    """A running program; done is set when it ended, with its result, or None and why it was dropped."""

    name: str
    program: Program
    after: Mode
    needs_heartbeat: bool
    result: Any = None
    dropped: str = ""
    done: threading.Event = field(default_factory=threading.Event)


class PhysicsLoop:
    """Steps a SimRobot for ever. Everything that touches MuJoCo runs in the thread that calls run().

    event                            | what happens
    ---------------------------------|---------------------------------------------------------------
    start(motion)                    | the motion that runs is dropped, the new one begins
    stop(reason)                     | the motion is dropped, the arm freezes; refused until release()
    heartbeat older than its limit   | a motion that needs it is dropped, the arm freezes, mode holding
    take(person)                     | the motion is dropped, the arm freezes, mode person
    call(function)                   | the function runs between two steps
    """

    def __init__(
        self,
        robot: SimRobot,
        on_sample: Callable[[Sample], None],
        on_mode: Callable[[Mode], None],
        real_time_factor: float = 1.0,
        heartbeat_limit_s: float = 0.5,
        on_drop: Callable[[str, str], None] = lambda name, why: None,
    ) -> None:
        self.robot = robot
        self.real_time_factor = real_time_factor
        self.heartbeat_limit_s = heartbeat_limit_s
        self._on_sample, self._on_mode, self._on_drop = on_sample, on_mode, on_drop
        self._calls: queue.SimpleQueue = queue.SimpleQueue()
        self._motion: Motion | None = None
        self._idle: Program | None = None
        self._heartbeat_s = float("-inf")
        self._running = True
        self.mode = Mode.READY
        self.lost_heartbeats = 0
        self.measured_factor = 0.0

    # ---- from any thread -------------------------------------------------------------------------
    def heartbeat(self) -> None:
        """The decision is alive."""
        self._heartbeat_s = time.monotonic()

    def call(self, function: Callable[[], Any], limit_s: float = CALL_LIMIT_S) -> Any:
        """Run function in the loop's thread and return what it returns; its exception is raised here.

        TimeoutError when the loop does not take it within limit_s, RuntimeError when the loop has ended.
        """
        done, box = threading.Event(), []

        def wrapped() -> None:
            try:
                box.append((True, function()))
            except Exception as error:  # handed to the caller, whose business it is
                box.append((False, error))
            done.set()

        self._calls.put(wrapped)
        until = time.monotonic() + limit_s
        while not done.wait(0.05):
            if not self._running:
                raise RuntimeError("the simulation has ended")
            if time.monotonic() > until:
                raise TimeoutError(f"the simulation did not answer within {limit_s:g} s")
        fine, value = box[0]
        if not fine:
            raise value
        return value

    def end(self) -> None:
        """Make run() return."""
        self._running = False

    # ---- in the loop's thread (through call) -----------------------------------------------------
    def start(self, motion: Motion) -> Motion:
        """Begin a motion now; one that runs is dropped."""
        self._drop("another motion began")
        self._idle = None
        self._motion = motion
        # The limit counts from now: a decision that just sent this goal is alive.
        self._heartbeat_s = max(self._heartbeat_s, time.monotonic())
        self._set_mode(Mode.MOVING)
        return motion

    def freeze(self, reason: str, mode: Mode) -> None:
        """Drop the motion and stay where the arm is."""
        self._drop(reason)
        self._idle = self.robot.freeze()
        self._set_mode(mode)

    def release(self, mode: Mode = Mode.READY) -> None:
        """Allow motions again after a stop or a takeover."""
        self._set_mode(mode)

    def forget(self) -> None:
        """The scene was laid anew: no motion, no pose to keep."""
        self._drop("the scene was reset")
        self._idle = None
        self._set_mode(Mode.READY)

    def _drop(self, reason: str) -> None:
        motion, self._motion = self._motion, None
        if motion is not None:
            motion.program.close()
            motion.dropped = reason
            self._on_drop(motion.name, reason)
            motion.done.set()

    def _set_mode(self, mode: Mode) -> None:
        if mode is not self.mode:
            self.mode = mode
            self._on_mode(mode)

    # ---- the loop --------------------------------------------------------------------------------
    def run(self) -> None:
        """Step until end(). Idle time passes no faster than real time; a motion by real_time_factor."""
        try:
            self._run()
        finally:  # also after an error: nobody may wait for a motion that never ends
            self._running = False
            self._drop("the simulation ended")

    def _run(self) -> None:
        wall = time.monotonic()
        mark, mark_wall = 0, wall
        while self._running:
            while not self._calls.empty():
                self._calls.get()()
            self._advance_programs()
            self._on_sample(self.robot.step())
            mark += 1
            factor = (
                self.real_time_factor if self._motion is not None else min(self.real_time_factor or 1.0, 1.0)
            )
            now = time.monotonic()
            if factor > 0:
                wall += STEP_S / factor
                if wall > now:
                    time.sleep(wall - now)
                elif now - wall > 0.2:
                    wall = now  # too slow for the wanted pace: do not run after it
            else:
                wall = now
            if mark == 1000:
                elapsed = time.monotonic() - mark_wall
                self.measured_factor = mark * STEP_S / elapsed if elapsed > 0 else 0.0
                mark, mark_wall = 0, time.monotonic()

    def _advance_programs(self) -> None:
        motion = self._motion
        if motion is None:
            if self._idle is not None:
                next(self._idle, None)
            return
        if motion.needs_heartbeat and time.monotonic() - self._heartbeat_s > self.heartbeat_limit_s:
            self.lost_heartbeats += 1
            self.freeze(f"no heartbeat of the decision for {self.heartbeat_limit_s:g} s", Mode.HOLDING)
            return
        try:
            next(motion.program)
        except StopIteration as end:
            motion.result = end.value
            self._motion = None
            self._set_mode(motion.after)
            motion.done.set()
