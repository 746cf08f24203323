"""What a diagnoser is: evidence in, a distribution over a family's causes or an abstention out."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Protocol

from failure_dialogue.errors import EvidenceError
from failure_dialogue.evidence import Evidence


@dataclass(frozen=True)
class Event:
    """Something that happened at a known time within the attempt (s, on the evidence's clock)."""

    name: str
    start_s: float
    end_s: float
    detail: str = ""


@dataclass(frozen=True)
class Diagnosis:
    """A distribution over the causes of one family, or an abstention with its reason.

    probabilities are in the order of causes and sum to 1; both are empty when abstained.
    """

    source: str
    family: str
    causes: tuple[str, ...]
    probabilities: tuple[float, ...]
    model_id: str
    latency_s: float = 0.0
    abstained: bool = False
    reason: str = ""
    events: tuple[Event, ...] = ()

    def __post_init__(self) -> None:
        if self.abstained:
            if not self.reason:
                raise EvidenceError(f"source {self.source!r} abstained without a reason; state one")
            return
        if len(self.causes) != len(self.probabilities) or not self.causes:
            raise EvidenceError(f"source {self.source!r} gave {len(self.probabilities)} probabilities for "
                                f"{len(self.causes)} causes; there must be one for each")
        total = math.fsum(self.probabilities)
        if not all(0.0 <= p <= 1.0 for p in self.probabilities) or abs(total - 1.0) > 1e-3:
            raise EvidenceError(f"source {self.source!r} gave probabilities {self.probabilities} that sum to "
                                f"{total:.4f}; they must lie in 0..1 and sum to 1")

    @property
    def best(self) -> str:
        """The most likely cause ('' when abstained)."""
        if self.abstained:
            return ""
        return self.causes[max(range(len(self.causes)), key=self.probabilities.__getitem__)]

    @classmethod
    def abstention(cls, source: str, family: str, model_id: str, reason: str) -> Diagnosis:
        """No diagnosis, and why."""
        return cls(source, family, (), (), model_id, abstained=True, reason=reason)


class Diagnoser(Protocol):
    """One source of diagnoses for one family."""

    source: str
    family: str
    model_id: str

    def diagnose(self, evidence: Evidence) -> Diagnosis:
        """Never raises for bad evidence: it abstains and says why."""
        ...
