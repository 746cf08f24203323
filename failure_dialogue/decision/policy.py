"""The three-way choice of a live episode: act, sense or ask by expected cost, or hold.

This is the scalar rule of the source (Eq. 1 to 3, see threshold.py): one probability p, the measured
accuracy of the best source consulted so far, decides. A diagnoser's own confidence decides nothing.

| situation                                          | choice                                              |
|----------------------------------------------------|-----------------------------------------------------|
| a person named a cause that is still open          | act on it                                           |
| a cause to act on, asking or sensing possible      | the least expected cost                             |
| asking would be better, but nobody is there        | sense if that can lead to acting, else hold         |
| the last permitted question brought no cause       | act or sense by cost, as Eq. 2 has it               |
| no valid measurement, or none_of_these             | ask (or sense another measured source), else hold   |
| every cause was tried, or a person says it is none | hold                                                |
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass
from enum import Enum, IntEnum

from failure_dialogue.decision.costs import Answerer, Costs
from failure_dialogue.decision.record import Entry, Mismatch, Record
from failure_dialogue.decision.threshold import Threshold, ev_act, ev_ask, ev_sense, threshold
from failure_dialogue.diagnosis.protocol import Diagnosis
from failure_dialogue.scoring.metrics import wilson
from failure_dialogue.vocabulary import NONE_OF_THESE, Cause, Family


class Action(IntEnum):
    """What the robot does next; the numbers are those of msg/Decision.msg."""

    ACT = 0
    SENSE = 1
    ASK = 2
    HOLD = 3


class QuestionForm(Enum):
    """WHICH_CAUSE: choose among several; CONFIRM: is it this one; AGAIN: the last answer brought no cause."""

    WHICH_CAUSE = "which_cause"
    CONFIRM = "confirm"
    AGAIN = "again"


@dataclass(frozen=True)
class PersonReply:
    """What the person's last answer meant; both empty: it brought no cause."""

    cause: str = ""
    requested_repair: str = ""


@dataclass(frozen=True)
class Situation:
    """All that the choice depends on besides the costs.

    diagnoses: the current one of each source consulted (for the latest attempt). record: None when there
    is no usable one, and then no_record says why. mismatches: what check() found. can_sense: sources not
    yet consulted that would answer. ruled_out: causes whose repair was carried out and failed. reply: to
    the last question, None when none was asked since the last attempt.
    """

    family: Family
    diagnoses: Mapping[str, Diagnosis]
    record: Record | None
    no_record: str = ""
    mismatches: tuple[Mismatch, ...] = ()
    can_sense: tuple[str, ...] = ()
    ruled_out: frozenset[str] = frozenset()
    questions_asked: int = 0
    max_questions: int = 2
    person_present: bool = True
    reply: PersonReply | None = None


@dataclass(frozen=True)
class ActionCost:
    """Expected cost of one action in retries; infinite when it is not available, and note says why."""

    action: Action
    detail: str
    expected_cost: float
    note: str = ""


@dataclass(frozen=True)
class Decision:
    """The choice and its grounds; the fields are those of msg/Decision.msg.

    p, p_low and p_high are NaN where nothing was measured; threshold is NaN when asking never pays. costs
    has one line for acting, one for each source that could be sensed and one for asking; holding has no
    stated cost and no line.
    """

    action: Action
    family: str
    costs: tuple[ActionCost, ...]
    reason: str
    threshold: float
    cause: str = ""
    repair: str = ""
    source: str = ""
    question_form: str = ""
    target_causes: tuple[str, ...] = ()
    p: float = math.nan
    p_low: float = math.nan
    p_high: float = math.nan
    n: int = 0
    record_id: str = ""
    stale: bool = False
    stale_reason: str = ""


@dataclass(frozen=True)
class _Belief:
    """What the best source says. cause None: nothing to act on; why says so. p NaN: not measured."""

    cause: Cause | None
    why: str
    p: float = math.nan
    low: float = math.nan
    high: float = math.nan
    n: int = 0

    @property
    def p_act(self) -> float:
        """p as far as it counts for acting: 0 where there is no cause to act on, or none was measured."""
        return self.p if self.cause is not None and not math.isnan(self.p) else 0.0


def _words(*names: str) -> str:
    return " and ".join(sorted(name.replace("_", " ") for name in names))


def _share(successes: int, n: int) -> str:
    low, high = wilson(successes, n)
    return f"{successes} of {n} (p={successes / n:.2f}, 95 % interval {low:.2f} to {high:.2f})"


def _valid_entry(situation: Situation, source: str, model_id: str | None = None) -> Entry | str:
    """The measurement of a source that still holds, or in words why there is none."""
    family = situation.family.name
    if situation.record is None:
        return situation.no_record or "there is no commissioning record"
    entry = situation.record.entry(family, source)
    if entry is None:
        return f"{source} was not measured on {family} failures"
    if model_id is not None and model_id != entry.model_id:
        return f"{source} was measured with model {entry.model_id}, but {model_id} answered"
    stale = [str(m) for m in situation.mismatches if m.concerns(family, source)]
    return "; ".join(stale) if stale else entry


def _belief(situation: Situation) -> _Belief:
    """From the most accurate source that answered, by its measured accuracy.

    Once causes are ruled out, the accuracy over all failures no longer applies. p is then taken from the
    calibration failures in which the source said the same and the cause is still open, by Laplace's rule
    of succession, (count + 1) / (n + causes left); with no such failure it counts as not measured.
    """
    best: tuple[float, Diagnosis, Entry] | None = None
    problems = []
    known = {*situation.family.causes, NONE_OF_THESE}
    for source, diagnosis in situation.diagnoses.items():
        entry = _valid_entry(situation, source, diagnosis.model_id)
        if diagnosis.abstained:
            problems.append(f"{source} gave no diagnosis ({diagnosis.reason})")
        elif diagnosis.family != situation.family.name or diagnosis.best not in known:
            problems.append(f"{source} named {diagnosis.best!r}, which is no {situation.family.name} cause")
        elif isinstance(entry, str):
            problems.append(entry)
        elif best is None or entry.accuracy > best[0]:
            best = (entry.accuracy, diagnosis, entry)
    if best is None:
        return _Belief(None, "; ".join(problems) or "no source has been consulted")

    _, diagnosis, entry = best
    said = diagnosis.best
    says = f"the {diagnosis.source} diagnosis is {_words(said)}"
    if said == NONE_OF_THESE:
        return _Belief(None, f"the {diagnosis.source} diagnosis is none of the known causes",
                       entry.accuracy, *entry.interval, entry.n)
    if not situation.ruled_out:
        return _Belief(situation.family.causes[said],
                       f"{says}; that source was right in {_share(entry.correct, entry.n)} staged failures",
                       entry.accuracy, *entry.interval, entry.n)

    left = [name for name in situation.family.causes if name not in situation.ruled_out]
    tried = _words(*situation.ruled_out)
    counts = entry.said(said, left)
    total = sum(counts.values())
    if not total:
        return _Belief(None, f"{says}, and no staged failure tells what it is when {tried} is ruled out")
    own = dict(zip(diagnosis.causes, diagnosis.probabilities, strict=True))
    cause = max(left, key=lambda name: (counts[name], own.get(name, 0.0)))
    return _Belief(situation.family.causes[cause],
                   f"{says}; with {tried} ruled out, it was {_words(cause)} in {counts[cause]} of {total} "
                   "such staged failures",
                   (counts[cause] + 1) / (total + len(left)), *wilson(counts[cause], total), total)


def _replied_cause(situation: Situation) -> tuple[Cause | None, str]:
    """The cause an answer names, directly or through the repair it asks for, and a remark in words."""
    reply = situation.reply
    if reply is None or not (reply.cause or reply.requested_repair):
        return None, ""
    causes = situation.family.causes
    cause = causes.get(reply.cause)
    if cause is None:
        cause = next((c for c in causes.values() if c.repair == reply.requested_repair), None)
    if cause is None:
        named = reply.cause or reply.requested_repair
        return None, f"the answer ({named}) names no cause I have a repair for"
    names = f"the answer names {_words(cause.name)}"
    if reply.requested_repair not in ("", cause.repair):
        return None, f"{names} but asks for {reply.requested_repair}, which is not its repair"
    if cause.name in situation.ruled_out:
        return None, f"{names}, whose repair has already failed"
    return cause, ""


def _p_sensed(situation: Situation, p: float, source: str) -> tuple[float, str]:
    """Accuracy to expect once this source is read too, or 0 and why it is not known.

    That of the best single source; or of all together where the record has an entry for the combination,
    whose source is named 'camera+force'.
    """
    entry = _valid_entry(situation, source)
    if isinstance(entry, str):
        return 0.0, entry
    both = _valid_entry(situation, "+".join(sorted({*situation.diagnoses, source})))
    return max(p, entry.accuracy, both.accuracy if isinstance(both, Entry) else 0.0), ""


def _cost_lines(situation: Situation, belief: _Belief, barrier: str, costs: Costs,
                answerer: Answerer) -> tuple[ActionCost, ...]:
    """Acting, each source that could be sensed, and asking (barrier: why it is not possible, or '')."""
    p = belief.p_act
    if belief.cause is None:
        lines = [ActionCost(Action.ACT, "", math.inf, belief.why)]
    else:
        lines = [ActionCost(Action.ACT, belief.cause.repair, ev_act(p, costs))]
    for source in situation.can_sense:
        p_sensed, problem = _p_sensed(situation, p, source)
        if problem:
            lines.append(ActionCost(Action.SENSE, source, math.inf, problem))
        else:
            note = "" if p_sensed > p else f"{source} is not more accurate than what was consulted"
            cost = ev_sense(p_sensed, costs, answerer, asking_possible=not barrier)
            lines.append(ActionCost(Action.SENSE, source, cost, note))
    if barrier:
        lines.append(ActionCost(Action.ASK, "", math.inf, barrier))
    else:
        note = "" if belief.cause else "without a diagnosis, an uninformative answer counts as a wrong repair"
        lines.append(ActionCost(Action.ASK, "", ev_ask(p, costs, answerer), note))
    return tuple(lines)


def _ask_barrier(situation: Situation) -> str:
    if not situation.person_present:
        return "nobody answered" if situation.questions_asked else "nobody is there to ask"
    if situation.questions_asked >= situation.max_questions:
        return f"{situation.questions_asked} of {situation.max_questions} permitted questions were asked"
    return ""


def _stale_reason(situation: Situation) -> str:
    """Why a consulted or offered source has no measurement that holds; '' when all have."""
    if situation.record is None:
        return situation.no_record or "there is no commissioning record"
    offered: dict[str, str | None] = dict.fromkeys(situation.can_sense)
    offered.update({source: d.model_id for source, d in situation.diagnoses.items()})
    reasons = {source: _valid_entry(situation, source, model_id) for source, model_id in offered.items()}
    return "; ".join(dict.fromkeys(reason for reason in reasons.values() if isinstance(reason, str)))


def decide(situation: Situation, costs: Costs, answerer: Answerer) -> Decision:
    """The next action for this situation, by the table at the top of this module. Pure and without memory.

    A tie goes to acting, then to sensing: a person's attention is spent last.
    """
    family = situation.family
    limit = threshold(costs, answerer)
    belief = _belief(situation)
    barrier = _ask_barrier(situation)
    stale = _stale_reason(situation)
    lines = _cost_lines(situation, belief, barrier, costs, answerer)
    left = tuple(name for name in family.causes if name not in situation.ruled_out)
    record_id = situation.record.record_id if situation.record else ""

    def decision(action: Action, reason: str, **fields) -> Decision:
        fields = {"p": belief.p, "p_low": belief.low, "p_high": belief.high, "n": belief.n} | fields
        return Decision(action, family.name, lines, reason[:1].upper() + reason[1:] + ".", limit.p_star,
                        record_id=record_id, stale=bool(stale), stale_reason=stale, **fields)

    cause, remark = _replied_cause(situation)
    if cause is not None and answerer.informative_accuracy > 0:
        trust = answerer.informative_accuracy
        # What the robot itself would have acted on is out of question now.
        lines = (ActionCost(Action.ACT, cause.repair, ev_act(trust, costs)),
                 *(line for line in lines if line.action is not Action.ACT))
        return decision(Action.ACT, f"the person says {_words(cause.name)}; an answer that names a cause is "
                        f"taken to be right in {trust:.2f} of the cases (stated, not measured)",
                        cause=cause.name, repair=cause.repair, p=trust, p_low=math.nan, p_high=math.nan, n=0)
    if situation.reply is not None and situation.reply.cause == NONE_OF_THESE:
        return decision(Action.HOLD, "the person says that it is none of the causes I have a repair for; "
                        "I hand over")
    if not left:
        return decision(Action.HOLD, f"the repair of every {family.name} cause I know was tried and failed; "
                        "this needs a person's hands")

    open_lines = _open_lines(situation, belief, lines, limit, bool(barrier), bool(remark))
    grounds = "; ".join(part for part in (remark, belief.why) if part)
    if not open_lines:
        return decision(Action.HOLD, f"{grounds}. I hold: {barrier or 'no action is left'}")
    chosen = min(open_lines, key=lambda line: (line.expected_cost, line.action))
    reason = f"{grounds}. {_comparison(chosen, lines)}"
    if chosen.action is Action.ACT and belief.cause is not None:
        return decision(Action.ACT, reason, cause=belief.cause.name, repair=belief.cause.repair)
    if chosen.action is Action.SENSE:
        return decision(Action.SENSE, reason, source=chosen.detail)
    if situation.reply is not None:
        form = QuestionForm.AGAIN
    else:
        form = QuestionForm.CONFIRM if len(left) == 1 else QuestionForm.WHICH_CAUSE
    return decision(Action.ASK, reason, question_form=form.value, target_causes=left)


def _open_lines(situation: Situation, belief: _Belief, lines: tuple[ActionCost, ...], limit: Threshold,
                cannot_ask: bool, odd_reply: bool) -> list[ActionCost]:
    """The actions that may be taken.

    A sensor that adds nothing is never read. Where asking would be better but cannot be done, acting on the
    weak diagnosis is left out, and so is a sensor that would not make it strong enough; except right after
    the last permitted question was answered with nothing, where Eq. 2 counts on acting.
    """
    p = belief.p_act
    open_lines = [line for line in lines if math.isfinite(line.expected_cost)
                  and (line.action is not Action.SENSE or _p_sensed(situation, p, line.detail)[0] > p)]
    asked_in_vain = situation.person_present and situation.reply is not None and not odd_reply
    if not (cannot_ask and limit.asks_at(p)) or asked_in_vain:
        return open_lines
    return [line for line in open_lines if line.action is Action.SENSE
            and not limit.asks_at(_p_sensed(situation, p, line.detail)[0])]


def _comparison(chosen: ActionCost, lines: tuple[ActionCost, ...]) -> str:
    """'Asking is expected to cost 5.4 retries, acting 7.0, sensing force 7.1.'"""
    words = {Action.ACT: "acting", Action.ASK: "asking"}

    def name(line: ActionCost) -> str:
        return words.get(line.action) or f"reading {line.detail}"

    others = [f"{name(line)} {line.expected_cost:.2f}" for line in lines
              if line is not chosen and math.isfinite(line.expected_cost)]
    text = f"{name(chosen).capitalize()} is expected to cost {chosen.expected_cost:.2f} retries"
    return f"{text}, {', '.join(others)}" if others else text
