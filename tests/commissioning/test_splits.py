"""Which episodes may be used for what, and which data sets are refused."""

import json

import pytest

from failure_dialogue.commissioning.splits import Purpose, load_manifest
from failure_dialogue.errors import SplitError


def entries(split, n, first_seed, **more):
    return [{"episode_id": f"{split}-{i}", "cause": "weak_grip", "severity": 0.5, "object": "butter",
             "seed": first_seed + i} | more for i in range(n)]


@pytest.fixture
def write(tmp_path):
    """write(splits, ...): a data folder with that manifest."""

    def make(splits=None, **changes):
        if splits is None:
            splits = {"train": entries("train", 4, 0), "calibration": entries("calibration", 3, 100),
                      "test": entries("test", 2, 200)}
        document = {"format": 1, "family": "grasp", "splits": splits} | changes
        (tmp_path / "manifest.json").write_text(json.dumps(document))
        return tmp_path

    return make


def test_the_episodes_of_a_split_come_with_their_cause_seed_and_evidence(write):
    folder = write()
    episodes = load_manifest(folder, "grasp").episodes("calibration", Purpose.COMMISSION)
    assert [e.episode_id for e in episodes] == ["calibration-0", "calibration-1", "calibration-2"]
    assert (episodes[0].cause, episodes[0].seed, episodes[0].scene) == ("weak_grip", 100, "butter")
    assert episodes[0].evidence_path == folder / "evidence" / "calibration-0.npz"


@pytest.mark.parametrize("split, purpose", [
    ("train", Purpose.COMMISSION), ("test", Purpose.COMMISSION), ("train", Purpose.BENCH),
    ("calibration", Purpose.BENCH), ("calibration", Purpose.TRAIN), ("test", Purpose.TRAIN),
    ("spare", Purpose.COMMISSION),
])
def test_an_episode_of_the_wrong_split_is_refused(write, split, purpose):
    with pytest.raises(SplitError, match=f"'{split}' may not be used for {purpose.value}"):
        load_manifest(write(), "grasp").episodes(split, purpose)


def test_an_empty_split_is_refused_by_name(write):
    manifest = load_manifest(write({"train": entries("train", 1, 0)}), "grasp")
    with pytest.raises(SplitError, match="no episodes in split 'calibration'"):
        manifest.episodes("calibration", Purpose.COMMISSION)


@pytest.mark.parametrize("overlap, complaint", [
    ({"test": entries("test", 2, 3)}, "seed 3 stands in split 'train' and again in 'test'"),
    ({"test": entries("train", 1, 500)}, "episode_id 'train-0'"),
    ({"train": entries("train", 2, 0, run="r1"), "test": entries("test", 2, 50, run="r1")}, "run 'r1'"),
])
def test_splits_that_share_a_seed_an_episode_or_a_run_are_refused(write, overlap, complaint):
    with pytest.raises(SplitError, match=complaint):
        load_manifest(write({"train": entries("train", 4, 0)} | overlap), "grasp")


def test_one_run_may_hold_several_episodes_of_the_same_split(write):
    manifest = load_manifest(write({"train": entries("train", 4, 0, run="r1")}), "grasp")
    assert len(manifest.episodes("train", Purpose.TRAIN)) == 4


def test_the_same_seed_twice_in_one_split_is_the_same_episode_twice_and_refused(write):
    twice = entries("test", 1, 7) + [{"episode_id": "other", "cause": "weak_grip", "seed": 7}]
    with pytest.raises(SplitError, match="seed 7"):
        load_manifest(write({"test": twice}), "grasp")


def test_without_seeds_the_splits_cannot_be_shown_to_be_disjoint(write):
    with pytest.raises(SplitError, match="states no 'seed'"):
        load_manifest(write({"test": [{"episode_id": "a", "cause": "weak_grip"}]}), "grasp")


def test_an_object_that_was_trained_on_is_not_new(write):
    seen = {"train": entries("train", 2, 0), "new_object": entries("new_object", 2, 50)}
    with pytest.raises(SplitError, match="butter"):
        load_manifest(write(seen), "grasp")
    unseen = seen | {"new_object": entries("new_object", 2, 50, object="ketchup")}
    assert len(load_manifest(write(unseen), "grasp").episodes("new_object", Purpose.BENCH)) == 2


@pytest.mark.parametrize("changes, complaint", [
    ({"format": 2}, "format 1"),
    ({"family": "detection"}, "holds 'detection' failures, not 'grasp'"),
    ({"splits": {"validation": []}}, "validation"),
    ({"splits": []}, "splits must map"),
    ({"splits": {"train": [3]}}, "splits must map"),
    ({"splits": {"train": [{"episode_id": "a", "seed": 1}]}}, "cause"),
    ({"splits": {"train": [{"episode_id": "a", "seed": "x", "cause": "weak_grip"}]}}, "malformed"),
])
def test_a_malformed_manifest_is_refused_with_what_is_wrong(write, changes, complaint):
    with pytest.raises(SplitError, match=complaint):
        load_manifest(write(**changes), "grasp")


def test_a_folder_without_a_manifest_says_how_to_make_one(tmp_path):
    with pytest.raises(SplitError, match="failure-dialogue generate"):
        load_manifest(tmp_path, "grasp")


def test_missing_evidence_is_named(write):
    episode = load_manifest(write(), "grasp").episodes("test", Purpose.BENCH)[0]
    with pytest.raises(SplitError, match="test-0"):
        episode.evidence()
