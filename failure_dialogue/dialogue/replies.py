"""What a reply means: likelihoods over the causes, an act, a repair asked for. Text in, no motion out."""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass, replace
from pathlib import Path

import numpy as np

from failure_dialogue.dialogue import acts
from failure_dialogue.dialogue.acts import Act, is_stop
from failure_dialogue.dialogue.bank import Label, PhraseClassifier, is_negated, load_bank
from failure_dialogue.dialogue.embedding import SentenceEmbedder
from failure_dialogue.dialogue.questions import Question
from failure_dialogue.dialogue.text import clauses, clean_text, short_text, versions
from failure_dialogue.vocabulary import Vocabulary

__all__ = ["Act", "ReplyMeaning", "ReplyParser", "is_stop"]

#: Likelihood given to a cause named outright (an option's number, a yes): people slip.
_NAMED = 0.95
#: Likelihood that a person who asks for a repair means its cause.
_REQUESTED = 0.7
#: How much a word that means one cause speaks for it against the others.
_WORD_WEIGHT = 4.0
#: Below this share of the probability the causes are not what the reply is about.
_MIN_SHARE = 0.5
#: Below this lead over the second cause a reply names none of them.
_MIN_LEAD = 0.10
#: Nothing in the bank is like a reply below this cosine.
_MIN_COSINE = 0.38
#: Probability at which an act or a request is taken for one.
_MIN_ACT = 0.55
#: The same for stop where no rule hears it: the rules hear nearly all, and a model is no safety device.
_MIN_STOP = 0.75


@dataclass(frozen=True)
class ReplyMeaning:
    """How one reply was understood (as msg/ReplyMeaning.msg).

    causes and likelihoods are empty when nothing follows about them; else the likelihoods sum to 1. cause is
    the likeliest when act is CAUSE or CONFIRM, else ''. A DENY with likelihoods rules some causes out;
    without, it denies all that was offered. requested_repair is from the closed list of repairs, or ''.
    """

    act: Act
    cause: str
    causes: tuple[str, ...]
    likelihoods: tuple[float, ...]
    requested_repair: str
    reason: str
    text: str

    @classmethod
    def bare(cls, act: Act, reason: str, text: str = "") -> ReplyMeaning:
        """An act that says nothing about the causes."""
        return cls(act, "", (), (), "", reason, text)


@dataclass(frozen=True)
class _Reading:
    """One statement read by the classifier: probability per cause, request, act; the rest; nearest cosine."""

    text: str
    cause: dict[str, float]
    request: dict[str, float]
    act: dict[str, float]
    rest: float
    cosine: float
    denied: frozenset[str]

    @property
    def share(self) -> float:
        """Probability that it says something about the causes."""
        return sum(self.cause.values()) + sum(self.request.values())

    @property
    def best(self) -> str:
        return max(self.cause, key=self.cause.__getitem__)


class ReplyParser:
    """Reads replies with sentence vectors where meaning counts and rules where language needs them.

    bank is the path of a replies.yaml (the shipped one by default). Loading takes about 1 s, a reply about
    5 ms. VocabularyError for a bank that does not fit the vocabulary, ModelError for a damaged model.
    """

    def __init__(self, vocabulary: Vocabulary, bank: Path | None = None,
                 embedder: SentenceEmbedder | None = None) -> None:
        self.vocabulary = vocabulary
        self.bank = load_bank(vocabulary, bank)
        self._embedder = embedder or SentenceEmbedder()
        self.model_id = self._embedder.model_id
        self.classifier = PhraseClassifier(self._embedder.embed(self.bank.texts), self.bank.labels)

    def parse(self, text: str | bytes | None, family: str | None,
              question: Question | None = None) -> ReplyMeaning:
        """The meaning of one reply to a failure of this family (None: not known); never fails on any text.

        question is the one that is open, so that "2" and "yes" have a meaning. VocabularyError for an unknown
        family.
        """
        families = [self.vocabulary.family(family)] if family else list(self.vocabulary.families.values())
        causes = tuple(c for f in families for c in f.causes)
        if is_stop(text):
            return ReplyMeaning.bare(Act.STOP, "it tells me to stop", short_text(clean_text(text)))
        clean = short_text(clean_text(text))
        plain = " ".join(re.sub(r"[^\w' ]", " ", clean).split())
        if not re.search(r"[^\W_]", clean):
            return ReplyMeaning.bare(Act.UNINFORMATIVE, "there are no words in it", clean)
        if question is not None:
            choice = acts.chosen_option(clean, len(question.options))
            if choice is not None:
                return self._option(question, choice, causes, clean)
        if plain in acts.SILENCE:
            return ReplyMeaning.bare(Act.UNINFORMATIVE, "recognisers write this when nobody spoke", clean)
        act = acts.spoken_act(clean)
        if act is not None:
            return self._answer(act, question, causes, clean, f"it says {act.value}")
        if not re.search(r"[a-z]{2}", clean):
            return ReplyMeaning.bare(Act.UNINFORMATIVE, "I read English words only", clean)
        return self._model(clean, causes, question)

    # -- what rules settle ---------------------------------------------------------------------------------

    def _option(self, question: Question, choice: int, causes: Sequence[str], text: str) -> ReplyMeaning:
        named = question.option_causes[choice]
        reason = f"it names option {choice + 1}: {question.options[choice]}"
        if question.is_yes_no:
            return self._answer(Act.CONFIRM if named else Act.DENY, question, causes, text, reason)
        if named not in causes:
            return ReplyMeaning.bare(Act.DENY, reason, text)
        return self._weighted(Act.CAUSE, {c: float(c == named) for c in causes}, reason, text, _NAMED)

    def _answer(self, act: Act, question: Question | None, causes: Sequence[str], text: str,
                reason: str) -> ReplyMeaning:
        """Yes and no in the light of the question; other acts as they are."""
        if act is Act.CONFIRM and question is not None and not question.is_yes_no:
            return ReplyMeaning.bare(Act.UNINFORMATIVE, "a yes does not say which of the causes", text)
        asked = question.asked_cause if question is not None else ""
        if act not in (Act.CONFIRM, Act.DENY) or asked not in causes:
            return ReplyMeaning.bare(act, reason, text)
        if act is Act.CONFIRM:
            return self._weighted(act, {c: float(c == asked) for c in causes}, reason, text, _NAMED)
        return self._weighted(act, {c: float(c != asked) for c in causes}, reason, text, _NAMED)

    @staticmethod
    def _weighted(act: Act, weights: dict[str, float], reason: str, text: str, trust: float = 1.0,
                  requested_repair: str = "") -> ReplyMeaning:
        """Likelihoods from weights, of which the share 1 - trust is spread over all causes."""
        values = np.array(list(weights.values()), float)
        values = trust * values / values.sum() + (1.0 - trust) / len(values)
        values /= values.sum()
        causes = tuple(weights)
        best = causes[int(values.argmax())] if act in (Act.CAUSE, Act.CONFIRM) else ""
        return ReplyMeaning(act, best, causes, tuple(values.tolist()), requested_repair, reason, text)

    # -- what the model settles ----------------------------------------------------------------------------

    def _read(self, text: str, causes: Sequence[str]) -> _Reading:
        vector = self._embedder.embed([text])
        p = dict(zip(self.classifier.classes, self.classifier.probabilities(vector)[0].tolist(), strict=True))
        repairs = {self.vocabulary.cause(f.name, c).repair for f in self.vocabulary.families.values()
                   for c in f.causes if c in causes}
        cause = {c: p[Label("cause", c)] for c in causes}
        named = [c for c in causes if self.bank.denials[c].names(text)]
        if len(named) == 1:
            # "it was too weak" says little about milk cartons in general, much where weak means one cause.
            boosted = {c: v * (_WORD_WEIGHT if c in named else 1.0) for c, v in cause.items()}
            scale = sum(cause.values()) / sum(boosted.values())
            cause = {c: v * scale for c, v in boosted.items()}
        request = {}
        for label, value in p.items():
            if label.kind == "request" and label.name in repairs:
                # "do not squeeze harder" lies beside "squeeze harder"; the bank asks in the positive.
                request[label.name] = 0.0 if is_negated(text) else value
        act = {label.name: value for label, value in p.items() if label.kind == "act"}
        denied = frozenset(c for c in causes if self.bank.denials[c].holds(text))
        rest = max(0.0, 1.0 - sum(cause.values()) - sum(request.values()) - sum(act.values()))
        return _Reading(text, cause, request, act, rest, self.classifier.nearest(vector[0]), denied)

    def _model(self, clean: str, causes: Sequence[str], question: Question | None) -> ReplyMeaning:
        lead, rest = acts.leading_answer(clean)
        meaning = None
        # The last version that says something counts: "heavy, no wait, it's oily".
        for said in reversed(versions(rest or clean)):
            meaning = self._statements(said, causes, clean)
            if meaning.act is not Act.UNINFORMATIVE:
                break
        assert meaning is not None
        if lead is None or meaning.act in (Act.STOP, Act.TAKEOVER, Act.WAIT):
            return meaning
        asked = question.asked_cause if question is not None else ""
        if meaning.act is Act.CAUSE:
            if lead is Act.CONFIRM and asked and meaning.cause == asked:
                return replace(self._answer(lead, question, causes, clean, f"a yes, and {meaning.reason}"),
                               requested_repair=meaning.requested_repair)
            return meaning
        answer = self._answer(lead, question, causes, clean, "it begins with a "
                                                             f"{'yes' if lead is Act.CONFIRM else 'no'}")
        return meaning if meaning.act is Act.DENY and meaning.likelihoods else answer

    def _statements(self, said: str, causes: Sequence[str], clean: str) -> ReplyMeaning:
        """The meaning of one version of a reply: each statement read by itself, denials taken out."""
        parts = clauses(said)
        whole = self._read(said, causes)
        readings = [self._read(part, causes) for part in parts] if len(parts) > 1 else [whole]
        denied = frozenset().union(*(r.denied for r in readings))
        # A statement that only denies says nothing else; one that denies in passing still counts.
        saying = [r for r in readings if not (r.denied and r.best in r.denied)]
        for part in readings:
            act = max(part.act, key=part.act.__getitem__)
            if act == Act.STOP and part.act[act] >= _MIN_STOP and part.cosine >= _MIN_COSINE:
                return ReplyMeaning.bare(Act.STOP, f"{part.text!r} reads as telling me to stop", clean)
        if denied and not saying:
            left = [c for c in causes if c not in denied]
            said_no = "it rules out " + ", ".join(sorted(denied))
            if not left:
                return ReplyMeaning.bare(Act.DENY, said_no, clean)
            act = Act.CAUSE if len(left) == 1 else Act.DENY
            return self._weighted(act, {c: float(c in left) for c in causes}, said_no, clean, 0.85)
        # Of five sentences one matters; the whole helps with what it leaves open, unless a denial blurs it.
        best = max(saying, key=lambda r: r.share if r.cosine >= _MIN_COSINE else 0.0)
        used = [best] if denied or len(readings) == 1 else [best, whole]
        return self._weigh(used, denied, causes, clean, readings)

    def _weigh(self, used: list[_Reading], denied: frozenset[str], causes: Sequence[str], clean: str,
               readings: list[_Reading]) -> ReplyMeaning:
        share = max(r.share for r in used)
        main = max(used, key=lambda r: r.share)
        request, asked = "", 0.0
        for reading in [*used, *readings]:
            for repair, value in reading.request.items():
                if value > asked:
                    request, asked = repair, value
        # No repair takes its numbers from a person: "squeeze with 900 newtons" is none of the prepared ones.
        if asked < _MIN_ACT or re.search(r"\d", clean):
            request = ""
        act = max(main.act, key=lambda a: max(r.act[a] for r in used))
        act_value = max(r.act[act] for r in used)
        if act_value >= _MIN_ACT and act_value > share and main.cosine >= _MIN_COSINE:
            return ReplyMeaning.bare(Act(act), f"it reads as {act}", clean)
        if main.cosine < _MIN_COSINE or share < _MIN_SHARE:
            return ReplyMeaning.bare(Act.UNINFORMATIVE, f"it is not about the causes ({share:.2f})", clean)
        weights = {}
        for c in causes:
            weights[c] = 0.0 if c in denied else sum(self._with_requests(r, c, causes) for r in used)
        total = sum(weights.values())
        ranked = sorted(weights.values(), reverse=True)
        if total <= 0 or len(ranked) > 1 and (ranked[0] - ranked[1]) / total < _MIN_LEAD:
            return ReplyMeaning.bare(Act.UNINFORMATIVE, "it fits several causes alike", clean)
        # What is left of the probability speaks for no cause: it is spread over all of them.
        reason = f"{main.text!r} reads as {max(weights, key=weights.__getitem__)}"
        if request:
            reason = f"it asks to {self.vocabulary.repair(request).phrase}"
        return self._weighted(Act.CAUSE, weights, reason, clean, min(0.97, max(share, _MIN_SHARE)), request)

    def _with_requests(self, reading: _Reading, cause: str, causes: Sequence[str]) -> float:
        """A cause's probability, requests for its repair counted in part."""
        value = reading.cause[cause]
        for family in self.vocabulary.families.values():
            if cause in family.causes:
                mine = family.causes[cause].repair
                others = (1.0 - _REQUESTED) / max(1, len(causes) - 1)
                value += sum(asked * (_REQUESTED if repair == mine else others)
                             for repair, asked in reading.request.items())
        return value
