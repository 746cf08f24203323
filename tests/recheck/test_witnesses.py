"""What the gripper and the camera can testify to, and when they must not."""

import dataclasses

import numpy as np
import pytest

from failure_dialogue.evidence import WrenchSeries
from failure_dialogue.recheck.verdict import Verdict
from failure_dialogue.recheck.witnesses import camera_witness, changed_share, gripper_witness
from failure_dialogue.robots.panda import PANDA
from tests.fakes.carried_object import carried_object
from tests.fakes.tabletop import CAMERA, still

PASS, FAIL, ABSTAIN = Verdict.PASS, Verdict.FAIL, Verdict.ABSTAIN
GRASP_M, RELEASE_M = np.array([-0.2, 0.05, 0.03]), np.array([0.25, -0.1, 0.03])


def gripper(**case):
    return gripper_witness(carried_object(**case), PANDA)


@pytest.mark.parametrize("case", [
    {}, {"seed": 3}, {"load_n": 15.0},
    {"drift_n_s": 0.1}, {"drift_n_s": -0.1},  # over 12 s as much as a third of the load
    {"set_down_s": 0.6},                      # it touched the ground before the fingers opened
    {"leans_n": 50.0},                        # the rest before the grasp was none
    {"width_m": 0.077},                       # nearly as wide as the open hand
])
def test_an_object_held_until_the_release_passes(case):
    assert gripper(**case).verdict is PASS


@pytest.mark.parametrize("lost_at_s", [104.3, 105.2, 106.0, 108.5])
def test_an_object_lost_before_the_release_fails_though_the_motion_went_on(lost_at_s):
    witness = gripper(lost_at_s=lost_at_s)
    assert witness.verdict is FAIL and "lost" in witness.reason


def test_fingers_that_closed_on_nothing_fail():
    assert "on nothing" in gripper(width_m=0.001).reason
    assert gripper(width_m=0.001).verdict is FAIL


def test_an_object_that_gives_way_under_the_grip_is_damaged():
    witness = gripper(crushed_m=0.008)
    assert witness.verdict is FAIL and witness.damage and "8." in witness.reason
    assert gripper(crushed_m=0.001).verdict is PASS


def test_a_motion_that_ended_with_the_grasp_carried_nothing():
    crushed = gripper(crushed_m=0.008, last="close")
    assert crushed.verdict is FAIL and crushed.damage
    stopped = gripper(last="close")
    assert stopped.verdict is FAIL and "nothing was lifted" in stopped.reason and not stopped.damage
    assert gripper(last="rest").verdict is ABSTAIN


def test_a_motion_without_a_release():
    assert gripper(last="transport", lost_at_s=106.0).verdict is FAIL
    still_held = gripper(last="transport")
    assert still_held.verdict is ABSTAIN and "still at the grasp" in still_held.reason


def test_fingers_that_stay_shut_at_the_release_fail():
    assert gripper(opens=False).verdict is FAIL


def test_a_load_that_does_not_leave_the_hand_is_no_success():
    assert gripper(sticks=True).verdict is ABSTAIN


def test_what_is_too_light_to_weigh_is_not_judged_by_weight():
    witness = gripper(load_n=0.1)
    assert witness.verdict is ABSTAIN and "too small" in witness.reason


def test_missing_data_abstains_and_says_which():
    motion = carried_object()
    silent = dataclasses.replace(motion, wrench=WrenchSeries(np.zeros(0), np.zeros((0, 6))))
    assert gripper_witness(silent, PANDA).verdict is ABSTAIN
    assert "wrench" in gripper_witness(silent, PANDA).reason

    gap = (motion.wrench.stamps_s > 105) & (motion.wrench.stamps_s < 107)
    holed = dataclasses.replace(motion, wrench=WrenchSeries(motion.wrench.stamps_s[~gap],
                                                            motion.wrench.wrench_n_nm[~gap]))
    assert "silent for 2.0" in gripper_witness(holed, PANDA).reason

    blind = motion.wrench.wrench_n_nm.copy()
    blind[:, 2] = np.nan
    unmeasured = WrenchSeries(motion.wrench.stamps_s, blind)
    nan = gripper_witness(dataclasses.replace(motion, wrench=unmeasured), PANDA)
    assert nan.verdict is ABSTAIN and "NaN" in nan.reason

    unsaid = gripper_witness(dataclasses.replace(motion, phases=()), PANDA)
    assert unsaid.verdict is ABSTAIN and "no motion" in unsaid.reason


def look(before, after, release=RELEASE_M):
    return camera_witness(before, after, CAMERA, GRASP_M, release, 0.1)


HERE, THERE = (-0.2, 0.05), (0.25, -0.1)


def test_gone_from_here_and_new_there_passes():
    after = still(THERE, seed=2, shift_px=(1.3, -0.8), exposure=1.05)
    assert look(still(HERE, seed=1), after).verdict is PASS


@pytest.mark.parametrize("seed", range(6))
def test_nothing_moved_fails_whatever_noise_shake_and_exposure(seed):
    rng = np.random.default_rng(seed)
    after = still(HERE, seed=seed + 10, shift_px=tuple(rng.uniform(-1.4, 1.4, 2)),
                  exposure=rng.uniform(0.9, 1.1))
    witness = look(still(HERE, seed=seed), after)
    assert witness.verdict is FAIL and "still stands there" in witness.reason


def test_gone_but_not_seen_again_abstains_for_that_reason_only():
    witness = look(still(HERE, seed=1), still(seed=2))
    assert witness.verdict is ABSTAIN and witness.release_unseen


def test_gone_without_a_release_abstains():
    witness = look(still(HERE, seed=1), still(seed=2), release=None)
    assert witness.verdict is ABSTAIN and not witness.release_unseen


def test_what_moves_elsewhere_changes_no_region():
    shares = changed_share(still(HERE, (0.0, 0.3), seed=1), still(HERE, (0.02, 0.3), seed=2),
                           {"grasp": CAMERA.region(GRASP_M, 0.1)})
    assert shares["grasp"] < 0.01


def test_frames_that_cannot_be_compared_abstain_with_the_reason():
    good = still(HERE, seed=1)
    rng = np.random.default_rng(0)
    for bad, words in ((np.zeros_like(good), "black"), (good[:240, :320].copy(), "sizes"),
                       (rng.integers(0, 255, good.shape, dtype=np.uint8), "features agree"),
                       (np.full_like(good, 128), "features agree")):
        witness = look(good, bad)
        assert witness.verdict is ABSTAIN and words in witness.reason
    outside = camera_witness(good, good, CAMERA, np.array([2.0, 0.0, 0.0]), None, 0.1)
    assert outside.verdict is ABSTAIN and "not in the camera's view" in outside.reason
