"""Facts about intervals and about how many staged failures settle a question."""

import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy.stats import binomtest

from failure_dialogue.errors import FailureDialogueError
from failure_dialogue.scoring.metrics import confusion, more_needed, rate_text, wilson


@given(st.integers(1, 500).flatmap(lambda n: st.tuples(st.integers(0, n), st.just(n))))
def test_wilson_agrees_with_scipy(counts):
    k, n = counts
    interval = binomtest(k, n).proportion_ci(confidence_level=0.95, method="wilson")
    low, high = wilson(k, n, z=1.959963984540054)
    assert low == pytest.approx(interval.low, abs=1e-9)
    assert high == pytest.approx(interval.high, abs=1e-9)


def test_25_episodes_give_an_interval_of_about_19_points_either_way():
    low, high = wilson(10, 25)
    assert 0.17 < (high - low) / 2 < 0.20


def test_all_right_out_of_80_still_leaves_five_percent_open():
    low, high = wilson(80, 80)
    assert high == 1.0
    assert low == pytest.approx(0.954, abs=0.001)


def test_nothing_measured_means_anything_is_possible():
    assert wilson(0, 0) == (0.0, 1.0)
    assert rate_text(0, 0) == "not measured (n=0)"


@pytest.mark.parametrize("counts", [(3, 2), (-1, 5), (0, -1)])
def test_impossible_counts_are_refused_with_the_counts_in_the_message(counts):
    with pytest.raises(FailureDialogueError, match=str(counts[0])):
        wilson(*counts)


def test_a_share_far_from_the_threshold_needs_no_more_episodes():
    assert more_needed(79, 80, 0.588) == 0


def test_a_share_beside_the_threshold_needs_more_the_closer_it_lies():
    near = more_needed(55, 100, 0.588)
    nearer = more_needed(57, 100, 0.588)
    assert 0 < near < nearer


def test_the_number_of_episodes_named_does_settle_the_side_and_one_fewer_does_not():
    more = more_needed(16, 25, 0.5)
    total = 25 + more
    low, _ = wilson(round(0.64 * total), total)
    assert low > 0.5
    low, _ = wilson(round(0.64 * (total - 1)), total - 1)
    assert low <= 0.5


def test_a_share_exactly_on_the_threshold_is_never_settled():
    assert more_needed(50, 100, 0.5) is None


def test_confusion_counts_by_true_cause_then_by_guess():
    assert confusion(["a", "a", "b"], ["a", "b", "b"]) == {"a": {"a": 1, "b": 1}, "b": {"b": 1}}


def test_confusion_needs_one_guess_for_each_truth():
    with pytest.raises(FailureDialogueError, match="2 true causes but 1"):
        confusion(["a", "a"], ["a"])
