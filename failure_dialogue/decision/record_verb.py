"""`failure-dialogue record`: show a commissioning record, or check it against what is in use."""

from __future__ import annotations

import datetime as dt
import json
from pathlib import Path

import click

from failure_dialogue.decision.record import Entry, Record, Running, check, load_record, vocabulary_hash
from failure_dialogue.errors import RecordError
from failure_dialogue.scoring.metrics import rate_text
from failure_dialogue.vocabulary import load_vocabulary

_RECORD = click.argument("path", type=click.Path(path_type=Path))
_JSON = click.option("--json", "as_json", is_flag=True, help="Print JSON.")


@click.group(help="Show a commissioning record, or check that it still fits.")
def command() -> None:
    """See the module."""


def _entry_lines(entry: Entry) -> list[str]:
    lines = [f"  {entry.family} from {entry.source}: right in {rate_text(entry.correct, entry.n)}, "
             f"abstained {entry.abstained}, model {entry.model_id}"]
    for cause, row in entry.confusion.items():
        said = ", ".join(f"{name} {times}" for name, times in sorted(row.items(), key=lambda item: -item[1]))
        lines.append(f"    {cause} ({sum(row.values())}): said {said}")
    return lines


def _in_words(record: Record) -> str:
    width, height = record.camera
    lines = [f"record {record.record_id} of robot {record.robot}, camera {width}x{height}",
             f"measured {record.created:%Y-%m-%d} with version {record.software_version}, "
             f"valid until {record.expires:%Y-%m-%d}",
             f"scenes: {', '.join(record.scenes) or 'not stated'}",
             "what the decision uses (share, 95 % interval, staged failures):"]
    for entry in record.entries:
        lines += _entry_lines(entry)
    if record.bench:
        lines.append("held-out figures (reported only):")
        for entry in record.bench:
            lines += _entry_lines(entry)
    return "\n".join(lines)


@command.command(help="Print a record in plain words.")
@_RECORD
@_JSON
def show(path: Path, as_json: bool) -> None:
    """See the module."""
    record = load_record(path)
    click.echo(json.dumps(record.document, indent=1) if as_json else _in_words(record))


@command.command("check", help="Compare a record with the models, vocabulary, robot and camera in use. "
                               "Ends with 2 when something no longer fits.")
@_RECORD
@click.option("--robot", default="panda", show_default=True, help="Robot profile in use.")
@click.option("--camera", nargs=2, type=int, default=(256, 256), show_default=True,
              help="Width and height of the camera images in use, pixels.")
@click.option("--models", type=click.Path(path_type=Path, exists=True, file_okay=False), default=None,
              help="Folder of the models; default: those of the package.")
@_JSON
def check_command(path: Path, robot: str, camera: tuple[int, int], models: Path | None,
                  as_json: bool) -> None:
    """See the module."""
    # Loading the models is slow and `show` needs none of them.
    from failure_dialogue.commissioning.measuring import model_in_use
    from failure_dialogue.diagnosis.load import load_diagnosers
    from failure_dialogue.robots.profile import load_profile

    record, vocabulary, profile = load_record(path), load_vocabulary(), load_profile(robot)
    families = sorted({entry.family for entry in record.entries} & set(vocabulary.families))
    in_use = tuple(model_in_use(diagnoser) for family in families
                   for diagnoser in load_diagnosers(vocabulary, family, profile, models).values())
    found = check(record, Running(
        profile.robot_id, camera, {f.name: vocabulary_hash(f) for f in vocabulary.families.values()}, in_use,
        dt.datetime.now(dt.timezone.utc)))
    if as_json:
        click.echo(json.dumps({"record_id": record.record_id, "fits": not found, "mismatches": [
            {"what": m.what, "recorded": m.recorded, "running": m.running, "remedy": m.remedy,
             "family": m.family, "source": m.source} for m in found]}, indent=1))
    elif not found:
        click.echo(f"record {record.record_id} fits what is in use")
    if found:
        raise RecordError(f"record {record.record_id} does not fit: " + "; ".join(str(m) for m in found))
