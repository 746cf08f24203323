"""The course of one episode, from the failure to the outcome, as a machine without ROS.

Events go in, commands come out. The live decision node carries the commands out over ROS 2; the
offline scorer answers them from a recording. The choice itself (act, sense, ask, hold) is made by
the policy that is handed in.

state         | waits for                          | then
--------------|------------------------------------|----------------------------------------------
idle          | a task or a failure                | attempting, or diagnosing
attempting    | end of the attempt, or a failure   | idle, or diagnosing
diagnosing    | the first diagnosis (time-limited) | the policy chooses
sensing       | the consulted source's diagnosis   | the policy chooses again
preparing     | the checkpoint and a first still   | asking, or repairing
asking        | the meaning of a reply             | the policy chooses again, or the end
repairing     | end of the repair                  | rechecking
rechecking    | checkpoint, then the verdict       | the end, or the policy chooses again
ending        | the checkpoint                     | idle, with an outcome
taken_over    | the hand-back                      | idle
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field

from failure_dialogue.decision.policy import Action, Decision, PersonReply
from failure_dialogue.decision.steps import (
    Announce,
    Attempt,
    AttemptEnded,
    CancelMotion,
    Claim,
    Command,
    Consult,
    DeadlinePassed,
    DiagnosisArrived,
    Disposition,
    Event,
    FailureInfo,
    FailureNoticed,
    Findings,
    GoToCheckpoint,
    HandedBack,
    HoldEnded,
    MeaningArrived,
    Outcome,
    QuestionPut,
    Recheck,
    RecheckEnded,
    Repair,
    RepairEnded,
    Report,
    ShowState,
    State,
    StopPressed,
    TakenOver,
    TaskStarted,
    WaitAtMost,
)
from failure_dialogue.diagnosis.protocol import Diagnosis


@dataclass(frozen=True)
class Limits:
    """How long each wait may last (s), and how often a repair is tried."""

    attempt_s: float = 120.0
    diagnosis_s: float = 10.0
    sense_s: float = 10.0
    checkpoint_s: float = 60.0
    question_s: float = 90.0
    repair_s: float = 180.0
    recheck_s: float = 30.0
    max_repairs: int = 2


@dataclass
class EpisodeMachine:
    """One episode after the other; hand every event to handle() and carry out what it returns."""

    choose: Callable[[Findings], Decision]
    costs_of: Callable[[str], float]  # "retry", "wrong_repair", "ask", "sense": in units of one retry
    limits: Limits = field(default_factory=Limits)

    def __post_init__(self) -> None:
        self._forget()

    def _forget(self) -> None:
        self.state = State.IDLE
        self.episode_id = ""
        self.state_id = ""
        self.failure: FailureInfo | None = None
        self.decision: Decision | None = None
        self._diagnoses: dict[str, dict[str, Diagnosis]] = {}
        self._unavailable: set[str] = set()
        self._ruled_out: set[str] = set()
        self._reply: PersonReply | None = None
        self._person_present = True
        self._awaited = ""
        self._at_checkpoint = False
        self._going = False  # to the checkpoint: asked for, not answered yet
        self._measured = False
        self._attempt_said = ""
        self._questions = 0
        self._repairs = 0
        self._cost = 0.0
        self._acted = ("", "")  # cause and repair last acted on
        self._ending: Outcome | None = None

    # ---- entry -----------------------------------------------------------------------------------
    def handle(self, event: Event) -> list[Command]:
        """The commands that follow from one event; an event that fits no state does nothing."""
        match event:
            case TaskStarted():
                return self._start(event)
            case FailureNoticed():
                return self._failed(event)
            case AttemptEnded():
                return self._attempt_ended(event)
            case DiagnosisArrived():
                return self._diagnosed(event)
            case HoldEnded():
                return self._held(event)
            case RecheckEnded():
                return self._rechecked(event)
            case QuestionPut():
                return self._question_put()
            case MeaningArrived():
                return self._understood(event)
            case RepairEnded():
                return self._repaired(event)
            case DeadlinePassed():
                return self._late(event) if event.state is self.state else []
            case StopPressed():
                return self._stopped(event)
            case TakenOver():
                return self._taken_over(event)
            case HandedBack():
                return self._handed_back(event)

    @property
    def busy(self) -> bool:
        """Whether an episode is open."""
        return self.state is not State.IDLE

    def _to(self, state: State, detail: str, seconds: float | None = None) -> list[Command]:
        self.state = state
        commands: list[Command] = [ShowState(state, detail)]
        if seconds is not None:
            commands.append(WaitAtMost(state, seconds))
        return commands

    def _go(self, reason: str) -> list[Command]:
        """To the checkpoint. Asked for once: a second request would break off the motion there."""
        if self._at_checkpoint or self._going:
            return []
        self._going = True
        return [GoToCheckpoint(reason)]

    # ---- attempt and failure ---------------------------------------------------------------------
    def _start(self, event: TaskStarted) -> list[Command]:
        if self.busy:
            return []
        self._forget()
        self.episode_id = event.episode_id
        return [*self._to(State.ATTEMPTING, event.instruction, self.limits.attempt_s),
                Attempt(event.instruction)]

    def _attempt_ended(self, event: AttemptEnded) -> list[Command]:
        if self.state is not State.ATTEMPTING:
            return []
        if event.claimed_success:
            commands = self._to(State.IDLE, "the robot says that the attempt succeeded: " + event.message)
            self._forget()
            return commands
        self._attempt_said = event.message
        # The failure message travels on another topic and may still be under way.
        return [WaitAtMost(State.ATTEMPTING, 3.0)]

    def _failed(self, event: FailureNoticed) -> list[Command]:
        if self.state not in (State.IDLE, State.ATTEMPTING, State.REPAIRING, State.RECHECKING):
            return []
        self.failure = event.failure
        self.state_id = event.failure.state_id
        self._unavailable.clear()
        if self.state is State.RECHECKING:
            return []  # the end of the repair came before the message of its failure
        self._at_checkpoint = self._measured = False
        if self.state is State.REPAIRING:
            return []  # the end of the repair is still to come; the re-check judges it
        if not self.episode_id:
            self.episode_id = event.episode_id
        commands = self._to(State.DIAGNOSING, f"{event.failure.family} failure in the {event.failure.stage}",
                            self.limits.diagnosis_s)
        commands += self._go("the attempt failed")
        return commands + (self._choose() if self._diagnoses.get(self.state_id) else [])

    def _diagnosed(self, event: DiagnosisArrived) -> list[Command]:
        diagnosis = event.diagnosis
        self._diagnoses.setdefault(event.state_id, {})[diagnosis.source] = diagnosis
        if event.state_id != self.state_id:
            return []
        awaited = self.state is State.SENSING and diagnosis.source == self._awaited
        if self.state is State.DIAGNOSING or awaited:
            return self._choose()
        return []

    # ---- choice ----------------------------------------------------------------------------------
    def _choose(self) -> list[Command]:
        assert self.failure is not None
        decision = self.choose(Findings(
            self.failure.family, dict(self._diagnoses.get(self.state_id, {})), frozenset(self._unavailable),
            frozenset(self._ruled_out), self._reply, self._questions, self._person_present))
        self.decision = decision
        commands: list[Command] = [Announce(decision)]
        if decision.action is Action.SENSE:
            self._awaited = decision.source
            self._cost += self.costs_of("sense")
            return [*commands, *self._to(State.SENSING, f"consulting {decision.source}", self.limits.sense_s),
                    Consult(decision.source)]
        if decision.action is Action.HOLD:
            return commands + self._end(Disposition.HANDED_OVER, Claim.NOT_SUCCEEDED, decision.reason)
        return [*commands, *self._to(State.PREPARING, "going to the checkpoint", self.limits.checkpoint_s),
                *self._proceed()]

    def _proceed(self) -> list[Command]:
        """From the choice to what was chosen: checkpoint first, then a still, then the deed."""
        assert self.decision is not None and self.failure is not None
        if not self._at_checkpoint:
            return self._go("before anything else is done")
        if not self._measured:
            return [Recheck(after=False)]
        if self.decision.action is Action.ASK:
            self._questions += 1
            self._cost += self.costs_of("ask")
            return self._to(State.ASKING, "asking the person beside the robot", self.limits.question_s)
        self._repairs += 1
        self._acted = (self.decision.cause, self.decision.repair)
        return [*self._to(State.REPAIRING, self.decision.repair, self.limits.repair_s),
                Repair(self.decision.repair, self.state_id)]

    def _question_put(self) -> list[Command]:
        # Asked once more, or given more time: the person has the whole limit again.
        return [WaitAtMost(State.ASKING, self.limits.question_s)] if self.state is State.ASKING else []

    def _understood(self, event: MeaningArrived) -> list[Command]:
        if self.state is not State.ASKING:
            return []
        who = event.who or "somebody"
        if event.act == "stop":
            return self._stopped(StopPressed(who, "asked to stop"))
        if event.act in ("wait", "repeat", "why"):
            return [WaitAtMost(State.ASKING, self.limits.question_s)]  # the question stays open
        if event.act == "takeover":
            return self._end(Disposition.HANDED_OVER, Claim.NOT_SUCCEEDED, f"{who} takes the task over")
        # The dialogue asks once more by itself when an answer is unclear; that costs as much again.
        again = max(0, event.times_asked - 1)
        self._questions += again
        self._cost += again * self.costs_of("ask")
        if event.act == "no_reply":
            self._person_present = False
        elif event.act in ("cause", "confirm"):
            self._reply = PersonReply(event.cause, event.requested_repair)
        else:
            self._reply = PersonReply()
        return self._choose()

    # ---- robot -----------------------------------------------------------------------------------
    def _held(self, event: HoldEnded) -> list[Command]:
        self._going = False
        if not event.at_checkpoint:
            if self.state is State.ENDING:
                return self._report()
            if self.state in (State.PREPARING, State.RECHECKING):
                return self._end(Disposition.HANDED_OVER, Claim.CANNOT_TELL,
                                 f"the checkpoint was not reached: {event.message}", go=False)
            return []
        self._at_checkpoint = True
        if self.state is State.PREPARING:
            return self._proceed()
        if self.state is State.RECHECKING:
            return [Recheck(after=True)]
        if self.state is State.ENDING:
            return self._report()
        return []

    def _repaired(self, event: RepairEnded) -> list[Command]:
        if self.state is not State.REPAIRING:
            return []
        if event.state_id and (self.failure is None or event.state_id != self.failure.state_id):
            self.state_id = event.state_id
        if event.refused:
            self._ruled_out.add(self._acted[0])
            self._reply = None
            if self._repairs >= self.limits.max_repairs:
                return self._end(Disposition.HANDED_OVER, Claim.NOT_SUCCEEDED,
                                 f"the robot refused the repair: {event.message}")
            return self._choose()
        self._at_checkpoint = False
        return [*self._to(State.RECHECKING, "judging the result",
                          self.limits.checkpoint_s + self.limits.recheck_s),
                *self._go("the repair is over")]

    def _rechecked(self, event: RecheckEnded) -> list[Command]:
        if not event.after:
            # Without a first still the re-check will abstain later; that is for it to say.
            self._measured = True
            return self._proceed() if self.state is State.PREPARING else []
        if self.state is not State.RECHECKING:
            return []
        self._cost += self.costs_of("retry")
        if event.verdict == "pass":
            return self._end(Disposition.RECOVERED, Claim.SUCCEEDED, event.reason)
        if event.verdict != "fail":
            return self._end(Disposition.HANDED_OVER, Claim.CANNOT_TELL, event.reason)
        self._cost += self.costs_of("wrong_repair")
        self._ruled_out.add(self._acted[0])
        self._reply = None
        self._measured = False
        if self._repairs >= self.limits.max_repairs:
            return self._end(Disposition.HANDED_OVER, Claim.NOT_SUCCEEDED,
                             f"{self._repairs} repairs were tried; {event.reason}")
        return self._choose()

    # ---- ends ------------------------------------------------------------------------------------
    def _late(self, event: DeadlinePassed) -> list[Command]:
        if event.state is State.DIAGNOSING:
            return self._choose()
        if event.state is State.SENSING:
            self._unavailable.add(self._awaited)
            return self._choose()
        if event.state is State.ASKING:
            self._person_present = False
            return self._choose()
        if event.state is State.ENDING:
            return self._report()
        self._going = False
        text = {
            State.ATTEMPTING: "the attempt ended without success and no failure was reported"
                              + (f" ({self._attempt_said})" if self._attempt_said else ""),
            State.PREPARING: "the checkpoint or the first still did not come in time",
            State.REPAIRING: "the repair did not end in time",
            State.RECHECKING: "the re-check did not answer in time",
        }.get(event.state, "a time limit passed")
        moved = event.state in (State.REPAIRING, State.RECHECKING)
        return [CancelMotion(text), *self._end(
            Disposition.ABANDONED, Claim.CANNOT_TELL if moved else Claim.NOT_SUCCEEDED, text)]

    def _stopped(self, event: StopPressed) -> list[Command]:
        if not self.busy or self.state in (State.ENDING, State.TAKEN_OVER):
            return []
        moved = self.state in (State.REPAIRING, State.RECHECKING)
        text = f"stopped by {event.who or 'somebody'}" + (f": {event.reason}" if event.reason else "")
        # The robot obeys the stop by itself and stays where it is: no motion is asked of it here.
        return [CancelMotion(text), *self._end(
            Disposition.ABANDONED, Claim.CANNOT_TELL if moved else Claim.NOT_SUCCEEDED, text, go=False)]

    def _taken_over(self, event: TakenOver) -> list[Command]:
        if self.state is State.TAKEN_OVER:
            return []
        text = f"{event.who or 'somebody'} took the arm over"
        commands: list[Command] = []
        if self.busy:
            moved = self.state in (State.REPAIRING, State.RECHECKING)
            commands = [CancelMotion(text), *self._end(
                Disposition.HANDED_OVER, Claim.CANNOT_TELL if moved else Claim.NOT_SUCCEEDED, text, go=False)]
        return commands + self._to(State.TAKEN_OVER, text)

    def _handed_back(self, event: HandedBack) -> list[Command]:
        if self.state is not State.TAKEN_OVER:
            return []
        commands = self._to(State.IDLE, f"{event.who or 'somebody'} handed the arm back")
        self._forget()
        return commands

    def _end(self, disposition: Disposition, claim: Claim, grounds: str, go: bool = True) -> list[Command]:
        self._ending = Outcome(disposition, claim, grounds, *self._acted,
                               self._cost, self._questions, self._repairs)
        if go and not self._at_checkpoint:
            return [*self._to(State.ENDING, grounds, self.limits.checkpoint_s), *self._go(grounds)]
        return self._report()

    def _report(self) -> list[Command]:
        assert self._ending is not None
        outcome = self._ending
        detail = f"{outcome.disposition.value}: {outcome.grounds}"
        commands: list[Command] = [Report(outcome), *self._to(State.IDLE, detail)]
        self._forget()
        return commands
