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
from failure_dialogue.diagnosis.camera import CameraDiagnoser
from failure_dialogue.diagnosis.load import BACKBONE, model_file
from failure_dialogue.diagnosis.onnx_model import OnnxModel, load_model
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

    width = _HeadProbe(backbone, causes).width()
    seen = np.random.default_rng(0).random((len(truth), width), np.float32)
    card = {"backbone_sha256": backbone.card["sha256"]}
    _export(folder / model_file("grasp", "camera"), seen, truth, causes, card)
    return folder


class _HeadProbe:
    """In the place of a camera head: learns how many features one is given."""

    model_id = "probe"

    def __init__(self, backbone: OnnxModel, causes: list[str]) -> None:
        self.card = {"backbone_sha256": backbone.card["sha256"]}
        self.classes = tuple(causes)
        self._backbone = backbone
        self._width = 0

    def run(self, rows: np.ndarray) -> np.ndarray:
        self._width = rows.shape[1]
        return np.full((len(rows), len(self.classes)), 1 / len(self.classes))

    def width(self) -> int:
        diagnosis = CameraDiagnoser("grasp", self._backbone, self).diagnose(grasp_evidence(frames=40))
        assert self._width, diagnosis.reason
        return self._width


def _export(path: Path, rows: np.ndarray, truth: np.ndarray, causes: list[str], card: dict) -> None:
    classifier = make_pipeline(SimpleImputer(), StandardScaler(), LogisticRegression(C=0.1, max_iter=500))
    export_classifier(
        classifier.fit(rows, truth), 1.0, path, rows, {"family": "grasp", "classes": causes, **card}
    )
