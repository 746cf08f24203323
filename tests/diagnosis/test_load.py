"""Loading the diagnosers of a family."""

import pytest

from failure_dialogue.diagnosis.load import load_diagnosers
from failure_dialogue.errors import ModelError, VocabularyError
from failure_dialogue.robots.panda import PANDA
from failure_dialogue.vocabulary import load_vocabulary


def test_the_package_ships_a_camera_and_a_force_diagnoser_for_grasps():
    diagnosers = load_diagnosers(load_vocabulary(), "grasp", PANDA)
    assert {name: d.source for name, d in diagnosers.items()} == {"camera": "camera", "force": "force"}


def test_an_empty_folder_names_the_file_that_is_missing(tmp_path):
    with pytest.raises(ModelError, match="grasp_force.onnx is missing"):
        load_diagnosers(load_vocabulary(), "grasp", PANDA, tmp_path)


def test_an_unknown_family_is_named():
    with pytest.raises(VocabularyError, match="'cooking'"):
        load_diagnosers(load_vocabulary(), "cooking", PANDA)
