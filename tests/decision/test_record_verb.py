"""What `failure-dialogue record` says of a record."""

import datetime as dt
import json

import pytest
from click.testing import CliRunner

from failure_dialogue.decision.record import Entry, MeasuredOn, new_record, save_record, vocabulary_hash
from failure_dialogue.decision.record_verb import command
from failure_dialogue.errors import RecordError


@pytest.fixture
def path(make_record, tmp_path):
    save_record(make_record(camera=(32, 80), force=(79, 80)), tmp_path / "sim.yaml")
    return str(tmp_path / "sim.yaml")


def test_show_names_each_source_with_its_share_and_interval(path):
    text = CliRunner().invoke(command, ["show", path]).output
    assert "grasp from camera: right in 0.400 [0.300, 0.510] (n=80)" in text
    assert "grasp from force: right in 0.988" in text
    assert "robot panda, camera 256x256" in text


def test_show_as_json_is_the_record_itself(path):
    shown = json.loads(CliRunner().invoke(command, ["show", path, "--json"]).output)
    assert shown["calibration"]["entries"][0]["correct"] == 32


def test_showing_a_missing_record_says_how_to_make_one(tmp_path):
    result = CliRunner().invoke(command, ["show", str(tmp_path / "none.yaml")])
    assert isinstance(result.exception, RecordError)
    assert "failure-dialogue commission" in str(result.exception)


class Configured:
    """A diagnoser without a model file."""

    def __init__(self, source, model_id):
        self.source, self.family, self.model_id = source, "grasp", model_id


def use(monkeypatch, **models):
    configured = {source: Configured(source, model_id) for source, model_id in models.items()}
    monkeypatch.setattr("failure_dialogue.diagnosis.load.load_diagnosers", lambda *args: configured)


def test_check_names_all_that_no_longer_fits_and_fails(path, monkeypatch):
    use(monkeypatch, camera="camera-1", force="force-7")
    result = CliRunner().invoke(command, ["check", path, "--camera", "640", "480", "--json"])
    assert isinstance(result.exception, RecordError)
    mismatches = {m["what"]: m for m in json.loads(result.stdout)["mismatches"]}
    assert mismatches["camera size"]["running"] == "640x480"
    assert mismatches["model of force on grasp"]["running"] == "force-7"
    assert mismatches["model file camera-1 of camera on grasp"]["running"] == "none"


def test_check_of_a_record_that_fits_says_so(grasp, tmp_path, monkeypatch):
    entry = Entry("grasp", "camera", "camera-1", {}, {"weak_grip": {"weak_grip": 3}})
    record = new_record(created=dt.datetime.now(dt.timezone.utc), valid_days=1, software_version="0.1.0",
                        robot="panda", camera=(256, 256), scenes=(), packages={},
                        vocabulary_sha256={"grasp": vocabulary_hash(grasp)},
                        calibration=MeasuredOn("calibration", "2" * 64, (entry,)))
    save_record(record, tmp_path / "fits.yaml")
    use(monkeypatch, camera="camera-1")
    result = CliRunner().invoke(command, ["check", str(tmp_path / "fits.yaml")])
    assert result.exception is None
    assert "fits what is in use" in result.output
