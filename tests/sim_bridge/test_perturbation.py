"""What is drawn for an episode, and that it follows from its seed."""

import math

import numpy as np
import pytest

from failure_dialogue.errors import ConfigError, SceneError, VocabularyError
from failure_dialogue.vocabulary import load_vocabulary
from sim_bridge.objects import OBJECTS, PRELOAD, USABLE_TASKS, object_of_task
from sim_bridge.perturbation import STAGED_CAUSES, draw_scenario, severity_range

VOCABULARY = load_vocabulary()
MILK = OBJECTS["milk"]


def draw(seed, cause=None, severity=math.nan):
    return draw_scenario(np.random.default_rng(seed), MILK, 50, VOCABULARY, cause, severity)


def test_every_grasp_cause_of_the_vocabulary_can_be_staged():
    assert set(STAGED_CAUSES) == set(VOCABULARY.family("grasp").causes)


def test_the_nominal_grasp_holds_in_every_unperturbed_draw():
    margins = [draw(seed).margin(MILK.setpoint_n) for seed in range(500)]
    assert min(margins) > 1.15
    assert np.mean(margins) == pytest.approx(1.6, abs=0.05)


def test_a_cause_changes_its_own_quantity_and_nothing_else():
    clean = draw(7)
    weak, heavy, slippery = (draw(7, cause) for cause in STAGED_CAUSES)
    assert weak.grip_scale == pytest.approx(clean.grip_scale * weak.severity)
    assert heavy.mass_kg == pytest.approx(clean.mass_kg * heavy.severity)
    assert slippery.friction == slippery.severity
    assert weak.mass_kg == slippery.mass_kg == clean.mass_kg
    assert weak.friction == heavy.friction == clean.friction
    assert {s.init_state for s in (weak, heavy, slippery)} == {clean.init_state}
    assert {s.hand_offset_m for s in (weak, heavy, slippery)} == {clean.hand_offset_m}


@pytest.mark.parametrize("cause", STAGED_CAUSES)
def test_severities_fill_the_range_of_the_vocabulary(cause):
    low, high = severity_range(VOCABULARY, cause)
    drawn = [draw(seed, cause).severity for seed in range(300)]
    assert low <= min(drawn) < low + 0.05 * (high - low)
    assert high - 0.05 * (high - low) < max(drawn) <= high


def test_a_severity_outside_the_range_a_lone_severity_and_an_unknown_cause_are_refused():
    with pytest.raises(ConfigError, match="0.95.*0.2..0.8"):
        draw(1, "weak_grip", 0.95)
    with pytest.raises(ConfigError, match="without a cause"):
        draw(1, None, 0.5)
    with pytest.raises(VocabularyError, match="bad_luck"):
        draw(1, "bad_luck")


def test_an_ordinary_attempt_crushes_nothing_and_a_payload_grip_crushes_an_ordinary_package():
    for target in OBJECTS.values():
        assert PRELOAD * 1.05 * target.setpoint_n < target.crush_limit_n(full=False)
        assert 2.9 * 1.05 * target.setpoint_n < target.crush_limit_n(full=True)
    assert 2.9 * 0.95 * MILK.setpoint_n > MILK.crush_limit_n(full=False)


def test_at_least_six_objects_can_be_the_target_and_two_are_held_out():
    assert len(USABLE_TASKS) >= 6
    assert sum(o.held_out for o in OBJECTS.values()) == 2
    assert [object_of_task(task).name for task in USABLE_TASKS[:2]] == ["alphabet_soup", "salad_dressing"]
    with pytest.raises(SceneError, match="task 1 "):
        object_of_task(1)
