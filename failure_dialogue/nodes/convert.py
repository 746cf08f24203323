"""Between ROS 2 messages and the project's own values."""

from __future__ import annotations

import array
import math

import numpy as np
from builtin_interfaces.msg import Time
from failure_dialogue_msgs import msg as m

from failure_dialogue.decision.policy import Action, Decision
from failure_dialogue.diagnosis.protocol import Diagnosis, Event
from failure_dialogue.errors import EvidenceError
from failure_dialogue.evidence import Phase

_ACTIONS = {Action.ACT: m.Decision.ACT, Action.SENSE: m.Decision.SENSE,
            Action.ASK: m.Decision.ASK, Action.HOLD: m.Decision.HOLD}


def seconds(stamp: Time) -> float:
    """A stamp in seconds."""
    return stamp.sec + stamp.nanosec * 1e-9


def stamp(seconds_: float) -> Time:
    """Seconds (0 or more) as a stamp."""
    nanoseconds = max(0, round(seconds_ * 1e9))
    return Time(sec=nanoseconds // 1_000_000_000, nanosec=nanoseconds % 1_000_000_000)


def image_rgb(message) -> np.ndarray:
    """(H, W, 3) uint8 of a sensor_msgs/Image in rgb8 or bgr8; EvidenceError otherwise."""
    if message.encoding not in ("rgb8", "bgr8"):
        raise EvidenceError(f"image encoding {message.encoding!r} is not understood; publish rgb8 or bgr8")
    if not message.height or not message.width:
        raise EvidenceError(f"image of {message.width}x{message.height} pixels; the driver sends empty ones")
    if message.height * message.step != len(message.data) or message.step < 3 * message.width:
        raise EvidenceError(f"image of {message.width}x{message.height}, step {message.step}, has "
                            f"{len(message.data)} bytes; the driver's message is malformed")
    rows = np.frombuffer(message.data, np.uint8).reshape(message.height, message.step)
    image = rows[:, :3 * message.width].reshape(message.height, message.width, 3)
    return image if message.encoding == "rgb8" else image[:, :, ::-1]


def fill_image(message, image: np.ndarray) -> None:
    """Write (H, W, 3) uint8 RGB into a sensor_msgs/Image (an array.array is by far the fastest)."""
    message.height, message.width = image.shape[:2]
    message.encoding, message.step, message.is_bigendian = "rgb8", 3 * message.width, 0
    message.data = array.array("B", image.tobytes())


def phases(messages) -> tuple[Phase, ...]:
    """Phases of a Failure message."""
    return tuple(Phase(p.name, seconds(p.start)) for p in messages)


def diagnosis_message(d: Diagnosis, episode_id: str, state_id: str, now: Time) -> m.Diagnosis:
    """A Diagnosis as its message."""
    message = m.Diagnosis(
        episode_id=episode_id, state_id=state_id, source=d.source, family=d.family, causes=list(d.causes),
        probabilities=list(d.probabilities), abstained=d.abstained, reason=d.reason, model_id=d.model_id,
        latency_s=d.latency_s,
        events=[m.Event(name=e.name, start=stamp(e.start_s), end=stamp(e.end_s), detail=e.detail)
                for e in d.events])
    message.header.stamp = now
    return message


def diagnosis_value(message: m.Diagnosis) -> Diagnosis:
    """The message as a Diagnosis; EvidenceError when it is inconsistent."""
    return Diagnosis(
        message.source, message.family, tuple(message.causes), tuple(message.probabilities), message.model_id,
        message.latency_s, message.abstained, message.reason,
        tuple(Event(e.name, seconds(e.start), seconds(e.end), e.detail) for e in message.events))


def decision_message(d: Decision, episode_id: str, state_id: str, now: Time) -> m.Decision:
    """A Decision as its message; what is not known is NaN."""
    def number(value: float | None) -> float:
        return math.nan if value is None else float(value)

    message = m.Decision(
        episode_id=episode_id, state_id=state_id, action=_ACTIONS[d.action], family=d.family, cause=d.cause,
        repair=d.repair, source=d.source, question_form=d.question_form, target_causes=list(d.target_causes),
        p=number(d.p), p_low=number(d.p_low), p_high=number(d.p_high), n=int(d.n),
        threshold=number(d.threshold),
        costs=[m.ActionCost(action=c.action.name.lower() if isinstance(c.action, Action) else c.action,
                            detail=c.detail, expected_cost=number(c.expected_cost), note=c.note)
               for c in d.costs],
        reason=d.reason, record_id=d.record_id, stale=d.stale, stale_reason=d.stale_reason)
    message.header.stamp = now
    return message
