"""An ONNX model with the JSON sidecar that says what it is; checked against each other before use."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import onnxruntime

from failure_dialogue.errors import ModelError

#: Version of the sidecar's form.
FORMAT = 1


def sha256_of(path: Path) -> str:
    """Hex digest of a file's bytes."""
    return hashlib.sha256(Path(path).read_bytes()).hexdigest()


@dataclass(frozen=True)
class OnnxModel:
    """A model ready to run on one thread: rows in, rows out."""

    model_id: str
    card: dict
    session: onnxruntime.InferenceSession

    @property
    def classes(self) -> tuple[str, ...]:
        """The causes in the order of the outputs; empty for a backbone."""
        return tuple(self.card.get("classes", ()))

    @property
    def feature_names(self) -> tuple[str, ...]:
        """The inputs by name; empty where they have none."""
        return tuple(self.card.get("feature_names", ()))

    def run(self, rows: np.ndarray) -> np.ndarray:
        """(n, ...) inputs as declared -> (n, outputs) float32. ModelError when the model refuses them."""
        try:
            return self.session.run(None, {self.session.get_inputs()[0].name: rows})[0]
        except Exception as error:  # onnxruntime raises its own classes, which derive from Exception alone
            raise ModelError(
                f"model {self.model_id} refuses an input of shape {rows.shape}: {error}"
            ) from error


def load_model(path: Path) -> OnnxModel:
    """Read PATH (.onnx) and its sidecar PATH.json.

    ModelError: one of the two is missing, the model is not the one the sidecar was written for, or its
    input and output are not as wide as the names say.
    """
    path = Path(path)
    card_path = path.with_suffix(".json")
    for file in (path, card_path):
        if not file.is_file():
            raise ModelError(
                f"{file} is missing; train it again (failure_dialogue/models/README.md says how) or "
                "install the package again"
            )
    try:
        card = json.loads(card_path.read_text(encoding="utf-8"))
        if card["format"] != FORMAT:
            raise ModelError(
                f"{card_path} has form {card['format']!r}; this version reads {FORMAT}: train again"
            )
        model_id, expected = card["model_id"], card["sha256"]
    except (ValueError, KeyError, TypeError) as error:
        raise ModelError(f"{card_path} is no model sidecar ({error!r}); train the model again") from error
    found = sha256_of(path)
    if found != expected:
        raise ModelError(
            f"{path} has SHA-256 {found[:12]}..., its sidecar was written for {expected[:12]}...; "
            "one of the two was changed: train again or restore both"
        )
    options = onnxruntime.SessionOptions()
    options.intra_op_num_threads = options.inter_op_num_threads = 1
    try:
        session = onnxruntime.InferenceSession(str(path), options, providers=["CPUExecutionProvider"])
    except Exception as error:  # onnxruntime raises its own classes, which derive from Exception alone
        raise ModelError(f"{path} cannot be loaded as an ONNX model: {error}") from error
    model = OnnxModel(model_id, card, session)
    for what, names, shape in (
        ("inputs", model.feature_names, session.get_inputs()[0].shape),
        ("classes", model.classes, session.get_outputs()[0].shape),
    ):
        if names and shape[-1] != len(names):
            raise ModelError(f"{path} has {shape[-1]} {what}, its sidecar names {len(names)}; train again")
    return model


def load_classifier(path: Path, family: str, causes: Sequence[str]) -> OnnxModel:
    """load_model() for a diagnoser of one family: ModelError unless its classes are that family's causes."""
    model = load_model(path)
    if model.card.get("family") != family:
        raise ModelError(
            f"{path} diagnoses family {model.card.get('family')!r}, not {family!r}; "
            "give the model of that family"
        )
    if sorted(model.classes) != sorted(causes):
        raise ModelError(
            f"{path} knows the causes {', '.join(model.classes)}; family {family!r} of failures.yaml "
            f"has {', '.join(causes)}: train it on these"
        )
    return model
