"""Small diagnosers of grasp failures, trained in seconds on evidence without a simulator."""

from __future__ import annotations

import atexit
import shutil
import tempfile
from functools import cache
from pathlib import Path

import numpy as np
from sklearn.impute import SimpleImputer
from sklearn.linear_model import LogisticRegression
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

from failure_dialogue.commissioning.export import export_classifier
from failure_dialogue.diagnosis.camera import clip_features
from failure_dialogue.diagnosis.load import BACKBONE, model_file
from failure_dialogue.diagnosis.onnx_model import load_model
from failure_dialogue.paths import models_dir
from failure_dialogue.robots.panda import PANDA
from failure_dialogue.telemetry import FEATURE_NAMES, feature_row
from failure_dialogue.vocabulary import load_vocabulary
from tests.fakes.grasp_evidence import grasp_evidence

#: What goes wrong physically, mild to severe, by cause.
STAGED = {
    "weak_grip": [{"grip_scale": s} for s in np.linspace(0.25, 0.5, 6)],
    "heavy_object": [{"mass_kg": 0.3 * s} for s in np.linspace(2.2, 4.0, 6)],
    "slippery_surface": [{"friction": s} for s in np.linspace(0.08, 0.25, 6)],
}


@cache
def trained_models() -> Path:
    """A folder with a force model, a camera head that knows nothing, and the shipped backbone."""
    folder = Path(tempfile.mkdtemp(prefix="failure_dialogue_models_"))
    atexit.register(shutil.rmtree, folder, ignore_errors=True)
    causes = list(load_vocabulary().family("grasp").causes)
    for suffix in (".onnx", ".json"):
        shutil.copy(models_dir() / f"{BACKBONE}{suffix}", folder)
    backbone = load_model(folder / f"{BACKBONE}.onnx")

    truth = np.array([causes.index(cause) for cause, staged in STAGED.items() for _ in staged])
    rows = np.stack(
        [
            feature_row(grasp_evidence(**physics, seed=i), PANDA, FEATURE_NAMES)
            for staged in STAGED.values()
            for i, physics in enumerate(staged)
        ]
    )
    _export(
        folder / model_file("grasp", "force"), rows, truth, causes, {"feature_names": list(FEATURE_NAMES)}
    )

    embedded = np.random.default_rng(0).random((len(truth), 2, 1280), np.float32)
    clips = np.stack([clip_features(np.repeat(pair, 8, axis=0)) for pair in embedded])
    _export(
        folder / model_file("grasp", "camera"),
        clips,
        truth,
        causes,
        {"backbone_sha256": backbone.card["sha256"]},
    )
    return folder


def _export(path: Path, rows: np.ndarray, truth: np.ndarray, causes: list[str], card: dict) -> None:
    classifier = make_pipeline(SimpleImputer(), StandardScaler(), LogisticRegression(C=0.1, max_iter=500))
    export_classifier(
        classifier.fit(rows, truth), 1.0, path, rows, {"family": "grasp", "classes": causes, **card}
    )
