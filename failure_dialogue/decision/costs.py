"""What the actions cost and how far a person's answers can be trusted: stated numbers, checked."""

from __future__ import annotations

import math
from dataclasses import dataclass, fields
from pathlib import Path

import yaml

from failure_dialogue.errors import CostError
from failure_dialogue.paths import config_file


def _number(name: str, value: object) -> float:
    if isinstance(value, bool) or not isinstance(value, (int, float)) or not math.isfinite(value):
        raise CostError(f"{name} is {value!r}; it must be a finite number")
    return float(value)


@dataclass(frozen=True)
class Costs:
    """Costs in units of one retry; CostError unless each is a finite number of at least 0.

    wrong_repair comes on top of retry. Source: the paper's sections III-C (Cr, Cw, Ca) and V (Csense).
    """

    retry: float = 1.0
    wrong_repair: float = 10.0
    ask: float = 3.0
    sense: float = 0.5

    def __post_init__(self) -> None:
        for field in fields(self):
            name = f"cost {field.name!r}"
            value = _number(name, getattr(self, field.name))
            if value < 0:
                raise CostError(f"{name} is {value:g}; a cost is at least 0 (in units of one retry)")
            object.__setattr__(self, field.name, value)


@dataclass(frozen=True)
class Answerer:
    """How often a person's answer is correct (qc), uninformative (qv) and wrong (qw); they sum to 1.

    CostError otherwise. Source: section III-C of the paper.
    """

    correct: float = 0.80
    uninformative: float = 0.15
    wrong: float = 0.05

    def __post_init__(self) -> None:
        for field in fields(self):
            name = f"answerer rate {field.name!r}"
            value = _number(name, getattr(self, field.name))
            if not 0 <= value <= 1:
                raise CostError(f"{name} is {value:g}; a rate lies in 0..1")
            object.__setattr__(self, field.name, value)
        total = math.fsum((self.correct, self.uninformative, self.wrong))
        if abs(total - 1.0) > 1e-6:
            raise CostError(f"the answerer rates correct {self.correct:g}, uninformative "
                            f"{self.uninformative:g} and wrong {self.wrong:g} sum to {total:g}; "
                            "they must sum to 1")

    @property
    def informative_accuracy(self) -> float:
        """Probability that an answer which names a cause is right, qc / (qc + qw); 0 if none ever does."""
        informative = self.correct + self.wrong
        return self.correct / informative if informative > 0 else 0.0


def load_costs(path: Path | None = None) -> tuple[Costs, Answerer]:
    """Read costs.yaml (the shipped one by default); CostError says what to mend."""
    path = path or config_file("costs.yaml")
    try:
        data = yaml.safe_load(Path(path).read_text(encoding="utf-8"))
    except (OSError, UnicodeDecodeError, yaml.YAMLError) as error:
        raise CostError(f"{path} cannot be read as YAML: {error}") from error
    if not isinstance(data, dict) or data.get("version") != 1:
        raise CostError(f"{path} is not a cost file of version 1; it needs 'version: 1', 'costs' and "
                        "'answerer'")
    return Costs(**_stated(data, "costs", Costs, path)), Answerer(**_stated(data, "answerer", Answerer, path))


def _stated(data: dict, key: str, kind: type, path: Path) -> dict:
    """The numbers under one key of the file: each field of kind, and nothing else."""
    given = data.get(key)
    known = [field.name for field in fields(kind)]
    if not isinstance(given, dict) or set(given) != set(known):
        raise CostError(f"{path}: {key!r} is {given!r}; it must state {', '.join(known)} and nothing else")
    return given
