"""The verb interpret: prints what the robot understands of a reply."""

from __future__ import annotations

import json
from pathlib import Path

import click

from failure_dialogue.dialogue.replies import ReplyMeaning, ReplyParser
from failure_dialogue.errors import ConfigError
from failure_dialogue.vocabulary import load_vocabulary


def as_dict(meaning: ReplyMeaning) -> dict:
    """A meaning as interpret prints it: cause and requested_repair are null where there is none."""
    return {"act": meaning.act.value, "cause": meaning.cause or None,
            "causes": {c: round(p, 4) for c, p in zip(meaning.causes, meaning.likelihoods, strict=True)},
            "requested_repair": meaning.requested_repair or None, "reason": meaning.reason}


def _lines(path: Path) -> list[tuple[str | None, str]]:
    rows = []
    for number, line in enumerate(path.read_bytes().splitlines(), 1):
        if not line.strip():
            continue
        try:
            row = json.loads(line)
            family, text = row.get("family"), row["text"]
        except (ValueError, AttributeError, KeyError) as error:
            raise ConfigError(f'{path}, line {number}: {line[:80]!r} is not {{"family": ..., "text": ...}} '
                              f"({str(error)[:100]})") from error
        if not isinstance(text, str) or not (family is None or isinstance(family, str)):
            raise ConfigError(f"{path}, line {number}: text is {text!r} and family {family!r}; "
                              "text must be a text, family a text or null")
        rows.append((family, text))
    return rows


@click.command(help="Print what the robot understands of a reply.")
@click.argument("text", required=False)
@click.option("--family", default=None, help="Family of the failure; default: not known.")
@click.option("--file", "path", type=click.Path(path_type=Path, exists=True, dir_okay=False), default=None,
              help='Read {"family": ..., "text": ...} a line and print one JSON line each.')
@click.option("--json", "as_json", is_flag=True, help="Print JSON.")
def command(text: str | None, family: str | None, path: Path | None, as_json: bool) -> None:
    if (text is None) == (path is None):
        raise click.UsageError("give either a TEXT or --file")
    vocabulary = load_vocabulary()
    rows = _lines(path) if path else [(family, text or "")]
    for row_family, _ in rows:
        if row_family is not None:
            vocabulary.family(row_family)
    parser = ReplyParser(vocabulary)
    for row_family, row_text in rows:
        meaning = parser.parse(row_text, row_family)
        if as_json or path:
            click.echo(json.dumps(as_dict(meaning)))
            continue
        click.echo(f"act: {meaning.act.value}" + (f", cause: {meaning.cause}" if meaning.cause else ""))
        for cause, likelihood in zip(meaning.causes, meaning.likelihoods, strict=True):
            click.echo(f"  {cause:<24}{likelihood:.2f}")
        if meaning.requested_repair:
            click.echo(f"asks for: {meaning.requested_repair}")
        click.echo(f"because {meaning.reason}")
