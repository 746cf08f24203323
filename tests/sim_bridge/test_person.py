"""The scripted person: right, vague and wrong as often as stated, and the same for the same seed."""

from collections import Counter

import pytest

from failure_dialogue.dialogue.acts import Act
from failure_dialogue.dialogue.replies import ReplyParser
from failure_dialogue.dialogue.text import clean_text
from failure_dialogue.errors import CostError, VocabularyError
from failure_dialogue.vocabulary import load_vocabulary
from sim_bridge.person import UNINFORMATIVE_SENTENCES, Kind, ScriptedPerson, sentences

VOCABULARY = load_vocabulary()
GRASP = list(VOCABULARY.family("grasp").causes)


@pytest.fixture(scope="module")
def parser():
    return ReplyParser(VOCABULARY)


def test_answers_are_right_vague_and_wrong_as_often_as_stated():
    person = ScriptedPerson(1)
    n = 4000
    count = Counter(person.answer("heavy_object", "grasp", f"e{i}").kind for i in range(n))
    for kind, share in ((Kind.RIGHT, 0.80), (Kind.UNINFORMATIVE, 0.15), (Kind.WRONG, 0.05)):
        assert count[kind] / n == pytest.approx(share, abs=4 * (share * (1 - share) / n) ** 0.5)


def test_wrong_answers_name_each_of_the_other_causes():
    person = ScriptedPerson(2, qc=0.0, qv=0.0, qw=1.0)
    named = {person.answer("weak_grip", "grasp", f"e{i}").cause for i in range(100)}
    assert named == set(GRASP) - {"weak_grip"}


def test_the_same_seed_and_episode_give_the_same_answer_and_others_do_not():
    a, b, c = (ScriptedPerson(s) for s in (7, 7, 8))
    keys = [f"e{i}" for i in range(50)]
    answers = [[p.reply("weak_grip", "grasp", k) for k in keys] for p in (a, b, c)]
    assert answers[0] == answers[1] != answers[2]
    assert a.reply("weak_grip", "grasp", "e3") == "As far as I could see, your grip was too weak."


def test_who_does_not_know_still_does_not_know_when_asked_again():
    person = ScriptedPerson(3)
    for i in range(200):
        assert (person.answer("weak_grip", "grasp", f"e{i}", 0).kind
                is person.answer("weak_grip", "grasp", f"e{i}", 1).kind)


@pytest.mark.parametrize("cause", GRASP)
def test_the_parser_understands_every_sentence(parser, cause):
    for text in sentences(VOCABULARY, "grasp", cause):
        meaning = parser.parse(text, "grasp")
        assert (meaning.act, meaning.cause) == (Act.CAUSE, cause), text
        assert max(meaning.likelihoods) > 0.8, text


def test_the_parser_finds_nothing_in_the_vague_ones(parser):
    for text in UNINFORMATIVE_SENTENCES:
        assert parser.parse(text, "grasp").act is Act.UNINFORMATIVE, text


def test_no_sentence_stands_in_the_bank(parser):
    said = [*UNINFORMATIVE_SENTENCES, *(s for c in GRASP for s in sentences(VOCABULARY, "grasp", c))]
    bank = {clean_text(text).strip(" .!?") for text in parser.bank.texts}
    assert not [s for s in said if clean_text(s).strip(" .!?") in bank]


@pytest.mark.parametrize("rates", [(0.8, 0.15, 0.1), (1.2, -0.2, 0.0)])
def test_rates_that_are_no_shares_are_refused(rates):
    with pytest.raises(CostError, match="their sum 1"):
        ScriptedPerson(1, *rates)


def test_an_unknown_cause_is_refused():
    with pytest.raises(VocabularyError, match="no_such"):
        ScriptedPerson(1).reply("no_such", "grasp", "e1")
