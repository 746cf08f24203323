"""The camera diagnoser: which frames it takes, and what it does without them."""

import dataclasses

import numpy as np
import pytest

from failure_dialogue.diagnosis.camera import (
    MOTION_SEEN,
    SQUARE_SHARE,
    CameraDiagnoser,
    choose_frames,
    motion_features,
    moving_place,
    views,
)
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


def moving_square(height, width, n=8):
    """A grey noisy scene in which a dark arm with a bright hand at its lower end rises by 15 %."""
    rng = np.random.default_rng(0)
    frames = []
    for i in range(n):
        image = np.full((height, width, 3), 120, np.uint8)
        hand = round(height * (0.7 - 0.15 * i / n))
        left, right = round(0.2 * width), round(0.3 * width)
        image[:hand, left:right] = 40
        image[hand - height // 10 : hand, left:right] = 250
        grainy = (1.0 + 0.02 * rng.normal()) * image + rng.normal(0, 2, image.shape)
        frames.append(Frame(float(i), np.clip(grainy, 0, 255).astype(np.uint8)))
    return frames


@pytest.mark.parametrize(("height", "width"), [(256, 256), (480, 640)])
def test_the_second_view_is_the_square_round_the_hand(height, width):
    frames = moving_square(height, width)
    row, column = moving_place([f.image_rgb for f in frames])
    assert column == pytest.approx(0.25, abs=0.03) and row == pytest.approx(0.65, abs=0.06)
    pictures = views(frames)
    assert pictures.shape == (16, 224, 224, 3)
    # The hand fills more of the square than of the whole frame.
    bright = (pictures > 230).mean(axis=(1, 2, 3))
    assert (bright[8:] > 2.5 * bright[:8]).all()


def test_what_moves_at_the_edge_still_gives_a_whole_square():
    frames = [Frame(f.stamp_s, np.roll(f.image_rgb, 90, axis=0)) for f in moving_square(256, 256)]
    assert views(frames).shape == (16, 224, 224, 3)


def test_frames_of_two_sizes_give_an_abstention(camera):
    evidence = grasp_evidence(frames=40)
    mixed = (*evidence.frames[:-1], Frame(evidence.end_s, np.zeros((32, 32, 3), np.uint8)))
    diagnosis = camera.diagnose(dataclasses.replace(evidence, frames=mixed))
    assert diagnosis.abstained and "differ in size" in diagnosis.reason


def test_the_flow_says_how_fast_the_hand_rises():
    motion = dict(zip(MOTION_SEEN, motion_features(grasp_evidence(), moving_square(256, 256)), strict=True))
    # 15 % of the height in 8 frames, seen in a square of 0.4 of the height; up is negative.
    rise = 0.15 / 8 / SQUARE_SHARE
    fastest = [motion[f"flow_{step}_p02"] for step in range(1, 6)]
    assert np.median(fastest) == pytest.approx(-rise, rel=0.4)
    assert all(abs(motion[f"flow_{step}_p50"]) < 0.2 * rise for step in range(1, 6))


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
    with pytest.raises(ModelError, match="trained on backbone"):
        CameraDiagnoser("grasp", other, camera.head)
