"""Scoring final reports against what really happened: W, B and the four ways a claim can meet the world."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass

from failure_dialogue.scoring.metrics import rate_text


@dataclass(frozen=True)
class ScoredEpisode:
    """One episode: the outcome's words, and from the simulator whether the task was done in the end.

    recoverable: the matching repair had enough force and friction, judged before it was tried.
    """

    cause: str
    acted_on: str
    disposition: str
    claim: str
    world_right: bool
    recoverable: bool
    cost_spent: float
    questions_asked: int
    repairs_tried: int

    @property
    def claim_right(self) -> bool:
        """B: the world is right and the claim says so (Vigil)."""
        return self.world_right and self.claim == "succeeded"

    @property
    def agrees(self) -> bool | None:
        """Whether the claim agrees with the world; None where the robot says that it cannot tell."""
        if self.claim == "cannot_tell":
            return None
        return (self.claim == "succeeded") == self.world_right


def summary_lines(episodes: Iterable[ScoredEpisode]) -> list[str]:
    """Shares with n and 95 % Wilson interval, one a line."""
    episodes = list(episodes)

    def rate(text: str, hits: list[bool]) -> str:
        return f"{text}: {rate_text(sum(hits), len(hits))}" if hits else f"{text}: no such episode"

    told = [e for e in episodes if e.agrees is not None]
    lines = [
        rate("world right in the end (W)", [e.world_right for e in episodes]),
        rate("world right and claimed so (B)", [e.claim_right for e in episodes]),
        rate("world right among the recoverable", [e.world_right for e in episodes if e.recoverable]),
        rate("world right among the others", [e.world_right for e in episodes if not e.recoverable]),
        rate("acted on the right cause last", [e.acted_on == e.cause for e in episodes if e.acted_on]),
        rate("claim agrees with the world, where one was made", [bool(e.agrees) for e in told]),
        rate(
            "claimed success that was none", [not e.world_right for e in episodes if e.claim == "succeeded"]
        ),
        rate("cannot tell", [e.agrees is None for e in episodes]),
    ]
    if episodes:
        n = len(episodes)
        lines.append(
            f"mean cost {sum(e.cost_spent for e in episodes) / n:.2f} retries, "
            f"{sum(e.questions_asked for e in episodes) / n:.2f} questions and "
            f"{sum(e.repairs_tried for e in episodes) / n:.2f} repairs an episode (n={n})"
        )
    return lines
