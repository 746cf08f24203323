"""The bank of phrasings: checked against the vocabulary, extended by adding lines to YAML."""

import pytest
import yaml

from failure_dialogue.dialogue.acts import Act
from failure_dialogue.dialogue.bank import Denial, as_person_says, load_bank
from failure_dialogue.dialogue.replies import ReplyParser
from failure_dialogue.errors import VocabularyError
from failure_dialogue.paths import config_file
from failure_dialogue.vocabulary import load_vocabulary


def shipped():
    return yaml.safe_load(config_file("replies.yaml").read_text(encoding="utf-8"))


def written(tmp_path, data):
    path = tmp_path / "replies.yaml"
    path.write_text(yaml.safe_dump(data), encoding="utf-8")
    return path


def test_added_phrases_are_understood(vocabulary, parser, tmp_path):
    text = "it was a proper schlonker"
    assert parser.parse(text, "grasp").cause != "heavy_object"
    data = shipped()
    data["causes"]["heavy_object"]["phrases"]["menu"] += [
        "a schlonker", "that one is a schlonker", "it's a real schlonker", "schlonker", "what a schlonker"]
    assert ReplyParser(vocabulary, written(tmp_path, data)).parse(text, "grasp").cause == "heavy_object"


def test_a_cause_added_to_both_files_is_understood_without_code(tmp_path):
    failures = yaml.safe_load(config_file("failures.yaml").read_text(encoding="utf-8"))
    failures["families"]["grasp"]["causes"]["hot_object"] = {
        "phrase": "the object is too hot to hold", "repair": "raise_grip"}
    (tmp_path / "failures.yaml").write_text(yaml.safe_dump(failures))
    vocabulary = load_vocabulary(tmp_path / "failures.yaml")
    with pytest.raises(VocabularyError, match="hot_object.*add at least 4 more"):
        load_bank(vocabulary)
    data = shipped()
    data["causes"]["hot_object"] = {"words": ["hot", "burn*"], "phrases": {"menu": [
        "it is too hot", "the pot is hot", "it burns your fingers", "it just came out of the oven",
        "it is boiling"]}}
    parser = ReplyParser(vocabulary, written(tmp_path, data))
    assert parser.parse("careful, that thing is very hot", "grasp").cause == "hot_object"
    assert parser.parse("it isn't hot, it is greasy", "grasp").cause == "slippery_surface"


@pytest.mark.parametrize("spoil, message", [
    (lambda d: d.pop("acts"), "no section 'acts'"),
    (lambda d: d["causes"].update(nope={"phrases": {}}), "cause 'nope' is not in failures.yaml"),
    (lambda d: d["causes"]["weak_grip"].pop("phrases"), "no mapping 'phrases'"),
    (lambda d: d["causes"]["weak_grip"]["phrases"].update(menu=[True]), "put quotes around yes, no"),
    (lambda d: d["causes"]["weak_grip"].update(words="weak"), "must be a list"),
    (lambda d: d["requests"].update(fly=["fly away"]), "unknown repair 'fly'"),
    (lambda d: d["acts"].update(dance=["dance"]), "act 'dance' is unknown"),
    (lambda d: d["acts"].update(wait=["wait"]), "1 phrasings of act 'wait'")])
def test_a_bank_that_does_not_fit_says_what_to_mend(vocabulary, tmp_path, spoil, message):
    data = shipped()
    spoil(data)
    with pytest.raises(VocabularyError, match=message):
        load_bank(vocabulary, written(tmp_path, data))


def test_a_bank_that_is_no_yaml_is_named(vocabulary, tmp_path):
    path = tmp_path / "broken.yaml"
    path.write_text("causes: [")
    with pytest.raises(VocabularyError, match="broken.yaml cannot be read"):
        load_bank(vocabulary, path)


HEAVY = Denial(["heavy", "weigh*"], ["light", "empty", "weighs nothing"], ["weight", "load"])
GRIP = Denial(["weak*", "loose*"], ["tight", "firm", "tight enough"], ["grip", "fingers"])


@pytest.mark.parametrize("denial, text", [
    (HEAVY, "not heavy"), (HEAVY, "it isn't really that heavy"), (HEAVY, "it doesn't weigh much"),
    (HEAVY, "the weight is fine"), (HEAVY, "it's not the weight"), (HEAVY, "it is quite light"),
    (HEAVY, "weight's no problem"), (HEAVY, "it weighs nothing"), (HEAVY, "nothing to do with the load"),
    (GRIP, "your grip was fine"), (GRIP, "it is not about your grip"), (GRIP, "you held it tight"),
    (GRIP, "nothing wrong with your fingers"), (GRIP, "you had a firm hold")])
def test_denials(denial, text):
    assert denial.holds(text)


@pytest.mark.parametrize("denial, text", [
    (HEAVY, "it is heavy"), (HEAVY, "not only heavy"), (HEAVY, "it is not light"), (HEAVY,
                                                                                    "no wonder, it is heavy"),
    (HEAVY, "the light is on"), (GRIP, "it was not held tight"), (GRIP, "not the right grip"),
    (GRIP, "you did not grip it hard"), (GRIP, "your grip should be tight"), (GRIP, "the grip was weak"),
    (HEAVY, "")])
def test_no_denials(denial, text):
    assert not denial.holds(text)


def test_a_phrase_is_turned_round_for_the_person():
    assert as_person_says("my grip was too weak") == "your grip was too weak"
    assert as_person_says("heavier than I expected") == "heavier than you expected"


def test_every_act_but_those_without_words_has_phrasings(parser):
    named = {label.name for label in parser.bank.labels if label.kind == "act"}
    assert named == {a.value for a in Act} - {"cause", "uninformative", "no_reply"}
