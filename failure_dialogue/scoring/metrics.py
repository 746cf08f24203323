"""Figures with their uncertainty: Wilson intervals, how many more episodes would settle a question."""

from __future__ import annotations

import math
from collections.abc import Sequence

from failure_dialogue.errors import FailureDialogueError

#: Normal quantile of a two-sided 95 % interval.
Z_95 = 1.96


def wilson(successes: int, n: int, z: float = Z_95) -> tuple[float, float]:
    """(low, high) of the Wilson score interval for successes out of n; (0, 1) when n is 0.

    Source: E. B. Wilson, "Probable inference, the law of succession, and statistical inference",
    JASA 22 (1927). FailureDialogueError when 0 <= successes <= n does not hold or z is not above 0.
    """
    if not 0 <= successes <= n:
        raise FailureDialogueError(f"{successes} successes out of {n}; give counts with 0 <= successes <= n")
    if not z > 0:
        raise FailureDialogueError(f"z is {z}; a normal quantile such as 1.96 must be above 0")
    if n == 0:
        return 0.0, 1.0
    p = successes / n
    shrunk = 1.0 + z * z / n
    centre = (p + z * z / (2 * n)) / shrunk
    half = z * math.sqrt(p * (1 - p) / n + z * z / (4 * n * n)) / shrunk
    # The exact ends at p=0 and p=1 are 0 and 1; rounding would leave 1e-17 beside them.
    low = 0.0 if successes == 0 else max(0.0, centre - half)
    high = 1.0 if successes == n else min(1.0, centre + half)
    return low, high


def rate_text(successes: int, n: int) -> str:
    """A share as it stands in every report: '0.95 [0.91, 0.97] (n=200)'."""
    if n == 0:
        return "not measured (n=0)"
    low, high = wilson(successes, n)
    return f"{successes / n:.3f} [{low:.3f}, {high:.3f}] (n={n})"


def more_needed(successes: int, n: int, threshold: float, z: float = Z_95,
                limit: int = 100_000) -> int | None:
    """How many more episodes until the Wilson interval leaves the threshold out, if the share stays.

    0 when the interval already lies on one side; None when more than `limit` episodes in all would be
    needed, or nothing was measured yet. The expected number: a lucky or unlucky run needs fewer or more.
    """
    if n == 0:
        wilson(successes, n, z)
        return None
    share = successes / n

    def settled(total: int) -> bool:
        low, high = wilson(round(share * total), total, z)
        return not low <= threshold <= high

    if settled(n):
        return 0
    high = n
    while not settled(high):
        high *= 2
        if high > limit:
            return None
    low = high // 2
    while high - low > 1:
        middle = (low + high) // 2
        low, high = (low, middle) if settled(middle) else (middle, high)
    return high - n


def confusion(truths: Sequence[str], guesses: Sequence[str]) -> dict[str, dict[str, int]]:
    """Counts by true cause, then by guessed cause. The two sequences are equally long."""
    if len(truths) != len(guesses):
        raise FailureDialogueError(f"{len(truths)} true causes but {len(guesses)} guesses; "
                                   "there must be one each")
    counts: dict[str, dict[str, int]] = {}
    for truth, guess in zip(truths, guesses, strict=True):
        row = counts.setdefault(truth, {})
        row[guess] = row.get(guess, 0) + 1
    return counts
