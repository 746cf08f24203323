"""Losses are counted from the stamps, so that a slow listener and a slow publisher are told apart."""

import pytest

from failure_dialogue.nodes.rates import summary


def test_a_full_stream_lost_nothing():
    result = summary([i * 0.002 for i in range(501)])
    assert result["lost"] == 0
    assert result["rate_hz"] == pytest.approx(500.0)


def test_each_missing_stamp_is_one_lost_message():
    stamps = [i * 0.002 for i in range(500) if i not in (100, 101, 102, 300)]
    result = summary(stamps)
    assert (result["received"], result["lost"]) == (496, 4)
    assert result["largest_gap_s"] == pytest.approx(0.008)


def test_two_messages_are_too_few_to_tell():
    assert summary([0.0, 0.002])["rate_hz"] is None
