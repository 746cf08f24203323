"""What happened in one recorded episode, as a short list of events, phases and moments to look at."""

from __future__ import annotations

import math
from dataclasses import dataclass, replace
from enum import Enum
from typing import Any

import numpy as np

from failure_dialogue.scoring.bag_reading import EpisodeLog, Heard, SensorLog, seconds

#: The wrench is averaged over so much time (s).
_WRENCH_BIN_S = 0.02
#: The recorder polls, and its clock has steps: within so much time (s) it may mix up the order of topics.
_SAME_MOMENT_S = 0.1


class Kind(Enum):
    """What an event is."""

    FAILURE = "failure"
    DIAGNOSIS = "diagnosis"
    DECISION = "decision"
    QUESTION = "question"
    REPLY = "reply"
    REPAIR = "repair"
    RECHECK = "re-check"
    OUTCOME = "outcome"


#: Names of the four values of Decision.action.
ACTIONS = ("act", "sense", "ask", "hold")


@dataclass(frozen=True)
class StoryEvent:
    """One event in words; end_s is above stamp_s where it took time. number: of a decision, from 1.

    place: among all messages, for the order of events at the same step of the clock.
    """

    kind: Kind
    stamp_s: float
    end_s: float
    text: str
    place: float
    number: int = 0
    action: str = ""


@dataclass(frozen=True)
class Stretch:
    """A phase of a motion, from start_s to end_s."""

    name: str
    start_s: float
    end_s: float


@dataclass(frozen=True)
class Moment:
    """A moment at which to look through the camera."""

    title: str
    stamp_s: float


def plain(name: str) -> str:
    """'weak_grip' -> 'weak grip'."""
    return name.replace("_", " ")


def story(log: EpisodeLog) -> tuple[StoryEvent, ...]:
    """All events in order of time, and at the same moment in the order of cause and effect."""
    diagnoses = [_at(Kind.DIAGNOSIS, h, _diagnosis_text(h.message)) for h in log.diagnoses]
    meanings = [_at(Kind.REPLY, h, _meaning_text(h.message)) for h in log.meanings]
    decisions = _decisions(log, diagnoses, meanings)
    events = [*(_failure(h) for h in log.failures), *diagnoses, *meanings, *decisions]
    asked = {(h.message.question_id, h.message.text): h for h in reversed(log.questions)}  # the first of each
    events += [_at(Kind.QUESTION, h, f"robot asks: “{h.message.text}”") for h in asked.values()]
    understood = {h.message.text for h in log.meanings}
    events += [_at(Kind.REPLY, h, f"{h.message.who or 'somebody'}: “{h.message.text}”")
               for h in log.replies if h.message.text not in understood]
    for motion in _motions(log):
        for decision in decisions:
            motion = _after(motion, decision)
        events.append(motion)
    if log.outcome is not None:
        o = log.outcome.message
        outcome = _at(Kind.OUTCOME, log.outcome, f"outcome: {plain(o.disposition)}; the robot says: "
                                                 f"{plain(o.claim)}")
        for decision in decisions:
            outcome = _after(outcome, decision)
        events.append(outcome)
    return tuple(sorted(events, key=lambda e: (e.stamp_s, e.place)))


def stretches(log: EpisodeLog) -> tuple[Stretch, ...]:
    """Every phase with its end: the next phase, or the moment the motion was over."""
    stops = sorted([seconds(h.message.attempt_end) for h in log.failures]
                   + [h.stamp_s for h in log.states] + [log.end_s])
    starts = [p.start_s for p in log.phases]
    found = []
    for i, phase in enumerate(log.phases):
        ends = [s for s in stops if s > phase.start_s] + starts[i + 1:i + 2]
        found.append(Stretch(phase.name, phase.start_s, min(ends, default=log.end_s)))
    return tuple(found)


def moments(log: EpisodeLog) -> tuple[Moment, ...]:
    """Four moments: before, at the slip, after the failure, and after the repair (or at the end)."""
    failure = log.failures[0].message
    slips = [seconds(e.end) for h in log.diagnoses if h.message.state_id == failure.state_id
             for e in h.message.events if e.name == "slip"]
    repaired = any(h.message.state == "repairing" for h in log.states)
    end_s = log.outcome.stamp_s if log.outcome is not None else log.end_s
    return (Moment("before", seconds(failure.attempt_start)),
            Moment("at the slip", slips[0]) if slips else Moment("when noticed", seconds(failure.noticed_at)),
            Moment("after the failure", seconds(failure.attempt_end)),
            Moment("after the repair" if repaired else "at the end", end_s))


def wrist_load(sensors: SensorLog, phases: tuple[Stretch, ...]) -> tuple[np.ndarray, np.ndarray]:
    """(stamps (n,), load (n,) in N): force along the hand's axis, tared anew in each rest phase.

    Means over bins of 20 ms. Before the first rest phase its tare is used already; without a rest phase the
    raw force is given.
    """
    stamps, force = sensors.wrench.stamps_s, sensors.wrench.wrench_n_nm[:, 2].copy()
    raw = force.copy()
    for i, rest in enumerate(p for p in phases if p.name == "rest"):
        inside = (stamps >= rest.start_s) & (stamps < rest.end_s)
        if inside.any():
            later = stamps >= rest.start_s if i else np.ones(len(stamps), dtype=bool)
            force[later] = raw[later] - raw[inside].mean()
    if not len(stamps):
        return stamps, force
    bins = np.floor((stamps - stamps[0]) / _WRENCH_BIN_S).astype(int)
    kept, where = np.unique(bins, return_inverse=True)
    counts = np.bincount(where)
    return np.bincount(where, stamps) / counts, np.bincount(where, force) / counts


def _at(kind: Kind, heard: Heard, text: str) -> StoryEvent:
    return StoryEvent(kind, heard.stamp_s, heard.stamp_s, text, heard.place)


def _failure(heard: Heard) -> StoryEvent:
    m = heard.message
    noticed_s = seconds(m.noticed_at)
    text = f"failure noticed: {m.noticed_by or m.family}"
    return StoryEvent(Kind.FAILURE, noticed_s, noticed_s, text, heard.place)


def _diagnosis_text(m: Any) -> str:
    if m.abstained:
        return f"{m.source}: no diagnosis ({m.reason})"
    who = "force sensor" if m.source == "force" else m.source
    ranked = sorted(zip(m.probabilities, m.causes, strict=True), reverse=True)
    return f"{who}: " + ", ".join(f"{plain(cause)} {p:.2f}" for p, cause in ranked)


def _decision_text(m: Any) -> str:
    name = ACTIONS[m.action].upper()
    detail = {"ACT": plain(m.repair), "SENSE": m.source, "ASK": "a person"}.get(name, "")
    return f"decision: {name} {detail}".rstrip()


def _meaning_text(m: Any) -> str:
    if m.act == "no_reply":
        return "nobody answers"
    meaning = plain(m.cause) if m.cause else plain(m.act)
    if m.requested_repair:
        meaning += f", asks for {plain(m.requested_repair)}"
    return f"{m.who or 'somebody'}: “{m.text}” – understood: {meaning}"


def _after(event: StoryEvent, cause: StoryEvent) -> StoryEvent:
    """The event, put behind its cause where the recorder, which takes topic by topic, got it earlier."""
    if not 0 <= cause.stamp_s - event.stamp_s <= _SAME_MOMENT_S or event.place > cause.place:
        return event
    return replace(event, stamp_s=cause.stamp_s, end_s=max(event.end_s, cause.stamp_s),
                   place=cause.place + 0.01)


def _decisions(log: EpisodeLog, diagnoses: list[StoryEvent], meanings: list[StoryEvent]) -> list[StoryEvent]:
    """Each decision behind what it rests on: the first diagnosis, the consulted source's, or a reply."""
    events: list[StoryEvent] = []
    for i, heard in enumerate(log.decisions):
        event = replace(_at(Kind.DECISION, heard, _decision_text(heard.message)), number=i + 1,
                        action=ACTIONS[heard.message.action])
        before = log.decisions[i - 1].message if i else None
        if before is None:
            grounds = diagnoses[:1]
        elif ACTIONS[before.action] == "sense":
            grounds = [seen for seen, h in zip(diagnoses, log.diagnoses, strict=True)
                       if h.message.source == before.source]
        else:
            grounds = meanings
        for ground in [*grounds, *events]:
            event = _after(event, ground)
        events.append(event)
    return events


def _motions(log: EpisodeLog) -> list[StoryEvent]:
    """Repairs and re-checks, which last from one state to the next."""
    events = []
    for state, following in zip(log.states, [*log.states[1:], None], strict=True):
        m, start_s = state.message, state.stamp_s
        end_s = following.stamp_s if following is not None else log.end_s
        if m.state == "repairing":
            events.append(StoryEvent(Kind.REPAIR, start_s, end_s, f"repair: {plain(m.detail)}",
                                     state.place))
        elif m.state == "rechecking":
            events.append(StoryEvent(Kind.RECHECK, start_s, end_s, f"re-check: {_verdict(log, start_s)}",
                                     state.place))
    return events


def _verdict(log: EpisodeLog, start_s: float) -> str:
    """What the re-check led to. Its result is an action's and on no topic; the outcome quotes it."""
    later = [h.stamp_s for h in log.decisions if h.stamp_s >= start_s]
    if later:
        return "the repair did not help"
    return log.outcome.message.grounds if log.outcome is not None else "not over when the recording ends"


def number(value: float, digits: int = 2) -> str:
    """A figure, or a dash where it is not known."""
    return "–" if math.isnan(value) else f"{value:.{digits}f}"
