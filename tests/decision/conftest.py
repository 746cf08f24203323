"""Records and diagnoses as the decision tests need them."""

import datetime as dt

import pytest

from failure_dialogue.decision.record import Entry, MeasuredOn, new_record, vocabulary_hash
from failure_dialogue.diagnosis.protocol import Diagnosis
from failure_dialogue.vocabulary import load_vocabulary

CAUSES = ("weak_grip", "heavy_object", "slippery_surface")


def even_confusion(correct, n):
    """Counts of n failures spread over the three causes, the wrong ones said to be the next cause."""
    counts = {cause: {} for cause in CAUSES}
    for i in range(n):
        truth = CAUSES[i % 3]
        said = truth if i < correct else CAUSES[(i + 1) % 3]
        counts[truth][said] = counts[truth].get(said, 0) + 1
    return counts


@pytest.fixture(scope="session")
def vocabulary():
    return load_vocabulary()


@pytest.fixture(scope="session")
def grasp(vocabulary):
    return vocabulary.family("grasp")


@pytest.fixture(scope="session")
def make_record(grasp):
    """make_record(camera=(32, 80), force=(79, 80)) or confusion counts instead of the pair."""

    def make(created=dt.datetime(2026, 1, 1, tzinfo=dt.timezone.utc), **sources):
        entries = tuple(
            Entry("grasp", source.replace("_and_", "+"), f"{source}-1", {f"{source}-1": "0" * 64},
                  counts if isinstance(counts, dict) else even_confusion(*counts))
            for source, counts in sources.items())
        return new_record(created=created, valid_days=365, software_version="0.1.0", robot="panda",
                          camera=(256, 256), scenes=("alphabet_soup", "butter"), packages={"mujoco": "3.0"},
                          vocabulary_sha256={"grasp": vocabulary_hash(grasp)},
                          calibration=MeasuredOn("calibration", "1" * 64, entries))

    return make


@pytest.fixture(scope="session")
def says():
    """says('camera', 'weak_grip'): a diagnosis of that source, with the model the record knows."""

    def make(source, cause, confidence=0.5, model_id=None, causes=CAUSES):
        if cause not in causes:
            causes = (*causes, cause)
        rest = (1 - confidence) / (len(causes) - 1)
        return Diagnosis(source, "grasp", causes, tuple(confidence if c == cause else rest for c in causes),
                         model_id or f"{source.replace('+', '_and_')}-1")

    return make
