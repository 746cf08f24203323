"""Families, causes and repairs are data; what is wrong in the file is said by place and remedy."""

import math

import pytest
import yaml

from failure_dialogue.errors import RepairError, VocabularyError
from failure_dialogue.paths import config_file
from failure_dialogue.vocabulary import load_vocabulary


@pytest.fixture
def data():
    return yaml.safe_load(config_file("failures.yaml").read_text())


def read(tmp_path, data):
    path = tmp_path / "failures.yaml"
    path.write_text(yaml.safe_dump(data))
    return load_vocabulary(path)


def test_each_grasp_cause_has_a_repair_of_its_own():
    causes = load_vocabulary().family("grasp").causes
    assert set(causes) == {"weak_grip", "heavy_object", "slippery_surface"}
    assert len({c.repair for c in causes.values()}) == 3


def test_a_cause_is_added_without_touching_code(tmp_path, data):
    data["families"]["grasp"]["causes"]["worn_pads"] = {"phrase": "my pads are worn", "repair": "grip_pads"}
    assert read(tmp_path, data).cause("grasp", "worn_pads").repair == "grip_pads"


def test_unknown_names_are_answered_with_the_known_ones():
    vocabulary = load_vocabulary()
    with pytest.raises(VocabularyError, match="'gripp'; known: grasp"):
        vocabulary.family("gripp")
    with pytest.raises(VocabularyError, match="'too_hot'.*weak_grip"):
        vocabulary.cause("grasp", "too_hot")
    with pytest.raises(VocabularyError, match="'fly'.*raise_grip"):
        vocabulary.repair("fly")


@pytest.mark.parametrize(
    "change, said",
    [
        (lambda d: d.pop("repairs"), "no 'repairs'"),
        (
            lambda d: d["families"]["grasp"]["causes"]["weak_grip"].pop("phrase"),
            "'weak_grip' has no 'phrase'",
        ),
        (
            lambda d: d["families"]["grasp"]["causes"]["weak_grip"].update(repair="fly"),
            "'fly' is not defined",
        ),
        (
            lambda d: d["families"]["grasp"]["causes"].update(
                none_of_these={"phrase": "x", "repair": "grip_pads"}
            ),
            "reserved",
        ),
        (
            lambda d: d["families"]["grasp"].update(
                causes={"weak_grip": {"phrase": "x", "repair": "grip_pads"}}
            ),
            "at least two",
        ),
        (
            lambda d: d["repairs"]["payload_lift"]["arguments"]["force_scale"].update(default=9.0),
            "outside 1..3",
        ),
        (
            lambda d: d["repairs"]["payload_lift"]["arguments"]["force_scale"].update(range=3),
            "must be a list",
        ),
        (lambda d: d["families"].update(grasp=[1]), "has no 'causes'"),
    ],
)
def test_a_malformed_file_names_the_place(tmp_path, data, change, said):
    change(data)
    with pytest.raises(VocabularyError, match=said):
        read(tmp_path, data)


@pytest.mark.parametrize("text", ["families: [", "\x00\x01", "- 1"])
def test_what_is_no_mapping_is_refused(tmp_path, text):
    (tmp_path / "failures.yaml").write_text(text)
    with pytest.raises(VocabularyError):
        load_vocabulary(tmp_path / "failures.yaml")


def test_repair_arguments_are_checked_against_their_ranges():
    lift = load_vocabulary().repair("payload_lift")
    assert lift.checked({}) == {"force_scale": 2.9, "lift_time_s": 3.0}
    assert lift.checked({"force_scale": 1.0})["force_scale"] == 1.0
    for name, value in (("force_scale", 3.01), ("force_scale", math.nan), ("lift_time_s", 0.0)):
        with pytest.raises(RepairError, match=name):
            lift.checked({name: value})
    with pytest.raises(RepairError, match="takes no argument 'speed'"):
        lift.checked({"speed": 1.0})
