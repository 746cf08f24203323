"""The record that ships was measured on the models that ship."""

import datetime as dt

from failure_dialogue.decision.record import Running, check, load_record, vocabulary_hash
from failure_dialogue.diagnosis.load import load_diagnosers, models_in_use
from failure_dialogue.paths import config_file
from failure_dialogue.robots.profile import load_profile
from failure_dialogue.vocabulary import load_vocabulary


def test_it_fits_them_and_says_what_the_decision_needs():
    vocabulary, profile = load_vocabulary(), load_profile("panda_sim")
    record = load_record(config_file("records/panda_sim.yaml"))
    running = Running(
        "panda_sim",
        (256, 256),
        {"grasp": vocabulary_hash(vocabulary.family("grasp"))},
        models_in_use(vocabulary, profile),
        now=record.created + dt.timedelta(days=1),
    )
    assert check(record, running) == ()
    assert record.entry("grasp", "force").interval[0] > 0.9
    assert record.entry("grasp", "camera").n >= 80


def test_what_is_compared_is_what_is_loaded():
    vocabulary, profile = load_vocabulary(), load_profile("panda_sim")
    loaded = {(d.source, d.model_id) for d in load_diagnosers(vocabulary, "grasp", profile).values()}
    assert {(m.source, m.model_id) for m in models_in_use(vocabulary, profile)} == loaded
