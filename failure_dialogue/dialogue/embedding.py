"""Sentences to unit vectors: all-MiniLM-L6-v2 as int8 ONNX, without torch."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Sequence
from pathlib import Path

import numpy as np
import onnxruntime
from tokenizers import Tokenizer

from failure_dialogue.errors import ModelError
from failure_dialogue.paths import models_dir

DIMENSION = 384
#: Longer sentences are cut here; the model was trained on at most 128 word pieces.
MAX_TOKENS = 128
CARD_NAME = "minilm.json"
_REMEDY = "make it again with python -m failure_dialogue.commissioning.export_embedder, or install again"


def sha256_of(path: Path) -> str:
    """Hash of a file's bytes as 64 hex digits."""
    return hashlib.sha256(path.read_bytes()).hexdigest()


def read_card(folder: Path) -> dict:
    """The JSON beside the model: files with hashes, source, licence, parity; ModelError when unusable."""
    path = folder / CARD_NAME
    try:
        card = json.loads(path.read_text(encoding="utf-8"))
        files = {key: str(card["files"][key]["sha256"]) for key in ("model", "tokenizer")}
    except (OSError, ValueError, KeyError, TypeError) as error:
        raise ModelError(f"the sentence model's description {path} cannot be used: {error!r}; "
                         f"{_REMEDY}") from error
    if not all(files.values()):
        raise ModelError(f"{path} names no hash for {', '.join(k for k, v in files.items() if not v)}; "
                         f"{_REMEDY}")
    return card


def _checked(folder: Path, entry: dict) -> Path:
    path = folder / entry["name"]
    if not path.is_file():
        raise ModelError(f"the sentence model's file {path} is missing; {_REMEDY}")
    found = sha256_of(path)
    if found != entry["sha256"]:
        raise ModelError(f"{path} has sha256 {found[:12]}..., expected {entry['sha256'][:12]}...; {_REMEDY}")
    return path


class SentenceEmbedder:
    """Maps sentences to vectors whose dot product says how near they are in meaning.

    folder holds minilm.json and the two files it names (the shipped ones by default). ModelError when one is
    missing or was altered. About 2 ms a short sentence on one thread.
    """

    def __init__(self, folder: Path | None = None) -> None:
        folder = folder or models_dir()
        card = read_card(folder)
        model = _checked(folder, card["files"]["model"])
        tokenizer = _checked(folder, card["files"]["tokenizer"])
        self.model_id = f"{card['name']}@{card['files']['model']['sha256'][:12]}"
        options = onnxruntime.SessionOptions()
        # The dialogue shares a small machine with control and cameras; one sentence needs no more.
        options.intra_op_num_threads = 1
        options.inter_op_num_threads = 1
        try:
            self._tokenizer = Tokenizer.from_file(str(tokenizer))
            self._session = onnxruntime.InferenceSession(str(model), options,
                                                         providers=["CPUExecutionProvider"])
        except Exception as error:  # both libraries raise types of their own that share no base
            raise ModelError(f"{model} or {tokenizer} cannot be loaded: {error}; {_REMEDY}") from error
        self._tokenizer.no_padding()
        self._tokenizer.enable_truncation(MAX_TOKENS)

    def embed(self, texts: Sequence[str]) -> np.ndarray:
        """One unit vector a text: (n, 384) float32; (0, 384) for no texts."""
        vectors = np.zeros((len(texts), DIMENSION), np.float32)
        # One at a time: activations are scaled per run, so company would change a text's vector.
        for row, text in enumerate(texts):
            code = self._tokenizer.encode(text)
            vectors[row] = self._session.run(None, {
                "input_ids": np.array([code.ids], np.int64),
                "attention_mask": np.array([code.attention_mask], np.int64)})[0][0]
        return vectors
