"""The numbers of the source's section III-C and V, and what holds at every cost."""

import math

import pytest
from hypothesis import assume, given
from hypothesis import strategies as st

from failure_dialogue.decision.costs import Answerer, Costs
from failure_dialogue.decision.threshold import Regime, ev_act, ev_ask, ev_sense, threshold
from failure_dialogue.errors import CostError

DEFAULT = Costs()
PERSON = Answerer()

costs_st = st.builds(Costs, retry=st.floats(0, 5), wrong_repair=st.floats(0, 100), ask=st.floats(0, 100),
                     sense=st.floats(0, 10))
answerer_st = st.tuples(st.floats(0, 1), st.floats(0, 1)).map(
    lambda ab: Answerer(min(ab), 1 - max(ab), max(ab) - min(ab)))
share = st.floats(0, 1)


def test_p_star_is_0_588_at_the_default_costs():
    assert threshold(DEFAULT, PERSON).p_star == pytest.approx(0.588, abs=5e-4)


@pytest.mark.parametrize("ask, p_star", [(1, 0.82), (3, 0.59), (6, 0.24)])
def test_the_threshold_moves_with_the_cost_of_a_question(ask, p_star):
    assert threshold(Costs(ask=ask), PERSON).p_star == pytest.approx(p_star, abs=0.005)


def test_at_10_retries_a_question_never_pays():
    limit = threshold(Costs(ask=10), PERSON)
    assert limit.regime is Regime.NEVER
    assert math.isnan(limit.p_star)
    assert limit.formula < 0
    assert not any(limit.asks_at(p / 10) for p in range(11))


@pytest.mark.parametrize("p, act, ask", [(0.4, 7.0, 5.4), (0.8, 3.0, 4.8)])
def test_a_40_percent_diagnosis_asks_and_an_80_percent_one_acts(p, act, ask):
    assert ev_act(p, DEFAULT) == pytest.approx(act)
    assert ev_ask(p, DEFAULT, PERSON) == pytest.approx(ask)
    assert threshold(DEFAULT, PERSON).asks_at(p) == (ask < act)


def test_with_telemetry_at_0_514_asking_beats_sensing_at_ca_3():
    assert ev_ask(0.314, DEFAULT, PERSON) == pytest.approx(5.53, abs=0.005)
    assert ev_sense(0.514, DEFAULT, PERSON, asking_possible=False) == pytest.approx(6.36, abs=0.005)


def test_with_telemetry_at_0_514_sensing_beats_asking_and_acting_at_ca_6():
    dear = Costs(ask=6)
    sense = ev_sense(0.514, dear, PERSON)
    assert sense == pytest.approx(6.36, abs=0.005)
    assert sense < ev_ask(0.314, dear, PERSON)
    assert sense < ev_act(0.314, dear)


def test_asking_after_sensing_makes_a_weak_sensor_worth_more():
    assert ev_sense(0.514, DEFAULT, PERSON) == pytest.approx(0.5 + ev_ask(0.514, DEFAULT, PERSON))


def eq_3(costs, answerer):
    """Eq. 3 as printed."""
    top = ((1 - answerer.uninformative) * (costs.wrong_repair + costs.retry) - costs.ask
           - answerer.correct * costs.retry - answerer.wrong * (costs.wrong_repair + costs.retry))
    return top / ((1 - answerer.uninformative) * costs.wrong_repair)


@given(costs_st, answerer_st)
def test_the_formula_is_eq_3_as_printed(costs, answerer):
    assume(costs.wrong_repair > 0.1 and answerer.uninformative < 0.9)
    assert threshold(costs, answerer).formula == pytest.approx(eq_3(costs, answerer), abs=1e-6)


@given(costs_st, answerer_st)
def test_acting_and_asking_cost_the_same_at_p_star(costs, answerer):
    limit = threshold(costs, answerer)
    assume(limit.regime is Regime.BELOW_THRESHOLD and 1 - answerer.uninformative > 1e-6)
    assert ev_act(limit.p_star, costs) == pytest.approx(ev_ask(limit.p_star, costs, answerer), abs=1e-6)


@given(costs_st, answerer_st, share)
def test_the_threshold_asks_exactly_where_asking_is_expected_to_cost_less(costs, answerer, p):
    act, ask = ev_act(p, costs), ev_ask(p, costs, answerer)
    assume(abs(act - ask) > 1e-6)
    assert threshold(costs, answerer).asks_at(p) == (ask < act)


@given(costs_st, answerer_st, share)
def test_a_dearer_question_never_makes_the_robot_ask_where_it_did_not(costs, answerer, p):
    dearer = Costs(costs.retry, costs.wrong_repair, costs.ask + 1, costs.sense)
    assert not threshold(dearer, answerer).asks_at(p) or threshold(costs, answerer).asks_at(p)


def test_free_questions_that_are_never_answered_wrongly_are_always_worth_asking():
    limit = threshold(Costs(ask=0), Answerer(0.85, 0.15, 0))
    assert limit.regime is Regime.ALWAYS
    assert limit.asks_at(0.999)


@pytest.mark.parametrize("costs, answerer", [(Costs(wrong_repair=0), PERSON), (DEFAULT, Answerer(0, 1, 0))])
def test_a_harmless_wrong_repair_or_a_useless_answerer_means_never_ask(costs, answerer):
    limit = threshold(costs, answerer)
    assert limit.regime is Regime.NEVER
    assert "never pays" in limit.why
    assert not limit.asks_at(0.0)
    assert ev_ask(0.0, costs, answerer) >= ev_act(0.0, costs)


@pytest.mark.parametrize("p", [-0.1, 1.1, math.nan])
def test_an_accuracy_outside_0_to_1_is_refused(p):
    for attempt in (lambda: ev_act(p, DEFAULT), lambda: ev_ask(p, DEFAULT, PERSON),
                    lambda: ev_sense(p, DEFAULT, PERSON), lambda: threshold(DEFAULT, PERSON).asks_at(p)):
        with pytest.raises(CostError, match="0..1"):
            attempt()
