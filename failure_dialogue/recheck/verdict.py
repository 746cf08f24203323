"""What a witness says after a repair, and the one verdict that two independent witnesses give."""

from __future__ import annotations

import math
from dataclasses import dataclass
from enum import Enum


class Verdict(str, Enum):
    """The three answers of the re-check."""

    PASS = "pass"
    FAIL = "fail"
    ABSTAIN = "abstain"


class Claim(str, Enum):
    """What the robot may say of the task in its outcome."""

    SUCCEEDED = "succeeded"
    NOT_SUCCEEDED = "not_succeeded"
    CANNOT_TELL = "cannot_tell"


@dataclass(frozen=True)
class Reading:
    """One measured quantity behind a verdict; value NaN: not measured, threshold NaN: none applies."""

    name: str
    value: float
    unit: str
    threshold: float
    verdict: Verdict
    detail: str = ""


@dataclass(frozen=True)
class Witness:
    """What one kind of sensor says about the task being done.

    release_unseen: the witness abstained for one reason only, that nothing new was seen where the object
    was let go (inside a basket it may be out of sight); all else that it measured speaks for success.
    damage: the witness fails because the object was damaged, which the other one has no means to see.
    """

    name: str
    verdict: Verdict
    reason: str
    readings: tuple[Reading, ...] = ()
    release_unseen: bool = False
    damage: bool = False


@dataclass(frozen=True)
class Judgement:
    """The verdict of the re-check with the reason in words and all that was measured."""

    verdict: Verdict
    reason: str
    readings: tuple[Reading, ...]

    @property
    def claim(self) -> Claim:
        """What the robot may report on these grounds."""
        return {Verdict.PASS: Claim.SUCCEEDED, Verdict.FAIL: Claim.NOT_SUCCEEDED,
                Verdict.ABSTAIN: Claim.CANNOT_TELL}[self.verdict]


def abstention(name: str, reason: str, readings: tuple[Reading, ...] = ()) -> Witness:
    """A witness that could not measure, and why."""
    return Witness(name, Verdict.ABSTAIN, reason, readings)


def not_measured(name: str, unit: str, detail: str) -> Reading:
    """The reading of a quantity that could not be measured."""
    return Reading(name, math.nan, unit, math.nan, Verdict.ABSTAIN, detail)


def judge(gripper: Witness, camera: Witness) -> Judgement:
    """One verdict from two witnesses. The rule, the first line that fits:

    1. one of them measured that the object is damaged: fail, wherever it lies;
    2. both pass: pass;
    3. one passes and the other fails: abstain, they disagree;
    4. one fails and the other does not pass: fail;
    5. the gripper passes and the camera abstains only because nothing new is seen where the object was
       let go (it is gone from where it stood): pass, for a basket hides what is in it;
    6. else: abstain, because one witness alone is not enough.
    """
    said = f"{gripper.name}: {gripper.reason}; {camera.name}: {camera.reason}"
    verdicts = {gripper.verdict, camera.verdict}
    if gripper.damage or camera.damage:
        verdict = Verdict.FAIL
    elif verdicts == {Verdict.PASS}:
        verdict = Verdict.PASS
    elif verdicts == {Verdict.PASS, Verdict.FAIL}:
        verdict, said = Verdict.ABSTAIN, f"the witnesses disagree ({said})"
    elif Verdict.FAIL in verdicts:
        verdict = Verdict.FAIL
    elif gripper.verdict is Verdict.PASS and camera.release_unseen:
        verdict = Verdict.PASS
    else:
        verdict = Verdict.ABSTAIN
    return Judgement(verdict, said, gripper.readings + camera.readings)
