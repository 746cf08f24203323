"""A commissioning record of models that a test makes up, and the folder of files it was measured on."""

from __future__ import annotations

import datetime as dt
import json
from pathlib import Path

from failure_dialogue.decision.record import Entry, MeasuredOn, new_record, save_record, vocabulary_hash
from failure_dialogue.diagnosis.load import BACKBONE, models_in_use
from failure_dialogue.robots.panda import PANDA
from failure_dialogue.vocabulary import load_vocabulary
from tests.fakes.robot import CAUSES


def make_models(folder: Path) -> Path:
    """Files that have the names, ids and hashes of models, and could diagnose nothing."""
    folder.mkdir(parents=True, exist_ok=True)
    for name in (BACKBONE, "grasp_camera", "grasp_force"):
        (folder / f"{name}.onnx").write_bytes(name.encode())
        (folder / f"{name}.json").write_text(json.dumps({"model_id": f"{name}-1"}))
    return folder


def model_ids(models: Path) -> dict[str, str]:
    """The id of the model behind each source."""
    return {model.source: model.model_id for model in models_in_use(load_vocabulary(), PANDA, models)}


def write_record(
    path: Path,
    models: Path,
    *,
    camera: tuple[int, int] = (32, 80),
    force: tuple[int, int] = (79, 80),
    model_suffix: str = "",
) -> Path:
    """A record in which each source was right in so many of so many failures.

    model_suffix: what the ids of the models it was measured on have beside those in the folder.
    """
    vocabulary = load_vocabulary()
    counts = {"camera": camera, "force": force}
    entries = tuple(
        Entry(
            "grasp",
            model.source,
            model.model_id + model_suffix,
            dict(model.files),
            _confusion(*counts[model.source]),
        )
        for model in models_in_use(vocabulary, PANDA, models)
    )
    now = dt.datetime.now(dt.timezone.utc)
    save_record(
        new_record(
            created=now,
            valid_days=365,
            software_version="0.1.0",
            robot=PANDA.robot_id,
            camera=(256, 256),
            scenes=("milk",),
            packages={},
            vocabulary_sha256={"grasp": vocabulary_hash(vocabulary.family("grasp"))},
            calibration=MeasuredOn("calibration", "1" * 64, entries),
        ),
        path,
    )
    return path


def _confusion(correct: int, n: int) -> dict[str, dict[str, int]]:
    """Counts of n failures spread over the causes; a wrong answer names the next cause."""
    counts: dict[str, dict[str, int]] = {cause: {} for cause in CAUSES}
    for i in range(n):
        truth = CAUSES[i % 3]
        said = truth if i < correct else CAUSES[(i + 1) % 3]
        counts[truth][said] = counts[truth].get(said, 0) + 1
    return counts
