"""Generated data sets: disjoint splits, nothing of the truth in the evidence, resumable, repeatable."""

import json
import zipfile
from collections import Counter

import numpy as np
import pytest
from click.testing import CliRunner

from failure_dialogue.commissioning.splits import Purpose, load_manifest
from failure_dialogue.errors import ConfigError
from failure_dialogue.evidence import Evidence
from sim_bridge import generate as module
from sim_bridge.episodes import EpisodeRunner
from sim_bridge.generate import Candidate, candidates, first_seed, generate, parse_sizes, quotas
from sim_bridge.objects import OBJECTS, object_of_task
from sim_bridge.perturbation import STAGED_CAUSES

SIZES = {"calibration": 2, "test": 3, "new_object": 1}
RUN = 7


@pytest.fixture(scope="module")
def data(tmp_path_factory):
    out = tmp_path_factory.mktemp("grasp")
    return out, generate(out, RUN, SIZES, workers=1, frames=3, progress=False)


@pytest.mark.slow
def test_every_split_holds_what_was_asked_for_and_passes_the_separation_check(data):
    out, manifest = data
    assert manifest["complete"]
    assert {split: len(entries) for split, entries in manifest["splits"].items()} == SIZES
    loaded = load_manifest(out, "grasp")
    assert len(loaded.episodes("test", Purpose.BENCH)) == 3
    assert Counter(e["cause"] for e in manifest["splits"]["test"]) == Counter(STAGED_CAUSES)
    for split, (low, high) in manifest["seed_ranges"].items():
        assert all(low <= e["seed"] <= high for e in manifest["splits"][split])


@pytest.mark.slow
def test_held_out_objects_are_in_no_other_split(data):
    for split, entries in data[1]["splits"].items():
        assert {OBJECTS[e["object"]].held_out for e in entries} == {split == "new_object"}


@pytest.mark.slow
def test_the_evidence_holds_sensors_and_nothing_of_the_truth(data):
    out, manifest = data
    for entry in manifest["splits"]["test"]:
        path = out / "evidence" / f"{entry['episode_id']}.npz"
        evidence = Evidence.load(path)
        assert evidence.family == "grasp" and evidence.stage == entry["noticed_stage"]
        assert len(evidence.frames) == 3 and evidence.frames[0].image_rgb.shape == (256, 256, 3)
        rest, close = evidence.phase_window("rest")
        assert evidence.start_s == pytest.approx(rest - 0.2)
        assert abs(evidence.frames[0].stamp_s - close) < 0.06
        assert np.diff(evidence.wrench.stamps_s) == pytest.approx(0.002)
        assert np.diff(evidence.joints.stamps_s) == pytest.approx(0.01)
        with zipfile.ZipFile(path) as members:
            names = [name for name in members.namelist() if not name.startswith("frame_0")]
            text = b"".join(members.read(name) for name in names)
        assert {name.split("_")[0].removesuffix(".npy") for name in names} == {
            "text", "numbers", "phase", "wrench", "joint", "frame"}
        for cause in STAGED_CAUSES:
            assert cause.encode() not in text and cause.encode("utf-32-le") not in text


@pytest.mark.slow
def test_an_episode_can_be_made_again_from_its_manifest_entry(data):
    out, manifest = data
    entry = manifest["splits"]["test"][1]
    again = EpisodeRunner().run(entry["seed"], entry["cause"], entry["task"], frames=3)
    kept = Evidence.load(out / "evidence" / f"{entry['episode_id']}.npz")
    assert again.lost and again.facts["appearance"] == entry["appearance"]
    assert np.array_equal(again.evidence.wrench.wrench_n_nm.astype(np.float32),
                          kept.wrench.wrench_n_nm.astype(np.float32))
    for a, b in zip(again.evidence.frames, kept.frames, strict=True):
        assert a.stamp_s == b.stamp_s and np.array_equal(a.image_rgb, b.image_rgb)


@pytest.mark.slow
def test_a_second_run_does_only_what_is_missing(data, monkeypatch):
    out, manifest = data
    lost = out / "evidence" / f"{manifest['splits']['calibration'][0]['episode_id']}.npz"
    others = {p: p.stat().st_mtime_ns for p in (out / "evidence").glob("*.npz") if p != lost}
    lost.unlink()
    again = generate(out, RUN, SIZES, workers=1, frames=3, progress=False)
    assert lost.exists() and again["splits"] == manifest["splits"]
    assert {p: p.stat().st_mtime_ns for p in others} == others


def test_another_seed_in_the_same_folder_is_refused(tmp_path):
    (tmp_path / module.JOURNAL).write_text(json.dumps({"seed": 30_000_000, "outcome": "held"}) + "\n")
    with pytest.raises(ConfigError, match="seed 3, not 7"):
        generate(tmp_path, RUN, SIZES, 1, 0, progress=False)


def test_seeds_of_runs_splits_and_causes_never_meet():
    seen = set()
    for run in (1, 2):
        for split in module.SPLIT_SIZES:
            for number in range(3):
                source = candidates(run, split, number)
                seeds = {next(source).seed for _ in range(300)}
                assert not seeds & seen
                assert min(seeds) == first_seed(run, split) + number
                seen |= seeds


def test_a_candidates_object_belongs_to_its_split():
    drawn = {split: {object_of_task(Candidate(split, "weak_grip", seed).task).name for seed in range(200)}
             for split in ("train", "new_object")}
    assert drawn["new_object"] == {name for name, o in OBJECTS.items() if o.held_out}
    assert drawn["train"] == {name for name, o in OBJECTS.items() if not o.held_out}


def test_split_sizes_are_read_or_refused():
    assert parse_sizes("test=6, train=20") == {"train": 20, "test": 6}
    assert quotas(80) == [27, 27, 26]
    with pytest.raises(ConfigError, match="exam=3"):
        parse_sizes("exam=3")
    for nothing in ("", "train=0"):
        with pytest.raises(ConfigError, match="no failures"):
            parse_sizes(nothing)
    shown = CliRunner().invoke(module.command, ["--help"]).output
    assert "resumes" in shown
