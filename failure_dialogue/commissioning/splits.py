"""The four disjoint splits of a data set, and who may use which: an episode of the wrong split is refused."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Mapping
from dataclasses import dataclass
from enum import Enum
from pathlib import Path

from failure_dialogue.errors import SplitError
from failure_dialogue.evidence import Evidence

MANIFEST = "manifest.json"
FORMAT = 1
#: new_object: the same failures on objects that are in no other split.
SPLITS = ("train", "calibration", "test", "spare", "new_object")
#: What must not occur in two splits. An episode is one simulation run, drawn from its seed; a run that
#: holds several episodes is named under `run`.
_SEPARATE = ("episode_id", "seed", "run")


class Purpose(Enum):
    """What an episode is wanted for; the value is what messages call it."""

    TRAIN = "training"
    COMMISSION = "commissioning"
    BENCH = "a bench"


_ALLOWED = {Purpose.TRAIN: ("train",), Purpose.COMMISSION: ("calibration",),
            Purpose.BENCH: ("test", "new_object")}


@dataclass(frozen=True)
class Episode:
    """One staged failure: which split it belongs to, its true cause, and where its evidence lies."""

    episode_id: str
    family: str
    split: str
    cause: str
    seed: int
    scene: str
    evidence_path: Path

    def evidence(self, frames: bool = True) -> Evidence:
        """What the sensors recorded; SplitError when the file is gone, EvidenceError when it is damaged."""
        try:
            return Evidence.load(self.evidence_path, frames=frames)
        except FileNotFoundError as error:
            raise SplitError(f"the evidence of episode {self.episode_id!r} is not at {self.evidence_path}; "
                             "generate the data again") from error


def _check_allowed(split: str, purpose: Purpose) -> None:
    if split not in _ALLOWED[purpose]:
        raise SplitError(f"split {split!r} may not be used for {purpose.value}; use "
                         + " or ".join(_ALLOWED[purpose]))


@dataclass(frozen=True)
class Manifest:
    """The episodes of one family by split. packages: versions of what made them, as far as stated."""

    path: Path
    sha256: str
    family: str
    robot: str
    packages: Mapping[str, str]
    by_split: Mapping[str, tuple[Episode, ...]]

    def episodes(self, split: str, purpose: Purpose) -> tuple[Episode, ...]:
        """The episodes of a split; SplitError when it is empty or may not be used for this purpose."""
        _check_allowed(split, purpose)
        episodes = self.by_split.get(split, ())
        if not episodes:
            raise SplitError(f"{self.path} has no episodes in split {split!r}; generate them")
        return episodes


def _check_separate(by_split: Mapping[str, list[dict]], path: Path) -> None:
    """Separation: no episode, seed or run stands in two splits, and no episode or seed twice in one."""
    for key in _SEPARATE:
        home: dict[object, str] = {}
        for split, entries in by_split.items():
            for entry in entries:
                if key not in entry:
                    if key == "run":
                        continue
                    raise SplitError(f"{path}: an episode of split {split!r} states no {key!r}, so the "
                                     "splits cannot be shown to be disjoint; generate the data again")
                value = entry[key]
                if value in home and (key != "run" or home[value] != split):
                    raise SplitError(f"{path}: {key} {value!r} stands in split {home[value]!r} and again in "
                                     f"{split!r}; generate the data again with separate seeds")
                home[value] = split


def _check_new_objects(by_split: Mapping[str, list[dict]], path: Path) -> None:
    trained, new = ({str(entry["object"]) for entry in by_split.get(split, ()) if "object" in entry}
                    for split in ("train", "new_object"))
    both = sorted(trained & new)
    if both:
        raise SplitError(f"{path}: {', '.join(both)} stands in 'train' and in 'new_object'; "
                         "generate 'new_object' with objects that are not trained on")


def load_manifest(data: Path, family: str) -> Manifest:
    """Read DATA/manifest.json; evidence lies in DATA/evidence/<episode_id>.npz.

    SplitError when the file is missing or malformed, is of another family, or its splits overlap.
    """
    path = Path(data) / MANIFEST
    try:
        raw = path.read_bytes()
        document = json.loads(raw)
    except (OSError, ValueError) as error:
        raise SplitError(f"{path} cannot be read as a manifest ({error}); make one with "
                         "'failure-dialogue generate'") from error
    if not isinstance(document, dict) or document.get("format") != FORMAT:
        raise SplitError(f"{path} is not a manifest of format {FORMAT}; make one with "
                         "'failure-dialogue generate'")
    if document.get("family") != family:
        raise SplitError(f"{path} holds {document.get('family')!r} failures, not {family!r}; give the folder "
                         "of that family")
    splits = document.get("splits")
    if not (isinstance(splits, dict) and set(splits) <= set(SPLITS) and all(
            isinstance(entries, list) and all(isinstance(entry, dict) for entry in entries)
            for entries in splits.values())):
        raise SplitError(f"{path}: splits must map {', '.join(SPLITS)} to lists of episodes, it is "
                         f"{str(splits)[:100]}; generate the data again")
    _check_separate(splits, path)
    _check_new_objects(splits, path)
    by_split = {}
    for split, entries in splits.items():
        try:
            by_split[split] = tuple(
                Episode(str(e["episode_id"]), family, split, str(e["cause"]), int(e["seed"]),
                        str(e.get("scene", e.get("object", ""))),
                        Path(data) / "evidence" / f"{e['episode_id']}.npz") for e in entries)
        except (KeyError, TypeError, ValueError) as error:
            raise SplitError(f"{path}: an episode of split {split!r} is malformed ({error!r}); "
                             "generate the data again") from error
    return Manifest(path, hashlib.sha256(raw).hexdigest(), family, str(document.get("robot", "")),
                    {str(k): str(v) for k, v in (document.get("packages") or {}).items()}, by_split)
