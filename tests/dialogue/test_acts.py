"""Words that need no model: stop above all, yes and no, and an option's number."""

import time

import pytest

from failure_dialogue.dialogue.acts import Act, chosen_option, is_stop, leading_answer, spoken_act
from failure_dialogue.dialogue.text import clean_text

STOPS = [
    "stop", "Stop!", "STOP", "stop it", "please stop", "stop right there", "robot stop", "hey, stop that now",
    "stopp", "stoooop", "no no stop", "it is tipping over stop stop stop", "oh it falls, stop the arm please",
    "halt", "abort", "abort the task", "freeze", "cancel that", "cancel", "quit it", "forget it",
    "Forget about it.",
    "never mind", "leave it alone", "leave it", "just leave it there", "hands off", "call it off", "give up",
    "don't move", "do not touch it", "don't try again", "enough", "that's enough", "knock it off",
    "cut it out",
    "back off", "stand down", "stay away from it", "emergency stop", "shut down", "turn it off",
    "no more attempts",
    "we're done here", "I want you to stop", "you should stop now", "could you stop please",
    "I told you to stop",
    "can you stop", "make it stop", "it is too heavy, stop", "cease", "let's stop", "ok stop squeezing it",
    "s t o p is spelled stop", "well stop then", "drop it", "skip it", "just stop what you are doing",
    "yes but stop first", "it is the weight so stop", "\u202estop\u202c", "ＳＴＯＰ", "stop\x00"]

NO_STOPS = [
    "it stopped halfway", "the arm stopped and then it fell", "it came to a full stop",
    "it would not stop slipping",
    "it didn't stop", "don't stop", "pads would stop it sliding", "you need rubber to stop it slipping",
    "before you stopped the fingers opened", "why did you stop", "when you stop it slides",
    "it never stops sliding",
    "the stop button is over there", "the bus stop is around the corner", "nonstop", "squeeze harder",
    "it is heavy",
    "the surface is slippery", "let me do it", "leave it to me", "it came out of the freezer",
    "a stopper is in it",
    "hold it tighter", "not strong enough", "drop in pressure of the fingers",
    "it had hard edges and stopped the jaws",
    "try again", "it is freezing cold and dewy", "end of the line", "wait a moment", "the top is wet", "yes",
    "no"]


@pytest.mark.parametrize("text", STOPS)
def test_stop_is_heard_in_many_words(text):
    assert is_stop(text)


def test_stop_is_heard_at_the_end_of_a_very_long_reply():
    assert is_stop("and then it went on and on " * 500 + ". Stop!")


@pytest.mark.parametrize("text", NO_STOPS)
def test_other_replies_do_not_stop_the_robot(text):
    assert not is_stop(text)


def test_stop_needs_no_model_and_no_time():
    start = time.perf_counter()
    for text in STOPS + NO_STOPS:
        is_stop(text)
    assert (time.perf_counter() - start) / len(STOPS + NO_STOPS) < 0.005


@pytest.mark.parametrize("text, act", [
    ("Yes.", Act.CONFIRM), ("yeah, sure", Act.CONFIRM), ("go ahead please", Act.CONFIRM), ("No!", Act.DENY),
    ("none of those", Act.DENY), ("no, not really", Act.DENY), ("hang on a second", Act.WAIT),
    ("wait, let me check", Act.WAIT), ("give me a minute please", Act.WAIT), ("Pardon?", Act.REPEAT),
    ("could you say that again", Act.REPEAT), ("why?", Act.WHY), ("how do you know that", Act.WHY),
    ("I'll do it myself", Act.TAKEOVER), ("no, leave it to me", Act.TAKEOVER)])
def test_short_acts(text, act):
    assert spoken_act(clean_text(text)) is act


@pytest.mark.parametrize("text", ["it is heavy", "no friction on it", "right side is wet", "no idea",
                                  "hold it tighter",
                                  "what a heavy thing", ""])
def test_statements_are_no_acts(text):
    assert spoken_act(clean_text(text)) is None


@pytest.mark.parametrize("text, act, rest", [
    ("no, it is oily", Act.DENY, "it is oily"), ("yes squeeze harder", Act.CONFIRM, "squeeze harder"),
    ("no friction on it", None, "no friction on it"), ("nobody saw it", None, "nobody saw it")])
def test_a_yes_or_no_in_front_of_more(text, act, rest):
    assert leading_answer(text) == (act, rest)


@pytest.mark.parametrize("text, choice", [
    ("2", 1), ("2.", 1), ("(3)", 2), ("b", 1), ("a", 0), ("option c", 2), ("number one", 0),
    ("the second one", 1),
    ("I think the third one", 2), ("the last one please", 2), ("#1", 0), ("3rd", 2), ("4", None), ("0", None),
    ("d", None), ("99", None), ("2 kilos", None), ("there are 2 of them", None), ("a heavy one", None), ("",
                                                                                                         None)])
def test_options_by_number_letter_and_place(text, choice):
    assert chosen_option(clean_text(text), 3) == choice
