"""`failure-dialogue train`: from generated failures to an exported, measured diagnoser."""

from __future__ import annotations

import json
import time
from collections.abc import Callable
from pathlib import Path

import click
import numpy as np

from failure_dialogue.commissioning import training
from failure_dialogue.commissioning.export import export_classifier, fit_temperature, tempered, write_card
from failure_dialogue.commissioning.training import Candidate, Table, build_table
from failure_dialogue.diagnosis.camera import FRAMES, CameraDiagnoser, choose_frames, clip_features, views
from failure_dialogue.diagnosis.force import ForceDiagnoser
from failure_dialogue.diagnosis.load import BACKBONE, model_file
from failure_dialogue.diagnosis.onnx_model import OnnxModel, load_model, sha256_of
from failure_dialogue.errors import ConfigError
from failure_dialogue.evidence import Evidence
from failure_dialogue.paths import models_dir
from failure_dialogue.robots.panda import PANDA
from failure_dialogue.scoring.metrics import wilson
from failure_dialogue.telemetry import FEATURE_NAMES, MOTION_FEATURES, feature_row
from failure_dialogue.vocabulary import Vocabulary, load_vocabulary

MANIFEST = "manifest.json"
#: Episodes of `test` on which the time of a diagnosis is measured.
TIMED = 50


def read_manifest(data: Path, family: str) -> dict[str, list[dict]]:
    """Splits of a generated data set: name -> entries. ConfigError when it is none, or of another family."""
    path = Path(data) / MANIFEST
    try:
        manifest = json.loads(path.read_text(encoding="utf-8"))
        found, splits = manifest["family"], manifest["splits"]
    except (OSError, ValueError, KeyError, TypeError) as error:
        raise ConfigError(
            f"{path} cannot be read as a manifest ({error!r}); make one with `failure-dialogue generate`"
        ) from error
    if found != family:
        raise ConfigError(f"{path} holds failures of family {found!r}, not {family!r}")
    for name in ("train", "calibration", "test"):
        if not splits.get(name):
            raise ConfigError(f"{path} has no episodes in split {name!r}; generate them")
    return splits


def evidence_of(data: Path, entry: dict, frames: bool = False) -> Evidence:
    """What the sensors recorded of one manifest entry."""
    return Evidence.load(Path(data) / "evidence" / f"{entry['episode_id']}.npz", frames=frames)


def low_is_mild(vocabulary: Vocabulary, family: str) -> dict[int, bool]:
    """By class number, whether a small severity is a mild one: the end of its range that lies nearer to 1.

    Severities are scales of a nominal value (1: nothing wrong), or a coefficient whose nominal value lies
    above the range and below 1.
    """
    ranges = [cause.severity["range"] for cause in vocabulary.family(family).causes.values()]
    return {i: abs(low - 1) < abs(high - 1) for i, (low, high) in enumerate(ranges)}


def force_tables(
    data: Path,
    splits: dict[str, list[dict]],
    classes: list[str],
    names: tuple[str, ...],
    say: Callable[[str], None],
) -> dict[str, Table]:
    """One table for each split that has episodes."""

    def row(entry: dict) -> np.ndarray:
        return feature_row(evidence_of(data, entry), PANDA, names)

    return _tables(splits, classes, row, say)


def camera_tables(
    data: Path,
    splits: dict[str, list[dict]],
    classes: list[str],
    backbone: OnnxModel,
    say: Callable[[str], None],
) -> dict[str, Table]:
    """As force_tables; what the backbone gave is kept in DATA/embeddings, by its hash."""
    folder = Path(data) / "embeddings" / backbone.card["sha256"][:12]
    folder.mkdir(parents=True, exist_ok=True)

    def row(entry: dict) -> np.ndarray:
        kept = folder / f"{entry['episode_id']}.npy"
        if not kept.is_file():
            np.save(kept, backbone.run(views(choose_frames(evidence_of(data, entry, frames=True)))))
        return clip_features(np.load(kept))

    return _tables(splits, classes, row, say)


def _tables(
    splits: dict[str, list[dict]],
    classes: list[str],
    row: Callable[[dict], np.ndarray],
    say: Callable[[str], None],
) -> dict[str, Table]:
    tables = {}
    for name in ("train", "calibration", "test", "new_object"):
        if splits.get(name):
            start = time.monotonic()
            tables[name] = build_table(splits[name], classes, row)
            refused = tables[name].refused
            say(
                f"{name}: {len(tables[name].truth)} episodes in {time.monotonic() - start:.0f} s"
                + (f", {len(refused)} refused, the first: {refused[0][1]}" if refused else "")
            )
    return tables


def figures_of(
    candidate: Candidate, fitted, tables: dict[str, Table], classes: list[str], mild: dict[int, bool]
) -> dict:
    """Everything that is reported of one fitted classifier, measured on episodes it was not chosen on."""
    train, test = tables["train"], tables["test"]
    figures = {"test": training.results(fitted.predict(test.features), test, classes)}
    if "new_object" in tables:
        new = tables["new_object"]
        figures["new_object"] = training.results(fitted.predict(new.features), new, classes)
    figures["severity"] = training.across_severity(candidate, train, test, mild)
    figures["shuffled_labels"] = training.shuffled(candidate, train, test)
    if np.isfinite(train.azimuth_deg).all() and np.isfinite(test.azimuth_deg).all():
        # The outer half of the azimuths is never trained on.
        limit = float(np.median(np.abs(train.azimuth_deg)))
        inside, outside = np.abs(train.azimuth_deg) <= limit, np.abs(test.azimuth_deg) > limit
        if inside.any() and outside.any():
            figures["azimuth_held_out"] = {
                "trained_within_deg": round(limit, 1),
                **training.scored(candidate, train.where(inside), test.where(outside)),
            }
    tempered_test = tempered(fitted.predict_proba(test.features), figures_temperature(fitted, tables))
    figures["test_log_loss"] = round(
        float(-np.log(tempered_test[np.arange(len(test.truth)), test.truth]).mean()), 4
    )
    return figures


def figures_temperature(fitted, tables: dict[str, Table]) -> float:
    """The temperature fitted on the calibration split."""
    calibration = tables["calibration"]
    return fit_temperature(fitted.predict_proba(calibration.features), calibration.truth)


def latency_of(diagnoser, data: Path, entries: list[dict], frames: bool) -> dict:
    """Seconds a diagnosis takes on evidence in memory."""
    seconds = [diagnoser.diagnose(evidence_of(data, entry, frames)).latency_s for entry in entries[:TIMED]]
    return {
        "median_s": round(float(np.median(seconds)), 5),
        "p95_s": round(float(np.quantile(seconds, 0.95)), 5),
        "n": len(seconds),
    }


def train_force(
    data: Path, family: str, out: Path, vocabulary: Vocabulary, say: Callable[[str], None]
) -> list[dict]:
    """Train, export and measure the force model and the one for robots without finger effort."""
    classes = list(vocabulary.family(family).causes)
    splits, mild = read_manifest(data, family), low_is_mild(vocabulary, family)
    tables = force_tables(data, splits, classes, FEATURE_NAMES, say)
    cards = []
    for effort, names in ((True, FEATURE_NAMES), (False, MOTION_FEATURES)):
        here = {k: t.columns([FEATURE_NAMES.index(n) for n in names]) for k, t in tables.items()}
        candidate, tried = training.choose_force(
            training.force_candidates(effort), names, here["train"], mild
        )
        used = {k: t.columns([names.index(n) for n in candidate.features]) for k, t in here.items()}
        cards.append(
            _finish(
                data,
                family,
                "force",
                model_file(family, "force", effort),
                out,
                candidate,
                tried,
                used,
                classes,
                mild,
                {"feature_names": list(candidate.features), "robot": PANDA.robot_id},
                say,
            )
        )
        model = load_model(out / model_file(family, "force", effort))
        cards[-1]["figures"]["latency"] = latency_of(
            ForceDiagnoser(family, model, PANDA), data, splits["test"], False
        )
        write_card(out / model_file(family, "force", effort), cards[-1])
    return cards


def train_camera(
    data: Path, family: str, out: Path, vocabulary: Vocabulary, say: Callable[[str], None]
) -> list[dict]:
    """Train, export and measure the head on the frozen backbone, which lies in the package or in out."""
    classes = list(vocabulary.family(family).causes)
    splits, mild = read_manifest(data, family), low_is_mild(vocabulary, family)
    path = out / f"{BACKBONE}.onnx"
    backbone = load_model(path if path.is_file() else models_dir() / path.name)
    tables = camera_tables(data, splits, classes, backbone, say)
    candidate, tried = training.choose_camera(training.camera_candidates(()), tables["train"])
    extra = {
        "backbone_sha256": backbone.card["sha256"],
        "inputs": int(tables["train"].features.shape[1]),
        "layout": f"{FRAMES} frames, whole and centre crop: mean, last - first, spread, mean step",
    }
    name = model_file(family, "camera")
    card = _finish(data, family, "camera", name, out, candidate, tried, tables, classes, mild, extra, say)
    diagnoser = CameraDiagnoser(family, backbone, load_model(out / name))
    card["figures"]["latency"] = latency_of(diagnoser, data, splits["test"], True)
    write_card(out / name, card)
    return [card]


def _finish(
    data: Path,
    family: str,
    source: str,
    name: str,
    out: Path,
    candidate: Candidate,
    tried: dict,
    tables: dict[str, Table],
    classes: list[str],
    mild: dict[int, bool],
    extra: dict,
    say: Callable[[str], None],
) -> dict:
    say(f"{name}: chose {candidate.name} of {len(tried)} on train alone")
    fitted = candidate.make().fit(tables["train"].features, tables["train"].truth)
    card = {
        "family": family,
        "source": source,
        "classes": classes,
        **extra,
        "classifier": candidate.name,
        "command": f"failure-dialogue train --data DATA --family {family} --source {source}",
        "data": {
            "manifest_sha256": sha256_of(data / MANIFEST),
            "episodes": {k: len(t.truth) for k, t in tables.items()},
        },
        "chosen_on_train": tried,
        "figures": figures_of(candidate, fitted, tables, classes, mild),
    }
    return export_classifier(
        fitted, figures_temperature(fitted, tables), out / name, tables["test"].features, card
    )


def report(card: dict) -> str:
    """The figures of one model for people, each with n and its interval."""

    def line(name: str, figure: dict) -> str:
        low, high = wilson(figure["right"], figure["n"])
        right, n = figure["right"], figure["n"]
        return f"  {name:<28} {right / max(n, 1):.3f} [{low:.3f}, {high:.3f}] (n={n})"

    figures = card["figures"]
    lines = [f"{card['model_id']}: {card['classifier']}, {card['bytes'] / 1e3:.0f} kB"]
    lines.append(
        f"  temperature {card['temperature']:.2f}, differs from scikit-learn by {card['parity']['max']:.1e}"
    )
    for split in ("test", "new_object"):
        if split in figures:
            lines.append(line(split, figures[split]["accuracy"]))
            lines += [line(f"  {cause}", figure) for cause, figure in figures[split]["recall"].items()]
            if figures[split]["refused"]:
                lines.append(f"  refused: {figures[split]['refused']}")
    lines += [
        line("mild -> severe", figures["severity"]["to_severe"]),
        line("severe -> mild", figures["severity"]["to_mild"]),
    ]
    if "azimuth_held_out" in figures:
        lines.append(line("azimuth held out", figures["azimuth_held_out"]))
    lines.append(line("shuffled labels", figures["shuffled_labels"]))
    lines.append(
        f"  latency                      {1e3 * figures['latency']['median_s']:.1f} ms, "
        f"p95 {1e3 * figures['latency']['p95_s']:.1f} ms (n={figures['latency']['n']})"
    )
    return "\n".join(lines)


@click.command(help="Train, export and measure a diagnoser on failures made by `generate`.")
@click.option(
    "--data",
    type=click.Path(path_type=Path, exists=True, file_okay=False),
    required=True,
    help="Folder made by `failure-dialogue generate`.",
)
@click.option("--family", default="grasp", show_default=True, help="Family of failures.yaml.")
@click.option("--source", type=click.Choice(["force", "camera"]), required=True)
@click.option(
    "--out", type=click.Path(path_type=Path), default=None, help="Folder; default: the package's models."
)
@click.option("--json", "as_json", is_flag=True, help="Print the sidecars instead of the report.")
def command(data: Path, family: str, source: str, out: Path | None, as_json: bool) -> None:
    """See the module."""
    train = {"force": train_force, "camera": train_camera}[source]
    cards = train(
        data, family, out or models_dir(), load_vocabulary(), lambda text: click.echo(text, err=True)
    )
    click.echo(json.dumps(cards, indent=1) if as_json else "\n".join(report(card) for card in cards))
