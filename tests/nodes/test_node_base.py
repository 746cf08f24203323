"""What every node of ours does as a process: lifecycle, /diagnostics, refused parameters, clean ends."""

import signal
import subprocess
import sys

import pytest
from diagnostic_msgs.msg import DiagnosticStatus
from lifecycle_msgs.msg import State, Transition
from lifecycle_msgs.srv import ChangeState

from tests.fakes.graph import Graph
from tests.fakes.processes import REPOSITORY, ended, until
from tests.fakes.trained import trained_models

#: rclpy 7.1 (through lark) uses a module that later Pythons have renamed.
pytestmark = pytest.mark.filterwarnings("ignore:module 'sre_:DeprecationWarning")

NAMES = ("diagnosis", "decision", "dialogue", "recheck", "recorder")
#: From the signal to the end, on a busy machine; the supervisor waits 6 s.
END_LIMIT_S = 5.0


def start(graph, name, *parameters, log=""):
    own = {
        "diagnosis": [f"models:={trained_models()}"],
        "dialogue": ["speak:=false"],
        "recorder": [f"directory:={graph.folder / 'bags'}"],
    }
    return graph.start(name, *own.get(name, []), *parameters, name=log)


@pytest.fixture(scope="module")
def waiting(tmp_path_factory):
    """All nodes, told not to start themselves."""
    with Graph(tmp_path_factory.mktemp("waiting")) as graph:
        nodes = {name: start(graph, name, "autostart:=false") for name in NAMES}
        for node in nodes.values():
            node.wait_state(State.PRIMARY_STATE_UNCONFIGURED)
        yield nodes


@pytest.mark.parametrize("name", NAMES)
def test_told_not_to_start_itself_it_waits_and_reports_about_once_a_second(waiting, name):
    node = waiting[name]
    until(lambda: len(node.said) >= 4, f"four reports of {name}", 30.0)
    assert {status.message for _, status in node.said} == {"not active"}
    assert node.said[-1][1].level == DiagnosticStatus.WARN
    times = [t for t, _ in node.said]
    assert (times[-1] - times[0]) / (len(times) - 1) == pytest.approx(1.0, abs=0.3)
    assert node.state() == State.PRIMARY_STATE_UNCONFIGURED


@pytest.mark.parametrize("name", NAMES)
def test_it_can_be_led_through_its_whole_life_and_again(waiting, name):
    node = waiting[name]
    for _ in range(2):
        for transition, state in (
            (Transition.TRANSITION_CONFIGURE, State.PRIMARY_STATE_INACTIVE),
            (Transition.TRANSITION_ACTIVATE, State.PRIMARY_STATE_ACTIVE),
            (Transition.TRANSITION_DEACTIVATE, State.PRIMARY_STATE_INACTIVE),
            (Transition.TRANSITION_ACTIVATE, State.PRIMARY_STATE_ACTIVE),
            (Transition.TRANSITION_DEACTIVATE, State.PRIMARY_STATE_INACTIVE),
            (Transition.TRANSITION_CLEANUP, State.PRIMARY_STATE_UNCONFIGURED),
        ):
            assert node.change(transition), f"transition {transition}: {node.logged()}"
            assert node.state() == state
    assert node.change(Transition.TRANSITION_CONFIGURE) and node.change(Transition.TRANSITION_ACTIVATE)
    status = node.says(lambda s: s.message != "not active", "its report when active")
    assert status.level != DiagnosticStatus.ERROR, status.message
    assert "ERROR" not in node.logged()


@pytest.mark.parametrize("name", NAMES)
def test_ctrl_c_ends_an_active_node_at_once_and_without_a_traceback(waiting, name):
    assert_clean_end(waiting[name].wait_state(), signal.SIGINT)


def test_sigterm_ends_them_too_whether_they_are_active_or_still_starting(tmp_path):
    with Graph(tmp_path) as graph:
        active = [start(graph, name) for name in NAMES]
        for node in active:
            node.wait_state()
        for node in active:
            assert_clean_end(node, signal.SIGTERM)
        # The dialogue loads for long enough to be caught at it.
        starting = start(graph, "dialogue", log="starting")
        until(
            lambda: "handlers are set" if _catches_sigterm(starting.process.pid) else "", "its start", 120.0
        )
        assert_clean_end(starting, signal.SIGTERM)


def assert_clean_end(node, how):
    status, seconds = ended(node.process, how)
    said = node.logged()
    assert status == 0, said
    assert "Traceback" not in said and "Exception" not in said, said
    assert seconds < END_LIMIT_S


def _catches_sigterm(pid):
    with open(f"/proc/{pid}/status") as lines:
        (mask,) = (line.split()[1] for line in lines if line.startswith("SigCgt:"))
    return int(mask, 16) >> (signal.SIGTERM - 1) & 1


@pytest.mark.parametrize(
    "arguments, words",
    [
        (["-p", "cost_ask:=-1.0"], ["cost_ask", "-1.0", "Min: 0.0"]),
        (["-p", "cost_ask:=much"], ["cost_ask", "much", "DOUBLE"]),
        (["--params-file", "/nowhere.yaml"], ["/nowhere.yaml"]),
    ],
)
def test_a_parameter_it_cannot_take_ends_it_with_one_clear_line_and_status_2(arguments, words):
    done = subprocess.run(
        [sys.executable, "-m", "failure_dialogue.nodes.decision", "--ros-args", *arguments],
        cwd=REPOSITORY,
        capture_output=True,
        text=True,
        timeout=120,
    )
    assert done.returncode == 2, done.stderr
    *before, line = done.stderr.splitlines()
    assert line.startswith("error: ") and all(word in line for word in words)
    assert all(
        "[rcl]: Failed to parse global arguments" in other for other in before
    )  # ROS's own word for it


def test_a_start_with_a_setting_that_fits_no_file_stays_visible_and_can_be_mended(tmp_path):
    with Graph(tmp_path) as graph:
        node = graph.start("decision", "robot:=ur99")
        status = node.says(lambda s: "unknown robot 'ur99'; known: panda" in s.message, "the reason")
        assert status.level == DiagnosticStatus.ERROR
        assert node.set(robot="panda", sense_sources=[]) == ""
        assert node.change(Transition.TRANSITION_CONFIGURE) and node.change(Transition.TRANSITION_ACTIVATE)
        node.says(lambda s: s.level != DiagnosticStatus.ERROR, "recovery")


def test_a_transition_that_the_state_does_not_have_does_not_end_the_node(tmp_path):
    with Graph(tmp_path) as graph:
        node = start(graph, "decision").wait_state()
        client = graph.add("asker").create_client(ChangeState, "/decision/change_state")
        until(client.service_is_ready, "the service for transitions")
        client.call_async(ChangeState.Request(transition=Transition(id=Transition.TRANSITION_CONFIGURE)))
        until(lambda: "asked for and ignored" in node.logged(), "its word on the transition")
        assert node.process.poll() is None
        assert node.state() == State.PRIMARY_STATE_ACTIVE
