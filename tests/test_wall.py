"""The wall: nothing that diagnoses, decides or asks can see what only the simulator knows."""

import ast
import re
from pathlib import Path

import pytest
from rclpy.utilities import get_rmw_implementation_identifier

from tests.fakes.graph import LIMIT_S, Graph
from tests.fakes.processes import until
from tests.fakes.trained import trained_models

#: rclpy 7.1 (through lark) uses a module that later Pythons have renamed.
pytestmark = pytest.mark.filterwarnings("ignore:module 'sre_:DeprecationWarning")

REPOSITORY = Path(__file__).resolve().parents[1]
PACKAGE = REPOSITORY / "failure_dialogue"
#: The rooms of the diagnosing side; the rest is tools (scoring, commissioning, the command line).
ROOMS = ("diagnosis", "decision", "dialogue", "recheck", "perception", "robots", "nodes")
SIMULATOR = ("sim_bridge", "mujoco", "libero", "robosuite")
#: What knows the staged cause: it measures and scores, and of our rooms only command-line verbs call it.
SCORING = (
    "failure_dialogue.scoring.outcomes",
    "failure_dialogue.scoring.bag_reading",
    "failure_dialogue.commissioning",
    "failure_dialogue.graph",
)
TRUTH = re.compile(r"ground_truth|injected_cause|/sim/|\b(?:sim_bridge|mujoco)\b")
NODES = ("diagnosis", "decision", "dialogue", "recheck")


def diagnosing_files():
    files = [file for room in ROOMS for file in sorted((PACKAGE / room).rglob("*.py"))]
    return [
        *files,
        *(
            file
            for file in sorted(PACKAGE.glob("*.py"))
            if file.name in ("telemetry.py", "grasp_trace.py", "evidence.py", "vocabulary.py", "topics.py")
        ),
    ]


def imported(file):
    """Every module a file imports, wherever in it, with the line."""
    for node in ast.walk(ast.parse(file.read_text(encoding="utf-8"))):
        if isinstance(node, ast.Import):
            yield from ((alias.name, node.lineno) for alias in node.names)
        elif isinstance(node, ast.ImportFrom):
            assert node.level == 0, f"{file}:{node.lineno}: a relative import hides where it leads"
            yield node.module, node.lineno
            yield from ((f"{node.module}.{alias.name}", node.lineno) for alias in node.names)


def is_part_of(module, package):
    return module == package or module.startswith(package + ".")


def test_every_room_is_there_to_be_looked_at():
    assert [room for room in ROOMS if not list((PACKAGE / room).glob("*.py"))] == []
    assert len(diagnosing_files()) > 30


def test_the_diagnosing_side_imports_nothing_from_beyond_the_wall():
    offenders = [
        f"{file.relative_to(REPOSITORY)}:{line} imports {module}"
        for file in diagnosing_files()
        for module, line in imported(file)
        if any(
            is_part_of(module, package)
            for package in SIMULATOR + SCORING
            if package in SIMULATOR or not file.name.endswith("verb.py")
        )
    ]
    assert offenders == []


def test_the_diagnosing_side_does_not_name_the_truth():
    offenders = [
        f"{file.relative_to(REPOSITORY)}:{number}: {line.strip()}"
        for file in diagnosing_files()
        for number, line in enumerate(file.read_text(encoding="utf-8").splitlines(), 1)
        if TRUTH.search(line) and "RESET_SCENE" not in line
    ]
    assert offenders == []


def test_nothing_in_the_package_imports_the_simulator():
    offenders = [
        f"{file.relative_to(REPOSITORY)}:{line} imports {module}"
        for file in sorted(PACKAGE.rglob("*.py"))
        for module, line in imported(file)
        if any(is_part_of(module, package) for package in SIMULATOR)
    ]
    assert offenders == []


def test_only_nodes_need_ros():
    offenders = [
        f"{file.relative_to(REPOSITORY)}:{line} imports {module}"
        for file in sorted(PACKAGE.rglob("*.py"))
        if file.parent.name != "nodes"
        for module, line in imported(file)
        if any(is_part_of(module, package) for package in ("rclpy", "failure_dialogue_msgs"))
    ]
    assert offenders == []


def test_the_reset_of_a_scene_is_nobodys_business_on_the_diagnosing_side():
    offenders = [
        str(file.relative_to(REPOSITORY))
        for file in diagnosing_files()
        if file.name != "topics.py" and "RESET_SCENE" in file.read_text(encoding="utf-8")
    ]
    assert offenders == []


def test_running_nodes_listen_to_and_call_nothing_of_the_simulation(tmp_path):
    assert get_rmw_implementation_identifier() == "rmw_fastrtps_cpp"
    with Graph(tmp_path) as graph:
        for name in NODES:
            graph.start(
                name,
                *([f"models:={trained_models()}"] if name == "diagnosis" else []),
                *(["speak:=false"] if name == "dialogue" else []),
            )
        watcher = graph.node

        def subscribed(name):
            return dict(watcher.get_subscriber_names_and_types_by_node(name, "/"))

        known = {
            "diagnosis": "/force_torque_sensor_broadcaster/wrench",
            "decision": "/failure_dialogue/failure",
            "dialogue": "/failure_dialogue/reply",
            "recheck": "/failure_dialogue/phase",
        }
        until(lambda: set(NODES) <= set(watcher.get_node_names()), "all nodes", 120.0)
        for name in NODES:
            until(lambda n=name: known[n] in subscribed(n), f"the subscriptions of {name}", 4 * LIMIT_S)
        ends = {
            name: [*subscribed(name), *dict(watcher.get_client_names_and_types_by_node(name, "/"))]
            for name in NODES
        }
    assert {name: [end for end in own if end.startswith("/sim")] for name, own in ends.items()} == {
        name: [] for name in NODES
    }
    # What they do listen to, so that a new topic is looked at by somebody.
    assert {end for own in ends.values() for end in own if not end.startswith("/failure_dialogue/")} == {
        "/camera/color/image_raw",
        "/camera/color/camera_info",
        "/force_torque_sensor_broadcaster/wrench",
        "/joint_states",
        "/tf_static",
    }
