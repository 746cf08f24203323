"""Act, sense or ask by expected cost: Equations 1 to 3 of the source, and sensing.

Source: "When Should a Failing Robot Ask?" (arXiv:2609.21942), sections III-C and V.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from enum import Enum

from failure_dialogue.decision.costs import Answerer, Costs
from failure_dialogue.errors import CostError

#: Retries (or a share) too few to divide by.
_NOTHING = 1e-9


def _probability(p: float) -> float:
    if not 0.0 <= p <= 1.0:  # also refuses NaN
        raise CostError(f"the accuracy p is {p}; it must lie in 0..1")
    return float(p)


def ev_act(p: float, costs: Costs) -> float:
    """Expected cost of acting on a diagnosis that is right with probability p (Eq. 1).

    EV_act(p) = p Cr + (1 - p)(Cw + Cr), in retries. CostError when p is outside 0..1.
    """
    p = _probability(p)
    return p * costs.retry + (1.0 - p) * (costs.wrong_repair + costs.retry)


def ev_ask(p: float, costs: Costs, answerer: Answerer) -> float:
    """Expected cost of a question, then acting on the answer, or on the diagnosis if it says nothing (Eq. 2).

    EV_ask(p) = Ca + qc Cr + qv EV_act(p) + qw (Cw + Cr), in retries. CostError when p is outside 0..1.
    """
    return (costs.ask + answerer.correct * costs.retry + answerer.uninformative * ev_act(p, costs)
            + answerer.wrong * (costs.wrong_repair + costs.retry))


def ev_sense(p_sensed: float, costs: Costs, answerer: Answerer, asking_possible: bool = True) -> float:
    """Expected cost in retries of reading a sensor that makes the diagnosis right with probability p_sensed.

    EV_sense = Csense + EV_act(p_s) as in section V; where a question can still follow,
    Csense + min(EV_act(p_s), EV_ask(p_s)).
    """
    after = ev_act(p_sensed, costs)
    if asking_possible:
        after = min(after, ev_ask(p_sensed, costs, answerer))
    return costs.sense + after


class Regime(Enum):
    """When asking is better than acting."""

    BELOW_THRESHOLD = "below_threshold"
    NEVER = "never"
    ALWAYS = "always"


@dataclass(frozen=True)
class Threshold:
    """p*: below it asking is the better choice. NaN: asking never pays; 1: asking is never the worse choice.

    formula is what Eq. 3 gives as it stands, also outside 0..1; NaN where Eq. 3 divides by zero.
    """

    regime: Regime
    p_star: float
    formula: float
    why: str

    def asks_at(self, p: float) -> bool:
        """Whether asking beats acting for a diagnosis that is right with probability p; a tie is acted on."""
        return _probability(p) < self.p_star  # never true of NaN


def threshold(costs: Costs, answerer: Answerer) -> Threshold:
    """p* of Eq. 3: [(1-qv)(Cw+Cr) - Ca - qc Cr - qw(Cw+Cr)] / [(1-qv) Cw].

    Where a wrong repair costs nothing extra (Cw = 0) or no answer ever helps (qv = 1), Eq. 3 divides by
    zero; EV_ask - EV_act is then at least Ca >= 0 whatever p is, so asking never pays. With costs of at
    least 0, p* is at most 1; it is 1 only where questions are free and never answered wrongly, and asking
    is then never worse than acting.
    """
    informative = answerer.correct + answerer.wrong  # 1 - qv, exactly 0 when qv is 1
    at_stake = informative * costs.wrong_repair
    if at_stake < _NOTHING:
        return Threshold(Regime.NEVER, math.nan, math.nan,
                         "no answer ever names a cause, so asking never pays" if informative < _NOTHING else
                         "a wrong repair costs nothing extra, so asking never pays")
    # The terms with Cr cancel, since 1 - qv - qw = qc; written this way no digits are lost when Cr is large.
    formula = (answerer.correct * costs.wrong_repair - costs.ask) / at_stake
    if formula <= 0.0:
        return Threshold(Regime.NEVER, math.nan, formula,
                         "a question costs more than it can save even for a diagnosis that is always wrong")
    if formula >= 1.0:
        return Threshold(Regime.ALWAYS, 1.0, formula, "questions are free and never answered wrongly")
    return Threshold(Regime.BELOW_THRESHOLD, formula, formula,
                     f"asking is better while the diagnosis is right in less than {formula:.3f} of the cases")
