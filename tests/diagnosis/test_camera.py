"""The camera diagnoser: which frames it takes, and what it does without them."""

import dataclasses

import numpy as np
import pytest

from failure_dialogue.diagnosis.camera import CameraDiagnoser, choose_frames, views
from failure_dialogue.diagnosis.load import load_diagnosers
from failure_dialogue.errors import ModelError
from failure_dialogue.evidence import Frame
from failure_dialogue.robots.panda import PANDA
from failure_dialogue.vocabulary import load_vocabulary
from tests.fakes.grasp_evidence import END_S, START_S, STARTS_S, grasp_evidence


@pytest.fixture(scope="module")
def camera():
    return load_diagnosers(load_vocabulary(), "grasp", PANDA)["camera"]


def test_eight_frames_are_taken_evenly_from_closing_to_the_end():
    stamps = [f.stamp_s - START_S for f in choose_frames(grasp_evidence(frames=87))]
    assert len(stamps) == 8
    assert stamps[0] == pytest.approx(STARTS_S["close"], abs=0.05) and stamps[-1] == pytest.approx(END_S)
    assert np.ptp(np.diff(stamps)) < 0.11


def test_a_frame_of_any_size_becomes_a_whole_view_and_a_centre_crop():
    image = np.zeros((480, 640, 3), np.uint8)
    image[200:280, 280:360] = 255
    whole, crop = views((Frame(0.0, image),))
    assert whole.shape == crop.shape == (224, 224, 3)
    assert crop.mean() == pytest.approx(4 * whole.mean(), rel=0.1)


def test_it_gives_a_distribution_over_the_causes(camera):
    diagnosis = camera.diagnose(grasp_evidence(frames=40))
    assert not diagnosis.abstained, diagnosis.reason
    assert set(diagnosis.causes) == set(load_vocabulary().family("grasp").causes)


def test_too_few_frames_give_an_abstention(camera):
    diagnosis = camera.diagnose(grasp_evidence(frames=4))
    assert diagnosis.abstained and "camera frames" in diagnosis.reason


def test_a_grey_frame_gives_an_abstention(camera):
    evidence = grasp_evidence(frames=40)
    grey = tuple(Frame(f.stamp_s, f.image_rgb[:, :, 0]) for f in evidence.frames)
    diagnosis = camera.diagnose(dataclasses.replace(evidence, frames=grey))
    assert diagnosis.abstained and "(64, 64)" in diagnosis.reason


def test_a_head_of_another_backbone_is_refused(camera):
    other = dataclasses.replace(camera.backbone, card=camera.backbone.card | {"sha256": "0" * 64})
    with pytest.raises(ModelError, match="another|trained on backbone"):
        CameraDiagnoser("grasp", other, camera.head)
