"""failure-dialogue VERB: finds the verbs among the installed entry points and loads only the one asked."""

from __future__ import annotations

import difflib
import importlib.util
import os
import sys
from importlib.metadata import EntryPoint, entry_points

import click

from failure_dialogue.errors import FailureDialogueError, SetupError

GROUP = "failure_dialogue.verbs"

#: What each verb does, so that --help need not import it. A verb that is not here shows where it comes from.
SUMMARIES = {
    "commission": "Measure every diagnoser on staged failures and write the commissioning record.",
    "decide": "Act, sense or ask: p*, the expected costs and the choice for stated numbers.",
    "generate": "Generate failures with their evidence; stopped half way, the same command resumes.",
    "interpret": "Print what the robot understands of a reply.",
    "measure-attempts": "Measure unperturbed success, false alarms, misses, and where perturbed attempts "
                        "fail.",
    "plot": "Draw a recorded episode: frames, events, sensors and the cost of each choice.",
    "prepare-scenes": "Build the simulated scenes into the cache (once per machine).",
    "rates": "Measure the rates and losses of the robot's sensor topics as a subscriber sees them.",
    "record": "Show a commissioning record, or check that it still fits.",
    "repairs": "List the repairs, or measure them all (--matrix).",
    "sim": "Run simulated failures, from the failed grasp to the report.",
    "talk": "Answer the robot's questions from this terminal.",
    "train": "Train, export and measure a diagnoser on failures made by 'failure-dialogue generate'.",
}

#: Where to get what a verb may lack: module to requirement file.
_EXTRAS = {
    "sklearn": "train", "skl2onnx": "train", "onnx": "train", "torch": "backbone", "transformers": "backbone",
    "mujoco": "sim", "libero": "sim", "robosuite": "sim", "cv2": "core", "onnxruntime": "core",
    "tokenizers": "core", "scipy": "core", "rosbags": "core", "honcho": "core",
}


class Verbs(click.Group):
    """A click group whose commands are the entry points of GROUP."""

    def __init__(self, **options) -> None:
        super().__init__(**options)
        self._entry_points: dict[str, EntryPoint] = {point.name: point for point in entry_points(group=GROUP)}

    def list_commands(self, context: click.Context) -> list[str]:
        return sorted(self._entry_points)

    def get_command(self, context: click.Context, name: str) -> click.Command | None:
        """The verb itself; SetupError when what it needs is not installed."""
        if name not in self._entry_points:
            return None
        return _load(self._entry_points[name])

    def resolve_command(self, context: click.Context, arguments: list[str]):
        """As click does, with a suggestion for a verb that does not exist."""
        name = arguments[0]
        if name not in self._entry_points:
            near = difflib.get_close_matches(name, self._entry_points, n=1)
            known = ", ".join(sorted(self._entry_points))
            hint = f"did you mean {near[0]!r}?" if near else f"verbs are {known}"
            context.fail(f"no verb {name!r}; {hint}")
        return super().resolve_command(context, arguments)

    def format_commands(self, context: click.Context, formatter: click.HelpFormatter) -> None:
        rows = [(name, SUMMARIES.get(name, f"From {self._entry_points[name].value}."))
                for name in self.list_commands(context)]
        with formatter.section("Verbs"):
            formatter.write_dl(rows)


def _load(point: EntryPoint) -> click.Command:
    try:
        return point.load()
    except ModuleNotFoundError as error:
        raise _missing(error) from error


def _missing(error: ModuleNotFoundError) -> SetupError:
    """The same in words that say what to install."""
    module = error.name or str(error)
    top = module.partition(".")[0]
    if top in ("failure_dialogue", "sim_bridge"):
        remedy = "install the project again: make setup, or colcon build"
    elif top in _EXTRAS:
        remedy = f"pip install -r requirements/{_EXTRAS[top]}.txt"
    else:
        remedy = "run make setup, or source the setup file of your ROS 2 workspace"
    return SetupError(f"the Python module {module!r} is not installed; {remedy}")


@click.command(cls=Verbs, context_settings={"help_option_names": ["-h", "--help"], "max_content_width": 100})
@click.version_option(package_name="failure_dialogue", prog_name="failure-dialogue")
def group() -> None:
    """The robot's side of a failure: act, sense or ask, then repair, re-check and report."""


def main() -> None:
    """Console script: one clear line and status 2 for an expected error, 130 and no traceback for Ctrl-C."""
    _use_own_prefix()
    try:
        status = group.main(standalone_mode=False)
    except FailureDialogueError as error:
        status = _report(error)
    except ModuleNotFoundError as error:
        status = _report(_missing(error))
    except click.ClickException as error:
        error.show()
        status = error.exit_code
    except (click.Abort, KeyboardInterrupt):
        status = 130
    except BrokenPipeError:  # the reader (head, less) has seen enough
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        status = 0
    except OSError as error:  # a path the user gave that cannot be read or written
        if error.filename is None:
            raise
        status = _report(FailureDialogueError(
            f"{error.filename}: {error.strerror}; check that path and what you may read and write there"))
    sys.exit(status if isinstance(status, int) else 0)


def _use_own_prefix() -> None:
    """Let ROS find the packages installed beside this Python where no setup file was sourced."""
    if importlib.util.find_spec("ros_wheels_bootstrapper") is not None:
        os.environ.setdefault("AMENT_PREFIX_PATH", sys.prefix)


def _report(error: Exception) -> int:
    click.echo(f"failure-dialogue: {' '.join(str(error).split())}", err=True)
    return 2


if __name__ == "__main__":
    main()
