"""What the robot chooses, situation by situation."""

import math

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from failure_dialogue.decision.costs import Answerer, Costs
from failure_dialogue.decision.policy import Action, PersonReply, Situation, decide
from failure_dialogue.decision.record import Mismatch
from failure_dialogue.decision.threshold import ev_act, ev_ask, ev_sense
from failure_dialogue.diagnosis.protocol import Diagnosis
from failure_dialogue.vocabulary import NONE_OF_THESE

COSTS, PERSON = Costs(), Answerer()


@pytest.fixture
def choose(grasp, make_record, says):
    """choose(cause, accuracy counts, ...): the decision when the camera says that cause."""

    def make(cause="weak_grip", camera=(32, 80), costs=COSTS, answerer=PERSON, **fields):
        situation = {"diagnoses": {"camera": says("camera", cause)}, "record": make_record(camera=camera,
                     force=(79, 80))} | fields
        return decide(Situation(grasp, **situation), costs, answerer)

    return make


def test_a_40_percent_diagnosis_asks_at_ca_3(choose):
    decision = choose(camera=(32, 80))
    assert decision.action is Action.ASK
    assert decision.question_form == "which_cause"
    assert decision.target_causes == ("weak_grip", "heavy_object", "slippery_surface")
    costs = {line.action: line.expected_cost for line in decision.costs}
    assert costs == {Action.ACT: pytest.approx(7.0), Action.ASK: pytest.approx(5.4)}


def test_an_80_percent_diagnosis_acts_with_the_repair_of_its_cause(choose):
    decision = choose(cause="heavy_object", camera=(64, 80))
    assert (decision.action, decision.cause, decision.repair) == (Action.ACT, "heavy_object", "payload_lift")


@pytest.mark.parametrize("ask, action", [(1, Action.ASK), (3, Action.ASK), (6, Action.ACT), (10, Action.ACT)])
def test_the_camera_alone_asks_while_questions_are_cheap(choose, ask, action):
    assert choose(camera=(32, 80), costs=Costs(ask=ask)).action is action


def test_the_measured_accuracy_decides_not_the_models_confidence(choose, says):
    sure = choose(camera=(32, 80), diagnoses={"camera": says("camera", "weak_grip", confidence=0.999)})
    unsure = choose(camera=(32, 80), diagnoses={"camera": says("camera", "weak_grip", confidence=0.34)})
    assert sure == unsure
    assert sure.p == pytest.approx(0.4)


def test_a_weak_camera_diagnosis_reads_the_accurate_force_sensor_before_asking(choose):
    decision = choose(camera=(32, 80), can_sense=("force",))
    assert (decision.action, decision.source) == (Action.SENSE, "force")
    sense = next(line for line in decision.costs if line.action is Action.SENSE)
    assert sense.expected_cost == pytest.approx(ev_sense(79 / 80, COSTS, PERSON))


def test_with_the_force_diagnosis_it_acts_on_that_and_not_on_the_camera(choose, says):
    decision = choose(diagnoses={"camera": says("camera", "weak_grip"),
                                 "force": says("force", "slippery_surface")})
    assert (decision.action, decision.cause) == (Action.ACT, "slippery_surface")
    assert decision.p == pytest.approx(79 / 80)
    assert decision.n == 80
    assert decision.p_low < decision.p < decision.p_high


def test_qwens_accuracies_ask_at_ca_3_and_sense_at_ca_6(choose, make_record, says):
    record = make_record(camera=(11, 35), force=(18, 35))  # 0.314 and 0.514
    fields = {"record": record, "can_sense": ("force",)}
    assert choose(costs=Costs(ask=3), **fields).action is Action.ASK
    assert choose(costs=Costs(ask=6), **fields).action is Action.SENSE


def test_a_sensor_that_is_no_better_than_what_was_consulted_is_not_read(choose, make_record):
    decision = choose(record=make_record(camera=(40, 80), force=(30, 80)), can_sense=("force",),
                      costs=Costs(sense=0))
    assert decision.action is Action.ASK
    assert "not more accurate" in next(line.note for line in decision.costs if line.action is Action.SENSE)


def test_a_measured_combination_counts_for_what_reading_the_second_sensor_brings(choose, make_record):
    apart = choose(record=make_record(camera=(40, 80), force=(30, 80)), can_sense=("force",))
    joined = choose(record=make_record(camera=(40, 80), force=(30, 80), camera_and_force=(78, 80)),
                    can_sense=("force",))
    assert (apart.action, joined.action) == (Action.ASK, Action.SENSE)


def test_without_a_record_it_asks_and_says_why(choose):
    decision = choose(record=None, no_record="the file is not there", can_sense=("force",))
    assert decision.action is Action.ASK
    assert decision.stale and "the file is not there" in decision.stale_reason
    assert math.isnan(decision.p) and decision.n == 0 and decision.record_id == ""


def test_without_a_record_and_without_a_person_it_holds(choose):
    decision = choose(record=None, no_record="the file is not there", person_present=False)
    assert decision.action is Action.HOLD
    assert "nobody is there" in decision.reason


def test_a_diagnosis_of_another_model_than_was_measured_does_not_count(choose, says):
    decision = choose(camera=(79, 80), diagnoses={"camera": says("camera", "weak_grip", model_id="camera-2")})
    assert decision.action is Action.ASK
    assert "camera-1" in decision.stale_reason and "camera-2" in decision.stale_reason


def test_a_stale_entry_asks_where_a_valid_one_would_act(choose):
    stale = Mismatch("robot", "panda", "ur5e", "commission again")
    assert choose(camera=(79, 80)).action is Action.ACT
    decision = choose(camera=(79, 80), mismatches=(stale,))
    assert decision.action is Action.ASK
    assert decision.stale and "ur5e" in decision.stale_reason


def test_a_mismatch_of_the_camera_leaves_the_force_diagnosis_usable(choose, says):
    stale = Mismatch("model of camera", "a", "b", "commission again", family="grasp", source="camera")
    decision = choose(mismatches=(stale,), diagnoses={"camera": says("camera", "weak_grip"),
                                                      "force": says("force", "heavy_object")})
    assert (decision.action, decision.cause) == (Action.ACT, "heavy_object")
    assert decision.stale


def test_an_abstention_is_no_diagnosis_but_the_force_sensor_can_still_be_read(choose):
    silent = Diagnosis.abstention("camera", "grasp", "camera-1", "no frames")
    decision = choose(diagnoses={"camera": silent}, can_sense=("force",))
    assert decision.action is Action.SENSE
    assert "no frames" in decision.reason
    assert choose(diagnoses={"camera": silent}).action is Action.ASK


def test_before_any_diagnosis_it_reads_the_best_measured_sensor(choose):
    decision = choose(diagnoses={}, can_sense=("camera", "force"))
    assert (decision.action, decision.source) == (Action.SENSE, "force")


def test_a_diagnosis_of_a_cause_that_the_family_does_not_have_is_not_acted_on(choose, says):
    decision = choose(camera=(79, 80), diagnoses={"camera": says("camera", "container_full", confidence=0.9)})
    assert decision.action is Action.ASK
    assert "container_full" in decision.reason


def test_none_of_these_is_never_acted_on_however_accurate_the_source(choose, says):
    nothing = {"force": says("force", NONE_OF_THESE, confidence=0.9)}
    assert choose(diagnoses=nothing).action is Action.ASK
    assert choose(diagnoses=nothing, person_present=False).action is Action.HOLD
    assert choose(diagnoses=nothing, costs=Costs(ask=10)).action is Action.ASK


def test_a_cause_the_person_names_is_acted_on(choose):
    decision = choose(reply=PersonReply(cause="slippery_surface"), questions_asked=1)
    assert (decision.action, decision.repair) == (Action.ACT, "grip_pads")
    assert decision.p == pytest.approx(0.80 / 0.85)


def test_a_repair_the_person_asks_for_is_carried_out(choose):
    decision = choose(reply=PersonReply(requested_repair="payload_lift"), questions_asked=1)
    assert (decision.action, decision.cause, decision.repair) == (Action.ACT, "heavy_object", "payload_lift")


def test_an_answer_that_contradicts_itself_is_asked_about_again(choose):
    decision = choose(reply=PersonReply("heavy_object", "raise_grip"), questions_asked=1)
    assert (decision.action, decision.question_form) == (Action.ASK, "again")
    assert "raise_grip" in decision.reason


def test_a_person_who_says_none_of_these_gets_the_task_handed_over(choose):
    assert choose(reply=PersonReply(NONE_OF_THESE), questions_asked=1).action is Action.HOLD


def test_an_uninformative_answer_is_asked_about_once_more_then_its_own_diagnosis_acted_on(choose):
    again = choose(reply=PersonReply(), questions_asked=1)
    assert (again.action, again.question_form) == (Action.ASK, "again")
    last = choose(reply=PersonReply(), questions_asked=2)
    assert (last.action, last.cause) == (Action.ACT, "weak_grip")


def test_after_the_last_uninformative_answer_nothing_unmeasured_is_acted_on(choose):
    decision = choose(record=None, no_record="none", reply=PersonReply(), questions_asked=2)
    assert decision.action is Action.HOLD


def test_silence_ends_in_hold_never_in_acting_on_a_weak_diagnosis(choose):
    assert choose(camera=(32, 80), questions_asked=1, person_present=False).action is Action.HOLD


def test_nobody_there_but_a_strong_diagnosis_acts(choose):
    assert choose(camera=(70, 80), person_present=False).action is Action.ACT


def test_nobody_there_reads_a_sensor_only_if_that_can_lead_to_acting(choose, make_record):
    strong = choose(person_present=False, can_sense=("force",))
    weak = choose(person_present=False, can_sense=("force",),
                  record=make_record(camera=(32, 80), force=(40, 80)))
    assert (strong.action, weak.action) == (Action.SENSE, Action.HOLD)


FORCE = {
    "weak_grip": {"weak_grip": 20, "heavy_object": 8},
    "heavy_object": {"heavy_object": 24, "weak_grip": 3},
    "slippery_surface": {"slippery_surface": 25, "weak_grip": 1},
}


def test_after_a_failed_repair_it_takes_what_else_the_same_answer_meant_at_commissioning(choose, says):
    decision = choose(camera=FORCE, ruled_out=frozenset({"weak_grip"}))
    # Said weak_grip and was not: 3 heavy, 1 slippery. Laplace: (3 + 1) / (4 + 2).
    assert decision.p == pytest.approx(4 / 6)
    assert (decision.action, decision.cause, decision.n) == (Action.ACT, "heavy_object", 4)


def test_after_a_failed_repair_a_cause_never_confused_with_it_is_asked_about(choose):
    decision = choose(cause="slippery_surface", camera=FORCE, ruled_out=frozenset({"slippery_surface"}))
    assert decision.action is Action.ASK
    assert decision.target_causes == ("weak_grip", "heavy_object")
    assert math.isnan(decision.p)


def test_with_one_cause_left_the_question_is_whether_it_is_that(choose):
    decision = choose(cause="slippery_surface", camera=FORCE,
                      ruled_out=frozenset({"slippery_surface", "weak_grip"}))
    assert (decision.action, decision.question_form) == (Action.ASK, "confirm")
    assert decision.target_causes == ("heavy_object",)


def test_a_cause_whose_repair_failed_is_not_tried_again_even_if_the_person_names_it(choose):
    fields = {"camera": FORCE, "cause": "slippery_surface", "ruled_out": frozenset({"weak_grip"}),
              "reply": PersonReply("weak_grip")}
    assert choose(questions_asked=1, **fields).cause != "weak_grip"
    fields["ruled_out"] = frozenset({"weak_grip", "slippery_surface"})
    assert choose(questions_asked=2, **fields).action is Action.HOLD


def test_when_every_repair_has_failed_it_holds(choose, grasp):
    decision = choose(ruled_out=frozenset(grasp.causes))
    assert decision.action is Action.HOLD
    assert "every grasp cause" in decision.reason


def test_the_reason_names_the_source_its_measured_accuracy_and_the_costs(choose):
    reason = choose(camera=(32, 80)).reason
    assert "The camera diagnosis is weak grip" in reason
    assert "32 of 80 (p=0.40, 95 % interval 0.30 to 0.51)" in reason
    assert "5.40" in reason and "7.00" in reason


SITUATION = st.fixed_dictionaries({
    "can_sense": st.sampled_from([(), ("force",)]),
    "ruled_out": st.frozensets(st.sampled_from(["weak_grip", "heavy_object", "slippery_surface"])),
    "questions_asked": st.integers(0, 3),
    "person_present": st.booleans(),
    "reply": st.sampled_from([None, PersonReply(), PersonReply("weak_grip"), PersonReply("heavy_object"),
                              PersonReply(NONE_OF_THESE), PersonReply("", "grip_pads"),
                              PersonReply("gremlins")]),
})


@pytest.mark.parametrize("known", [True, False], ids=["record", "no record"])
@settings(max_examples=150, deadline=None)
@given(fields=SITUATION, correct=st.integers(0, 80), ask=st.floats(0, 12), cause=st.sampled_from(
    ["weak_grip", "heavy_object", "slippery_surface", NONE_OF_THESE]))
def test_in_every_situation_the_choice_is_one_that_can_be_carried_out(grasp, make_record, says, known, fields,
                                                                      correct, ask, cause):
    record = make_record(camera=(correct, 80), force=(70, 80)) if known else None
    situation = Situation(grasp, {"camera": says("camera", cause)}, record, **fields)
    decision = decide(situation, Costs(ask=ask), PERSON)
    if decision.action is Action.ACT:
        assert decision.cause in grasp.causes and decision.cause not in fields["ruled_out"]
        assert decision.repair == grasp.causes[decision.cause].repair
    if decision.action is Action.ASK:
        assert fields["person_present"] and fields["questions_asked"] < 2
        assert decision.target_causes and not set(decision.target_causes) & fields["ruled_out"]
    if decision.action is Action.SENSE:
        assert known and decision.source in fields["can_sense"]
    assert decision.reason and decision.stale is not known


@settings(max_examples=200, deadline=None)
@given(correct=st.integers(0, 80), ask=st.floats(0, 12))
def test_with_a_person_and_no_sensor_it_takes_the_cheaper_of_two(grasp, make_record, says, correct, ask):
    record, costs = make_record(camera=(correct, 80)), Costs(ask=ask)
    decision = decide(Situation(grasp, {"camera": says("camera", "weak_grip")}, record), costs, PERSON)
    p = correct / 80
    cheaper = Action.ACT if ev_act(p, costs) <= ev_ask(p, costs, PERSON) else Action.ASK
    assert decision.action is cheaper
