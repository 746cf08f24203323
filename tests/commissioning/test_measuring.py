"""What is counted when diagnosers are measured, and the record that `commission` writes."""

import json

import numpy as np
import pytest
from click.testing import CliRunner

from failure_dialogue.commissioning import commission_verb
from failure_dialogue.commissioning.measuring import Side, measure, standing
from failure_dialogue.commissioning.splits import Purpose, load_manifest
from failure_dialogue.decision.costs import Answerer, Costs
from failure_dialogue.decision.policy import Action, Situation, decide
from failure_dialogue.decision.record import Entry, load_record
from failure_dialogue.decision.threshold import threshold
from failure_dialogue.diagnosis.protocol import Diagnosis
from failure_dialogue.errors import EvidenceError, SplitError
from failure_dialogue.evidence import Evidence, Frame, JointSeries, WrenchSeries
from failure_dialogue.vocabulary import load_vocabulary

GRASP = load_vocabulary().family("grasp")
CAUSES = tuple(GRASP.causes)
EMPTY = np.zeros(0)
N = 12


def evidence(mark, size=(64, 48), family="grasp"):
    """Evidence whose instruction tells the fakes below which episode it is."""
    frames = tuple(Frame(float(i), np.zeros((size[1], size[0], 3), np.uint8)) for i in range(2))
    return Evidence(family, "lift", mark, 0.0, 1.0, (), WrenchSeries(EMPTY, np.zeros((0, 6))),
                    JointSeries(EMPTY, (), np.zeros((0, 0)), np.zeros((0, 0)), np.zeros((0, 0))), frames)


@pytest.fixture
def data(tmp_path):
    """Twelve calibration and six test failures, the causes in turn."""
    folder = tmp_path / "data"
    (folder / "evidence").mkdir(parents=True)
    splits = {}
    for split, n, seed in (("calibration", N, 0), ("test", 6, 1000)):
        splits[split] = []
        for i in range(n):
            cause = CAUSES[i % 3]
            splits[split].append({"episode_id": f"{split}-{i}", "cause": cause, "seed": seed + i,
                                  "severity": 0.5, "object": ("butter", "ketchup")[i % 2]})
            evidence(f"{i} {cause}").save(folder / "evidence" / f"{split}-{i}.npz")
    write(folder, {"format": 1, "family": "grasp", "splits": splits, "packages": {"mujoco": "3.0"}})
    return folder


def write(folder, document):
    (folder / "manifest.json").write_text(json.dumps(document))


class Fake:
    """Knows the cause from the fake evidence; errs or abstains on the episodes it is told to."""

    family = "grasp"

    def __init__(self, source, wrong=(), abstains=()):
        self.source, self.model_id = source, f"{source}-1"
        self.wrong, self.abstains = set(wrong), set(abstains)

    def diagnose(self, seen):
        number, cause = seen.instruction.split()
        if int(number) in self.abstains:
            return Diagnosis.abstention(self.source, "grasp", self.model_id, "too dark")
        said = CAUSES[(CAUSES.index(cause) + (int(number) in self.wrong)) % 3]
        return Diagnosis(self.source, "grasp", CAUSES, tuple(float(c == said) for c in CAUSES), self.model_id)


def measured(data, *fakes, split="calibration", purpose=Purpose.COMMISSION):
    return measure({fake.source: fake for fake in fakes}, load_manifest(data, "grasp"), split, purpose, GRASP)


def test_every_diagnoser_is_counted_by_true_cause_and_by_what_it_said(data):
    found = measured(data, Fake("camera", wrong=(0, 3)), Fake("force"))
    camera, force = found.measured_on.entries
    assert (camera.n, camera.correct, force.correct) == (N, N - 2, N)
    assert camera.confusion["weak_grip"] == {"heavy_object": 2, "weak_grip": 2}
    assert found.camera == (64, 48)
    assert found.scenes == ("butter", "ketchup")


def test_an_abstention_counts_as_wrong_and_is_shown_with_its_reason(data):
    found = measured(data, Fake("camera", abstains=(1, 2, 4)))
    (entry,) = found.measured_on.entries
    assert (entry.abstained, entry.accuracy) == (3, 0.75)
    assert found.abstentions["camera"] == {"too dark": 3}


def test_every_episode_is_reported_as_done_once(data):
    seen = []
    measure({"force": Fake("force")}, load_manifest(data, "grasp"), "calibration", Purpose.COMMISSION, GRASP,
            done=seen.append)
    assert seen == list(range(1, N + 1))


def test_the_record_is_never_measured_on_the_test_split(data):
    with pytest.raises(SplitError, match="'test' may not be used for commissioning"):
        measured(data, Fake("force"), split="test")


def test_evidence_of_another_family_is_refused(data):
    evidence("0 weak_grip", family="detection").save(data / "evidence" / "calibration-0.npz")
    with pytest.raises(EvidenceError, match="'detection'"):
        measured(data, Fake("force"))


def test_frames_of_two_sizes_are_refused(data):
    evidence("5 slippery_surface", size=(32, 32)).save(data / "evidence" / "calibration-5.npz")
    with pytest.raises(EvidenceError, match=r"\(32, 32\).*\(64, 48\)"):
        measured(data, Fake("force"))


def test_a_cause_that_the_family_does_not_have_is_refused(data):
    document = json.loads((data / "manifest.json").read_text())
    document["splits"]["calibration"][4]["cause"] = "gremlins"
    write(data, document)
    with pytest.raises(SplitError, match="gremlins"):
        measured(data, Fake("force"))


@pytest.mark.parametrize("right, side", [(79, Side.ABOVE), (20, Side.BELOW), (44, Side.UNDECIDED)])
def test_the_interval_tells_on_which_side_of_p_star_an_accuracy_lies(right, side):
    entry = Entry("grasp", "camera", "m", {}, {"weak_grip": {"weak_grip": right, "heavy_object": 80 - right}})
    where = standing(entry, threshold(Costs(), Answerer()))
    assert where.side is side
    assert (where.more_needed == 0) == (side is not Side.UNDECIDED)


def test_where_asking_never_pays_there_is_no_side_to_tell():
    entry = Entry("grasp", "camera", "m", {}, {"weak_grip": {"weak_grip": 1, "heavy_object": 1}})
    assert standing(entry, threshold(Costs(ask=10), Answerer())).side is Side.NO_THRESHOLD


@pytest.fixture
def commission(data, tmp_path, monkeypatch):
    """commission(*args): the verb with fake diagnosers; returns its output and the record it wrote."""

    fakes = {"camera": Fake("camera", wrong=range(0, N, 2), abstains=(1,)), "force": Fake("force")}

    def run(*args):
        monkeypatch.setattr(commission_verb, "load_diagnosers", lambda *_: fakes)
        out = tmp_path / "record.yaml"
        result = CliRunner().invoke(commission_verb.command, ["--data", str(data), "--out", str(out), *args])
        if result.exception is not None:
            raise result.exception
        return result.stdout, load_record(out)

    return run


def test_commission_writes_a_record_on_which_the_robot_decides(commission):
    _, record = commission()
    assert (record.robot, record.camera, record.packages) == ("panda", (64, 48), {"mujoco": "3.0"})
    assert record.entry("grasp", "force").correct == N
    assert record.bench == ()
    says = {"camera": Diagnosis("camera", "grasp", CAUSES, (1.0, 0.0, 0.0), "camera-1")}
    decision = decide(Situation(GRASP, says, record, can_sense=("force",)), Costs(), Answerer())
    assert (decision.action, decision.record_id) == (Action.SENSE, record.record_id)


def test_commission_says_how_many_more_failures_would_tell_and_shows_abstentions(commission):
    text, _ = commission()
    assert "camera   right in 0.417" in text
    assert "more staged failures would tell" in text
    assert "abstained 1 times (counted as wrong): too dark" in text
    assert "force    right in 1.000" in text and "acts: above p* = 0.588" in text


def test_the_held_out_figure_is_stored_apart_and_leaves_the_decisions_figure_alone(commission):
    text, record = commission("--report-test")
    assert [(e.source, e.n) for e in record.bench] == [("camera", 6), ("force", 6)]
    assert record.entry("grasp", "camera").n == N
    assert "reported only" in text


def test_commission_as_json_gives_counts_side_and_record(commission):
    text, record = commission("--json")
    answer = json.loads(text)
    assert answer["record_id"] == record.record_id
    assert answer["threshold"] == pytest.approx(0.588, abs=5e-4)
    camera, force = answer["calibration"]
    assert (camera["correct"], camera["side"], force["side"]) == (5, "undecided", "above")
    assert camera["more_needed"] > 0


def test_commission_refuses_the_training_split_and_another_robots_data(commission, data):
    with pytest.raises(SplitError, match="'train' may not be used"):
        commission("--split", "train")
    document = json.loads((data / "manifest.json").read_text())
    write(data, document | {"robot": "ur5e"})
    with pytest.raises(SplitError, match="'ur5e', not 'panda'"):
        commission()
