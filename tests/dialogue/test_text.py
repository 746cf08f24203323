"""Hygiene of what people and recognisers send, and how a reply falls into statements."""

import pytest

from failure_dialogue.dialogue.text import MAX_CHARACTERS, clauses, clean_text, readable, short_text, versions


@pytest.mark.parametrize("raw, clean", [
    (b"\xff\xfe\x00", ""), (b"it is \xffheavy", "it is heavy"), ("\ud800wet", "wet"), (None, ""), ("", ""),
    ("   ", ""),
    ("It’s   WET\n\r\t", "it's wet"), ("\u202eit is wet\u202c", "it is wet"),
    ("ｗｅｔ", "wet"),
    ("<b>wet</b>", "wet"),
    ("it isnt heavy", "it isn't heavy"), ("😀 wet", "😀 wet"), ("we\x00t", "wet")])
def test_any_input_becomes_plain_text(raw, clean):
    assert clean_text(raw) == clean


def test_what_is_kept_for_people_keeps_its_capitals():
    assert readable(b"It is WET \xff") == "It is WET"


def test_long_text_is_cut_between_words():
    cut = short_text("heavy " * 5000)
    assert len(cut) <= MAX_CHARACTERS and cut.endswith("heavy")
    assert len(short_text("x" * 10_000)) == MAX_CHARACTERS


@pytest.mark.parametrize("text, parts", [
    ("not heavy, just oily", ["not heavy", "just oily"]),
    ("your grip was fine but the thing is wet", ["your grip was fine", "the thing is wet"]),
    ("it is oily not heavy", ["it is oily", "not heavy"]),
    ("it is not heavy", ["it is not heavy"]),
    ("you closed and it slid", ["you closed", "it slid"]),
    ("...", ["..."])])
def test_a_reply_falls_into_its_statements(text, parts):
    assert clauses(text) == parts


@pytest.mark.parametrize("text, said", [
    ("too heavy, no wait, it's wet", ["too heavy", "it's wet"]),
    ("the weight... sorry, i mean the grip", ["the weight", "the grip"]),
    ("wet, or rather greasy", ["wet", "greasy"]),
    ("no, it is wet", ["no, it is wet"]),
    ("wait", ["wait"])])
def test_a_self_correction_is_seen(text, said):
    assert versions(text) == said
