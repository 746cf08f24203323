"""What goes into the episode machine and what comes out of it: events, commands, and the words of both."""

from __future__ import annotations

from dataclasses import dataclass
from enum import Enum

from failure_dialogue.decision.policy import Decision, PersonReply
from failure_dialogue.diagnosis.protocol import Diagnosis

# ---- what is known when a choice is due ----------------------------------------------------------


@dataclass(frozen=True)
class FailureInfo:
    """What the robot says of its failed attempt."""

    state_id: str
    family: str
    stage: str
    instruction: str
    object_name: str


@dataclass(frozen=True)
class Findings:
    """What the episode has brought to light when a choice is due.

    diagnoses: by source, of the latest attempt. unavailable: sources that did not answer. ruled_out:
    causes whose repair failed. reply: None when nothing was answered since the latest attempt.
    """

    family: str
    diagnoses: dict[str, Diagnosis]
    unavailable: frozenset[str]
    ruled_out: frozenset[str]
    reply: PersonReply | None
    questions_asked: int
    person_present: bool


class State(Enum):
    """Where the episode stands; the values are those of the EpisodeStatus message."""

    IDLE = "idle"
    ATTEMPTING = "attempting"
    DIAGNOSING = "diagnosing"
    SENSING = "sensing"
    PREPARING = "preparing"
    ASKING = "asking"
    REPAIRING = "repairing"
    RECHECKING = "rechecking"
    ENDING = "holding"
    TAKEN_OVER = "taken_over"


class Disposition(Enum):
    """How an episode ends for the task."""

    RECOVERED = "recovered"
    HANDED_OVER = "handed_over"
    ABANDONED = "abandoned"


class Claim(Enum):
    """What the robot says of the world at the end."""

    SUCCEEDED = "succeeded"
    NOT_SUCCEEDED = "not_succeeded"
    CANNOT_TELL = "cannot_tell"


@dataclass(frozen=True)
class Outcome:
    """The final report; cost in units of one retry."""

    disposition: Disposition
    claim: Claim
    grounds: str
    cause: str
    repair: str
    cost_spent: float
    questions_asked: int
    repairs_tried: int


# ---- events --------------------------------------------------------------------------------------


@dataclass(frozen=True)
class TaskStarted:
    """Somebody wants a task done."""

    episode_id: str
    instruction: str


@dataclass(frozen=True)
class AttemptEnded:
    """The attempt ended with the robot's own claim."""

    claimed_success: bool
    message: str


@dataclass(frozen=True)
class FailureNoticed:
    """The robot noticed a failure; episode_id is used when no episode is open."""

    failure: FailureInfo
    episode_id: str


@dataclass(frozen=True)
class DiagnosisArrived:
    """A diagnosis for the state it names."""

    diagnosis: Diagnosis
    state_id: str


@dataclass(frozen=True)
class HoldEnded:
    """The robot is at its checkpoint, or could not get there."""

    at_checkpoint: bool
    message: str = ""


@dataclass(frozen=True)
class RecheckEnded:
    """A verdict (pass, fail, abstain) and what it rests on."""

    after: bool
    verdict: str
    reason: str


@dataclass(frozen=True)
class QuestionPut:
    """The question was put to the person, for the first time or once more."""


@dataclass(frozen=True)
class MeaningArrived:
    """What a reply meant: an act of the ReplyMeaning message, and a cause or ''."""

    act: str
    cause: str
    requested_repair: str
    who: str
    times_asked: int = 1


@dataclass(frozen=True)
class RepairEnded:
    """The repair is over; refused: nothing was moved."""

    done: bool
    state_id: str
    message: str = ""
    refused: bool = False


@dataclass(frozen=True)
class DeadlinePassed:
    """What was waited for did not come."""

    state: State


@dataclass(frozen=True)
class StopPressed:
    """Somebody stopped the robot."""

    who: str
    reason: str


@dataclass(frozen=True)
class TakenOver:
    """The arm is a person's."""

    who: str


@dataclass(frozen=True)
class HandedBack:
    """The arm is the robot's again."""

    who: str


Event = (TaskStarted | AttemptEnded | FailureNoticed | DiagnosisArrived | HoldEnded | RecheckEnded
         | QuestionPut | MeaningArrived | RepairEnded | DeadlinePassed | StopPressed | TakenOver | HandedBack)

# ---- commands ------------------------------------------------------------------------------------


@dataclass(frozen=True)
class ShowState:
    """Tell everybody where the episode stands."""

    state: State
    detail: str


@dataclass(frozen=True)
class WaitAtMost:
    """Send DeadlinePassed(state) after so many seconds unless the state changed."""

    state: State
    seconds: float


@dataclass(frozen=True)
class Attempt:
    """Have the robot try the task."""

    instruction: str


@dataclass(frozen=True)
class GoToCheckpoint:
    """Bring the robot to its safe checkpoint and keep it there."""

    reason: str


@dataclass(frozen=True)
class Consult:
    """Have a source diagnose."""

    source: str


@dataclass(frozen=True)
class Announce:
    """Publish the decision."""

    decision: Decision


@dataclass(frozen=True)
class Repair:
    """Execute a repair; refused by the robot when the state is another by now."""

    repair: str
    state_id: str


@dataclass(frozen=True)
class Recheck:
    """Measure before a repair, or judge after it."""

    after: bool


@dataclass(frozen=True)
class CancelMotion:
    """Cancel the attempt or repair that runs."""

    reason: str


@dataclass(frozen=True)
class Report:
    """Publish the outcome; the episode is over."""

    outcome: Outcome


Command = (ShowState | WaitAtMost | Attempt | GoToCheckpoint | Consult | Announce | Repair | Recheck
           | CancelMotion | Report)
