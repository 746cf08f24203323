"""Training and export on failures whose physics is known."""

import json

import numpy as np
import pytest
from click.testing import CliRunner
from sklearn.ensemble import HistGradientBoostingClassifier
from sklearn.impute import SimpleImputer
from sklearn.linear_model import LogisticRegression
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

from failure_dialogue.commissioning import training
from failure_dialogue.commissioning.export import TOLERANCE, export_classifier, fit_temperature, tempered
from failure_dialogue.commissioning.train_verb import command, low_is_mild
from failure_dialogue.diagnosis.load import load_model
from failure_dialogue.errors import EvidenceError, ModelError, SplitError
from failure_dialogue.vocabulary import load_vocabulary
from tests.fakes.grasp_evidence import grasp_evidence

CAUSES = tuple(load_vocabulary().family("grasp").causes)


def rows(n=300, seed=0):
    rng = np.random.default_rng(seed)
    truth = rng.integers(0, 3, n)
    features = rng.normal(size=(n, 4)) + 1.5 * np.eye(3, 4)[truth]
    features[rng.random((n, 4)) < 0.05] = np.nan
    return features.astype(np.float32), truth


@pytest.mark.parametrize(
    "classifier",
    [
        make_pipeline(SimpleImputer(), StandardScaler(), LogisticRegression()),
        HistGradientBoostingClassifier(max_iter=20, random_state=0),
    ],
    ids=["logistic", "boosted"],
)
def test_the_exported_model_agrees_with_scikit_learn_also_where_values_are_missing(tmp_path, classifier):
    features, truth = rows()
    classifier.fit(features, truth)
    card = export_classifier(classifier, 1.7, tmp_path / "m.onnx", features, {"classes": list("abc")})
    model = load_model(tmp_path / "m.onnx")
    assert card["model_id"] == model.model_id
    expected = tempered(classifier.predict_proba(features), 1.7)
    assert np.abs(model.run(features) - expected).max() <= TOLERANCE


def test_values_that_lie_on_a_threshold_take_the_same_branch_in_both(tmp_path):
    # Boosted trees put thresholds midway between training values; here the tested values are those midpoints.
    rng = np.random.default_rng(0)
    grid = rng.integers(0, 40, (400, 3))
    truth = (grid.sum(axis=1) + rng.normal(0, 8, 400) > 58).astype(int)
    boosted = HistGradientBoostingClassifier(max_iter=40, random_state=0)
    boosted.fit((grid / 50).astype(np.float32), truth)
    midpoints = (grid / 50 + 0.01).astype(np.float32)
    card = export_classifier(boosted, 1.0, tmp_path / "m.onnx", midpoints, {})
    assert card["parity"]["max"] < 1e-5


def test_a_model_that_does_not_agree_is_not_left_behind(tmp_path):
    features, truth = rows()

    features = np.nan_to_num(features)
    liar = LogisticRegression().fit(features, truth)
    liar.predict_proba = lambda x: np.roll(LogisticRegression.predict_proba(liar, x), 1, axis=1)
    with pytest.raises(ModelError, match="differs from scikit-learn"):
        export_classifier(liar, 1.0, tmp_path / "m.onnx", features, {})
    assert list(tmp_path.iterdir()) == []


def test_the_temperature_undoes_overconfidence():
    rng = np.random.default_rng(1)
    logits = rng.normal(0, 1.5, (4000, 3))
    honest = np.exp(logits) / np.exp(logits).sum(axis=1, keepdims=True)
    truth = np.array([rng.choice(3, p=p) for p in honest])
    overconfident = tempered(honest, 1 / 3)
    assert fit_temperature(overconfident, truth) == pytest.approx(3.0, rel=0.1)


def test_being_right_on_eighty_episodes_does_not_make_certain():
    truth = np.arange(80) % 3
    probabilities = np.where(np.arange(3) == truth[:, None], 0.98, 0.01)
    temperature = fit_temperature(probabilities, truth)
    assert tempered(probabilities, temperature).max() < 0.999


def test_mild_is_the_end_of_the_range_nearer_to_nothing_wrong():
    causes = load_vocabulary().family("grasp").causes
    assert {name: low_is_mild(*cause.severity["range"]) for name, cause in causes.items()} == {
        "weak_grip": False,
        "heavy_object": True,
        "slippery_surface": False,
    }


def test_no_object_is_on_both_sides_of_a_fold():
    # The label is a function of the object alone: only memory could know it.
    rng = np.random.default_rng(0)
    objects = np.repeat([f"object_{i}" for i in range(30)], 10)
    label = np.repeat(rng.integers(0, 2, 30), 10)
    code = np.repeat(rng.normal(size=(30, 3)), 10, axis=0)
    nothing = np.full(300, np.nan)
    table = training.Table(code.astype(np.float32), label, nothing, objects, objects, nothing)
    memory = training.Candidate("memory", (), lambda: HistGradientBoostingClassifier(random_state=0))
    by_object = training.grouped(memory, table, objects)["share"]
    by_row = training.grouped(memory, table, np.arange(300).astype(str))["share"]
    assert by_row > 0.95 and by_object < 0.75


def test_a_split_in_which_nothing_can_be_used_is_an_error():
    def refuse(_):
        raise EvidenceError("no wrench was recorded")

    with pytest.raises(SplitError, match="no wrench was recorded"):
        training.build_table([{"episode_id": "e1", "cause": CAUSES[0]}], CAUSES, refuse)


def staged(cause, rng):
    severity = {
        "weak_grip": rng.uniform(0.2, 0.6),
        "heavy_object": rng.uniform(1.8, 4.0),
        "slippery_surface": rng.uniform(0.05, 0.28),
    }[cause]
    physics = {
        "weak_grip": {"grip_scale": severity},
        "heavy_object": {"mass_kg": 0.3 * severity},
        "slippery_surface": {"friction": severity},
    }[cause]
    return severity, physics


@pytest.fixture(scope="module")
def data(tmp_path_factory):
    """A small data set in the form that `generate` writes."""
    folder = tmp_path_factory.mktemp("data")
    (folder / "evidence").mkdir()
    rng = np.random.default_rng(0)
    splits: dict[str, list[dict]] = {}
    for split, n in (("train", 120), ("calibration", 24), ("test", 60), ("new_object", 24)):
        splits[split] = []
        for i in range(n):
            cause = CAUSES[i % 3]
            severity, physics = staged(cause, rng)
            episode = f"{split}_{i:03d}"
            mass_scale = rng.uniform(0.8, 1.2)
            physics["mass_kg"] = physics.get("mass_kg", 0.3) * mass_scale
            evidence = grasp_evidence(**physics, setpoint_n=4.7 * mass_scale, seed=int(rng.integers(1 << 30)))
            evidence.save(folder / "evidence" / f"{episode}.npz")
            splits[split].append(
                {
                    "episode_id": episode,
                    "seed": len(splits) * 1000 + i,
                    "cause": cause,
                    "severity": severity,
                    "object": f"{'new' if split == 'new_object' else 'object'}_{i % 4}",
                }
            )
    (folder / "manifest.json").write_text(json.dumps({"format": 1, "family": "grasp", "splits": splits}))
    return folder


@pytest.mark.slow
def test_training_on_known_physics_gives_a_model_that_knows_it(data, tmp_path):
    result = CliRunner().invoke(
        command, ["--data", str(data), "--source", "force", "--out", str(tmp_path), "--json"]
    )
    assert result.exit_code == 0, result.output
    with_effort, without = json.loads(result.stdout)
    test = with_effort["figures"]["test"]["accuracy"]
    assert test["n"] == 60 and test["share"] >= 0.95
    # Ten shuffles that each hit or miss whole causes: 1/3 with a spread of 0.1.
    assert with_effort["figures"]["shuffled_labels"]["share"] < 0.65
    assert without["figures"]["test"]["accuracy"]["share"] < test["share"]
    assert not set(without["feature_names"]) & set(training.EFFORT_FEATURES)
    assert with_effort["parity"]["max"] <= TOLERANCE


def test_a_data_set_of_another_family_is_refused(data, tmp_path):
    result = CliRunner().invoke(command, ["--data", str(data), "--family", "placement", "--source", "force"])
    assert result.exit_code != 0 and "placement" in str(result.exception)
