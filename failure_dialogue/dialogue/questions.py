"""The questions the robot asks: what it saw and what it wants to know, in two plain sentences."""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass, replace
from enum import Enum

from failure_dialogue.dialogue.bank import as_person_says
from failure_dialogue.errors import VocabularyError
from failure_dialogue.vocabulary import Vocabulary


class Form(str, Enum):
    """How a question is put (the values are those of Decision.question_form)."""

    WHICH_CAUSE = "which_cause"
    CONFIRM = "confirm"
    AGAIN = "again"


@dataclass(frozen=True)
class Question:
    """One question to the person beside the robot; as msg/Question.msg, with what the conversation needs.

    options are in the person's words, option_causes goes with them ("" where an option names no cause).
    timeout_s counts on a steady clock from the moment the question is asked.
    """

    question_id: str
    episode_id: str
    state_id: str
    text: str
    options: tuple[str, ...]
    option_causes: tuple[str, ...]
    family: str
    object_name: str
    form: Form
    grounds: str
    timeout_s: float

    @property
    def is_yes_no(self) -> bool:
        """Whether yes and no answer it."""
        return len([c for c in self.option_causes if c]) == 1

    @property
    def asked_cause(self) -> str:
        """The one cause a yes confirms; '' when several are offered."""
        return self.option_causes[0] if self.is_yes_no else ""


def evidence_note(seconds: float | None, stage: str, source: str, accuracy: float | None,
                  form: Form | str = Form.WHICH_CAUSE) -> str:
    """What goes behind the symptom: when it happened, and how far the source can be trusted.

    seconds into the stage; accuracy as measured at commissioning (0..1); None where not known.
    """
    when = f"{seconds:.1f} s into the {stage}" if seconds is not None else f"during the {stage}"
    if Form(form) is Form.CONFIRM:
        trust = ("has not been measured yet" if accuracy is None
                 else f"is right {100 * accuracy:.0f} % of the time")
        return f"{when}; my guess from the {source} {trust}"
    trust = "" if accuracy is None else f" (right {100 * accuracy:.0f} % of the time)"
    return f"{when}, and from the {source} I cannot tell why{trust}"


_VERB = re.compile(r"\b(was|is|were|are|has|had|did|does)\b")


def as_question(phrase: str) -> str:
    """A cause's phrase as a question without its mark: "my grip was too weak" to "was my grip too weak"."""
    match = _VERB.search(phrase)
    if not match or not match.start():
        return f"could it be that {phrase}"
    return f"{match.group()} {phrase[:match.start()].strip()} {phrase[match.end():].strip()}".strip()


def _either(parts: Sequence[str]) -> str:
    if len(parts) < 3:
        return " or ".join(parts)
    return ", ".join(parts[:-1]) + ", or " + parts[-1]


def _sentence(text: str) -> str:
    return text[:1].upper() + text[1:]


def make_question(vocabulary: Vocabulary, family: str, object_name: str, evidence_note: str,
                  causes: Sequence[str], form: Form | str, *, episode_id: str, state_id: str, number: int,
                  timeout_s: float, grounds: str = "") -> Question:
    """Question number (1, 2, ... within the episode) about the causes that are left, likeliest first.

    evidence_note follows the symptom ("0.6 s into the lift, and from the camera I cannot tell why"); grounds
    answer a "why?" (the note by default). CONFIRM takes one cause and offers its repair. VocabularyError for
    an unknown family or cause, or causes that do not suit the form.
    """
    form = Form(form)
    causes = tuple(dict.fromkeys(causes))
    known = [vocabulary.cause(family, name) for name in causes]
    if form is Form.CONFIRM and len(known) != 1 or form is Form.WHICH_CAUSE and len(known) < 2 or not known:
        raise VocabularyError(f"a question of form {form.value!r} cannot be asked about {len(known)} causes "
                              f"({', '.join(causes) or 'none'}); confirm takes one, which_cause two or more")
    thing = object_name.strip() or "object"
    symptom = vocabulary.family(family).symptom.format(object=thing)
    saw = _sentence(f"{symptom} {evidence_note.strip()}".strip().rstrip("."))
    one = known[0]
    offer = f"shall I {vocabulary.repair(one.repair).phrase}"
    phrases = [c.phrase for c in known]
    if form is Form.AGAIN and len(known) == 1:
        text = f"Sorry, I could not make that out. Please say yes or no: {offer}?"
    elif form is Form.AGAIN:
        numbered = "; ".join(f"{n}, {phrase}" for n, phrase in enumerate(phrases, 1))
        text = f"Sorry, I did not hear a cause in that. Which of these fits the {thing} best: {numbered}?"
    elif form is Form.CONFIRM:
        text = f"{saw}. I believe {one.phrase}: {offer}?"
    else:
        text = f"{saw}. {_sentence(_either([as_question(p) for p in phrases]))}?"
    options, option_causes = tuple(as_person_says(p) for p in phrases), causes
    if len(known) == 1:
        options, option_causes = ("yes", "no"), (one.name, "")
    return Question(f"{episode_id}-q{number}", episode_id, state_id, text, options, option_causes, family,
                    thing, form, (grounds or saw).rstrip(".") + ".", timeout_s)


def ask_again(question: Question, vocabulary: Vocabulary) -> Question:
    """The same question in other words, after a reply that could not be understood."""
    again = make_question(vocabulary, question.family, question.object_name, "",
                          [c for c in question.option_causes if c], Form.AGAIN,
                          episode_id=question.episode_id, state_id=question.state_id, number=0,
                          timeout_s=question.timeout_s)
    return replace(again, question_id=f"{question.question_id}-again", grounds=question.grounds)
