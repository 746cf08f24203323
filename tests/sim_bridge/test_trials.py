"""The measuring verbs: what they count, and the list of repairs a user sees."""

import json

import pytest
from click.testing import CliRunner

from failure_dialogue.vocabulary import load_vocabulary
from sim_bridge.trials import matrix_markdown, measure_attempts, repair_cells, repairs


def test_the_list_of_repairs_names_causes_arguments_and_limits():
    shown = CliRunner().invoke(repairs, [])
    assert shown.exit_code == 0
    assert "payload_lift (for heavy_object)" in shown.output
    assert "force_scale: 1 to 3" in shown.output and "at most 90 s" in shown.output
    listed = json.loads(CliRunner().invoke(repairs, ["--json"]).output)
    assert {entry["name"] for entry in listed} == {
        cause.repair for cause in load_vocabulary().family("grasp").causes.values()}


@pytest.mark.slow
def test_attempts_are_counted_with_n_and_an_interval():
    options = ["--episodes", "2", "--failures", "3", "--workers", "1", "--json"]
    result = CliRunner().invoke(measure_attempts, options)
    figures = json.loads(result.stdout)
    assert figures["unperturbed_success"]["n"] == 2
    assert figures["misses"]["n"] >= 3
    for shares in figures["shares"].values():
        assert sum(rate["successes"] for rate in shares.values()) == shares["held"]["n"]
        assert all(rate["low"] <= rate["rate"] <= rate["high"] for rate in shares.values())


@pytest.mark.slow
def test_the_matrix_has_every_repair_under_every_cause():
    cells = repair_cells(1, 1, workers=1)
    assert len(cells) == 9 and sum(cell["matching"] for cell in cells) == 3
    text = matrix_markdown(cells)
    assert text.count("\n| ") == 3 and text.count("**") == 6
    assert "(n=1)" in text
