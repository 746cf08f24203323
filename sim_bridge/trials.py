"""Measurements of the simulated robot: how attempts end, what the monitor misses, what each repair does."""

from __future__ import annotations

import json
import multiprocessing
import os
import sys
from collections import Counter
from collections.abc import Callable, Iterator
from concurrent.futures import ProcessPoolExecutor
from dataclasses import asdict, dataclass
from itertools import count
from typing import TypeVar

import click
import numpy as np
from tqdm import tqdm

from failure_dialogue.errors import ConfigError
from failure_dialogue.scoring.metrics import rate_text, wilson
from failure_dialogue.vocabulary import load_vocabulary
from sim_bridge.perturbation import STAGED_CAUSES

#: Seeds of these measurements; `generate` stays below (its runs end at 201 * 10^7).
_CLEAN_SEED, _FAILED_SEED, _MATRIX_SEED = 2_100_000_000, 2_110_000_000, 2_120_000_000
_CAUSE_STRIDE = 1_000_000
_FAMILY = "grasp"

Answer = TypeVar("Answer")
_robot = None


def _shared_robot():
    """One robot per process: it keeps the scenes it has loaded."""
    global _robot
    if _robot is None:
        from sim_bridge.robot import SimRobot

        _robot = SimRobot()
    return _robot


@dataclass(frozen=True)
class AttemptFacts:
    """How one attempt ended: what the robot says, what is true, where it failed as it noticed (or '')."""

    target: str
    claimed: bool
    success: bool
    where: str


def _attempt_facts(cause: str | None, seed: int) -> AttemptFacts:
    from sim_bridge.episodes import where_failed

    robot = _shared_robot()
    robot.reset(seed, cause=cause)
    attempt = robot.run(robot.attempt())
    truth = robot.truth()
    return AttemptFacts(robot.target.name, attempt.claimed_success, truth.success,
                        where_failed(attempt, truth.rise_m))


@dataclass(frozen=True)
class RepairFacts:
    """One repair of one failed attempt: claim and truth, seconds it took, recoverable before it was tried."""

    claimed: bool
    success: bool
    damaged: bool
    seconds: float
    recoverable: bool
    code: int


def _repair_facts(cause: str, repair: str, seed: int) -> RepairFacts | None:
    """None when the attempt of this seed did not fail."""
    from sim_bridge.repairs import recoverable

    robot = _shared_robot()
    robot.reset(seed, cause=cause)
    attempt = robot.run(robot.attempt())
    if attempt.failure is None or robot.truth().success:
        return None
    hopeful = recoverable(robot.scenario, robot.target, load_vocabulary())
    robot.run(robot.go_to_checkpoint())
    began = robot.stamp_s
    result = robot.run(robot.repair(repair))
    truth = robot.truth()
    return RepairFacts(result.done, truth.success, truth.damaged, robot.stamp_s - began, hopeful,
                       int(result.error_code))


def _first(pool: ProcessPoolExecutor, work: Callable[[int], Answer | None], seeds: Iterator[int], wanted: int,
           workers: int, bar: tqdm) -> list[Answer]:
    """The first `wanted` answers that are not None, in the order of the seeds."""
    kept: list[Answer] = []
    tried = 0
    while len(kept) < wanted:
        batch = [next(seeds) for _ in range(max(workers, min(8 * workers, wanted - len(kept))))]
        tried += len(batch)
        if tried > 10 * wanted + 100:
            raise ConfigError(f"{tried} episodes gave only {len(kept)} of {wanted} failures; "
                              "check the objects' margins")
        for answer in pool.map(work, batch):
            if answer is not None and len(kept) < wanted:
                kept.append(answer)
                bar.update()
    return kept


class _Attempts:
    """Picklable work: the attempt of a seed."""

    def __init__(self, cause: str | None) -> None:
        self.cause = cause

    def __call__(self, seed: int) -> AttemptFacts:
        return _attempt_facts(self.cause, seed)


class _Repairs:
    """Picklable work: the repair of a seed's failed attempt."""

    def __init__(self, cause: str, repair: str) -> None:
        self.cause, self.repair = cause, repair

    def __call__(self, seed: int) -> RepairFacts | None:
        return _repair_facts(self.cause, self.repair, seed)


def _rate(successes: int, n: int) -> dict:
    low, high = wilson(successes, n)
    return {"successes": successes, "n": n, "rate": successes / n if n else None, "low": low, "high": high}


def _pool(workers: int) -> ProcessPoolExecutor:
    return ProcessPoolExecutor(workers, mp_context=multiprocessing.get_context("spawn"))


def attempt_figures(episodes: int, failures: int, workers: int) -> dict:
    """Unperturbed success, the monitor's false alarms and misses, and where perturbed attempts fail.

    failures: failed attempts to look at, over all causes; a miss is one the robot did not notice.
    """
    perturbed: dict[str, list[AttemptFacts]] = {}
    with _pool(workers) as pool, tqdm(total=episodes + failures, unit="episode", file=sys.stderr) as bar:
        clean = _first(pool, _Attempts(None), count(_CLEAN_SEED), episodes, workers, bar)
        for k, cause in enumerate(STAGED_CAUSES):
            wanted = failures // len(STAGED_CAUSES)
            facts: list[AttemptFacts] = []
            seeds = count(_FAILED_SEED + k * _CAUSE_STRIDE)
            while (found := sum(not f.success for f in facts)) < wanted:
                batch = _first(pool, _Attempts(cause), seeds, max(workers, wanted - found), workers,
                               tqdm(disable=True))
                facts += batch
                bar.update(min(wanted, sum(not f.success for f in facts)) - found)
                if len(facts) > 10 * wanted + 100:
                    raise ConfigError(f"{len(facts)} episodes with {cause} gave {found} failures of {wanted}")
            perturbed[cause] = facts
    lost = [f for facts in perturbed.values() for f in facts if not f.success]
    good = [f for f in clean if f.success]
    return {
        "unperturbed_success": _rate(len(good), len(clean)),
        "unperturbed_success_by_object": {
            name: _rate(sum(f.success for f in clean if f.target == name), n)
            for name, n in sorted(Counter(f.target for f in clean).items())},
        "false_alarms": _rate(sum(not f.claimed for f in good), len(good)),
        "misses": _rate(sum(f.claimed for f in lost), len(lost)),
        "shares": {cause: {place: _rate(sum(_place(f) == place for f in facts), len(facts))
                           for place in ("lift", "table", "transport", "held", "missed")}
                   for cause, facts in perturbed.items()}}


def _place(facts: AttemptFacts) -> str:
    if facts.success:
        return "held"
    return facts.where or "missed"


def repair_cells(diagonal: int, off_diagonal: int, workers: int) -> list[dict]:
    """Every repair under every cause, after a failed attempt and the way to the checkpoint.

    One dict a cell: success in truth (in the basket, undamaged), damage, claims that are wrong, median time,
    and on the diagonal the success among cases that counted as recoverable beforehand.
    """
    family = load_vocabulary().family(_FAMILY)
    names = [cause.repair for cause in family.causes.values()]
    total = len(names) * (diagonal + (len(names) - 1) * off_diagonal)
    cells = []
    with _pool(workers) as pool, tqdm(total=total, unit="repair", file=sys.stderr) as bar:
        for k, cause in enumerate(family.causes.values()):
            for repair in names:
                matching = repair == cause.repair
                facts = _first(pool, _Repairs(cause.name, repair), count(_MATRIX_SEED + k * _CAUSE_STRIDE),
                               diagonal if matching else off_diagonal, workers, bar)
                hopeful = [f for f in facts if f.recoverable]
                cells.append({
                    "cause": cause.name, "repair": repair, "matching": matching,
                    "success": _rate(sum(f.success for f in facts), len(facts)),
                    "damage": _rate(sum(f.damaged for f in facts), len(facts)),
                    "wrong_claims": _rate(sum(f.claimed != f.success for f in facts), len(facts)),
                    "median_s": float(np.median([f.seconds for f in facts])) if facts else None,
                    "recovered_of_recoverable": _rate(sum(f.success for f in hopeful), len(hopeful))
                    if matching else None,
                    "error_codes": dict(Counter(str(f.code) for f in facts))})
    return cells


def _text(rate: dict) -> str:
    return rate_text(rate["successes"], rate["n"])


def matrix_markdown(cells: list[dict]) -> str:
    """The matrix as a markdown table; a cell: success, damage, time."""
    names = list(dict.fromkeys(cell["repair"] for cell in cells))
    lines = ["| cause | " + " | ".join(names) + " |", "|---" * (len(names) + 1) + "|"]
    for cause in dict.fromkeys(cell["cause"] for cell in cells):
        row = []
        for repair in names:
            cell = next(c for c in cells if (c["cause"], c["repair"]) == (cause, repair))
            text = _text(cell["success"])
            row.append((f"**{text}**" if cell["matching"] else text)
                       + f"; damaged {cell['damage']['rate']:.2f}; {cell['median_s']:.0f} s")
        lines.append(f"| {cause} | " + " | ".join(row) + " |")
    for cell in cells:
        if cell["recovered_of_recoverable"] is not None:
            lines.append(f"\n{cell['repair']} recovers {_text(cell['recovered_of_recoverable'])} of the "
                         f"{cell['cause']} cases that count as recoverable before it is tried.")
    return "\n".join(lines)


_WORKERS = click.option("--workers", type=click.IntRange(1, 64), default=min(2, os.cpu_count() or 1),
                        show_default=True)
_JSON = click.option("--json", "as_json", is_flag=True, help="print figures as JSON")


@click.command("repairs")
@click.option("--matrix", is_flag=True, help="measure each repair under each cause")
@click.option("--episodes-diagonal", type=click.IntRange(1), default=100, show_default=True)
@click.option("--episodes-off", type=click.IntRange(1), default=30, show_default=True)
@_JSON
@_WORKERS
def repairs(matrix: bool, episodes_diagonal: int, episodes_off: int, as_json: bool,
                    workers: int) -> None:
    """List the repairs, or measure them all (--matrix)."""
    vocabulary = load_vocabulary()
    if matrix:
        cells = repair_cells(episodes_diagonal, episodes_off, workers)
        click.echo(json.dumps(cells, indent=1) if as_json else matrix_markdown(cells))
        return
    listed = [asdict(vocabulary.repair(c.repair)) | {"cause": c.name}
              for c in vocabulary.family(_FAMILY).causes.values()]
    if as_json:
        click.echo(json.dumps(listed, indent=1))
        return
    for repair in listed:
        click.echo(f"{repair['name']} (for {repair['cause']}): {repair['phrase']}; "
                   f"at most {repair['time_limit_s']:g} s")
        for a in repair["arguments"].values():
            click.echo(f"    {a['name']}: {a['low']:g} to {a['high']:g} {a['unit']}, "
                       f"default {a['default']:g}")


@click.command("measure-attempts")
@click.option("--episodes", type=click.IntRange(1), default=300, show_default=True,
              help="unperturbed attempts")
@click.option("--failures", type=click.IntRange(3), default=300, show_default=True, help="failed attempts")
@_JSON
@_WORKERS
def measure_attempts(episodes: int, failures: int, as_json: bool, workers: int) -> None:
    """Measure unperturbed success, false alarms, misses, and where perturbed attempts fail."""
    figures = attempt_figures(episodes, failures, workers)
    if as_json:
        click.echo(json.dumps(figures, indent=1))
        return
    click.echo(f"unperturbed success  {_text(figures['unperturbed_success'])}")
    for name, rate in figures["unperturbed_success_by_object"].items():
        click.echo(f"    {name:18s} {_text(rate)}")
    click.echo(f"false alarms         {_text(figures['false_alarms'])}")
    click.echo(f"misses               {_text(figures['misses'])}")
    for cause, shares in figures["shares"].items():
        click.echo(cause)
        for place, rate in shares.items():
            click.echo(f"    {place:18s} {_text(rate)}")
