"""The diagnosers of one family, made from the models that ship with the package or lie in a folder."""

from __future__ import annotations

from pathlib import Path

from failure_dialogue.diagnosis.camera import CameraDiagnoser
from failure_dialogue.diagnosis.force import ForceDiagnoser
from failure_dialogue.diagnosis.onnx_model import load_classifier, load_model
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
