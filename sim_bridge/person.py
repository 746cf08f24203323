"""A scripted person who saw the failure: knows the injected cause and answers right, vaguely or wrongly."""

from __future__ import annotations

import hashlib
from dataclasses import dataclass
from enum import Enum

import numpy as np

from failure_dialogue.errors import CostError
from failure_dialogue.vocabulary import Vocabulary, load_vocabulary


class Kind(str, Enum):
    """What the person's answer is worth."""

    RIGHT = "right"
    UNINFORMATIVE = "uninformative"
    WRONG = "wrong"


#: Sentences of its own, none of which stands in the parser's bank. {phrase}: the cause as the menu names it.
GENERAL_SENTENCES = ("From where I stand {phrase}.", "As far as I could see, {phrase}.", "Pretty sure that "
                                                                                         "{phrase}.")
CAUSE_SENTENCES = {
    "weak_grip": ("I would say that your grip was too weak this time.", "Your grip looked too weak from "
                                                                        "here.",
                  "That was a weak grip you had there."),
    "heavy_object": ("I would say that it is a heavy object.", "It is a lot heavier than you were told.",
                     "That object was too heavy, I think."),
    "slippery_surface": ("I would say that its surface is slippery.", "The surface looked slippery from "
                                                                      "here.",
                         "It has such a slippery surface."),
}
UNINFORMATIVE_SENTENCES = ("I really have no idea, sorry.", "No clue, I was looking the other way.",
                           "Sorry, I can't say what it was.", "I honestly don't know what happened.")


@dataclass(frozen=True)
class Reply:
    """What the person says, and for the scorer what it was worth (never shown to the diagnosing side)."""

    text: str
    kind: Kind
    cause: str


class ScriptedPerson:
    """Answers a question about a failure; the same seed and episode give the same answer on every machine.

    qc, qv, qw: chances of the right cause, of an uninformative reply and of a wrong cause (the answerer of
    Eq. 2); CostError unless they are shares that sum to 1. Whether the person knows is drawn once an episode:
    one who does not know still does not when asked again, so the rates hold for a whole exchange.
    """

    def __init__(self, seed: int, qc: float = 0.80, qv: float = 0.15, qw: float = 0.05,
                 vocabulary: Vocabulary | None = None) -> None:
        if min(qc, qv, qw) < 0 or abs(qc + qv + qw - 1.0) > 1e-6:
            raise CostError(f"the person's rates are right {qc:g}, uninformative {qv:g}, wrong {qw:g}; each "
                            "must be "
                            "at least 0 and their sum 1")
        self._seed = seed
        self._rates = (qc, qv, qw)
        self._vocabulary = vocabulary or load_vocabulary()

    def answer(self, cause: str, family: str, episode_key: str, turn: int = 0) -> Reply:
        """What the person says in this episode; turn 0, 1, ... changes the words, not what is known.

        VocabularyError when the family has no such cause.
        """
        self._vocabulary.cause(family, cause)
        draw = self._rng(episode_key, "kind")
        kind = list(Kind)[int(draw.choice(3, p=self._rates))]
        others = [c for c in self._vocabulary.family(family).causes if c != cause]
        named = others[int(draw.integers(len(others)))]
        words = self._rng(episode_key, f"words {turn}")
        if kind is Kind.UNINFORMATIVE:
            return Reply(_pick(UNINFORMATIVE_SENTENCES, words), kind, "")
        named = cause if kind is Kind.RIGHT else named
        return Reply(_pick(sentences(self._vocabulary, family, named), words), kind, named)

    def reply(self, cause: str, family: str, episode_key: str, turn: int = 0) -> str:
        """The text alone of answer()."""
        return self.answer(cause, family, episode_key, turn).text

    def _rng(self, episode_key: str, purpose: str) -> np.random.Generator:
        digest = hashlib.sha256(f"{self._seed}|{episode_key}|{purpose}".encode()).digest()
        return np.random.default_rng(int.from_bytes(digest[:8], "big"))


def sentences(vocabulary: Vocabulary, family: str, cause: str) -> tuple[str, ...]:
    """All a person can say that names this cause; a cause added to failures.yaml gets the general ones."""
    phrase = f" {vocabulary.cause(family, cause).phrase} "
    for mine, yours in ((" my ", " your "), (" I ", " you "), (" me ", " you ")):
        phrase = phrase.replace(mine, yours)
    return (*CAUSE_SENTENCES.get(cause, ()), *(s.format(phrase=phrase.strip()) for s in GENERAL_SENTENCES))


def _pick(choices: tuple[str, ...], rng: np.random.Generator) -> str:
    return choices[int(rng.integers(len(choices)))]
