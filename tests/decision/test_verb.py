"""What `failure-dialogue decide` prints."""

import json

import pytest
from click.testing import CliRunner

from failure_dialogue.decision.verb import command
from failure_dialogue.errors import CostError


def run(*args):
    result = CliRunner().invoke(command, args, catch_exceptions=True)
    if result.exception is not None and not isinstance(result.exception, SystemExit):
        raise result.exception
    return result.output


def test_40_percent_asks_with_the_numbers_of_the_source():
    answer = json.loads(run("--accuracy", "0.4", "--json"))
    assert answer["action"] == "ask"
    assert answer["threshold"] == pytest.approx(0.588, abs=5e-4)
    assert answer["expected_cost"] == {"act": pytest.approx(7.0), "ask": pytest.approx(5.4)}
    assert answer["interval"] is None


def test_with_n_it_gives_the_interval():
    answer = json.loads(run("--accuracy", "0.4", "--n", "25", "--json"))
    assert answer["interval"] == [pytest.approx(0.234, abs=1e-3), pytest.approx(0.593, abs=1e-3)]
    assert "contains p*" in run("--accuracy", "0.4", "--n", "25")


def test_where_asking_never_pays_the_threshold_is_null_and_it_acts():
    answer = json.loads(run("--accuracy", "0.1", "--ask", "10", "--json"))
    assert answer["threshold"] is None and answer["regime"] == "never" and answer["action"] == "act"
    assert "DECISION: ACT" in run("--accuracy", "0.1", "--ask", "10").upper()


def test_qwen_senses_at_ca_6_and_asks_at_ca_3():
    sensing = ("--accuracy", "0.314", "--sense-accuracy", "0.514", "--json")
    assert json.loads(run(*sensing, "--ask", "6"))["action"] == "sense"
    assert json.loads(run(*sensing, "--ask", "3"))["action"] == "ask"


def test_a_stated_answerer_replaces_that_of_the_file():
    answer = json.loads(run("--accuracy", "0.4", "--qc", "1", "--qv", "0", "--qw", "0", "--json"))
    assert answer["threshold"] == pytest.approx(0.7)
    assert answer["costs"]["ask"] == 3


@pytest.mark.parametrize("args, complaint", [
    (("--accuracy", "1.4"), "1.4"),
    (("--accuracy", "nan"), "nan"),
    (("--accuracy", "0.4", "--ask", "-1"), "-1"),
    (("--accuracy", "0.4", "--qc", "0.9"), "sum to 1.1"),
    (("--accuracy", "0.4", "--n", "0"), "n is 0"),
    (("--accuracy", "0.4", "--sense-accuracy", "2"), "2"),
])
def test_numbers_for_which_there_is_no_decision_are_refused_by_value(args, complaint):
    with pytest.raises(CostError, match=complaint):
        run(*args)
