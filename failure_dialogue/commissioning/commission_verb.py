"""`failure-dialogue commission`: measure the diagnosers on staged failures and write the record."""

from __future__ import annotations

import datetime as dt
import json
import sys
from importlib import metadata
from pathlib import Path

import click

from failure_dialogue.commissioning.measuring import Measurement, Side, measure, standing
from failure_dialogue.commissioning.splits import Manifest, Purpose, load_manifest
from failure_dialogue.decision.costs import load_costs
from failure_dialogue.decision.record import Entry, Record, new_record, save_record, vocabulary_hash
from failure_dialogue.decision.threshold import Threshold, threshold
from failure_dialogue.diagnosis.load import load_diagnosers
from failure_dialogue.diagnosis.protocol import Diagnoser
from failure_dialogue.errors import SplitError
from failure_dialogue.robots.profile import load_profile
from failure_dialogue.scoring.metrics import rate_text
from failure_dialogue.vocabulary import Family, load_vocabulary


def _software_version() -> str:
    try:
        return metadata.version("failure_dialogue")
    except metadata.PackageNotFoundError:
        return "not installed"


def _measured(diagnosers: dict[str, Diagnoser], manifest: Manifest, split: str, purpose: Purpose,
              family: Family) -> Measurement:
    episodes = len(manifest.episodes(split, purpose))
    with click.progressbar(length=episodes, label=f"{split}, {episodes} episodes",
                           file=sys.stderr) as bar:
        return measure(diagnosers, manifest, split, purpose, family, done=lambda number: bar.update(1))


def _advice(entry: Entry, limit: Threshold) -> str:
    where = standing(entry, limit)
    if where.side is Side.NO_THRESHOLD:
        return f"acts: {limit.why}"
    if where.side is Side.ABOVE:
        return f"acts: above p* = {limit.p_star:.3f}"
    if where.side is Side.BELOW:
        return f"asks: below p* = {limit.p_star:.3f}"
    mean = "acts" if entry.accuracy >= limit.p_star else "asks"
    more = (f"about {where.more_needed} more staged failures would tell" if where.more_needed is not None
            else "no reachable number of staged failures would tell")
    return f"{mean}, but p* = {limit.p_star:.3f} lies within the interval; {more}"


def _report(title: str, measurement: Measurement, limit: Threshold | None) -> list[str]:
    lines = [title]
    for entry in measurement.measured_on.entries:
        advice = f"  {_advice(entry, limit)}" if limit is not None else ""
        lines.append(f"  {entry.source:<8} right in {rate_text(entry.correct, entry.n)}{advice}")
        for reason, times in measurement.abstentions[entry.source].items():
            lines.append(f"           abstained {times} times (counted as wrong): {reason}")
    return lines


def _as_json(path: Path, record: Record, limit: Threshold) -> dict:
    sources = []
    for entry in record.entries:
        where = standing(entry, limit)
        sources.append(entry.to_dict() | {"side": where.side.value, "more_needed": where.more_needed})
    return {"record": str(path), "record_id": record.record_id,
            "threshold": None if limit.p_star != limit.p_star else round(limit.p_star, 6),
            "calibration": sources, "bench": [entry.to_dict() for entry in record.bench]}


@click.command(help="Measure every diagnoser on staged failures and write the commissioning record.")
@click.option("--data", required=True, type=click.Path(path_type=Path, exists=True, file_okay=False),
              help="Folder made by 'failure-dialogue generate'.")
@click.option("--family", "family_name", default="grasp", show_default=True, help="Family of failures.yaml.")
@click.option("--out", required=True, type=click.Path(path_type=Path, dir_okay=False),
              help="Record to write (YAML).")
@click.option("--split", default="calibration", show_default=True, help="Split that is measured.")
@click.option("--report-test", is_flag=True,
              help="Also measure split 'test': the held-out figure, stored apart, which no decision uses.")
@click.option("--robot", default="panda", show_default=True, help="Robot profile.")
@click.option("--models", type=click.Path(path_type=Path, exists=True, file_okay=False), default=None,
              help="Folder of the models; default: those of the package.")
@click.option("--costs", "costs_path", type=click.Path(path_type=Path, exists=True, dir_okay=False),
              default=None, help="Cost file; default: costs.yaml of the package.")
@click.option("--valid-days", type=click.IntRange(1, 3650), default=365, show_default=True,
              help="Days until the record expires.")
@click.option("--json", "as_json", is_flag=True, help="Print the figures as JSON.")
def command(data: Path, family_name: str, out: Path, split: str, report_test: bool, robot: str,
            models: Path | None, costs_path: Path | None, valid_days: int, as_json: bool) -> None:
    """See the module."""
    limit = threshold(*load_costs(costs_path))
    vocabulary, profile = load_vocabulary(), load_profile(robot)
    family = vocabulary.family(family_name)
    manifest = load_manifest(data, family_name)
    if manifest.robot not in ("", profile.robot_id):
        raise SplitError(f"{manifest.path} was recorded on robot {manifest.robot!r}, not "
                         f"{profile.robot_id!r}; give --robot or other data")
    diagnosers = load_diagnosers(vocabulary, family_name, profile, models)
    measurement = _measured(diagnosers, manifest, split, Purpose.COMMISSION, family)
    bench = _measured(diagnosers, manifest, "test", Purpose.BENCH, family) if report_test else None
    record = new_record(
        created=dt.datetime.now(dt.timezone.utc), valid_days=valid_days,
        software_version=_software_version(), robot=profile.robot_id, camera=measurement.camera,
        scenes=measurement.scenes, packages=manifest.packages,
        vocabulary_sha256={family.name: vocabulary_hash(family)}, calibration=measurement.measured_on,
        bench=bench.measured_on if bench else None)
    save_record(record, out)
    if as_json:
        click.echo(json.dumps(_as_json(out, record, limit), indent=1))
        return
    lines = _report(f"{family.name} failures, split {split} (what the decision uses):", measurement, limit)
    if bench:
        lines += _report("split test (held out, reported only):", bench, None)
    click.echo("\n".join([*lines, f"wrote {out}, record {record.record_id}, valid until "
                                  f"{record.expires:%Y-%m-%d}"]))
