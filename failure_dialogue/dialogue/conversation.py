"""One open question and what becomes of it: replies, silence, a second try. Time comes in as a number."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Protocol

from failure_dialogue.dialogue.acts import Act, is_stop
from failure_dialogue.dialogue.questions import Form, Question, ask_again
from failure_dialogue.dialogue.replies import ReplyMeaning
from failure_dialogue.dialogue.text import readable, short_text
from failure_dialogue.vocabulary import Vocabulary


@dataclass(frozen=True)
class PublishQuestion:
    """Put the question on its topic; it expires at this time on the steady clock."""

    question: Question
    deadline: float


@dataclass(frozen=True)
class PublishMeaning:
    """Put what was understood on its topic. question_id and the rest are '' for a stop without a question.

    times_asked: how often the question had been put by then (1, or 2 after an unclear reply).
    """

    meaning: ReplyMeaning
    question_id: str
    episode_id: str
    state_id: str
    who: str
    text: str
    times_asked: int


@dataclass(frozen=True)
class Say:
    """Tell the person; aloud where there is a voice, always in the terminal."""

    text: str


@dataclass(frozen=True)
class Close:
    """No reply to this question is taken any more."""

    question_id: str
    reason: str


Event = PublishQuestion | PublishMeaning | Say | Close


class Parser(Protocol):
    """What reads replies (ReplyParser)."""

    def parse(self, text: str | bytes | None, family: str | None,
              question: Question | None = None) -> ReplyMeaning:
        """The meaning of one reply; never fails on any text."""
        ...


class Conversation:
    """Holds at most one open question. Every call returns what to do about it, in order.

    | event | while a question is open | while none is |
    |---|---|---|
    | opened | the old question is closed, the new one asked | the question is asked |
    | stop, in any words, to any question | meaning stop, closed | meaning stop |
    | reply to another question | ignored, the person is told why | ignored, the person is told why |
    | cause, confirm, deny, takeover | the meaning, closed | ignored, the person is told why |
    | unclear reply | asked once more, in other words; then meaning uninformative, closed | ignored |
    | wait | meaning wait; the time starts again, once | ignored |
    | repeat, why | the meaning; the question or its grounds are said again | ignored |
    | time is up | meaning no_reply, closed | nothing |

    now is a number of seconds on a steady clock (a bag that loops or a clock that is set must not count as
    silence). The second wording has an id of its own; a clear reply to the first wording still counts.
    """

    def __init__(self, parser: Parser, vocabulary: Vocabulary) -> None:
        self._parser = parser
        self._vocabulary = vocabulary
        self._open: Question | None = None
        self._earlier_id = ""
        self._deadline = 0.0
        self._extended = False
        self._closed: dict[str, str] = {}

    @property
    def question(self) -> Question | None:
        """The open question."""
        return self._open

    @property
    def deadline(self) -> float | None:
        """When the open question expires, on the steady clock."""
        return self._deadline if self._open else None

    def opened(self, question: Question, now: float) -> tuple[Event, ...]:
        """Ask this question; it stays open for its timeout_s."""
        closed = self._close("a newer question was asked") if self._open else ()
        self._earlier_id = ""
        self._extended = False
        return (*closed, *self._ask(question, now))

    def on_reply(self, text: str | bytes | None, who: str, question_id: str, now: float) -> tuple[Event, ...]:
        """Take one reply; an empty question_id answers whichever question is open."""
        before = self.on_tick(now)
        question = self._open
        if is_stop(text):
            stop = self._meaning(ReplyMeaning.bare(Act.STOP, "it tells me to stop"), who, text)
            return (*before, stop, *(self._close(f"{who or 'somebody'} said stop") if question else ()))
        if question is None or question_id not in ("", question.question_id, self._earlier_id):
            return (*before, Say(self._why_ignored(question_id)))
        meaning = self._parser.parse(text, question.family, question)
        if meaning.act is Act.UNINFORMATIVE:
            if question.form is Form.AGAIN:
                if question_id and question_id == self._earlier_id:
                    return (*before, Say("I have asked that in other words since; please answer those."))
                return (*before, self._meaning(meaning, who, text), *self._close("the reply was not "
                                                                                 "understood twice"))
            self._earlier_id = question.question_id
            return (*before, *self._ask(ask_again(question, self._vocabulary), now))
        answer = self._meaning(meaning, who, text)
        if meaning.act is Act.WAIT:
            return (*before, answer, *self._wait(question, now))
        if meaning.act is Act.REPEAT:
            return (*before, answer, Say(question.text))
        if meaning.act is Act.WHY:
            return (*before, answer, Say(question.grounds))
        return (*before, answer, *self._close(f"{who or 'somebody'} answered: {meaning.act.value}"))

    def on_tick(self, now: float) -> tuple[Event, ...]:
        """Let time pass; call it a few times a second."""
        question = self._open
        if question is None or now < self._deadline:
            return ()
        meaning = ReplyMeaning.bare(Act.NO_REPLY, f"nobody answered within {question.timeout_s:g} s")
        return (self._meaning(meaning, "", ""), *self._close("nobody answered within "
                                                             f"{question.timeout_s:g} s"))

    def close(self, reason: str) -> tuple[Event, ...]:
        """Withdraw the open question because the episode went on without it."""
        return self._close(reason) if self._open else ()

    def _ask(self, question: Question, now: float) -> tuple[Event, ...]:
        self._open = question
        self._deadline = now + question.timeout_s
        return (PublishQuestion(question, self._deadline), Say(question.text))

    def _wait(self, question: Question, now: float) -> tuple[Event, ...]:
        if self._extended:
            return (Say(f"I can wait {max(0.0, self._deadline - now):.0f} s more, then I hold and call for "
                        "help."),)
        self._extended = True
        self._deadline = max(self._deadline, now + question.timeout_s)
        return (PublishQuestion(question, self._deadline), Say(f"I wait {self._deadline - now:.0f} s more."))

    def _meaning(self, meaning: ReplyMeaning, who: str, text: str | bytes | None) -> PublishMeaning:
        said, question = short_text(readable(text)), self._open
        if question is None:
            return PublishMeaning(meaning, "", "", "", who, said, 0)
        return PublishMeaning(meaning, question.question_id, question.episode_id, question.state_id, who,
                              said, 2 if question.form is Form.AGAIN else 1)

    def _close(self, reason: str) -> tuple[Event, ...]:
        assert self._open is not None
        question_id, self._open = self._open.question_id, None
        for name in filter(None, (question_id, self._earlier_id)):
            self._closed[name] = reason
        while len(self._closed) > 100:  # enough to explain a late reply; a robot runs for months
            self._closed.pop(next(iter(self._closed)))
        return (Close(question_id, reason),)

    def _why_ignored(self, question_id: str) -> str:
        asks = ("Please answer the question that is open now" if self._open
                else "I am asking nothing at the moment")
        if question_id in self._closed:
            return f"That answers a question that is closed ({self._closed[question_id]}). {asks}."
        if question_id:
            name = readable(question_id)[:60]
            return f"That answers a question I did not ask ({name}). {asks}."
        return f"{asks}, so I do nothing with that."
