"""The course of an episode, event by event, without ROS."""

import pytest

from failure_dialogue.decision import episode as e
from failure_dialogue.decision.policy import Action, Decision, PersonReply
from failure_dialogue.diagnosis.protocol import Diagnosis

COSTS = {"retry": 1.0, "wrong_repair": 10.0, "ask": 3.0, "sense": 0.5}
FAILURE = e.FailureInfo("7.1", "grasp", "lift", "pick up the milk", "milk")
CAMERA = Diagnosis("camera", "grasp", ("weak_grip", "heavy_object"), (0.6, 0.4), "cam")
FORCE = Diagnosis("force", "grasp", ("weak_grip", "heavy_object"), (0.01, 0.99), "ft")


def decision(action, **fields):
    return Decision(action, "grasp", (), "because.", 0.588, **fields)


def act(cause="heavy_object", repair="payload_lift"):
    return decision(Action.ACT, cause=cause, repair=repair)


class Policy:
    """Gives the decisions it was handed, in turn, and keeps what it was asked with."""

    def __init__(self, *decisions):
        self.decisions = list(decisions)
        self.asked_with = []

    def __call__(self, findings):
        self.asked_with.append(findings)
        return self.decisions.pop(0)


def machine(*decisions, **limits):
    policy = Policy(*decisions)
    return e.EpisodeMachine(policy, COSTS.__getitem__, e.Limits(**limits)), policy


def kinds(commands):
    return [type(c).__name__ for c in commands]


def one(commands, kind):
    found = [c for c in commands if isinstance(c, kind)]
    assert len(found) == 1, f"{kind.__name__} in {kinds(commands)}"
    return found[0]


def fail(m, *, diagnosis=CAMERA):
    commands = m.handle(e.FailureNoticed(FAILURE, "e-1"))
    one(commands, e.GoToCheckpoint)
    return commands + m.handle(e.DiagnosisArrived(diagnosis, FAILURE.state_id))


def measured(m):
    """The arm is at the checkpoint and the first still is taken."""
    commands = m.handle(e.HoldEnded(True))
    assert one(commands, e.Recheck).after is False
    return m.handle(e.RecheckEnded(False, "pass", ""))


def repaired(m, verdict, reason="aperture and frames agree"):
    m.handle(e.RepairEnded(True, "7.2"))
    assert one(m.handle(e.HoldEnded(True)), e.Recheck).after is True
    return m.handle(e.RecheckEnded(True, verdict, reason))


def test_sense_then_act_recovers_at_the_cost_of_sensing_and_one_retry():
    m, policy = machine(decision(Action.SENSE, source="force"), act())
    assert one(fail(m), e.Consult).source == "force"
    m.handle(e.DiagnosisArrived(FORCE, FAILURE.state_id))
    assert set(policy.asked_with[-1].diagnoses) == {"camera", "force"}
    assert one(measured(m), e.Repair) == e.Repair("payload_lift", "7.1")
    outcome = one(repaired(m, "pass"), e.Report).outcome
    assert outcome == e.Outcome(
        e.Disposition.RECOVERED,
        e.Claim.SUCCEEDED,
        "aperture and frames agree",
        "heavy_object",
        "payload_lift",
        1.5,
        0,
        1,
    )
    assert not m.busy


def test_the_robot_is_at_its_checkpoint_before_it_asks():
    m, _ = machine(decision(Action.ASK, question_form="which_cause"))
    commands = fail(m)
    assert one(commands, e.Announce).decision.action is Action.ASK
    assert m.state is e.State.PREPARING
    assert one(measured(m), e.ShowState).state is e.State.ASKING


def test_a_reply_that_names_a_cause_is_acted_on():
    m, policy = machine(decision(Action.ASK), act())
    fail(m)
    measured(m)
    commands = m.handle(e.MeaningArrived("cause", "heavy_object", "", "operator"))
    assert policy.asked_with[-1].reply == PersonReply("heavy_object", "")
    assert policy.asked_with[-1].questions_asked == 1
    assert one(commands, e.Repair).repair == "payload_lift"
    assert one(repaired(m, "pass"), e.Report).outcome.cost_spent == COSTS["ask"] + COSTS["retry"]


def test_asking_once_more_counts_and_costs_as_a_second_question():
    m, policy = machine(decision(Action.ASK), decision(Action.HOLD))
    fail(m)
    measured(m)
    outcome = one(
        m.handle(e.MeaningArrived("uninformative", "", "", "operator", times_asked=2)), e.Report
    ).outcome
    assert policy.asked_with[-1].reply == PersonReply()
    assert (outcome.questions_asked, outcome.cost_spent) == (2, 2 * COSTS["ask"])


@pytest.mark.parametrize("act_", ["wait", "repeat", "why"])
def test_an_answer_that_keeps_the_question_open_costs_nothing_and_starts_the_time_again(act_):
    m, policy = machine(decision(Action.ASK))
    fail(m)
    measured(m)
    assert one(m.handle(e.MeaningArrived(act_, "", "", "operator")), e.WaitAtMost).state is e.State.ASKING
    assert m.state is e.State.ASKING
    assert len(policy.asked_with) == 1


def test_silence_ends_in_hold_and_a_hand_over():
    m, policy = machine(decision(Action.ASK), decision(Action.HOLD))
    fail(m)
    measured(m)
    commands = m.handle(e.MeaningArrived("no_reply", "", "", ""))
    assert policy.asked_with[-1].person_present is False
    assert one(commands, e.Report).outcome.disposition is e.Disposition.HANDED_OVER
    assert not [c for c in commands if isinstance(c, e.Repair)]


def test_a_dialogue_node_that_died_is_the_same_as_silence():
    m, policy = machine(decision(Action.ASK), decision(Action.HOLD))
    fail(m)
    measured(m)
    commands = m.handle(e.DeadlinePassed(e.State.ASKING))
    assert policy.asked_with[-1].person_present is False
    assert one(commands, e.Report).outcome.claim is e.Claim.NOT_SUCCEEDED


def test_a_failed_repair_rules_its_cause_out_and_costs_a_wrong_repair():
    m, policy = machine(act("weak_grip", "raise_grip"), act())
    fail(m)
    measured(m)
    commands = repaired(m, "fail")
    assert policy.asked_with[-1].ruled_out == {"weak_grip"}
    assert policy.asked_with[-1].reply is None
    assert one(commands, e.Recheck).after is False  # the scene is measured anew
    m.handle(e.RecheckEnded(False, "pass", ""))
    outcome = one(repaired(m, "pass"), e.Report).outcome
    assert (outcome.repairs_tried, outcome.cost_spent, outcome.cause) == (2, 12.0, "heavy_object")


def test_a_failure_during_the_repair_is_what_the_next_choice_looks_at():
    m, policy = machine(act("weak_grip", "raise_grip"), act())
    fail(m)
    measured(m)
    again = e.FailureInfo("7.2", "grasp", "relax", FAILURE.instruction, "milk")
    assert m.handle(e.FailureNoticed(again, "e-2")) == []
    m.handle(e.DiagnosisArrived(FORCE, "7.2"))
    repaired(m, "fail")
    assert policy.asked_with[-1].diagnoses == {"force": FORCE}
    assert m.episode_id == "e-1"


def test_the_number_of_repairs_is_bounded():
    m, _ = machine(act("weak_grip", "raise_grip"), max_repairs=1)
    fail(m)
    measured(m)
    outcome = one(repaired(m, "fail"), e.Report).outcome
    assert (outcome.disposition, outcome.claim) == (e.Disposition.HANDED_OVER, e.Claim.NOT_SUCCEEDED)


def test_a_recheck_that_abstains_makes_no_claim():
    m, _ = machine(act())
    fail(m)
    measured(m)
    outcome = one(repaired(m, "abstain", "the frames could not be aligned"), e.Report).outcome
    assert (outcome.disposition, outcome.claim) == (e.Disposition.HANDED_OVER, e.Claim.CANNOT_TELL)
    assert "aligned" in outcome.grounds


def test_done_is_never_success_without_the_recheck():
    m, _ = machine(act())
    fail(m)
    measured(m)
    commands = m.handle(e.RepairEnded(True, "7.2"))
    assert m.state is e.State.RECHECKING
    assert not [c for c in commands if isinstance(c, e.Report)]


@pytest.mark.parametrize(
    "state",
    [
        e.State.ATTEMPTING,
        e.State.DIAGNOSING,
        e.State.SENSING,
        e.State.PREPARING,
        e.State.ASKING,
        e.State.REPAIRING,
        e.State.RECHECKING,
    ],
)
def test_no_wait_without_a_time_limit(state):
    m, _ = machine(decision(Action.SENSE, source="force"), decision(Action.ASK), act(), decision(Action.HOLD))
    steps = iter(
        [
            lambda: m.handle(e.TaskStarted("e-1", "pick up the milk")),
            lambda: m.handle(e.FailureNoticed(FAILURE, "e-1")),
            lambda: m.handle(e.DiagnosisArrived(CAMERA, "7.1")),
            lambda: m.handle(e.DiagnosisArrived(FORCE, "7.1")),
            lambda: measured(m),
            lambda: m.handle(e.MeaningArrived("cause", "heavy_object", "", "x")),
            lambda: m.handle(e.RepairEnded(True, "7.2")),
        ]
    )
    while m.state is not state:
        commands = next(steps)()
    wait = [c for c in commands if isinstance(c, e.WaitAtMost) and c.state is state]
    assert wait and wait[-1].seconds < 600
    assert m.handle(e.DeadlinePassed(state)), "the deadline moves the episode on"
    assert m.state is not state


@pytest.mark.parametrize("during_motion", [False, True])
def test_stop_ends_the_episode_and_asks_for_no_motion(during_motion):
    m, _ = machine(act())
    fail(m)
    if during_motion:
        measured(m)
    commands = m.handle(e.StopPressed("operator", ""))
    assert "CancelMotion" in kinds(commands)
    assert not {"GoToCheckpoint", "Repair", "Attempt"} & set(kinds(commands))
    outcome = one(commands, e.Report).outcome
    assert outcome.disposition is e.Disposition.ABANDONED
    assert outcome.claim is (e.Claim.CANNOT_TELL if during_motion else e.Claim.NOT_SUCCEEDED)


def test_a_person_who_takes_over_keeps_the_arm_until_handing_it_back():
    m, _ = machine(decision(Action.ASK))
    fail(m)
    assert one(m.handle(e.TakenOver("operator")), e.Report).outcome.disposition is e.Disposition.HANDED_OVER
    assert m.state is e.State.TAKEN_OVER
    assert m.handle(e.TaskStarted("e-2", "x")) == []
    m.handle(e.HandedBack("operator"))
    assert m.handle(e.TaskStarted("e-2", "x"))


def test_late_and_foreign_events_change_nothing():
    m, _ = machine(act())
    for event in (
        e.RepairEnded(True, "7.2"),
        e.RecheckEnded(True, "pass", ""),
        e.HoldEnded(True),
        e.MeaningArrived("cause", "weak_grip", "", "x"),
        e.DeadlinePassed(e.State.ASKING),
        e.StopPressed("x", ""),
        e.AttemptEnded(True, ""),
    ):
        assert m.handle(event) == []
    fail(m)
    before = m.state
    assert m.handle(e.DiagnosisArrived(FORCE, "6.9")) == []
    assert m.state is before


def test_a_diagnosis_that_overtakes_its_failure_is_used():
    m, policy = machine(decision(Action.ASK))
    m.handle(e.DiagnosisArrived(CAMERA, FAILURE.state_id))
    one(m.handle(e.FailureNoticed(FAILURE, "e-1")), e.Announce)
    assert policy.asked_with[-1].diagnoses == {"camera": CAMERA}


def test_an_attempt_that_fails_without_a_failure_message_is_given_up_in_time():
    m, _ = machine()
    m.handle(e.TaskStarted("e-1", "x"))
    assert one(m.handle(e.AttemptEnded(False, "")), e.WaitAtMost).seconds < 10
    commands = m.handle(e.DeadlinePassed(e.State.ATTEMPTING))
    commands += m.handle(e.HoldEnded(True))
    assert one(commands, e.Report).outcome.disposition is e.Disposition.ABANDONED


def test_a_checkpoint_that_is_not_reached_ends_without_a_question():
    m, _ = machine(decision(Action.ASK))
    fail(m)
    outcome = one(m.handle(e.HoldEnded(False, "blocked")), e.Report).outcome
    assert "blocked" in outcome.grounds
    assert outcome.questions_asked == 0


def test_a_refused_repair_is_not_counted_as_moved():
    m, policy = machine(act("weak_grip", "raise_grip"), decision(Action.HOLD))
    fail(m)
    measured(m)
    commands = m.handle(e.RepairEnded(False, "7.1", "out of reach", refused=True))
    assert policy.asked_with[-1].ruled_out == {"weak_grip"}
    assert one(commands, e.Report).outcome.claim is e.Claim.NOT_SUCCEEDED
