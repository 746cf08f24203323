"""`failure-dialogue train`: from generated failures to an exported, measured diagnoser."""

from __future__ import annotations

import json
import time
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

import click
import numpy as np

from failure_dialogue.commissioning import training
from failure_dialogue.commissioning.export import (
    export_classifier,
    fit_temperature,
    round_thresholds,
    write_card,
)
from failure_dialogue.commissioning.splits import Purpose, load_manifest
from failure_dialogue.commissioning.training import Candidate, Table
from failure_dialogue.diagnosis import camera
from failure_dialogue.diagnosis.camera import CameraDiagnoser, choose_frames, clip_features, motion_features
from failure_dialogue.diagnosis.force import ForceDiagnoser
from failure_dialogue.diagnosis.load import BACKBONE, model_file
from failure_dialogue.diagnosis.onnx_model import load_model, sha256_of
from failure_dialogue.diagnosis.protocol import Diagnoser
from failure_dialogue.errors import SplitError
from failure_dialogue.evidence import Evidence
from failure_dialogue.paths import models_dir
from failure_dialogue.robots.panda import PANDA
from failure_dialogue.scoring.metrics import rate_text
from failure_dialogue.telemetry import FEATURE_NAMES, MOTION_FEATURES, feature_row
from failure_dialogue.vocabulary import Vocabulary, load_vocabulary

#: Which split serves for what; new_object need not be there.
PURPOSES = {
    "train": Purpose.TRAIN,
    "calibration": Purpose.COMMISSION,
    "test": Purpose.BENCH,
    "new_object": Purpose.BENCH,
}
#: Episodes of `test` on which the time of a diagnosis is measured.
TIMED = 50


@dataclass(frozen=True)
class DataSet:
    """A generated data set as training needs it: entries by split, as `generate` wrote them.

    classes: the causes in the order of the vocabulary; low_is_mild: as training.mild_half wants it.
    """

    folder: Path
    family: str
    sha256: str
    classes: tuple[str, ...]
    low_is_mild: dict[int, bool]
    splits: dict[str, list[dict]]

    @classmethod
    def read(cls, folder: Path, family: str, vocabulary: Vocabulary) -> DataSet:
        """Read and check a folder; SplitError when a split is empty or the splits overlap."""
        causes = vocabulary.family(family).causes
        manifest = load_manifest(folder, family)
        written = json.loads(manifest.path.read_text(encoding="utf-8"))["splits"]
        splits = {}
        for name, purpose in PURPOSES.items():
            if name != "new_object" or manifest.by_split.get(name):
                manifest.episodes(name, purpose)
                splits[name] = written[name]
        mild = {i: low_is_mild(*cause.severity["range"]) for i, cause in enumerate(causes.values())}
        return cls(Path(folder), family, manifest.sha256, tuple(causes), mild, splits)

    def evidence(self, entry: dict, frames: bool = False) -> Evidence:
        """What the sensors recorded of one entry."""
        path = self.folder / "evidence" / f"{entry['episode_id']}.npz"
        if not path.is_file():
            raise SplitError(f"the evidence of episode {entry['episode_id']!r} is not at {path}; start the "
                             "same 'failure-dialogue generate' again, it makes what is missing")
        return Evidence.load(path, frames=frames)

    def tables(self, row: Callable[[dict], np.ndarray]) -> dict[str, Table]:
        """One table for each split; row(entry) gives its features, or EvidenceError."""
        tables = {}
        for name, entries in self.splits.items():
            start = time.monotonic()
            tables[name] = training.build_table(entries, self.classes, row)
            _say(f"{name}: {len(tables[name].truth)} episodes read in {time.monotonic() - start:.0f} s")
            for episode_id, reason in tables[name].refused[:3]:
                _say(f"  refused {episode_id} (of {len(tables[name].refused)}): {reason}")
        return tables


def low_is_mild(low: float, high: float) -> bool:
    """Whether a small severity is a mild one: the end of its range that lies nearer to 1.

    Severities are scales of a nominal value (1: nothing wrong), or a coefficient whose nominal value lies
    above the range and below 1.
    """
    return abs(low - 1) < abs(high - 1)


def _say(text: str) -> None:
    click.echo(text, err=True)


def train_force(data: DataSet, out: Path) -> list[dict]:
    """Train, export and measure the force model and the one for robots without finger effort."""
    tables = data.tables(lambda entry: feature_row(data.evidence(entry), PANDA, FEATURE_NAMES))
    cards = []
    for effort, names in ((True, FEATURE_NAMES), (False, MOTION_FEATURES)):
        here = {k: t.columns([FEATURE_NAMES.index(n) for n in names]) for k, t in tables.items()}
        candidate, tried = training.choose_force(
            training.force_candidates(effort), names, here["train"], data.low_is_mild
        )
        used = {k: t.columns([names.index(n) for n in candidate.features]) for k, t in here.items()}
        path = out / model_file(data.family, "force", effort)
        extra = {"feature_names": list(candidate.features), "robot": PANDA.robot_id}
        card = _fit_and_export(data, "force", path, candidate, tried, used, extra)
        _add_latency(card, path, ForceDiagnoser(data.family, load_model(path), PANDA), data)
        cards.append(card)
    return cards


def train_camera(data: DataSet, out: Path) -> list[dict]:
    """Train, export and measure the head on the frozen backbone, which lies in the package or in out.

    What the backbone gave for an episode is kept in DATA/embeddings, by its hash and that of the code.
    """
    shipped = models_dir() / f"{BACKBONE}.onnx"
    backbone = load_model(out / shipped.name if (out / shipped.name).is_file() else shipped)
    code = sha256_of(Path(camera.__file__))
    kept = data.folder / "embeddings" / f"{backbone.card['sha256'][:12]}-{code[:12]}"
    kept.mkdir(parents=True, exist_ok=True)

    def row(entry: dict) -> np.ndarray:
        path = kept / f"{entry['episode_id']}.npy"
        if not path.is_file():
            evidence = data.evidence(entry, frames=True)
            frames = choose_frames(evidence)
            embeddings = backbone.run(camera.views(frames))
            np.save(path, clip_features(embeddings, motion_features(evidence, frames)))
        return np.load(path)

    tables = data.tables(row)
    candidate, tried = training.choose_camera(training.camera_candidates(), tables["train"])
    extra = {
        "backbone_sha256": backbone.card["sha256"],
        "inputs": int(tables["train"].features.shape[1]),
        "layout": f"{camera.BACKBONE_COLUMNS} of the backbone, then: {', '.join(camera.MOTION_SEEN)}",
    }
    path = out / model_file(data.family, "camera")
    card = _fit_and_export(data, "camera", path, candidate, tried, tables, extra)
    azimuth = training.azimuth_held_out(candidate, tables["train"], tables["test"])
    if azimuth is not None:
        card["figures"]["azimuth_held_out"] = azimuth
    _add_latency(card, path, CameraDiagnoser(data.family, backbone, load_model(path)), data)
    return [card]


def _fit_and_export(
    data: DataSet,
    source: str,
    path: Path,
    candidate: Candidate,
    tried: dict,
    tables: dict[str, Table],
    extra: dict,
) -> dict:
    _say(f"{path.name}: chose {candidate.name} of {len(tried)} on train alone")
    train, calibration = tables["train"], tables["calibration"]
    fitted = candidate.make().fit(train.features, train.truth)
    round_thresholds(fitted)  # so that what is measured is what is exported
    temperature = fit_temperature(fitted.predict_proba(calibration.features), calibration.truth)
    card = {
        "family": data.family,
        "source": source,
        "classes": list(data.classes),
        **extra,
        "classifier": candidate.name,
        "command": f"failure-dialogue train --data DATA --family {data.family} --source {source}",
        "data": {
            "manifest_sha256": data.sha256,
            "episodes": {name: len(table.truth) for name, table in tables.items()},
        },
        "chosen_on_train": tried,
        "figures": training.figures(candidate, fitted, temperature, tables, data.classes, data.low_is_mild),
    }
    return export_classifier(fitted, temperature, path, tables["test"].features, card)


def _add_latency(card: dict, path: Path, diagnoser: Diagnoser, data: DataSet) -> None:
    frames = diagnoser.source == "camera"
    seconds = [
        diagnoser.diagnose(data.evidence(entry, frames)).latency_s for entry in data.splits["test"][:TIMED]
    ]
    card["figures"]["latency"] = {
        "median_s": round(float(np.median(seconds)), 5),
        "p95_s": round(float(np.quantile(seconds, 0.95)), 5),
        "n": len(seconds),
    }
    write_card(path, card)


def report(card: dict) -> str:
    """The figures of one model for people, each with n and its interval."""

    def line(name: str, figure: dict) -> str:
        return f"  {name:<26} {rate_text(figure['right'], figure['n'])}"

    figures = card["figures"]
    lines = [f"{card['model_id']}: {card['classifier']}, {card['bytes'] / 1e3:.0f} kB"]
    for split in ("test", "new_object"):
        if split in figures:
            lines.append(line(split, figures[split]["accuracy"]))
            lines += [line(f"  {cause}", figure) for cause, figure in figures[split]["recall"].items()]
            if figures[split]["refused"]:
                lines.append(f"    refused                  {figures[split]['refused']}")
    lines.append(line("trained mild, severe", figures["severity"]["to_severe"]))
    lines.append(line("trained severe, mild", figures["severity"]["to_mild"]))
    if "azimuth_held_out" in figures:
        lines.append(line("azimuth held out", figures["azimuth_held_out"]))
    chance = figures["shuffled_labels"]
    by_chance = [f"{chance[key]:.3f}" for key in ("share", "lowest", "highest")]
    lines.append(
        "  shuffled labels            {}, {} to {}".format(*by_chance)
        + f" in {chance['shuffles']} shuffles (n={chance['n']})"
    )
    latency, parity = figures["latency"], card["parity"]
    lines.append(
        f"  time of a diagnosis        median {1e3 * latency['median_s']:.1f} ms, "
        f"95 % {1e3 * latency['p95_s']:.1f} ms (n={latency['n']})"
    )
    lines.append(
        f"  temperature {card['temperature']:.2f}; differs from scikit-learn by {parity['max']:.0e} "
        f"(n={parity['n']})"
    )
    return "\n".join(lines)


@click.command(help="Train, export and measure a diagnoser on failures made by 'failure-dialogue generate'.")
@click.option(
    "--data",
    "folder",
    type=click.Path(path_type=Path, exists=True, file_okay=False),
    required=True,
    help="Folder made by 'failure-dialogue generate'.",
)
@click.option("--family", default="grasp", show_default=True, help="Family of failures.yaml.")
@click.option("--source", type=click.Choice(["force", "camera"]), required=True)
@click.option(
    "--out", type=click.Path(path_type=Path), default=None, help="Folder; default: the package's models."
)
@click.option("--json", "as_json", is_flag=True, help="Print the models' descriptions as JSON.")
def command(folder: Path, family: str, source: str, out: Path | None, as_json: bool) -> None:
    """See the module."""
    data = DataSet.read(folder, family, load_vocabulary())
    train = {"force": train_force, "camera": train_camera}[source]
    cards = train(data, out or models_dir())
    click.echo(json.dumps(cards, indent=1) if as_json else "\n".join(report(card) for card in cards))
