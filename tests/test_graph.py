"""The one description of the graph: which nodes, with which parameters, on which command line."""

from __future__ import annotations

import configparser
import importlib.util
from pathlib import Path

import pytest
import yaml

from failure_dialogue.errors import ConfigError
from failure_dialogue.graph import Human, SimOptions, parameter_text, sim_graph

ROOT = Path(__file__).resolve().parent.parent


def _graph(**options):
    return {node.name: node for node in sim_graph(SimOptions(**options))}


def test_the_default_graph():
    assert list(_graph()) == ["sim_bridge", "diagnosis", "decision", "dialogue", "recheck", "scripted_person",
                              "show"]


@pytest.mark.parametrize("human", [Human.CONSOLE, Human.NONE])
def test_no_script_answers_where_a_person_or_nobody_does(human):
    graph = _graph(human=human)
    assert "scripted_person" not in graph
    assert graph["show"].parameters["human"] == human.value


def test_recording_adds_the_recorder():
    assert _graph(record="/tmp/bags")["recorder"].parameters["directory"] == "/tmp/bags"


def test_what_is_not_stated_is_left_to_the_nodes_and_the_parameter_file():
    for node in _graph().values():
        assert not {"seed", "real_time_factor", "scenario", "episodes"} & set(node.parameters)


def test_one_seed_serves_scene_person_and_show():
    graph = _graph(seed=7)
    assert [graph[name].parameters["seed"] for name in ("sim_bridge", "scripted_person", "show")] == [7, 7, 7]


def test_only_the_maker_of_simulated_time_and_the_watcher_run_on_real_time():
    on_real_time = {name for name, node in _graph().items() if not node.parameters.get("use_sim_time")}
    assert on_real_time == {"sim_bridge", "show"}


def test_the_end_of_the_show_is_the_end_and_no_other_node_ends_the_graph():
    assert [name for name, node in _graph().items() if node.ends_graph] == ["show"]
    assert not _graph()["show"].respawn
    assert not any(node.respawn for node in _graph(use_respawn=False).values())


def test_the_graph_s_parameters_win_over_the_file():
    arguments = _graph()["decision"].ros_arguments(SimOptions(params_file="/tmp/p.yaml", namespace="left"))
    assert arguments.index("--params-file") < arguments.index("-p")
    assert "__ns:=/left" in arguments
    assert "__node:=decision" in arguments


@pytest.mark.parametrize("value", [True, False, 3, 0.25, 1e-7, "plain", "7", "it's", "a: b", ""])
def test_parameters_arrive_as_they_were_meant(value):
    read = yaml.safe_load(parameter_text(value))
    assert read == value or float(read) == value


def test_every_node_s_executable_runs_its_module():
    config = configparser.ConfigParser()
    config.read(ROOT / "setup.cfg")
    scripts = dict(line.split(" = ") for line in
                   config["options.entry_points"]["console_scripts"].strip().splitlines())
    for node in _graph(record="bags").values():
        assert scripts[node.executable] == f"{node.module}:main"
        assert importlib.util.find_spec(node.module) is not None


@pytest.mark.parametrize("options", [{"real_time_factor": -1.0}, {"seed": -1}, {"seed": 2**31}])
def test_values_out_of_range_are_named(options):
    with pytest.raises(ConfigError, match=str(next(iter(options.values()))).removesuffix(".0")):
        SimOptions(**options)
