"""The rule by which two witnesses make one verdict."""

import pytest

from failure_dialogue.recheck.verdict import Claim, Reading, Verdict, Witness, judge

PASS, FAIL, ABSTAIN = Verdict.PASS, Verdict.FAIL, Verdict.ABSTAIN


def says(name, verdict, **flags):
    reading = Reading(name, 1.0, "1", 0.5, verdict)
    return Witness(name, verdict, f"{name} says {verdict.value}", (reading,), **flags)


@pytest.mark.parametrize("gripper, camera, verdict, claim", [
    (PASS, PASS, PASS, Claim.SUCCEEDED),
    (FAIL, FAIL, FAIL, Claim.NOT_SUCCEEDED),
    (FAIL, ABSTAIN, FAIL, Claim.NOT_SUCCEEDED),
    (ABSTAIN, FAIL, FAIL, Claim.NOT_SUCCEEDED),
    (PASS, FAIL, ABSTAIN, Claim.CANNOT_TELL),
    (FAIL, PASS, ABSTAIN, Claim.CANNOT_TELL),
    (PASS, ABSTAIN, ABSTAIN, Claim.CANNOT_TELL),
    (ABSTAIN, PASS, ABSTAIN, Claim.CANNOT_TELL),
    (ABSTAIN, ABSTAIN, ABSTAIN, Claim.CANNOT_TELL),
])
def test_two_witnesses_one_verdict(gripper, camera, verdict, claim):
    judgement = judge(says("gripper", gripper), says("camera", camera))
    assert (judgement.verdict, judgement.claim) == (verdict, claim)
    assert "gripper says" in judgement.reason and "camera says" in judgement.reason
    assert len(judgement.readings) == 2


def test_an_object_out_of_sight_in_the_basket_passes_on_the_grippers_word():
    unseen = says("camera", ABSTAIN, release_unseen=True)
    assert judge(says("gripper", PASS), unseen).verdict is PASS
    assert judge(says("gripper", ABSTAIN), unseen).verdict is ABSTAIN
    assert judge(says("gripper", FAIL), unseen).verdict is FAIL


def test_a_damaged_object_fails_wherever_it_lies():
    assert judge(says("gripper", FAIL, damage=True), says("camera", PASS)).verdict is FAIL


def test_a_disagreement_is_named():
    assert "disagree" in judge(says("gripper", PASS), says("camera", FAIL)).reason
