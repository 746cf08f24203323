"""The force diagnoser: summary features of wrench, fingers and joints into a small classifier."""

from __future__ import annotations

import time

import numpy as np

from failure_dialogue.diagnosis.onnx_model import OnnxModel
from failure_dialogue.diagnosis.protocol import Diagnosis
from failure_dialogue.errors import EvidenceError, ModelError
from failure_dialogue.evidence import Evidence
from failure_dialogue.robots.profile import RobotProfile
from failure_dialogue.telemetry import EFFORT_FEATURES, FEATURE_NAMES, feature_row, slip_event


class ForceDiagnoser:
    """Diagnoses one family from what the robot felt. Source "force"."""

    source = "force"

    def __init__(self, family: str, model: OnnxModel, profile: RobotProfile) -> None:
        """ModelError when the model wants features not made here, or an effort the robot lacks."""
        unknown = sorted(set(model.feature_names) - set(FEATURE_NAMES))
        if unknown or not model.feature_names:
            raise ModelError(
                f"model {model.model_id} wants the features {', '.join(unknown) or '(none named)'}, "
                "which telemetry does not make; train it with this version"
            )
        self.family = family
        self.model = model
        self.model_id = model.model_id
        self.profile = profile
        if set(model.feature_names) & set(EFFORT_FEATURES) and not profile.finger_effort:
            raise ModelError(
                f"model {model.model_id} needs the fingers' effort, which robot {profile.robot_id!r} "
                "does not report; give the model that was trained without it"
            )

    def diagnose(self, evidence: Evidence) -> Diagnosis:
        """A distribution over the causes with the slip as its event, or an abstention that says why."""
        start = time.perf_counter()
        if evidence.family != self.family:
            return Diagnosis.abstention(
                self.source,
                evidence.family,
                self.model_id,
                f"the failure is of family {evidence.family!r}, this model of {self.family!r}",
            )
        try:
            row = feature_row(evidence, self.profile, self.model.feature_names)
            slip = slip_event(evidence, self.profile)
            probabilities = self.model.run(row[None])[0]
        except (EvidenceError, ModelError) as error:
            return Diagnosis.abstention(self.source, self.family, self.model_id, str(error))
        if not np.isfinite(probabilities).all():
            return Diagnosis.abstention(
                self.source,
                self.family,
                self.model_id,
                "the model gave no finite probabilities for these features",
            )
        return Diagnosis(
            self.source,
            self.family,
            self.model.classes,
            tuple(float(p) for p in probabilities),
            self.model_id,
            time.perf_counter() - start,
            events=(slip,) if slip else (),
        )
