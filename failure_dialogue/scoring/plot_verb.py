"""The verb `plot`: the picture of a recorded episode, or of the graph."""

from __future__ import annotations

from pathlib import Path

import click

from failure_dialogue.errors import ConfigError


@click.command("plot", help="Draw a recorded episode: frames, events, sensors and the cost of each choice. "
                            "BAG is a folder that a recording wrote.")
@click.argument("bag", type=click.Path(path_type=Path), required=False)
@click.option("--episode", "which", default=None, metavar="ID|NUMBER|first|last",
              help="Which episode; without it the first in which an attempt failed.")
@click.option("--graph", is_flag=True, help="Draw the graph instead: nodes, topics, services, actions.")
@click.option("--out", type=click.Path(dir_okay=False, path_type=Path), required=True,
              help="File to write; its ending gives the format (png, svg, pdf, jpg).")
def command(bag: Path | None, which: str | None, graph: bool, out: Path) -> None:
    """See the help text."""
    if graph and (bag is not None or which is not None):
        raise ConfigError("a bag or an episode and --graph were given; leave one out")
    if not graph and bag is None:
        raise ConfigError("no bag was given; give the folder that a recording wrote, or --graph")
    # Imported here: `--help` works without matplotlib and rosbags.
    from failure_dialogue.scoring import episode_figure, graph_figure, sheet

    sheet.check(out)
    if bag is None:
        figure = graph_figure.draw()
    else:
        figure = episode_figure.draw(episode_figure.read_recording(bag, which or "first"))
    sheet.write(figure, out)
    click.echo(f"wrote {out}")
