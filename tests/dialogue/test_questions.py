"""Questions: plain, about the causes that are left, in two sentences, never twice in the same words."""

import re

import pytest

from failure_dialogue.dialogue.questions import Form, as_question, ask_again, evidence_note, make_question
from failure_dialogue.errors import VocabularyError


def test_a_question_says_what_was_seen_and_offers_the_causes(ask):
    question = ask()
    assert question.text == (
        "The milk slipped out of my gripper 0.6 s into the lift, and from the camera I cannot tell why "
        "(right 52 % "
        "of the time). Was my grip too weak, is the object heavier than I expected, or is the surface "
        "slippery?")
    assert question.options == ("your grip was too weak", "the object is heavier than you expected",
                                "the surface is slippery")
    assert question.option_causes == ("weak_grip", "heavy_object", "slippery_surface")
    assert not question.is_yes_no


def test_a_cause_that_was_excluded_is_not_mentioned(ask):
    question = ask(causes=["slippery_surface", "weak_grip"])
    assert "heav" not in question.text
    assert question.text.endswith("Is the surface slippery or was my grip too weak?")


def test_a_guess_is_put_as_an_offer_of_its_repair(ask):
    question = ask(Form.CONFIRM, ["slippery_surface"])
    assert "I believe the surface is slippery: shall I put on the high-friction finger pads" in question.text
    assert question.is_yes_no and question.asked_cause == "slippery_surface"
    assert question.options == ("yes", "no")


@pytest.mark.parametrize("form, causes", [(Form.WHICH_CAUSE, None), (Form.CONFIRM, None),
                                          (Form.WHICH_CAUSE, ["weak_grip", "slippery_surface"])])
def test_questions_fit_in_two_sentences_and_are_not_repeated_word_for_word(ask, vocabulary, form, causes):
    question = ask(form, causes)
    again = ask_again(question, vocabulary)
    for text in (question.text, again.text):
        assert len(re.findall(r"[.?!](?=\s|$)", text)) <= 2
    assert again.text != question.text
    assert again.option_causes == question.option_causes and again.options == question.options
    assert again.question_id != question.question_id
    assert (again.state_id, again.timeout_s, again.grounds) == (question.state_id, question.timeout_s,
                                                                question.grounds)


def test_question_ids_are_unique_within_an_episode(ask, vocabulary):
    questions = [ask(number=n) for n in (1, 2, 3)]
    ids = {q.question_id for q in questions} | {ask_again(q, vocabulary).question_id for q in questions}
    assert len(ids) == 6


def test_accuracy_that_was_not_measured_is_not_made_up():
    assert "%" not in evidence_note(None, "lift", "camera", None)
    assert "not been measured" in evidence_note(None, "lift", "camera", None, Form.CONFIRM)


@pytest.mark.parametrize("phrase, question", [
    ("my grip was too weak", "was my grip too weak"),
    ("the lid has been left on", "has the lid been left on"),
    ("somebody took it", "could it be that somebody took it")])
def test_a_phrase_becomes_a_question(phrase, question):
    assert as_question(phrase) == question


@pytest.mark.parametrize("form, causes, message", [
    ("confirm", ["weak_grip", "heavy_object"], "confirm takes one"),
    ("which_cause", ["weak_grip", "weak_grip"], "about 1 causes"),
    ("again", [], "about 0 causes"),
    ("which_cause", ["weak_grip", "no_such"], "unknown cause 'no_such'")])
def test_a_question_that_cannot_be_asked_is_refused(vocabulary, form, causes, message):
    with pytest.raises(VocabularyError, match=message):
        make_question(vocabulary, "grasp", "milk", "", causes, form, episode_id="e", state_id="s", number=1,
                      timeout_s=60.0)
