"""The command line: quick help, clear errors, statuses a script can rely on."""

from __future__ import annotations

import os
import re
import signal
import subprocess
import sys
import time
from contextlib import suppress
from importlib.metadata import EntryPoint, entry_points
from pathlib import Path

import click
import pytest
from click.testing import CliRunner

from failure_dialogue import cli
from failure_dialogue.errors import CostError

HEAVY = ("numpy", "rclpy", "mujoco", "onnxruntime", "sklearn", "scipy", "cv2", "honcho", "yaml")


@click.command()
@click.argument("how")
def _verb(how: str) -> int:
    """A verb that ends as it is told to."""
    if how == "cost":
        raise CostError("cost_ask is -3;\n  give 0 or more")
    if how == "interrupt":
        raise KeyboardInterrupt
    if how == "module":
        raise ModuleNotFoundError("No module named 'sklearn.linear_model'", name="sklearn.linear_model")
    if how == "path":
        open("/proc/no_such_folder/x", "w")  # noqa: SIM115 - it cannot be opened
    return int(how)


@pytest.fixture
def run(monkeypatch, capsys):
    """Run main() with arguments; status and stderr. `end` is a verb of this file."""
    monkeypatch.setitem(cli.group._entry_points, "end", EntryPoint("end", f"{__name__}:_verb", cli.GROUP))
    monkeypatch.setattr(EntryPoint, "load", lambda point: _verb)

    def _run(*arguments: str) -> tuple[int, str]:
        monkeypatch.setattr(sys, "argv", ["failure-dialogue", *arguments])
        with pytest.raises(SystemExit) as end:
            cli.main()
        return end.value.code, capsys.readouterr().err

    return _run


def _console(*arguments: str, **options):
    return subprocess.run([sys.executable, "-m", "failure_dialogue.cli", *arguments], text=True,
                          capture_output=True, timeout=60, check=False, **options)


def test_help_lists_every_verb_with_a_sentence_and_loads_no_room():
    code = ("import sys; sys.argv[1:] = ['--help']\nfrom failure_dialogue import cli\ntry: cli.main()\n"
            f"except SystemExit: print('loaded', [m for m in {HEAVY!r} if m in sys.modules])")
    out = subprocess.run([sys.executable, "-c", code], text=True, capture_output=True, timeout=60,
                         check=True).stdout
    assert "loaded []" in out
    for point in entry_points(group=cli.GROUP):
        assert re.search(rf"^  {point.name} +\S.*\.?$", out, re.MULTILINE)
        assert point.name in cli.SUMMARIES


def test_the_sentences_are_the_verbs_own():
    for point in entry_points(group=cli.GROUP):
        assert point.load().get_short_help_str(limit=200) == cli.SUMMARIES[point.name]


def test_an_expected_error_is_one_line_and_status_2(run):
    assert run("end", "cost") == (2, "failure-dialogue: cost_ask is -3; give 0 or more\n")


def test_a_status_of_the_verb_is_handed_on(run):
    assert run("end", "3")[0] == 3
    assert run("end", "0")[0] == 0


def test_ctrl_c_is_status_130(run):
    status, err = run("end", "interrupt")
    assert status == 130
    assert "Traceback" not in err


def test_a_missing_extra_is_named_with_its_remedy(run):
    status, err = run("end", "module")
    assert status == 2
    assert err == ("failure-dialogue: the Python module 'sklearn.linear_model' is not installed; "
                   "pip install -r requirements/train.txt\n")


def test_a_path_that_cannot_be_written_is_one_line_that_names_it(run):
    status, err = run("end", "path")
    assert status == 2
    assert err == ("failure-dialogue: /proc/no_such_folder/x: No such file or directory; check that path and "
                   "what you may read and write there\n")


def test_a_verb_without_its_module_is_still_listed(monkeypatch):
    absent = EntryPoint("absent", "failure_dialogue.no_such_room:command", cli.GROUP)
    monkeypatch.setitem(cli.group._entry_points, "absent", absent)
    assert "absent" in CliRunner().invoke(cli.group, ["--help"]).output
    with pytest.raises(cli.SetupError, match="no_such_room"):
        cli.group.get_command(None, "absent")


def test_an_unknown_verb_gets_a_suggestion():
    result = _console("interpet")
    assert result.returncode == 2
    assert "no verb 'interpet'; did you mean 'interpret'?" in result.stderr
    assert "verbs are commission, decide" in _console("zzz").stderr


def test_a_wrong_option_is_status_2_and_names_it():
    result = _console("sim", "--human", "nobody")
    assert result.returncode == 2
    assert "'nobody' is not one of 'scripted', 'console', 'none'" in result.stderr


def test_a_missing_parameter_file_is_named():
    result = _console("sim", "--params", "/nowhere.yaml")
    assert result.returncode == 2
    assert result.stderr == ("failure-dialogue: there is no parameter file /nowhere.yaml; give an existing "
                             "one, or leave --params out\n")


@pytest.mark.parametrize("text", [": : [", "", "- decision\n", "decision: 3\n"])
def test_a_parameter_file_no_node_could_read_starts_nothing(tmp_path, text):
    params = tmp_path / "params.yaml"
    params.write_text(text)
    result = _console("sim", "--params", str(params))
    assert result.returncode == 2
    assert result.stderr.startswith(f"failure-dialogue: parameter file {params} ")
    assert result.stderr.count("\n") == 1


def test_a_report_that_could_not_be_written_is_refused_before_the_first_episode():
    result = _console("sim", "--report", "/proc/no_such_folder/report.json")
    assert result.returncode == 2
    assert "/proc/no_such_folder" in result.stderr
    assert result.stderr.count("\n") == 1


@pytest.mark.slow
def test_ctrl_c_ends_the_whole_simulation(tmp_path):
    params = tmp_path / "params.yaml"
    params.write_text("/**: {ros__parameters: {}}\n")
    environment = {k: v for k, v in os.environ.items() if k != "ROS_DOMAIN_ID"}
    process = subprocess.Popen([sys.executable, "-m", "failure_dialogue.cli", "sim", "--params", str(params)],
                               env=environment, text=True, stdout=subprocess.PIPE,
                               stderr=subprocess.PIPE, start_new_session=True)

    def nodes() -> list[str]:
        """Command lines of the nodes that run with the file; /proc, as a bare machine has no ps."""
        lines = []
        for path in Path("/proc").glob("[0-9]*/cmdline"):
            with suppress(OSError):
                lines.append(path.read_text().replace("\0", " "))
        return [line for line in lines if f"--params-file {params}" in line and " -m " in line]

    until = time.monotonic() + 20.0
    while len(nodes()) < 7 and time.monotonic() < until:
        time.sleep(0.2)
    assert len(nodes()) >= 7
    os.killpg(process.pid, signal.SIGINT)
    out, err = process.communicate(timeout=30)
    assert process.returncode == 130
    assert "Traceback" not in out + err
    assert nodes() == []
