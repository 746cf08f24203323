"""Measuring what each diagnoser is worth on staged failures, for the commissioning record."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from enum import Enum

from failure_dialogue.commissioning.splits import Manifest, Purpose
from failure_dialogue.decision.record import ABSTAINED, Entry, MeasuredOn, Model
from failure_dialogue.decision.threshold import Regime, Threshold
from failure_dialogue.diagnosis.onnx_model import OnnxModel
from failure_dialogue.diagnosis.protocol import Diagnoser
from failure_dialogue.errors import EvidenceError, SplitError
from failure_dialogue.scoring.metrics import confusion, more_needed
from failure_dialogue.vocabulary import Family


@dataclass(frozen=True)
class Measurement:
    """What one pass over the episodes of a split gave.

    camera is (width, height) in pixels. abstentions: by source, how often each reason was given.
    """

    measured_on: MeasuredOn
    camera: tuple[int, int]
    scenes: tuple[str, ...]
    abstentions: Mapping[str, Mapping[str, int]]


def model_in_use(diagnoser: Diagnoser) -> Model:
    """A diagnoser's id and the sha256 of each ONNX file it runs, by the file's model id.

    A diagnoser that runs no file here (a served model) is known by its model_id alone.
    """
    held = [value for value in vars(diagnoser).values() if isinstance(value, OnnxModel)]
    return Model(diagnoser.family, diagnoser.source, diagnoser.model_id,
                 {model.model_id: model.card["sha256"] for model in held})


def measure(diagnosers: Mapping[str, Diagnoser], manifest: Manifest, split: str, purpose: Purpose,
            family: Family, done: Callable[[int], None] = lambda episodes: None) -> Measurement:
    """Run every diagnoser over the episodes of one split and count, by true cause, what each said.

    done(n) is called after every episode with the number so far. SplitError: the split may not be used for
    this purpose, is empty, or names a cause the family lacks. EvidenceError: evidence is damaged, is of
    another family, or its frames differ in size or are missing.
    """
    episodes = manifest.episodes(split, purpose)
    said: dict[str, list[str]] = {source: [] for source in diagnosers}
    abstentions: dict[str, Counter] = {source: Counter() for source in diagnosers}
    camera: tuple[int, int] | None = None
    for number, episode in enumerate(episodes, start=1):
        if episode.cause not in family.causes:
            raise SplitError(f"episode {episode.episode_id!r} has the cause {episode.cause!r}; "
                             f"{family.name} knows {', '.join(family.causes)}: generate the data again")
        evidence = episode.evidence()
        if evidence.family != family.name:
            raise EvidenceError(f"{episode.evidence_path} is of family {evidence.family!r}, the manifest of "
                                f"{family.name!r}; generate the data again")
        for frame in evidence.frames:
            size = (frame.image_rgb.shape[1], frame.image_rgb.shape[0])
            if camera not in (None, size):
                raise EvidenceError(f"episode {episode.episode_id!r} has a frame of {size}, those before "
                                    f"were {camera} pixels; record all with one camera size")
            camera = size
        for source, diagnoser in diagnosers.items():
            diagnosis = diagnoser.diagnose(evidence)
            said[source].append(ABSTAINED if diagnosis.abstained else diagnosis.best)
            if diagnosis.abstained:
                abstentions[source][diagnosis.reason] += 1
        done(number)
    if camera is None:
        raise EvidenceError(f"none of the {len(episodes)} episodes of split {split!r} has a camera frame; "
                            "record the failures with the camera on")
    truths = [episode.cause for episode in episodes]
    entries = tuple(_entry(diagnoser, truths, said[source]) for source, diagnoser in diagnosers.items())
    return Measurement(MeasuredOn(split, manifest.sha256, entries), camera,
                       tuple(sorted({episode.scene for episode in episodes})), abstentions)


def _entry(diagnoser: Diagnoser, truths: list[str], said: list[str]) -> Entry:
    model = model_in_use(diagnoser)
    return Entry(model.family, model.source, model.model_id, model.files, confusion(truths, said))


class Side(Enum):
    """Where a measured accuracy lies relative to p*, with 95 % confidence."""

    ABOVE = "above"
    BELOW = "below"
    UNDECIDED = "undecided"
    NO_THRESHOLD = "no_threshold"


@dataclass(frozen=True)
class Standing:
    """Which side of p* an accuracy lies on, and about how many more staged failures would tell.

    more_needed: 0 where the side is known, None where no reachable number would tell.
    """

    side: Side
    more_needed: int | None


def standing(entry: Entry, limit: Threshold) -> Standing:
    """Compare an entry's Wilson interval with the threshold. Where asking never pays there is no side."""
    if limit.regime is Regime.NEVER:
        return Standing(Side.NO_THRESHOLD, 0)
    low, high = entry.interval
    if low > limit.p_star:
        return Standing(Side.ABOVE, 0)
    if high < limit.p_star:
        return Standing(Side.BELOW, 0)
    return Standing(Side.UNDECIDED, more_needed(entry.correct, entry.n, limit.p_star))
