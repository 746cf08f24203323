"""The commissioning record: what was measured, on what it depends, and whether that still holds."""

from __future__ import annotations

import copy
import datetime as dt
import hashlib
import json
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from functools import cached_property
from pathlib import Path

import jsonschema
import yaml

from failure_dialogue.errors import RecordError
from failure_dialogue.scoring.metrics import wilson
from failure_dialogue.vocabulary import Family

FORMAT = 1
#: What a diagnoser is counted as having said when it abstained.
ABSTAINED = "abstained"

_PIXELS = {"type": "integer", "minimum": 1}
_COUNT = {"type": "integer", "minimum": 0}
_SHA256 = {"type": "string", "pattern": "^[0-9a-f]{64}$"}
_SHARE = {"type": "number", "minimum": 0, "maximum": 1}
_TIME_FORMAT = "%Y-%m-%dT%H:%M:%SZ"
_TIME = {"type": "string", "pattern": r"^\d{4}-\d\d-\d\dT\d\d:\d\d:\d\dZ$"}


def _object(properties: dict, optional: tuple[str, ...] = ()) -> dict:
    return {"type": "object", "properties": properties, "additionalProperties": False,
            "required": [key for key in properties if key not in optional]}


def _map(values: dict) -> dict:
    return {"type": "object", "additionalProperties": values}


_ENTRY = _object({
    "family": {"type": "string"},
    "source": {"type": "string"},
    "model_id": {"type": "string"},
    "model_files": _map(_SHA256),
    "n": {"type": "integer", "minimum": 1},
    "correct": _COUNT,
    "abstained": _COUNT,
    "accuracy": _SHARE,
    "interval": {"type": "array", "items": _SHARE, "minItems": 2, "maxItems": 2},
    "confusion": _map(_map(_COUNT)),
})
_MEASURED_ON = _object({"split": {"type": "string"}, "manifest_sha256": _SHA256, "entries": {
    "type": "array", "items": _ENTRY}})

#: JSON Schema of the file. `bench` holds the figures on the test split, which the decision never reads.
SCHEMA = _object({
    "format": {"const": FORMAT},
    "record_id": {"type": "string", "pattern": "^[0-9a-f]{12}$"},
    "created": _TIME,
    "expires": _TIME,
    "software_version": {"type": "string"},
    "robot": {"type": "string", "minLength": 1},
    "camera": _object({"width": _PIXELS, "height": _PIXELS}),
    "scenes": {"type": "array", "items": {"type": "string"}},
    "packages": _map({"type": "string"}),
    "vocabulary_sha256": _map(_SHA256),
    "calibration": _MEASURED_ON,
    "bench": _MEASURED_ON,
}, optional=("bench",))


@dataclass(frozen=True)
class Entry:
    """What was measured of one source on one family: counts by true cause, then by what was said.

    An abstention is counted under ABSTAINED and is not correct.
    """

    family: str
    source: str
    model_id: str
    model_files: Mapping[str, str]
    confusion: Mapping[str, Mapping[str, int]]

    @cached_property
    def n(self) -> int:
        """Number of staged failures."""
        return sum(sum(row.values()) for row in self.confusion.values())

    @cached_property
    def correct(self) -> int:
        """How many of them were diagnosed rightly."""
        return sum(row.get(cause, 0) for cause, row in self.confusion.items())

    @cached_property
    def abstained(self) -> int:
        """In how many the source did not answer."""
        return sum(row.get(ABSTAINED, 0) for row in self.confusion.values())

    @property
    def accuracy(self) -> float:
        """Share diagnosed rightly."""
        return self.correct / self.n

    @property
    def interval(self) -> tuple[float, float]:
        """95 % Wilson interval of the accuracy."""
        return wilson(self.correct, self.n)

    def said(self, guess: str, among: Iterable[str]) -> dict[str, int]:
        """How often each of the causes `among` was the true one when the source said `guess`."""
        return {cause: self.confusion.get(cause, {}).get(guess, 0) for cause in among}

    def to_dict(self) -> dict:
        """As it stands in the file."""
        return {"family": self.family, "source": self.source, "model_id": self.model_id,
                "model_files": dict(self.model_files), "n": self.n, "correct": self.correct,
                "abstained": self.abstained, "accuracy": round(self.accuracy, 4),
                "interval": [round(x, 4) for x in self.interval],
                "confusion": {cause: dict(row) for cause, row in self.confusion.items()}}


@dataclass(frozen=True)
class MeasuredOn:
    """Entries with the split they were measured on and the hash of the manifest that names its episodes."""

    split: str
    manifest_sha256: str
    entries: tuple[Entry, ...]

    def to_dict(self) -> dict:
        """As it stands in the file."""
        return {"split": self.split, "manifest_sha256": self.manifest_sha256,
                "entries": [entry.to_dict() for entry in self.entries]}


@dataclass(frozen=True)
class Record:
    """A checked commissioning record. entries are what the decision uses; bench only reports."""

    record_id: str
    created: dt.datetime
    expires: dt.datetime
    software_version: str
    robot: str
    camera: tuple[int, int]
    scenes: tuple[str, ...]
    packages: Mapping[str, str]
    vocabulary_sha256: Mapping[str, str]
    entries: tuple[Entry, ...]
    bench: tuple[Entry, ...] = ()
    document: Mapping = field(default_factory=dict, repr=False, compare=False)

    def entry(self, family: str, source: str) -> Entry | None:
        """The measurement of one source on one family, None if it was not made."""
        return next((e for e in self.entries if (e.family, e.source) == (family, source)), None)


@dataclass(frozen=True)
class Model:
    """A diagnoser in use: its model_id and the sha256 of each of its files by the file's own id."""

    family: str
    source: str
    model_id: str
    files: Mapping[str, str]


@dataclass(frozen=True)
class Running:
    """What is in use now, to be compared with the record. camera is (width, height) in pixels.

    scenes may stay empty where the place has no id (a real cell); it is then not compared.
    """

    robot: str
    camera: tuple[int, int]
    vocabulary_sha256: Mapping[str, str]
    models: tuple[Model, ...]
    now: dt.datetime
    scenes: tuple[str, ...] = ()


@dataclass(frozen=True)
class Mismatch:
    """One thing that is no longer as it was measured; it makes the entries it concerns stale.

    An empty family or source stands for all of them.
    """

    what: str
    recorded: str
    running: str
    remedy: str
    family: str = ""
    source: str = ""

    def concerns(self, family: str, source: str) -> bool:
        """Whether the entry of this source and family is stale because of it."""
        return self.family in ("", family) and self.source in ("", source)

    def __str__(self) -> str:
        return f"{self.what}: recorded {self.recorded}, running {self.running}; {self.remedy}"


def vocabulary_hash(family: Family) -> str:
    """sha256 over a family's causes and the repair of each. Wording may change without a new measurement."""
    content = {"family": family.name, "causes": {c.name: c.repair for c in family.causes.values()}}
    return hashlib.sha256(json.dumps(content, sort_keys=True).encode()).hexdigest()


def content_id(document: Mapping) -> str:
    """The record id: a short hash over all that stands in the record beside the id itself."""
    content = {key: value for key, value in document.items() if key != "record_id"}
    return hashlib.sha256(json.dumps(content, sort_keys=True).encode()).hexdigest()[:12]


def _time(text: str) -> dt.datetime:
    return dt.datetime.strptime(text, _TIME_FORMAT).replace(tzinfo=dt.timezone.utc)


def _entries(section: Mapping | None, where: str) -> tuple[Entry, ...]:
    entries: list[Entry] = []
    for raw in (section or {}).get("entries", ()):
        entry = Entry(raw["family"], raw["source"], raw["model_id"], raw["model_files"], raw["confusion"])
        here = f"{where}, source {entry.source!r} on family {entry.family!r}"
        for name in ("n", "correct", "abstained"):
            if raw[name] != getattr(entry, name):
                raise RecordError(f"{here}: {name} is {raw[name]}, but the confusion counts give "
                                  f"{getattr(entry, name)}; commission again")
        # Written as "not within" so that NaN is refused too.
        given, meant = (raw["accuracy"], *raw["interval"]), (entry.accuracy, *entry.interval)
        if not all(abs(a - b) <= 1e-4 for a, b in zip(given, meant, strict=True)):
            raise RecordError(f"{here}: accuracy {raw['accuracy']} with interval {raw['interval']} does not "
                              f"follow from {entry.correct} of {entry.n}; commission again")
        if any((e.family, e.source) == (entry.family, entry.source) for e in entries):
            raise RecordError(f"{here} stands in the record twice; commission again")
        entries.append(entry)
    return tuple(entries)


def record_from_document(document: Mapping, where: str = "the record") -> Record:
    """Check a document against SCHEMA and itself; RecordError names the place, the value and the remedy."""
    problem = next(jsonschema.Draft202012Validator(SCHEMA).iter_errors(document), None)
    if problem is not None:
        place = "/".join(str(step) for step in problem.path) or "top level"
        raise RecordError(f"{where}, at {place}: {problem.message[:300]}; commission again")
    if content_id(document) != document["record_id"]:
        raise RecordError(f"{where} was changed after it was measured (id {document['record_id']}, content "
                          f"{content_id(document)}); commission again instead of editing it")
    try:
        created, expires = _time(document["created"]), _time(document["expires"])
    except ValueError as error:
        raise RecordError(f"{where}: {error}; commission again") from error
    camera = document["camera"]
    return Record(document["record_id"], created, expires, document["software_version"], document["robot"],
                  (camera["width"], camera["height"]), tuple(document["scenes"]), document["packages"],
                  document["vocabulary_sha256"], _entries(document["calibration"], where),
                  _entries(document.get("bench"), f"{where}, bench"), copy.deepcopy(dict(document)))


def new_record(*, created: dt.datetime, valid_days: int, software_version: str, robot: str,
               camera: tuple[int, int], scenes: Iterable[str], packages: Mapping[str, str],
               vocabulary_sha256: Mapping[str, str], calibration: MeasuredOn,
               bench: MeasuredOn | None = None) -> Record:
    """A record of what was just measured, checked like one that was read; created is in UTC."""
    document: dict = {
        "format": FORMAT,
        "created": created.strftime(_TIME_FORMAT),
        "expires": (created + dt.timedelta(days=valid_days)).strftime(_TIME_FORMAT),
        "software_version": software_version,
        "robot": robot,
        "camera": {"width": int(camera[0]), "height": int(camera[1])},
        "scenes": sorted(scenes),
        "packages": dict(packages),
        "vocabulary_sha256": dict(vocabulary_sha256),
        "calibration": calibration.to_dict(),
    }
    if bench is not None:
        document["bench"] = bench.to_dict()
    return record_from_document({"format": FORMAT, "record_id": content_id(document), **document})


def load_record(path: Path) -> Record:
    """Read and check a record; RecordError when it is missing, malformed or altered."""
    try:
        document = yaml.safe_load(Path(path).read_text(encoding="utf-8"))
    except FileNotFoundError as error:
        raise RecordError(f"there is no commissioning record {path}; make one with "
                          "'failure-dialogue commission'") from error
    except (OSError, UnicodeDecodeError, yaml.YAMLError) as error:
        raise RecordError(f"{path} cannot be read as YAML: {error}; commission again") from error
    if not isinstance(document, dict):
        raise RecordError(f"{path} is not a commissioning record but {type(document).__name__}; "
                          "commission again")
    return record_from_document(document, str(path))


def save_record(record: Record, path: Path) -> None:
    """Write the record as YAML, whole or not at all; RecordError when the place cannot be written."""
    text = ("# Commissioning record, written by 'failure-dialogue commission'. Not to be edited: the id is\n"
            "# a hash of the content. confusion: staged failures by true cause, then by what was said.\n"
            + yaml.safe_dump(dict(record.document), sort_keys=False, width=110))
    path = Path(path)
    part = path.with_name(path.name + ".part")
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        part.write_text(text, encoding="utf-8")
        part.replace(path)
    except OSError as error:
        raise RecordError(f"the record cannot be written to {path} ({error}); choose another place"
                          ) from error


def check(record: Record, running: Running) -> tuple[Mismatch, ...]:
    """All that is no longer as it was when the record was measured; empty when the record fits."""
    found: list[Mismatch] = []
    again = "commission again"
    if running.now >= record.expires:
        found.append(Mismatch("expiry", f"{record.expires:%Y-%m-%d}", f"{running.now:%Y-%m-%d}", again))
    if running.robot != record.robot:
        found.append(Mismatch("robot", record.robot, running.robot, f"use this robot's record or {again}"))
    if tuple(running.camera) != record.camera:
        found.append(Mismatch("camera size", "{}x{}".format(*record.camera), "{}x{}".format(*running.camera),
                              f"set the camera back or {again}"))
    unknown = sorted(set(running.scenes) - set(record.scenes)) if running.scenes else []
    if unknown:
        found.append(Mismatch("scenes", ", ".join(record.scenes) or "none", ", ".join(unknown), again))
    models = {(m.family, m.source): m for m in running.models}
    for entry in record.entries:
        family, source = entry.family, entry.source
        where = {"family": family, "source": source}
        vocabulary = record.vocabulary_sha256.get(family, "none")
        now = running.vocabulary_sha256.get(family, "none")
        if vocabulary != now and not any(m.what == f"vocabulary of {family}" for m in found):
            found.append(Mismatch(f"vocabulary of {family}", vocabulary[:12], now[:12],
                                  f"restore its causes and repairs in failures.yaml or {again}",
                                  family=family))
        model = models.get((family, source))
        if model is None:
            found.append(Mismatch(f"source {source} on {family}", entry.model_id, "not configured",
                                  f"configure the diagnoser or {again}", **where))
            continue
        if model.model_id != entry.model_id:
            found.append(Mismatch(f"model of {source} on {family}", entry.model_id, model.model_id,
                                  f"use the measured model or {again}", **where))
        for name in sorted(set(entry.model_files) | set(model.files)):
            was, is_now = entry.model_files.get(name, "none"), model.files.get(name, "none")
            if was != is_now:
                found.append(Mismatch(f"model file {name} of {source} on {family}", was[:12], is_now[:12],
                                      f"restore the file or {again}", **where))
    measured = {(e.family, e.source) for e in record.entries}
    for family, source in sorted(set(models) - measured):
        found.append(Mismatch(f"source {source} on {family}", "not measured", models[family, source].model_id,
                              again, family=family, source=source))
    return tuple(found)


def record_or_reason(path: Path) -> tuple[Record | None, str]:
    """For a node that must go on without a record: the record and '', or None and why there is none."""
    try:
        return load_record(path), ""
    except RecordError as error:
        return None, str(error)
