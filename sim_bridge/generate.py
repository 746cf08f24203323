"""`failure-dialogue generate`: a data set of grasp failures, each reproducible from its seed."""

from __future__ import annotations

import importlib.metadata
import json
import multiprocessing
import os
import sys
from collections.abc import Iterator
from concurrent.futures import FIRST_COMPLETED, ProcessPoolExecutor, wait
from dataclasses import dataclass
from pathlib import Path

import click
import numpy as np
from tqdm import tqdm

from failure_dialogue.errors import ConfigError
from failure_dialogue.vocabulary import load_vocabulary
from sim_bridge.objects import OBJECTS, TASK_OF_OBJECT
from sim_bridge.perturbation import STAGED_CAUSES

FORMAT = 1
ROBOT = "panda_sim"
MANIFEST, JOURNAL, EVIDENCE = "manifest.json", "journal.jsonl", "evidence"
#: Failures per split; the order is the order in which they are made.
SPLIT_SIZES = {"calibration": 80, "train": 2000, "test": 600, "new_object": 200, "spare": 60}
_SPLIT_NUMBER = {"calibration": 0, "train": 1, "test": 2, "spare": 3, "new_object": 4}
#: Seeds of split k of run s: s * 10^7 + k * 10^6 onwards.
_RUN_STRIDE, _SPLIT_STRIDE = 10_000_000, 1_000_000
#: More than this many candidates per wanted failure means that something is wrong.
_MOST_TRIES = 6
_MANIFEST_EVERY = 100


@dataclass(frozen=True)
class Candidate:
    """One episode that may become part of a split: everything about it follows from its seed."""

    split: str
    cause: str
    seed: int

    @property
    def episode_id(self) -> str:
        return f"grasp_{self.seed:09d}"

    @property
    def task(self) -> int:
        """The scene: held-out objects in new_object, all others elsewhere."""
        held_out = self.split == "new_object"
        tasks = sorted(TASK_OF_OBJECT[o.name] for o in OBJECTS.values() if o.held_out == held_out)
        return tasks[int(np.random.default_rng([self.seed, 2]).integers(len(tasks)))]


def first_seed(run_seed: int, split: str) -> int:
    """The lowest seed of a split in a run."""
    return run_seed * _RUN_STRIDE + _SPLIT_NUMBER[split] * _SPLIT_STRIDE


def candidates(run_seed: int, split: str, cause_number: int) -> Iterator[Candidate]:
    """Candidates of one cause in one split, without end: every third seed, so no seed serves two causes."""
    seed = first_seed(run_seed, split) + cause_number
    while True:
        yield Candidate(split, STAGED_CAUSES[cause_number], seed)
        seed += len(STAGED_CAUSES)


def quotas(size: int) -> list[int]:
    """How many failures of each cause make up a split of this size, as even as can be."""
    base, more = divmod(size, len(STAGED_CAUSES))
    return [base + (k < more) for k in range(len(STAGED_CAUSES))]


_runner = None


def _work(candidate: Candidate, out: str, frames: int) -> dict:
    """In a worker process: run one candidate, save its evidence when it is a failure, return its facts."""
    global _runner
    from sim_bridge.episodes import EpisodeRunner

    if _runner is None:
        _runner = EpisodeRunner()
    episode = _runner.run(candidate.seed, candidate.cause, candidate.task, frames)
    if episode.evidence is not None:
        final = Path(out) / EVIDENCE / f"{candidate.episode_id}.npz"
        part = final.with_name(f".{candidate.episode_id}.npz")
        episode.evidence.save(part)
        part.replace(final)
    return {"episode_id": candidate.episode_id, "split": candidate.split} | episode.facts


def _read_journal(out: Path) -> dict[int, dict]:
    """Facts of the episodes already run, by seed; a failure whose evidence is gone counts as not run."""
    done = {}
    if (out / JOURNAL).exists():
        for line in (out / JOURNAL).read_text(encoding="utf-8").splitlines():
            try:
                facts = json.loads(line)
            except ValueError:
                continue  # the last line of a run that was killed
            if facts["outcome"] != "lost" or (out / EVIDENCE / f"{facts['episode_id']}.npz").exists():
                done[facts["seed"]] = facts
    return done


def _chosen(done: dict[int, dict], run_seed: int, sizes: dict[str, int]) -> dict[str, list[dict]]:
    """The first failures of each cause by seed, up to the quota, in every split."""
    splits: dict[str, list[dict]] = {}
    for split, size in sizes.items():
        low = first_seed(run_seed, split)
        entries: list[dict] = []
        for number, quota in enumerate(quotas(size)):
            lost = sorted(seed for seed, facts in done.items() if low <= seed < low + _SPLIT_STRIDE
                          and (seed - low) % len(STAGED_CAUSES) == number and facts["outcome"] == "lost")
            entries += [done[seed] | {"run": f"{run_seed}/{split}"} for seed in lost[:quota]]
        splits[split] = sorted(entries, key=lambda entry: entry["seed"])
    return splits


def _write_manifest(out: Path, done: dict[int, dict], run_seed: int, sizes: dict[str, int], frames: int,
                    complete: bool) -> dict:
    counts: dict[str, dict[str, int]] = {cause: {} for cause in STAGED_CAUSES}
    for facts in done.values():
        key = facts["outcome"] if facts["outcome"] != "lost" else f"lost_{facts['where']}"
        counts[facts["cause"]][key] = counts[facts["cause"]].get(key, 0) + 1
    manifest = {
        "format": FORMAT, "family": "grasp", "robot": ROBOT, "complete": complete,
        "command": f"failure-dialogue generate --family grasp --seed {run_seed} --frames {frames} "
                   "--split-sizes " + ",".join(f"{split}={size}" for split, size in sizes.items()),
        "packages": {name: importlib.metadata.version(name) for name in ("mujoco", "numpy")}
        | {"python": sys.version.split()[0]},
        "seed_ranges": {split: [first_seed(run_seed, split), first_seed(run_seed, split) + _SPLIT_STRIDE - 1]
                        for split in sizes},
        "tried": counts, "splits": _chosen(done, run_seed, sizes)}
    part = out / f".{MANIFEST}"
    part.write_text(json.dumps(manifest, indent=1), encoding="utf-8")
    part.replace(out / MANIFEST)
    return manifest


def generate(out: Path, run_seed: int, sizes: dict[str, int], workers: int, frames: int,
             progress: bool = True) -> dict:
    """Make what is missing of the data set in out; returns the manifest.

    ConfigError when out holds a data set of another seed, or failures are too rare to fill a split.
    """
    (out / EVIDENCE).mkdir(parents=True, exist_ok=True)
    done = _read_journal(out)
    strangers = [seed for seed in done if seed // _RUN_STRIDE != run_seed]
    if strangers:
        raise ConfigError(f"{out} holds episodes of seed {strangers[0] // _RUN_STRIDE}, not {run_seed}; "
                          "choose another folder or that seed")
    context = multiprocessing.get_context("spawn")  # a fork would share the parent's OpenGL state
    have = sum(len(entries) for entries in _chosen(done, run_seed, sizes).values())
    with (ProcessPoolExecutor(workers, mp_context=context) as pool,
          (out / JOURNAL).open("a", encoding="utf-8") as journal,
          tqdm(total=sum(sizes.values()), initial=have, unit="failure", disable=not progress,
               file=sys.stderr) as bar):
        for split, size in sizes.items():
            _fill_split(pool, journal, bar, out, done, run_seed, split, size, workers, frames,
                        lambda: _write_manifest(out, done, run_seed, sizes, frames, False))
    return _write_manifest(out, done, run_seed, sizes, frames, True)


def _fill_split(pool, journal, bar, out: Path, done: dict[int, dict], run_seed: int, split: str, size: int,
                workers: int, frames: int, save) -> None:
    wanted = quotas(size)
    lost, tried = [0] * len(wanted), [0] * len(wanted)
    sources = [candidates(run_seed, split, number) for number in range(len(wanted))]
    running: dict = {}
    since_saved = 0
    try:
        while any(a < b for a, b in zip(lost, wanted, strict=True)):
            # In seed order, and never more than could still be needed of a cause.
            while len(running) < 2 * workers:
                open_causes = [n for n in range(len(wanted))
                               if lost[n] + sum(number == n for number, _ in running.values()) < wanted[n]]
                if not open_causes:
                    break
                number = min(open_causes, key=lambda n: tried[n])
                candidate = next(sources[number])
                tried[number] += 1
                if tried[number] > _MOST_TRIES * wanted[number] + 20:
                    raise ConfigError(f"split {split!r}: {tried[number] - 1} episodes with {candidate.cause} "
                                      f"gave {lost[number]} failures of {wanted[number]}; "
                                      "check the objects' margins")
                if candidate.seed in done:
                    lost[number] += done[candidate.seed]["outcome"] == "lost"
                    continue
                running[pool.submit(_work, candidate, str(out), frames)] = (number, candidate)
            finished, _ = wait(running, timeout=300, return_when=FIRST_COMPLETED)
            if running and not finished:
                raise ConfigError(f"no episode ended within 300 s in split {split!r}; the machine is too "
                                  "loaded, use fewer workers and start the command again: it resumes")
            for future in finished:
                number, candidate = running.pop(future)
                facts = future.result()
                done[candidate.seed] = facts
                journal.write(json.dumps(facts) + "\n")
                journal.flush()
                since_saved += 1
                if facts["outcome"] == "lost":
                    lost[number] += 1
                    bar.update()
            if since_saved >= _MANIFEST_EVERY:
                save()
                since_saved = 0
    finally:
        for future in running:
            future.cancel()


def parse_sizes(text: str) -> dict[str, int]:
    """'train=20,test=6' as a dict; ConfigError names what cannot be read."""
    sizes: dict[str, int] = {}
    for item in filter(None, (part.strip() for part in text.split(","))):
        split, _, number = item.partition("=")
        if split not in SPLIT_SIZES or not number.isdigit():
            raise ConfigError(f"split size {item!r} cannot be read; write for example "
                              f"train=2000,test=600 with splits among {', '.join(SPLIT_SIZES)}")
        sizes[split] = int(number)
    if not any(sizes.values()):
        raise ConfigError(f"split sizes {text!r} ask for no failures; write for example train=2000,test=600")
    return {split: sizes[split] for split in SPLIT_SIZES if sizes.get(split)}


@click.command("generate")
@click.option("--family", type=click.Choice(["grasp"]), default="grasp", show_default=True)
@click.option("--out", type=click.Path(file_okay=False, path_type=Path), required=True,
              help="data set folder")
@click.option("--seed", "run_seed", type=click.IntRange(0, 200), default=1, show_default=True)
@click.option("--split-sizes", default=",".join(f"{k}={v}" for k, v in SPLIT_SIZES.items()),
              show_default=True, help="failures per split")
@click.option("--workers", type=click.IntRange(1, 64), default=min(2, os.cpu_count() or 1), show_default=True)
@click.option("--frames", type=click.IntRange(0, 64), default=8, show_default=True,
              help="camera frames an episode")
def command(family: str, out: Path, run_seed: int, split_sizes: str, workers: int, frames: int) -> None:
    """Generate failures with their evidence; stopped half way, the same command resumes."""
    load_vocabulary().family(family)
    sizes = parse_sizes(split_sizes)
    (out / EVIDENCE).mkdir(parents=True, exist_ok=True)  # before the scenes are built, which takes minutes
    from sim_bridge.scene_cache import ensure_scenes

    ensure_scenes(click.echo)
    manifest = generate(out, run_seed, sizes, workers, frames)
    for split, entries in manifest["splits"].items():
        click.echo(f"{split:12s} {len(entries)} failures")
    for cause, counts in manifest["tried"].items():
        n = sum(counts.values())
        click.echo(f"{cause:17s} of {n} tried: " + ", ".join(
            f"{k.replace('_', ' ')} {v / n:.0%}" for k, v in sorted(counts.items())))
    click.echo(f"written to {out}")
