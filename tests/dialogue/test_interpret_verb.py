"""failure-dialogue interpret: one reply or a file of them, as text or JSON."""

import json

import pytest
from click.testing import CliRunner

from failure_dialogue.dialogue.interpret_verb import command
from failure_dialogue.errors import ConfigError, VocabularyError


@pytest.fixture(autouse=True)
def loaded(parser, monkeypatch, request):
    """The parser that is loaded already; one test loads its own, as the command does."""
    if "in_order" not in request.node.name:
        monkeypatch.setattr("failure_dialogue.dialogue.interpret_verb.ReplyParser", lambda vocabulary: parser)


def run(*arguments):
    return CliRunner().invoke(command, list(arguments))


def test_json_says_act_cause_likelihoods_and_request():
    out = json.loads(run("--family", "grasp", "--json", "put the rubber pads on").output)
    assert out["act"] == "cause" and out["cause"] == "slippery_surface"
    assert out["requested_repair"] == "grip_pads"
    assert sum(out["causes"].values()) == pytest.approx(1.0, abs=1e-3)


def test_nothing_known_is_null():
    out = json.loads(run("--json", "no idea").output)
    assert (out["act"], out["cause"], out["causes"], out["requested_repair"]) == ("uninformative", None, {},
                                                                                  None)


def test_plain_output_names_the_reading():
    out = run("it is far too heavy").output
    assert "act: cause, cause: heavy_object" in out and "because" in out


def test_a_file_gives_one_line_each_in_order(tmp_path):
    path = tmp_path / "replies.jsonl"
    path.write_text('{"family": "grasp", "text": "it is oily"}\n\n{"family": null, "text": "stop"}\n')
    lines = [json.loads(line) for line in run("--file", str(path)).output.splitlines()]
    assert [line["act"] for line in lines] == ["cause", "stop"]


@pytest.mark.parametrize("line", ["{", "[1]", '{"family": "grasp"}', '{"text": 5}', "\xff"])
def test_a_bad_line_is_named(tmp_path, line):
    path = tmp_path / "replies.jsonl"
    path.write_bytes(b'{"text": "wet"}\n' + line.encode("latin-1") + b"\n")
    with pytest.raises(ConfigError, match="line 2"):
        CliRunner().invoke(command, ["--file", str(path)], catch_exceptions=False)


def test_an_unknown_family_is_refused():
    with pytest.raises(VocabularyError, match="unknown family 'nope'"):
        CliRunner().invoke(command, ["--family", "nope", "hello"], catch_exceptions=False)


def test_either_text_or_file():
    assert run().exit_code == 2
