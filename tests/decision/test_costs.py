"""Which stated costs are taken, and what is said of those that are not."""

import math

import pytest

from failure_dialogue.decision.costs import Answerer, Costs, load_costs
from failure_dialogue.errors import CostError


def test_the_shipped_costs_are_those_of_the_source():
    assert load_costs() == (Costs(retry=1, wrong_repair=10, ask=3, sense=0.5),
                            Answerer(correct=0.80, uninformative=0.15, wrong=0.05))


@pytest.mark.parametrize("value", [-1, math.nan, math.inf, "3", None, True])
def test_a_cost_that_is_no_number_of_at_least_0_is_refused_by_name_and_value(value):
    with pytest.raises(CostError, match="'ask'.*must be a finite|'ask'.*at least 0"):
        Costs(ask=value)


def test_answerer_rates_that_sum_to_more_than_1_are_refused_with_their_sum():
    with pytest.raises(CostError, match=r"sum to 1\.1; they must sum to 1"):
        Answerer(correct=0.9)


@pytest.mark.parametrize("value", [-0.05, 1.05, math.nan])
def test_a_rate_outside_0_to_1_is_refused(value):
    with pytest.raises(CostError, match="'wrong'"):
        Answerer(wrong=value)


def test_an_answer_that_names_a_cause_is_right_in_94_percent_by_default():
    assert Answerer().informative_accuracy == pytest.approx(0.80 / 0.85)


def test_an_answerer_who_never_names_a_cause_is_never_right():
    assert Answerer(0, 1, 0).informative_accuracy == 0


@pytest.mark.parametrize("text, complaint", [
    ("version: 2", "version 1"),
    ("[1, 2]", "version 1"),
    ("version: 1\ncosts: {retry: 1, wrong_repair: 10, ask: 3}", "costs.*must state retry.*sense"),
    ("version: 1\ncosts: {retry: 1, wrong_repair: 10, ask: 3, sense: 0.5, coffee: 1}", "coffee"),
    ("version: 1\ncosts: {retry: 1, wrong_repair: 10, ask: many, sense: 0.5}", "'many'"),
    ("version: [", "cannot be read as YAML"),
])
def test_a_malformed_cost_file_is_refused_with_its_path(tmp_path, text, complaint):
    path = tmp_path / "costs.yaml"
    path.write_text(text)
    with pytest.raises(CostError, match=complaint) as refusal:
        load_costs(path)
    assert "cost" in str(refusal.value)


def test_a_missing_cost_file_is_named(tmp_path):
    with pytest.raises(CostError, match="nowhere.yaml"):
        load_costs(tmp_path / "nowhere.yaml")
