"""A fitted scikit-learn classifier becomes an ONNX model with its temperature inside, checked row by row."""

from __future__ import annotations

import json
import sys
import warnings
from importlib import metadata
from pathlib import Path

import numpy as np
import onnx
import onnx.utils
from onnx import TensorProto, helper, numpy_helper
from scipy.optimize import minimize_scalar
from skl2onnx import to_onnx
from sklearn.ensemble import HistGradientBoostingClassifier

from failure_dialogue.diagnosis.onnx_model import FORMAT, load_model, sha256_of
from failure_dialogue.errors import ModelError

#: onnxruntime computes in single precision: probabilities may differ from scikit-learn by this much.
TOLERANCE = 1e-3
#: A probability of 0 would have no logarithm.
SMALLEST = 1e-7
_OPSET = {"": 17, "ai.onnx.ml": 3}
_PACKAGES = ("scikit-learn", "skl2onnx", "onnx", "onnxruntime", "numpy", "protobuf")


def tempered(probabilities: np.ndarray, temperature: float) -> np.ndarray:
    """(n, k) probabilities with their logarithms divided by the temperature, normalised again."""
    scores = np.log(np.clip(probabilities, SMALLEST, 1.0)) / temperature
    scores = np.exp(scores - scores.max(axis=1, keepdims=True))
    return scores / scores.sum(axis=1, keepdims=True)


def fit_temperature(probabilities: np.ndarray, truth: np.ndarray) -> float:
    """The temperature of least cross-entropy; probabilities (n, k), truth (n,) column numbers.

    The targets are Platt's (1999): (n + 1) / (n + 2) for the true class, the rest shared. Without them a
    classifier that is right on all n calibration episodes would be given unlimited confidence.
    """
    n, k = probabilities.shape
    targets = np.full((n, k), 1 / (n + 2) / (k - 1))
    targets[np.arange(n), truth] = (n + 1) / (n + 2)

    def cross_entropy(log_temperature: float) -> float:
        q = tempered(probabilities, float(np.exp(log_temperature)))
        return float(-(targets * np.log(np.clip(q, 1e-12, 1.0))).sum() / n)

    return float(
        np.exp(minimize_scalar(cross_entropy, bounds=(np.log(0.1), np.log(20.0)), method="bounded").x)
    )


def round_thresholds(classifier) -> None:
    """Round the thresholds of fitted boosted trees, also within pipelines and votes, to single precision.

    scikit-learn compares in double precision, onnxruntime in single: a value that equals a threshold in one
    but not in the other would take another branch, and the probabilities of that row would differ.
    """
    if isinstance(classifier, HistGradientBoostingClassifier):
        for tree in (tree for stage in classifier._predictors for tree in stage):
            tree.nodes["num_threshold"] = tree.nodes["num_threshold"].astype(np.float32)
    for _, step in getattr(classifier, "steps", ()):
        round_thresholds(step)
    for voter in getattr(classifier, "estimators_", ()):
        round_thresholds(voter)


def with_temperature(model: onnx.ModelProto, temperature: float) -> onnx.ModelProto:
    """The classifier's graph with Clip, Log, Div and Softmax after its probabilities, its only output."""
    graph = model.graph
    probabilities = graph.output[1]
    classes = probabilities.type.tensor_type.shape.dim[1].dim_value
    graph.initializer.extend(
        [
            numpy_helper.from_array(np.array(value, np.float32), name)
            for name, value in (("smallest", SMALLEST), ("one", 1.0), ("temperature", temperature))
        ]
    )
    graph.node.extend(
        [
            helper.make_node("Clip", [probabilities.name, "smallest", "one"], ["clipped"]),
            helper.make_node("Log", ["clipped"], ["logarithms"]),
            helper.make_node("Div", ["logarithms", "temperature"], ["scores"]),
            helper.make_node("Softmax", ["scores"], ["calibrated"], axis=-1),
        ]
    )
    del graph.output[:]
    graph.output.append(helper.make_tensor_value_info("calibrated", TensorProto.FLOAT, [None, classes]))
    # Without the label output some of the graph is left over, about which onnxruntime warns.
    pruned = onnx.utils.Extractor(model).extract_model([graph.input[0].name], ["calibrated"])
    onnx.checker.check_model(pruned)
    return pruned


def export_classifier(classifier, temperature: float, path: Path, rows: np.ndarray, card: dict) -> dict:
    """Write path (.onnx) and its sidecar; returns the sidecar: card with hashes, versions and parity.

    Rounds the classifier's thresholds to single precision, see round_thresholds().

    rows (n, features) float32: the rows on which onnxruntime must agree with scikit-learn. ModelError when
    it differs by more than TOLERANCE; no file is left then.
    """
    path = Path(path)
    path.parent.mkdir(parents=True, exist_ok=True)
    round_thresholds(classifier)
    last = classifier[-1] if hasattr(classifier, "steps") else classifier
    with warnings.catch_warnings():
        # skl2onnx hands booleans to integer fields, which the pinned protobuf takes and later ones refuse.
        warnings.simplefilter("ignore", DeprecationWarning)
        graph = to_onnx(classifier, rows[:1], options={id(last): {"zipmap": False}}, target_opset=_OPSET)
    path.write_bytes(with_temperature(graph, temperature).SerializeToString())
    digest = sha256_of(path)
    full = {
        "format": FORMAT,
        "model_id": f"{path.stem}-{digest[:12]}",
        "sha256": digest,
        "bytes": path.stat().st_size,
        **card,
        "temperature": round(temperature, 6),
        "versions": {name: metadata.version(name) for name in _PACKAGES}
        | {"python": ".".join(map(str, sys.version_info[:3]))},
    }
    write_card(path, full)
    expected = tempered(classifier.predict_proba(rows), temperature)
    difference = float(np.abs(load_model(path).run(rows) - expected).max())
    if not difference <= TOLERANCE:
        path.unlink()
        path.with_suffix(".json").unlink()
        raise ModelError(
            f"{path.name}: onnxruntime differs from scikit-learn by {difference:.2e} on {len(rows)} rows; "
            f"at most {TOLERANCE:g} is allowed. Train with the pinned versions of requirements/train.txt"
        )
    full["parity"] = {
        "what": "largest difference of a probability to scikit-learn",
        "n": len(rows),
        "max": difference,
        "tolerance": TOLERANCE,
    }
    write_card(path, full)
    return full


def write_card(path: Path, card: dict) -> None:
    """Write the sidecar of an ONNX file."""
    Path(path).with_suffix(".json").write_text(json.dumps(card, indent=1) + "\n", encoding="utf-8")
