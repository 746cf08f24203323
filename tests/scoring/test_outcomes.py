"""What a final report is worth against the world."""

from failure_dialogue.scoring.outcomes import ScoredEpisode, summary_lines


def episode(claim, world_right, recoverable=True):
    return ScoredEpisode("weak_grip", "weak_grip", "recovered", claim, world_right, recoverable, 1.5, 0, 1)


def test_b_needs_both_the_world_and_the_words():
    assert episode("succeeded", True).claim_right
    assert not episode("succeeded", False).claim_right
    assert not episode("not_succeeded", True).claim_right
    assert not episode("cannot_tell", True).claim_right


def test_no_claim_neither_agrees_nor_disagrees():
    assert episode("cannot_tell", True).agrees is None
    assert episode("not_succeeded", False).agrees is True
    assert episode("succeeded", False).agrees is False


def test_the_summary_counts_false_success_among_the_claims_of_success():
    lines = "\n".join(
        summary_lines(
            [
                episode("succeeded", True),
                episode("succeeded", False),
                episode("not_succeeded", False, recoverable=False),
            ]
        )
    )
    assert "claimed success that was none: 0.500" in lines
    assert "world right among the recoverable: 0.500" in lines
    assert "world right in the end (W): 0.333" in lines


def test_nothing_to_sum_up_is_said():
    assert all("no such episode" in line for line in summary_lines([]))
