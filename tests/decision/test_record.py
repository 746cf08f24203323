"""What a commissioning record must hold, and when it no longer fits."""

import dataclasses
import datetime as dt

import pytest
import yaml

from failure_dialogue.decision.record import (
    ABSTAINED,
    Entry,
    Model,
    Running,
    check,
    content_id,
    load_record,
    record_or_reason,
    save_record,
    vocabulary_hash,
)
from failure_dialogue.errors import RecordError
from failure_dialogue.scoring.metrics import wilson

JUNE = dt.datetime(2026, 6, 1, tzinfo=dt.timezone.utc)


@pytest.fixture
def record(make_record):
    return make_record(camera=(32, 80), force=(79, 80))


@pytest.fixture
def running(grasp):
    models = tuple(Model("grasp", source, f"{source}-1", {f"{source}-1": "0" * 64})
                   for source in ("camera", "force"))
    return Running("panda", (256, 256), {"grasp": vocabulary_hash(grasp)}, models, JUNE, ("butter",))


def damaged(path, **changes):
    """The record at path with values replaced (a__b is b in a) and a fresh id, as a careful hand would."""
    document = yaml.safe_load(path.read_text())
    for key, value in changes.items():
        *steps, last = key.split("__")
        place = document
        for step in steps:
            place = place[int(step) if step.isdigit() else step]
        place[last] = value
    document["record_id"] = content_id(document)
    path.write_text(yaml.safe_dump(document))
    return path


@pytest.fixture
def path(record, tmp_path):
    save_record(record, tmp_path / "records" / "sim.yaml")
    return tmp_path / "records" / "sim.yaml"


def test_a_saved_record_comes_back_the_same(record, path):
    assert load_record(path) == record


def test_the_file_can_be_read_by_a_person(path):
    text = path.read_text()
    assert "robot: panda" in text and "accuracy: 0.9875" in text and text.startswith("# Commissioning record")


def test_an_entry_counts_an_abstention_as_not_correct():
    entry = Entry("grasp", "camera", "m", {}, {"weak_grip": {"weak_grip": 6, ABSTAINED: 2},
                                               "heavy_object": {"weak_grip": 2}})
    assert (entry.n, entry.correct, entry.abstained, entry.accuracy) == (10, 6, 2, 0.6)
    assert entry.interval == wilson(6, 10)


def test_a_record_that_fits_has_no_mismatch(record, running):
    assert check(record, running) == ()


@pytest.mark.parametrize("change, what, recorded, now", [
    ({"robot": "ur5e"}, "robot", "panda", "ur5e"),
    ({"camera": (640, 480)}, "camera size", "256x256", "640x480"),
    ({"scenes": ("butter", "moon")}, "scenes", "butter", "moon"),
    ({"vocabulary_sha256": {"grasp": "f" * 64}}, "vocabulary of grasp", "", "ffffffffffff"),
    ({"now": dt.datetime(2027, 1, 1, tzinfo=dt.timezone.utc)}, "expiry", "2027-01-01", "2027-01-01"),
])
def test_what_changed_for_all_sources_is_named_and_makes_both_stale(record, running, change, what, recorded,
                                                                    now):
    (mismatch,) = check(record, dataclasses.replace(running, **change))
    assert mismatch.what == what
    assert recorded in mismatch.recorded and now in mismatch.running
    assert "commission again" in mismatch.remedy
    assert mismatch.concerns("grasp", "camera") and mismatch.concerns("grasp", "force")


@pytest.mark.parametrize("model, what", [
    (Model("grasp", "camera", "camera-2", {"camera-1": "0" * 64}), "model of camera on grasp"),
    (Model("grasp", "camera", "camera-1", {"camera-1": "9" * 64}), "model file camera-1 of camera on grasp"),
    (Model("grasp", "camera", "camera-1", {}), "model file camera-1 of camera on grasp"),
])
def test_another_model_makes_only_its_own_source_stale(record, running, model, what):
    (mismatch,) = check(record, dataclasses.replace(running, models=(model, running.models[1])))
    assert mismatch.what == what
    assert mismatch.concerns("grasp", "camera") and not mismatch.concerns("grasp", "force")


def test_a_source_that_is_not_configured_and_one_that_was_not_measured_are_both_named(record, running):
    other = Model("grasp", "vlm", "vlm-1", {})
    missing, new = check(record, dataclasses.replace(running, models=(running.models[1], other)))
    assert missing.what == "source camera on grasp" and missing.running == "not configured"
    assert new.what == "source vlm on grasp" and new.recorded == "not measured"


def test_a_place_without_scene_ids_is_not_compared_by_scene(record, running):
    assert check(record, dataclasses.replace(running, scenes=())) == ()


def test_rewording_a_cause_does_not_ask_for_a_new_measurement_but_another_repair_does(grasp):
    weak = grasp.causes["weak_grip"]
    reworded = dataclasses.replace(grasp, causes=grasp.causes | {
        "weak_grip": dataclasses.replace(weak, phrase="I did not squeeze enough")})
    repaired = dataclasses.replace(grasp, causes=grasp.causes | {
        "weak_grip": dataclasses.replace(weak, repair="payload_lift")})
    assert vocabulary_hash(reworded) == vocabulary_hash(grasp) != vocabulary_hash(repaired)


def test_a_number_edited_by_hand_is_noticed(path):
    path.write_text(path.read_text().replace("robot: panda", "robot: ur5e"))
    with pytest.raises(RecordError, match="was changed after it was measured.*commission again"):
        load_record(path)


@pytest.mark.parametrize("changes, complaint", [
    ({"coffee": 1}, "coffee"),
    ({"format": 2}, "format"),
    ({"robot": ""}, "robot"),
    ({"created": "yesterday"}, "created"),
    ({"created": "2026-99-99T00:00:00Z"}, "2026-99-99"),
    ({"calibration__entries__0__n": -1}, "calibration/entries/0/n"),
    ({"calibration__entries__0__n": 81}, "n is 81"),
    ({"calibration__entries__0__correct": 33}, "correct is 33"),
    ({"calibration__entries__0__accuracy": 0.95}, "accuracy 0.95"),
    ({"calibration__entries__0__accuracy": float("nan")}, "accuracy nan"),
    ({"calibration__entries__0__interval": [0.39, 0.41]}, "0.39"),
    ({"calibration__entries__0__confusion__weak_grip__weak_grip": -3}, "less than the minimum"),
    ({"calibration__entries__0__model_files": {"m": "abc"}}, "abc"),
])
def test_a_record_that_contradicts_its_schema_or_its_own_counts_is_refused(path, changes, complaint):
    with pytest.raises(RecordError, match=complaint) as refusal:
        load_record(damaged(path, **changes))
    assert "commission again" in str(refusal.value)


def test_a_source_that_stands_twice_is_refused(path):
    document = yaml.safe_load(path.read_text())
    document["calibration"]["entries"].append(document["calibration"]["entries"][0])
    document["record_id"] = content_id(document)
    path.write_text(yaml.safe_dump(document))
    with pytest.raises(RecordError, match="twice"):
        load_record(path)


@pytest.mark.parametrize("text", ["", "[]", "a: [", "just words"])
def test_a_file_that_is_no_record_is_refused_with_its_path(tmp_path, text):
    path = tmp_path / "broken.yaml"
    path.write_text(text)
    with pytest.raises(RecordError, match="broken.yaml"):
        load_record(path)


def test_a_missing_record_says_how_to_make_one_and_a_node_can_go_on_without(tmp_path):
    with pytest.raises(RecordError, match="failure-dialogue commission"):
        load_record(tmp_path / "none.yaml")
    record, reason = record_or_reason(tmp_path / "none.yaml")
    assert record is None and "none.yaml" in reason


def test_the_id_follows_the_content(make_record):
    assert make_record(camera=(32, 80)).record_id == make_record(camera=(32, 80)).record_id
    assert make_record(camera=(32, 80)).record_id != make_record(camera=(33, 80)).record_id


def test_a_record_that_cannot_be_written_says_where(record, tmp_path):
    (tmp_path / "file").write_text("")
    with pytest.raises(RecordError, match="cannot be written"):
        save_record(record, tmp_path / "file" / "sim.yaml")
