"""Choosing, fitting and measuring the classifiers behind the diagnosers; no choice is made on test data."""

from __future__ import annotations

import dataclasses
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from functools import partial

import numpy as np
from sklearn.base import ClassifierMixin
from sklearn.compose import ColumnTransformer
from sklearn.ensemble import HistGradientBoostingClassifier, VotingClassifier
from sklearn.impute import SimpleImputer
from sklearn.linear_model import LogisticRegression
from sklearn.model_selection import GroupKFold
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

from failure_dialogue.commissioning.export import tempered
from failure_dialogue.diagnosis.camera import BACKBONE_COLUMNS, MOTION_SEEN
from failure_dialogue.errors import EvidenceError, SplitError
from failure_dialogue.scoring.metrics import wilson
from failure_dialogue.telemetry import EFFORT_FEATURES, MOTION_FEATURES

FOLDS = 5
SEED = 0
SHUFFLES = 10

#: Feature groups that a force candidate may use. The first needs no wrench axis but fz.
_LOADS = ("load_slip_log", "load_peak_log", "load_early_log")
_WITHOUT_TORQUE = tuple(
    n for n in MOTION_FEATURES if not n.startswith(("lateral", "lever", "twist", "bending"))
)


@dataclass(frozen=True)
class Table:
    """Episodes of one split as rows: features (n, k) float32, truth (n,) class numbers, and what they were.

    severity (n,): as staged; objects, layouts (n,): names of the object and of the initial scene; azimuth_deg
    (n,): the camera's; refused: episode and reason where the evidence gave no features.
    """

    features: np.ndarray
    truth: np.ndarray
    severity: np.ndarray
    objects: np.ndarray
    layouts: np.ndarray
    azimuth_deg: np.ndarray
    refused: tuple[tuple[str, str], ...] = ()

    def where(self, mask: np.ndarray) -> Table:
        """The rows of a mask (n,)."""
        return Table(
            self.features[mask],
            self.truth[mask],
            self.severity[mask],
            self.objects[mask],
            self.layouts[mask],
            self.azimuth_deg[mask],
        )

    def columns(self, indices: Sequence[int]) -> Table:
        """The same rows with some of the features."""
        return Table(
            self.features[:, list(indices)],
            self.truth,
            self.severity,
            self.objects,
            self.layouts,
            self.azimuth_deg,
            self.refused,
        )


def build_table(
    episodes: Iterable[dict], classes: Sequence[str], features_of: Callable[[dict], np.ndarray]
) -> Table:
    """Rows for the manifest entries of one split. features_of(entry) -> (k,), or EvidenceError: refused."""
    rows, kept, refused = [], [], []
    for episode in episodes:
        try:
            rows.append(features_of(episode))
            kept.append(episode)
        except EvidenceError as error:
            refused.append((episode["episode_id"], str(error)))
    if not rows:
        raise SplitError(
            f"no episode of the split gave features ({len(refused)} refused"
            + (f", the first because {refused[0][1]}" if refused else "")
            + "); generate it again"
        )

    def column(kind: type, of: Callable[[dict], object]) -> np.ndarray:
        return np.array([of(episode) for episode in kept], dtype=kind)

    return Table(
        np.asarray(rows, np.float32),
        column(int, lambda e: list(classes).index(e["cause"])),
        column(float, lambda e: e.get("severity", np.nan)),
        column(str, lambda e: e.get("object", "")),
        column(str, _layout),
        column(float, lambda e: e.get("appearance", {}).get("azimuth_deg", np.nan)),
        tuple(refused),
    )


def _layout(episode: dict) -> str:
    """Episodes that begin with the same scene are one group; where it is not stated, each is its own."""
    if "init_state" in episode:
        return f"{episode.get('scene', '')}/{episode['init_state']}"
    return str(episode["episode_id"])


@dataclass(frozen=True)
class Candidate:
    """One way to classify: which features, and a fresh unfitted classifier of them."""

    name: str
    features: tuple[str, ...]
    make: Callable[[], ClassifierMixin]


def _logistic() -> ClassifierMixin:
    return make_pipeline(SimpleImputer(), StandardScaler(), LogisticRegression(C=1.0, max_iter=2000))


def _boosted(iterations: int = 150, leaves: int = 8, least: int = 20) -> ClassifierMixin:
    return HistGradientBoostingClassifier(
        max_iter=iterations,
        learning_rate=0.06,
        max_leaf_nodes=leaves,
        min_samples_leaf=least,
        l2_regularization=1.0,
        early_stopping=False,
        random_state=SEED,
    )


def force_candidates(finger_effort: bool) -> tuple[Candidate, ...]:
    """Feature groups times classifiers, from the fewest assumptions on the scene to the most."""
    effort = EFFORT_FEATURES if finger_effort else ()
    groups = {
        "loads": effort + _LOADS,
        "no_torque": effort + _WITHOUT_TORQUE,
        "all": effort + MOTION_FEATURES,
    }
    makers = {"logistic": _logistic, "boosted": _boosted}
    return tuple(
        Candidate(f"{maker}_{group}", names, make)
        for group, names in groups.items()
        for maker, make in makers.items()
    )


def _backbone_linear(c: float) -> ClassifierMixin:
    seen = ColumnTransformer([("seen", StandardScaler(), list(range(BACKBONE_COLUMNS)))])
    return make_pipeline(seen, LogisticRegression(C=c, max_iter=2000))


def _motion_boosted() -> ClassifierMixin:
    columns = list(range(BACKBONE_COLUMNS, BACKBONE_COLUMNS + len(MOTION_SEEN)))
    moved = ColumnTransformer([("moved", "passthrough", columns)])
    return make_pipeline(moved, _boosted(70, 6, 30))


def camera_candidates() -> tuple[Candidate, ...]:
    """Heads on the camera's row: the backbone alone, motion alone, and both with a vote of that weight."""

    def both(weight: float) -> Callable[[], ClassifierMixin]:
        return lambda: VotingClassifier(
            [("backbone", _backbone_linear(1e-5)), ("motion", _motion_boosted())],
            voting="soft",
            weights=np.array([weight, 1 - weight]),
            flatten_transform=False,  # the only way that skl2onnx converts
        )

    return (
        *(Candidate(f"backbone_{c:g}", (), partial(_backbone_linear, c)) for c in (1e-6, 1e-5, 1e-4)),
        Candidate("motion", (), _motion_boosted),
        *(Candidate(f"both_{weight:g}", (), both(weight)) for weight in (0.25, 0.5)),
    )


def share(right: int, n: int) -> dict:
    """{"right", "n", "share", "low", "high"}: a share with its 95 % Wilson interval."""
    low, high = wilson(right, n)
    return {
        "right": right,
        "n": n,
        "share": round(right / n, 4) if n else None,
        "low": round(low, 4),
        "high": round(high, 4),
    }


def scored(candidate: Candidate, train: Table, test: Table) -> dict:
    """share() of right answers on test after fitting on train."""
    fitted = candidate.make().fit(train.features, train.truth)
    return share(int((fitted.predict(test.features) == test.truth).sum()), len(test.truth))


def grouped(candidate: Candidate, table: Table, groups: np.ndarray) -> dict:
    """share() over folds in which no group is on both sides."""
    folds = GroupKFold(min(FOLDS, len(np.unique(groups))))
    right = 0
    for inside, outside in folds.split(table.features, table.truth, groups):
        right += scored(candidate, table.where(inside), table.where(outside))["right"]
    return share(right, len(table.truth))


def mild_half(table: Table, median: dict[int, float], low_is_mild: dict[int, bool]) -> np.ndarray:
    """(n,) whether a row belongs to the milder half of its cause; median by class number."""
    middle = np.array([median[t] for t in table.truth])
    below = np.array([low_is_mild[t] for t in table.truth])
    return np.where(below, table.severity <= middle, table.severity > middle)


def severity_medians(table: Table) -> dict[int, float]:
    """Median severity of each class."""
    return {int(t): float(np.median(table.severity[table.truth == t])) for t in np.unique(table.truth)}


def across_severity(candidate: Candidate, train: Table, test: Table, low_is_mild: dict[int, bool]) -> dict:
    """{"to_severe", "to_mild"}: fitted on half of train's severities, scored on the other half of test's."""
    median = severity_medians(train)
    mild_train, mild_test = mild_half(train, median, low_is_mild), mild_half(test, median, low_is_mild)
    return {
        "to_severe": scored(candidate, train.where(mild_train), test.where(~mild_test)),
        "to_mild": scored(candidate, train.where(~mild_train), test.where(mild_test)),
    }


def choose_force(
    candidates: Sequence[Candidate], names: Sequence[str], train: Table, low_is_mild: dict[int, bool]
) -> tuple[Candidate, dict]:
    """The candidate whose worst of four figures on train is best, and the figures of all.

    The figures: folds by initial scene, folds by object, and the two directions between mild and severe.
    """
    figures: dict[str, dict] = {}
    for candidate in candidates:
        part = train.columns([list(names).index(n) for n in candidate.features])
        figures[candidate.name] = {
            "layouts": grouped(candidate, part, part.layouts)["share"],
            "objects": grouped(candidate, part, part.objects)["share"],
        }
        for direction, figure in across_severity(candidate, part, part, low_is_mild).items():
            figures[candidate.name][direction] = figure["share"]
    best = max(candidates, key=lambda c: (min(figures[c.name].values()), sum(figures[c.name].values())))
    return best, figures


def choose_camera(candidates: Sequence[Candidate], train: Table) -> tuple[Candidate, dict]:
    """The candidate with the best accuracy over folds by initial scene, and the figures of all."""
    figures = {c.name: {"layouts": grouped(c, train, train.layouts)["share"]} for c in candidates}
    return max(candidates, key=lambda c: figures[c.name]["layouts"]), figures


def shuffled(candidate: Candidate, train: Table, test: Table) -> dict:
    """What chance gives: fits on train with shuffled labels, scored on test, SHUFFLES times.

    Failures of one cause lie close together, so that one shuffle hits or misses a whole cause at once:
    share is the mean over all shuffles, beside the least and the greatest.
    """
    rng = np.random.default_rng(SEED)
    shares = []
    for _ in range(SHUFFLES):
        permuted = dataclasses.replace(train, truth=rng.permutation(train.truth))
        shares.append(scored(candidate, permuted, test)["share"])
    return {
        "share": round(float(np.mean(shares)), 4),
        "lowest": min(shares),
        "highest": max(shares),
        "shuffles": SHUFFLES,
        "n": len(test.truth),
    }


def results(predicted: np.ndarray, table: Table, classes: Sequence[str]) -> dict:
    """Accuracy, the share right of each cause, the share of each object, and the confusion counts."""
    right = predicted == table.truth
    return {
        "accuracy": share(int(right.sum()), len(right)),
        "refused": len(table.refused),
        "recall": {
            name: share(int(right[table.truth == i].sum()), int((table.truth == i).sum()))
            for i, name in enumerate(classes)
        },
        "objects": {
            str(name): share(int(right[table.objects == name].sum()), int((table.objects == name).sum()))
            for name in np.unique(table.objects)
        },
        "confusion": [
            [int(((table.truth == i) & (predicted == j)).sum()) for j in range(len(classes))]
            for i in range(len(classes))
        ],
    }


def azimuth_held_out(candidate: Candidate, train: Table, test: Table) -> dict | None:
    """share() on the outer half of the camera's azimuths after fitting on the inner one; None: unknown."""
    if not (np.isfinite(train.azimuth_deg).all() and np.isfinite(test.azimuth_deg).all()):
        return None
    limit = float(np.median(np.abs(train.azimuth_deg)))
    inside, outside = np.abs(train.azimuth_deg) <= limit, np.abs(test.azimuth_deg) > limit
    if not (inside.any() and outside.any()):
        return None
    figure = scored(candidate, train.where(inside), test.where(outside))
    return {"trained_within_deg": round(limit, 1), **figure}


def figures(
    candidate: Candidate,
    fitted: ClassifierMixin,
    temperature: float,
    tables: dict[str, Table],
    classes: Sequence[str],
    low_is_mild: dict[int, bool],
) -> dict:
    """All that is reported of a classifier that was fitted on train, on episodes it was not chosen on."""
    train, test = tables["train"], tables["test"]
    measured: dict = {
        name: results(fitted.predict(table.features), table, classes)
        for name, table in tables.items()
        if name in ("test", "new_object")
    }
    measured["severity"] = across_severity(candidate, train, test, low_is_mild)
    measured["shuffled_labels"] = shuffled(candidate, train, test)
    given = tempered(fitted.predict_proba(test.features), temperature)[np.arange(len(test.truth)), test.truth]
    measured["test_log_loss"] = round(float(-np.log(given).mean()), 4)
    return measured
