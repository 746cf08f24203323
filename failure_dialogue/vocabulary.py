"""Families, causes and repairs, read from failures.yaml and checked."""

from __future__ import annotations

import math
from dataclasses import dataclass, field
from pathlib import Path

import yaml

from failure_dialogue.errors import RepairError, VocabularyError
from failure_dialogue.paths import config_file

#: Reserved in every family: what was never staged.
NONE_OF_THESE = "none_of_these"


@dataclass(frozen=True)
class Cause:
    """One cause of failure and the repair prepared for it."""

    name: str
    family: str
    phrase: str
    repair: str
    severity: dict = field(default_factory=dict)


@dataclass(frozen=True)
class Argument:
    """One number a repair takes: unit, closed range and default."""

    name: str
    unit: str
    low: float
    high: float
    default: float


@dataclass(frozen=True)
class Repair:
    """One prepared action."""

    name: str
    phrase: str
    time_limit_s: float
    arguments: dict[str, Argument]

    def checked(self, given: dict[str, float]) -> dict[str, float]:
        """All arguments with defaults filled in; RepairError on an unknown one or one out of range."""
        for name in given:
            if name not in self.arguments:
                raise RepairError(
                    f"repair {self.name!r} takes no argument {name!r}; it takes: "
                    + (", ".join(self.arguments) or "none")
                )
        values = {name: float(given.get(name, a.default)) for name, a in self.arguments.items()}
        for name, value in values.items():
            a = self.arguments[name]
            if not (math.isfinite(value) and a.low <= value <= a.high):
                raise RepairError(
                    f"argument {name} of repair {self.name!r} is {value:g} {a.unit}; "
                    f"it must lie in {a.low:g}..{a.high:g}"
                )
        return values


@dataclass(frozen=True)
class Family:
    """One kind of failure with its causes, in file order."""

    name: str
    stage: str
    symptom: str
    causes: dict[str, Cause]


@dataclass(frozen=True)
class Vocabulary:
    """All families and repairs of one failures.yaml."""

    families: dict[str, Family]
    repairs: dict[str, Repair]

    def family(self, name: str) -> Family:
        """The family, or VocabularyError that lists those there are."""
        if name not in self.families:
            raise VocabularyError(f"unknown family {name!r}; known: {', '.join(self.families)}")
        return self.families[name]

    def cause(self, family: str, name: str) -> Cause:
        """The cause, or VocabularyError that lists those of the family."""
        causes = self.family(family).causes
        if name not in causes:
            raise VocabularyError(f"unknown cause {name!r} in family {family!r}; known: {', '.join(causes)}")
        return causes[name]

    def repair(self, name: str) -> Repair:
        """The repair, or VocabularyError that lists those there are."""
        if name not in self.repairs:
            raise VocabularyError(f"unknown repair {name!r}; known: {', '.join(self.repairs)}")
        return self.repairs[name]


_TYPE_NAMES = {dict: "a mapping", list: "a list", str: "a text", (int, float): "a number"}


def _need(mapping, key: str, kind, where: str):
    if not isinstance(mapping, dict) or key not in mapping:
        raise VocabularyError(f"{where} has no {key!r}; add it")
    if not isinstance(mapping[key], kind):
        raise VocabularyError(f"{where}: {key} is {mapping[key]!r}; it must be {_TYPE_NAMES[kind]}")
    return mapping[key]


def _argument(name: str, spec: dict, where: str) -> Argument:
    low_high = _need(spec, "range", list, where)
    try:
        low, high = (float(x) for x in low_high)
        default = float(spec["default"])
    except (KeyError, TypeError, ValueError) as error:
        raise VocabularyError(
            f"{where}: range {low_high!r} and default {spec.get('default')!r} "
            "must be [low, high] and a number"
        ) from error
    if not low <= default <= high:
        raise VocabularyError(f"{where}: default {default:g} is outside {low:g}..{high:g}")
    return Argument(name, str(spec.get("unit", "1")), low, high, default)


def load_vocabulary(path: Path | None = None) -> Vocabulary:
    """Read failures.yaml (the shipped one by default); VocabularyError says what to mend."""
    path = path or config_file("failures.yaml")
    try:
        data = yaml.safe_load(Path(path).read_text(encoding="utf-8"))
    except (OSError, UnicodeDecodeError, yaml.YAMLError) as error:
        raise VocabularyError(f"{path} cannot be read as YAML: {error}") from error
    repairs = {}
    for name, spec in _need(data, "repairs", dict, str(path)).items():
        where = f"{path}: repair {name!r}"
        arguments = {
            a: _argument(a, s, f"{where}, argument {a!r}") for a, s in (spec.get("arguments") or {}).items()
        }
        repairs[name] = Repair(
            name,
            _need(spec, "phrase", str, where),
            float(_need(spec, "time_limit_s", (int, float), where)),
            arguments,
        )
    families = {}
    for name, spec in _need(data, "families", dict, str(path)).items():
        where = f"{path}: family {name!r}"
        causes = {}
        for cause, entry in _need(spec, "causes", dict, where).items():
            here = f"{where}, cause {cause!r}"
            if cause == NONE_OF_THESE:
                raise VocabularyError(f"{here}: the name is reserved; choose another")
            repair = _need(entry, "repair", str, here)
            if repair not in repairs:
                raise VocabularyError(
                    f"{here}: repair {repair!r} is not defined; known: {', '.join(repairs)}"
                )
            causes[cause] = Cause(
                cause, name, _need(entry, "phrase", str, here), repair, dict(entry.get("severity") or {})
            )
        if len(causes) < 2:
            raise VocabularyError(f"{where} has {len(causes)} cause; a family needs at least two")
        families[name] = Family(
            name, _need(spec, "stage", str, where), _need(spec, "symptom", str, where), causes
        )
    return Vocabulary(families, repairs)
