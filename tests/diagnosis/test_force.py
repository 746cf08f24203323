"""The shipped force diagnoser on grasps whose cause is known, and on evidence it cannot use."""

import dataclasses

import numpy as np
import pytest

from failure_dialogue.diagnosis.load import load_diagnosers
from failure_dialogue.errors import ModelError
from failure_dialogue.evidence import WrenchSeries
from failure_dialogue.robots.panda import PANDA
from failure_dialogue.vocabulary import load_vocabulary
from tests.fakes.grasp_evidence import grasp_evidence


@pytest.fixture(scope="module")
def force():
    return load_diagnosers(load_vocabulary(), "grasp", PANDA)["force"]


@pytest.mark.parametrize(
    ("cause", "physics"),
    [
        ("weak_grip", {"grip_scale": 0.4}),
        ("weak_grip", {"grip_scale": 0.6}),
        ("heavy_object", {"mass_kg": 0.7}),
        ("heavy_object", {"mass_kg": 1.1}),
        ("slippery_surface", {"friction": 0.1}),
        ("slippery_surface", {"friction": 0.25}),
    ],
)
def test_it_names_the_cause_of_a_grasp_made_by_other_code_than_it_was_trained_on(force, cause, physics):
    diagnosis = force.diagnose(grasp_evidence(**physics))
    assert not diagnosis.abstained, diagnosis.reason
    assert diagnosis.best == cause
    assert diagnosis.events[0].name == "slip"
    assert diagnosis.model_id == force.model_id and 0 < diagnosis.latency_s < 1


def test_bad_evidence_gives_an_abstention_that_says_what_is_wrong(force):
    evidence = grasp_evidence()
    wrench = np.full_like(evidence.wrench.wrench_n_nm, np.nan)
    blind = dataclasses.replace(evidence, wrench=WrenchSeries(evidence.wrench.stamps_s, wrench))
    diagnosis = force.diagnose(blind)
    assert diagnosis.abstained and "fz" in diagnosis.reason


def test_a_failure_of_another_family_is_not_its_business(force):
    diagnosis = force.diagnose(dataclasses.replace(grasp_evidence(), family="detection"))
    assert diagnosis.abstained and "'detection'" in diagnosis.reason


def test_a_robot_without_finger_effort_gets_the_model_trained_without_it():
    profile = dataclasses.replace(PANDA, finger_effort=False)
    force = load_diagnosers(load_vocabulary(), "grasp", profile)["force"]
    assert force.model_id.startswith("grasp_force_no_effort-")
    evidence = grasp_evidence(mass_kg=0.9)
    silent = dataclasses.replace(evidence.joints, effort=np.full_like(evidence.joints.effort, np.nan))
    assert force.diagnose(dataclasses.replace(evidence, joints=silent)).best == "heavy_object"


def test_the_effort_model_refuses_a_robot_that_reports_none(force):
    from failure_dialogue.diagnosis.force import ForceDiagnoser

    with pytest.raises(ModelError, match="does not report"):
        ForceDiagnoser("grasp", force.model, dataclasses.replace(PANDA, finger_effort=False))
