"""Reading a recorded bag: its episodes, and what the sensors said in one of them. Needs no ROS.

Messages of the exchange are placed at the bag's own time, when the recorder received them on the robot's
clock: stamps in their headers may come from another clock (a person's terminal). Sensor data keep their
own stamps, which are the robot's.
"""

from __future__ import annotations

import math
from collections import defaultdict
from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from rosbags.highlevel import AnyReader, AnyReaderError

from failure_dialogue import topics
from failure_dialogue.errors import ConfigError, EvidenceError
from failure_dialogue.evidence import Frame, JointSeries, Phase, WrenchSeries

_EXCHANGE = (topics.EPISODE, topics.FAILURE, topics.DIAGNOSIS, topics.DECISION, topics.QUESTION, topics.REPLY,
             topics.REPLY_MEANING, topics.OUTCOME, topics.PHASE)
#: The robot's idle state ends an episode.
_OVER = "idle"
_CHANNELS = {"rgb8": (0, 1, 2), "bgr8": (2, 1, 0)}


@dataclass(frozen=True)
class Heard:
    """A message of the exchange, when it was recorded (s, on the robot's clock), and its place among all."""

    stamp_s: float
    message: Any
    place: int


@dataclass(frozen=True)
class EpisodeLog:
    """One episode as the exchange tells it, every kind of message in order of time.

    over: whether the recording shows its end. phases: those of every motion in the episode.
    """

    episode_id: str
    start_s: float
    end_s: float
    over: bool
    states: tuple[Heard, ...]
    failures: tuple[Heard, ...]
    diagnoses: tuple[Heard, ...]
    decisions: tuple[Heard, ...]
    questions: tuple[Heard, ...]
    replies: tuple[Heard, ...]
    meanings: tuple[Heard, ...]
    outcome: Heard | None
    phases: tuple[Phase, ...]


@dataclass(frozen=True)
class SensorLog:
    """What the sensors said in a stretch of time; a channel that was not recorded is empty.

    frame_times_s: (k,) when a camera frame was recorded; the pictures themselves are read by frames_at().
    """

    wrench: WrenchSeries
    joints: JointSeries
    frame_times_s: np.ndarray


def episodes(bag: Path) -> tuple[EpisodeLog, ...]:
    """Every episode in the bag, in order. ConfigError: no bag; EvidenceError: an unreadable one."""
    heard: dict[str, list[Heard]] = defaultdict(list)
    seen: set[tuple[str, bytes]] = set()
    with _opened(bag) as reader:
        for topic, stamp_s, raw, msgtype in _messages(reader, _EXCHANGE):
            # A recorder that subscribes anew gets the latched messages a second time.
            if (topic, bytes(raw)) not in seen:
                seen.add((topic, bytes(raw)))
                heard[topic].append(Heard(stamp_s, _decoded(reader, raw, msgtype), len(seen)))
    return _split(heard)


def episode(bag: Path, which: str) -> EpisodeLog:
    """The episode named by its id, by its number in the bag (from 1), or as 'first' or 'last' that failed.

    EvidenceError when there is no such one, or no attempt failed in it; says which there are.
    """
    found = episodes(bag)
    failed = [e for e in found if e.failures]
    if not failed:
        what = f"{len(found)} of them, but in none an attempt failed" if found else "none"
        raise EvidenceError(f"{bag} was searched for episodes: it holds {what}; record some with: "
                            "failure-dialogue sim --record DIR")
    if which in ("first", "last"):
        return failed[0 if which == "first" else -1]
    named = [e for number, e in enumerate(found, 1) if which in (e.episode_id, str(number))]
    known = ", ".join(f"{number} ({e.episode_id})" for number, e in enumerate(found, 1) if e.failures)
    if not named:
        raise EvidenceError(f"{bag} holds no episode {which!r}; those with a failure: {known}")
    if not named[0].failures:
        raise EvidenceError(f"no attempt failed in episode {which!r} of {bag}; those with a failure: {known}")
    return named[0]


def sensors(bag: Path, start_s: float, end_s: float) -> SensorLog:
    """Wrench, joints and times of camera frames, start_s <= time <= end_s. Errors as episodes()."""
    wrench: list[tuple[float, ...]] = []
    rows: list[tuple[float, ...]] = []
    names: tuple[str, ...] = ()
    frames: list[float] = []
    with _opened(bag) as reader:
        wanted = (topics.WRENCH, topics.JOINT_STATES, topics.IMAGE)
        for topic, stamp_s, raw, msgtype in _messages(reader, wanted, start_s, end_s):
            if topic == topics.IMAGE:
                frames.append(stamp_s)
                continue
            message = _decoded(reader, raw, msgtype)
            if topic == topics.WRENCH:
                force, torque = message.wrench.force, message.wrench.torque
                wrench.append((seconds(message.header.stamp), force.x, force.y, force.z,
                               torque.x, torque.y, torque.z))
                continue
            names = names or tuple(message.name)
            if tuple(message.name) == names and len(message.position) == len(names):
                rows.append((seconds(message.header.stamp), *message.position,
                             *_or_nan(message.velocity, len(names)), *_or_nan(message.effort, len(names))))
    w = np.array(wrench, dtype=float).reshape(len(wrench), 7)
    j = np.array(rows, dtype=float).reshape(len(rows), 1 + 3 * len(names))
    k = len(names)
    return SensorLog(WrenchSeries(w[:, 0], w[:, 1:]),
                     JointSeries(j[:, 0], names, j[:, 1:1 + k], j[:, 1 + k:1 + 2 * k], j[:, 1 + 2 * k:]),
                     np.array(frames, dtype=float))


def frames_at(bag: Path, log: SensorLog, times_s: Sequence[float]) -> tuple[Frame | None, ...]:
    """For each time the recorded camera frame nearest to it; None where there is no frame at all."""
    if not len(log.frame_times_s):
        return tuple(None for _ in times_s)
    nearest = [float(log.frame_times_s[np.argmin(np.abs(log.frame_times_s - t))]) for t in times_s]
    found: dict[float, Frame] = {}
    with _opened(bag) as reader:
        for wanted in sorted(set(nearest)):
            for _, stamp_s, raw, msgtype in _messages(reader, (topics.IMAGE,), wanted, wanted):
                found[wanted] = Frame(stamp_s, _rgb(_decoded(reader, raw, msgtype)))
    return tuple(found.get(t) for t in nearest)


# ---- the bag itself ------------------------------------------------------------------------------


@contextmanager
def _opened(bag: Path) -> Iterator[AnyReader]:
    if not bag.exists():
        raise ConfigError(f"there is no bag {bag}; give the folder that a recording wrote")
    if bag.is_dir() and not (bag / "metadata.yaml").is_file():
        inside = sorted(p.parent.name for p in bag.glob("*/metadata.yaml"))
        if inside:
            raise ConfigError(f"{bag} is no bag but holds some; give one of them: {', '.join(inside)}")
        raise ConfigError(f"{bag} is no bag: it has no metadata.yaml; if a recording was cut off, the file "
                          "in it can be mended with: mcap recover")
    try:
        with AnyReader([bag]) as reader:
            yield reader
    except (ConfigError, EvidenceError):
        raise
    except Exception as error:  # whatever a damaged file makes the reader stumble over
        raise EvidenceError(f"the bag {bag} cannot be read ({type(error).__name__}: {error}); if its "
                            "recording was cut off, mend the file with: mcap recover") from error


def _messages(reader: AnyReader, wanted: Iterable[str], start_s: float = -math.inf,
              end_s: float = math.inf) -> Iterator[tuple[str, float, bytes, str]]:
    """(topic, time in s, serialised message, type) for start_s <= time <= end_s."""
    wanted = set(wanted)
    connections = [c for c in reader.connections if c.topic in wanted]
    if not connections:
        return  # an empty list would mean all of them
    # A microsecond on either side: a time that has been a float is not exact to the nanosecond.
    start = None if math.isinf(start_s) else round(start_s * 1e9) - 1000
    stop = None if math.isinf(end_s) else round(end_s * 1e9) + 1000
    for connection, stamp_ns, raw in reader.messages(connections, start, stop):
        yield connection.topic, stamp_ns * 1e-9, raw, connection.msgtype


def _decoded(reader: AnyReader, raw: bytes, msgtype: str) -> Any:
    """The message. Fast DDS leaves up to 7 bytes after an empty list of numbers; rosbags permits 3."""
    try:
        return reader.deserialize(raw, msgtype)
    except AnyReaderError:
        return reader.deserialize(raw[:-4], msgtype)


def seconds(stamp: Any) -> float:
    """A recorded stamp in seconds."""
    return stamp.sec + stamp.nanosec * 1e-9


def _or_nan(values: Sequence[float], count: int) -> Sequence[float]:
    return values if len(values) == count else (math.nan,) * count


def _rgb(message: Any) -> np.ndarray:
    """(H, W, 3) uint8 of a sensor_msgs/Image in rgb8 or bgr8; EvidenceError otherwise."""
    width, height, step = message.width, message.height, message.step
    if message.encoding not in _CHANNELS or step < 3 * width or len(message.data) != height * step:
        raise EvidenceError(f"a camera frame of {width}x{height} in {message.encoding!r}, step {step}, with "
                            f"{len(message.data)} bytes is not understood; record rgb8 or bgr8")
    rows = np.asarray(message.data, dtype=np.uint8).reshape(height, step)
    return rows[:, :3 * width].reshape(height, width, 3)[:, :, _CHANNELS[message.encoding]]


# ---- cutting the exchange into episodes ----------------------------------------------------------


def _split(heard: dict[str, list[Heard]]) -> tuple[EpisodeLog, ...]:
    """An episode lasts from its first state to the idle that names it, or to the next one's beginning.

    Where the robot was given its task by another program, it begins with the attempt that failed.
    """
    states: dict[str, list[Heard]] = defaultdict(list)
    for state in heard[topics.EPISODE]:
        if state.message.episode_id:
            states[state.message.episode_id].append(state)
    last_s = max((h.stamp_s for messages in heard.values() for h in messages), default=0.0)
    starts = [own[0].stamp_s for own in states.values()]
    logs = []
    for episode_id, own in states.items():
        start_s = min([own[0].stamp_s] + [
            seconds(h.message.attempt_start) for h in heard[topics.FAILURE]
            if own[0].message.state_id and h.message.state_id == own[0].message.state_id])
        over = [h.stamp_s for h in own if h.message.state == _OVER]
        following = [s for s in starts if s > own[0].stamp_s]
        end_s = over[0] if over else min(following, default=last_s)
        logs.append(_log(heard, episode_id, start_s, end_s, bool(over)))
    return tuple(sorted(logs, key=lambda log: log.start_s))


def _log(heard: dict[str, list[Heard]], episode_id: str, start_s: float, end_s: float,
         over: bool) -> EpisodeLog:
    def belongs(h: Heard) -> bool:
        """By id where the message has one; the robot's and a person's messages have none: by time."""
        own = getattr(h.message, "episode_id", "")
        return own == episode_id if own else start_s <= h.stamp_s <= end_s

    def of(topic: str) -> tuple[Heard, ...]:
        return tuple(h for h in heard[topic] if belongs(h))

    outcomes = of(topics.OUTCOME)
    return EpisodeLog(
        episode_id, start_s, end_s, over, tuple(h for h in of(topics.EPISODE) if h.stamp_s <= end_s),
        of(topics.FAILURE), of(topics.DIAGNOSIS), of(topics.DECISION), of(topics.QUESTION), of(topics.REPLY),
        of(topics.REPLY_MEANING), outcomes[-1] if outcomes else None,
        tuple(Phase(h.message.name, seconds(h.message.start)) for h in of(topics.PHASE)))
