"""The diagnosers of one family, made from the models that ship with the package or lie in a folder."""

from __future__ import annotations

import json
from pathlib import Path

from failure_dialogue.decision.record import Model
from failure_dialogue.diagnosis.camera import CameraDiagnoser
from failure_dialogue.diagnosis.force import ForceDiagnoser
from failure_dialogue.diagnosis.onnx_model import load_classifier, load_model, sha256_of
from failure_dialogue.diagnosis.protocol import Diagnoser
from failure_dialogue.paths import models_dir as shipped_models
from failure_dialogue.robots.profile import RobotProfile
from failure_dialogue.vocabulary import Vocabulary

#: The image backbone that all camera heads share.
BACKBONE = "efficientnet_lite0"


def model_file(family: str, source: str, finger_effort: bool = True) -> str:
    """File name of a diagnoser's model, such as grasp_force.onnx or grasp_force_no_effort.onnx."""
    return f"{family}_{source}{'' if finger_effort else '_no_effort'}.onnx"


def load_diagnosers(
    vocabulary: Vocabulary, family: str, profile: RobotProfile, models_dir: Path | None = None
) -> dict[str, Diagnoser]:
    """The diagnosers of a family by source, "force" and "camera", that run without a network or a GPU.

    A robot whose fingers report no effort gets the force model that was trained without it. ModelError
    when a model is missing, altered, or made for other causes; VocabularyError for an unknown family.
    """
    folder = Path(models_dir) if models_dir else shipped_models()
    causes = tuple(vocabulary.family(family).causes)
    force = load_classifier(folder / model_file(family, "force", profile.finger_effort), family, causes)
    head = load_classifier(folder / model_file(family, "camera"), family, causes)
    return {
        "camera": CameraDiagnoser(family, load_model(folder / f"{BACKBONE}.onnx"), head),
        "force": ForceDiagnoser(family, force, profile),
    }


def models_in_use(
    vocabulary: Vocabulary, profile: RobotProfile, models_dir: Path | None = None
) -> tuple[Model, ...]:
    """What load_diagnosers() would load, for every family, by id and the hash of the files as they are now.

    Loads no model, so that a process which only compares them with a record stays small. A source whose
    files are missing or whose sidecar cannot be read is left out: the record then says what it misses.
    """
    folder = Path(models_dir) if models_dir else shipped_models()
    found = []
    for family in vocabulary.families:
        for source, names in (
            ("camera", (BACKBONE, f"{family}_camera")),
            ("force", (Path(model_file(family, "force", profile.finger_effort)).stem,)),
        ):
            try:
                cards = [json.loads((folder / f"{name}.json").read_text(encoding="utf-8")) for name in names]
                files = {
                    card["model_id"]: sha256_of(folder / f"{name}.onnx")
                    for card, name in zip(cards, names, strict=True)
                }
            except (OSError, ValueError, KeyError, TypeError):
                continue
            found.append(Model(family, source, cards[-1]["model_id"], files))
    return tuple(found)
