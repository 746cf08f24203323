"""The verb `sim`: the whole graph in simulation, on a machine without launch_ros."""

from __future__ import annotations

import os
import sys
import tempfile
import time
from pathlib import Path

import click
import yaml

from failure_dialogue.domain import claim_domain, set_domain
from failure_dialogue.errors import ConfigError
from failure_dialogue.graph import GraphNode, Human, SimOptions, sim_graph


@click.command("sim")
@click.option("--human", type=click.Choice([h.value for h in Human]), default=Human.SCRIPTED.value,
              show_default=True, help="Who answers the robot's questions: a script, you, or nobody.")
@click.option("--record", type=click.Path(file_okay=False, path_type=Path),
              help="Write all topics to a new rosbag2 (mcap) in this folder.")
@click.option("--fast", is_flag=True, help="As fast as the simulation goes, not in real time.")
@click.option("--seed", type=click.IntRange(0, 2**31 - 1), help="Seed of scenes, noise and scripted answers.")
@click.option("--params", type=click.Path(path_type=Path), help="ROS 2 parameter file for all nodes.")
@click.option("--scenario", type=click.Choice(["tour", "mixed"]),
              help="tour: the three ways (the default); mixed: failures of all causes.")
@click.option("--episodes", type=click.IntRange(1), help="How many episodes of the mixed scenario.")
@click.option("--report", type=click.Path(dir_okay=False, path_type=Path), help="Write the figures as JSON.")
@click.option("--log-level", type=click.Choice(["debug", "info", "warn", "error"]), default="info")
@click.option("--verbose", is_flag=True, help="Show all that the nodes log, not only warnings and errors.")
def command(human: str, record: Path | None, fast: bool, seed: int | None, params: Path | None,
            scenario: str | None, episodes: int | None, report: Path | None, log_level: str,
            verbose: bool) -> int:
    """Run simulated failures, from the failed grasp to the report."""
    if params is not None:
        _check_parameters(params)
    if report is not None:
        _check_writable(report)
    options = SimOptions(
        human=Human(human), record=_absolute(record), real_time_factor=0.0 if fast else None, seed=seed,
        params_file=_absolute(params), log_level=log_level, scenario=scenario, episodes=episodes,
        report=_absolute(report) or None)
    return run_graph(sim_graph(options), options, verbose)


def run_graph(nodes: tuple[GraphNode, ...], options: SimOptions, verbose: bool) -> int:
    """Start the nodes, in a ROS domain of their own where none is stated; the status they ended with."""
    # Imported here: `--help` of this verb works without honcho.
    from failure_dialogue.supervise import Job, run_jobs

    claim = None if os.environ.get("ROS_DOMAIN_ID") else claim_domain("sim")
    if claim is not None:
        set_domain(claim.domain_id)
    log_dir = Path(tempfile.mkdtemp(prefix=time.strftime("failure_dialogue_%Y%m%d_%H%M%S_")))
    click.echo(f"ROS domain {os.environ['ROS_DOMAIN_ID']}; logs in {log_dir}; Ctrl-C ends all", err=True)
    environment = {"AMENT_PREFIX_PATH": sys.prefix, **os.environ, "PYTHONUNBUFFERED": "1"}
    jobs = [Job(node.name, node.command(options), node.respawn, node.terminal) for node in nodes]
    try:
        status = run_jobs(jobs, log_dir, environment, verbose)
    finally:
        if claim is not None:
            claim.release()
    if status not in (0, 130):
        click.echo(f"ended with status {status}; the logs are in {log_dir}", err=True)
    return status


def _check_parameters(path: Path) -> None:
    """ConfigError for what no node could read; said here once, not by each node with a traceback."""
    if not path.is_file():
        raise ConfigError(f"there is no parameter file {path}; give an existing one, or leave --params out")
    try:
        content = yaml.safe_load(path.read_text(encoding="utf-8"))
    except (OSError, ValueError, yaml.YAMLError) as error:
        raise ConfigError(f"parameter file {path} cannot be read as YAML: {error}") from error
    sections = content.values() if isinstance(content, dict) else [None]
    if not all(isinstance(section, dict) for section in sections):
        raise ConfigError(f"parameter file {path} is not one of ROS 2; "
                          "write NODE: ros__parameters: NAME: VALUE")


def _check_writable(path: Path) -> None:
    """ConfigError when the report could not be written after all episodes."""
    folder = path.expanduser().resolve().parent
    if not (folder.is_dir() and os.access(folder, os.W_OK)):
        raise ConfigError(f"the report {path} cannot be written: {folder} is no folder you may write to; "
                          "make it, or name another")


def _absolute(path: Path | None) -> str:
    """As the nodes need it, which may run elsewhere; empty for none."""
    return str(path.expanduser().resolve()) if path is not None else ""
