"""Events of an episode that come in another order than expected, or twice."""

import pytest

from failure_dialogue.decision import episode as e
from failure_dialogue.decision.policy import Action, Decision
from failure_dialogue.diagnosis.protocol import Diagnosis

FAILURE = e.FailureInfo("7.1", "grasp", "lift", "pick up the milk", "milk")
CAMERA = Diagnosis("camera", "grasp", ("weak_grip", "heavy_object"), (0.6, 0.4), "cam")
FORCE = Diagnosis("force", "grasp", ("weak_grip", "heavy_object"), (0.1, 0.9), "ft")
ASK = Decision(Action.ASK, "grasp", (), "because.", 0.588)
HOLD = Decision(Action.HOLD, "grasp", (), "because.", 0.588)
ACT = Decision(Action.ACT, "grasp", (), "because.", 0.588, cause="weak_grip", repair="raise_grip")


def machine(*decisions):
    left, findings = list(decisions), []

    def choose(found):
        findings.append(found)
        return left.pop(0)

    return e.EpisodeMachine(choose, lambda name: 1.0), findings


def of(commands, kind):
    return [command for command in commands if isinstance(command, kind)]


def test_the_checkpoint_is_asked_for_once_while_the_arm_is_on_its_way():
    m, _ = machine(HOLD)
    commands = m.handle(e.FailureNoticed(FAILURE, "e-1")) + m.handle(e.DiagnosisArrived(CAMERA, "7.1"))
    assert len(of(commands, e.GoToCheckpoint)) == 1
    assert m.state is e.State.ENDING and of(commands, e.Report) == []
    assert len(of(m.handle(e.HoldEnded(True)), e.Report)) == 1


def test_a_checkpoint_missed_before_the_choice_is_tried_again_after_it():
    m, _ = machine(ASK)
    m.handle(e.FailureNoticed(FAILURE, "e-1"))
    assert m.handle(e.HoldEnded(False, "still braking")) == []
    assert len(of(m.handle(e.DiagnosisArrived(CAMERA, "7.1")), e.GoToCheckpoint)) == 1


def test_a_failure_whose_message_comes_after_the_end_of_its_repair_is_the_next_to_be_looked_at():
    m, findings = machine(ACT, ASK)
    m.handle(e.FailureNoticed(FAILURE, "e-1"))
    m.handle(e.DiagnosisArrived(CAMERA, "7.1"))
    m.handle(e.HoldEnded(True))
    m.handle(e.RecheckEnded(False, "pass", ""))
    m.handle(e.RepairEnded(True, "7.2"))
    assert m.handle(e.FailureNoticed(e.FailureInfo("7.2", "grasp", "hold", "", "milk"), "e-2")) == []
    m.handle(e.DiagnosisArrived(FORCE, "7.2"))
    m.handle(e.HoldEnded(True))
    commands = m.handle(e.RecheckEnded(True, "fail", "the wrist carries nothing"))
    assert findings[-1].diagnoses == {"force": FORCE}
    assert m.failure.stage == "hold" and m.episode_id == "e-1"
    # The arm is still where the re-check wanted it: only the scene is measured anew.
    assert of(commands, e.GoToCheckpoint) == [] and len(of(commands, e.Recheck)) == 1


def test_a_question_put_again_has_its_whole_time_again():
    m, _ = machine(ASK)
    assert m.handle(e.QuestionPut()) == []
    m.handle(e.FailureNoticed(FAILURE, "e-1"))
    m.handle(e.DiagnosisArrived(CAMERA, "7.1"))
    m.handle(e.HoldEnded(True))
    m.handle(e.RecheckEnded(False, "pass", ""))
    assert m.handle(e.QuestionPut()) == [e.WaitAtMost(e.State.ASKING, m.limits.question_s)]


@pytest.mark.parametrize("event", [e.StopPressed("ann", ""), e.TakenOver("ann")])
def test_whoever_has_the_arm_keeps_it_and_no_second_outcome_is_reported(event):
    m, _ = machine()
    m.handle(e.FailureNoticed(FAILURE, "e-1"))
    assert len(of(m.handle(e.TakenOver("ann")), e.Report)) == 1
    assert m.handle(event) == []
    assert m.state is e.State.TAKEN_OVER


def test_why_the_robot_did_not_attempt_the_task_is_in_the_outcome():
    m, _ = machine()
    m.handle(e.TaskStarted("e-1", "pick up the milk"))
    m.handle(e.AttemptEnded(False, "the basket is missing"))
    m.handle(e.DeadlinePassed(e.State.ATTEMPTING))
    (report,) = of(m.handle(e.HoldEnded(True)), e.Report)
    assert "the basket is missing" in report.outcome.grounds
