"""A model is used only together with the sidecar it was made with."""

import json
import shutil

import numpy as np
import pytest

from failure_dialogue.diagnosis.onnx_model import load_classifier, load_model
from failure_dialogue.errors import ModelError
from failure_dialogue.paths import models_dir
from failure_dialogue.vocabulary import load_vocabulary

CAUSES = tuple(load_vocabulary().family("grasp").causes)


@pytest.fixture
def force_model(tmp_path):
    """A copy of the shipped force model that may be damaged."""
    for suffix in (".onnx", ".json"):
        shutil.copyfile(models_dir() / f"grasp_force{suffix}", tmp_path / f"grasp_force{suffix}")
    return tmp_path / "grasp_force.onnx"


def change_card(path, **changes):
    card = json.loads(path.with_suffix(".json").read_text())
    path.with_suffix(".json").write_text(json.dumps(card | changes))


def test_the_shipped_model_gives_probabilities_that_sum_to_one(force_model):
    model = load_classifier(force_model, "grasp", CAUSES)
    rows = np.random.default_rng(0).normal(size=(50, len(model.feature_names))).astype(np.float32)
    probabilities = model.run(rows)
    assert probabilities.shape == (50, 3)
    assert probabilities.sum(axis=1) == pytest.approx(np.ones(50), abs=1e-5)


def test_one_changed_byte_is_noticed(force_model):
    content = bytearray(force_model.read_bytes())
    content[len(content) // 2] ^= 1
    force_model.write_bytes(content)
    with pytest.raises(ModelError, match="SHA-256"):
        load_model(force_model)


@pytest.mark.parametrize("suffix", [".onnx", ".json"])
def test_a_missing_half_is_named(force_model, suffix):
    force_model.with_suffix(suffix).unlink()
    with pytest.raises(ModelError, match=f"grasp_force{suffix} is missing"):
        load_model(force_model)


def test_a_sidecar_that_is_no_json_is_named(force_model):
    force_model.with_suffix(".json").write_text("not json")
    with pytest.raises(ModelError, match="no model sidecar"):
        load_model(force_model)


def test_a_sidecar_of_another_form_is_refused(force_model):
    change_card(force_model, format=99)
    with pytest.raises(ModelError, match="form 99"):
        load_model(force_model)


def test_a_model_with_another_number_of_inputs_is_refused(force_model):
    change_card(force_model, feature_names=["load_slip_log"])
    with pytest.raises(ModelError, match="its sidecar names 1"):
        load_model(force_model)


def test_a_model_of_other_causes_is_refused(force_model):
    with pytest.raises(ModelError, match="failures.yaml has weak_grip, too_hot"):
        load_classifier(force_model, "grasp", ("weak_grip", "too_hot"))


def test_a_model_of_another_family_is_refused(force_model):
    with pytest.raises(ModelError, match="not 'placement'"):
        load_classifier(force_model, "placement", CAUSES)


def test_rows_of_the_wrong_width_are_refused(force_model):
    with pytest.raises(ModelError, match=r"shape \(1, 2\)"):
        load_model(force_model).run(np.zeros((1, 2), np.float32))
