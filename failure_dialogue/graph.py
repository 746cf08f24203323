"""The nodes of a graph, described once: for the launch file, and for the start without launch_ros."""

from __future__ import annotations

import sys
from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from enum import Enum

from failure_dialogue.errors import ConfigError

Value = bool | int | float | str


class Human(Enum):
    """Who answers the robot's questions in simulation."""

    SCRIPTED = "scripted"
    CONSOLE = "console"
    NONE = "none"


@dataclass(frozen=True)
class GraphNode:
    """One process with one node.

    `executable` is its name for `ros2 run failure_dialogue`, `module` what `python -m` runs. `parameters` are
    those the graph itself sets; they come after the user's parameter file and win over it.
    """

    name: str
    module: str
    executable: str
    parameters: Mapping[str, Value] = field(default_factory=dict)
    respawn: bool = True         # is started again when it ends by itself
    ends_graph: bool = False     # when it ends, the graph ends with its exit status
    terminal: bool = False       # reads and writes the user's terminal itself

    def ros_arguments(self, options: SimOptions) -> list[str]:
        """What follows --ros-args: name, namespace, log level, parameter file, parameters."""
        arguments = ["-r", f"__node:={self.name}", "--log-level", options.log_level]
        if options.namespace:
            arguments += ["-r", f"__ns:=/{options.namespace.strip('/')}"]
        if options.params_file:
            arguments += ["--params-file", options.params_file]
        for name, value in self.parameters.items():
            arguments += ["-p", f"{name}:={parameter_text(value)}"]
        return arguments

    def command(self, options: SimOptions) -> list[str]:
        """The command line that starts the node with this Python."""
        return [sys.executable, "-m", self.module, "--ros-args", *self.ros_arguments(options)]


@dataclass(frozen=True)
class SimOptions:
    """What a start of the simulation may choose. None: as the parameter file or the nodes' defaults say."""

    human: Human = Human.SCRIPTED
    record: str = ""                       # folder for a bag; empty: none is written
    real_time_factor: float | None = None  # 0: as fast as it goes
    seed: int | None = None
    params_file: str = ""
    namespace: str = ""
    use_sim_time: bool = True
    autostart: bool = True
    use_respawn: bool = True
    log_level: str = "info"
    scenario: str | None = None            # of the show: tour or mixed
    episodes: int | None = None
    report: str | None = None              # file for the show's figures

    def __post_init__(self) -> None:
        if self.real_time_factor is not None and self.real_time_factor < 0.0:
            raise ConfigError(f"real-time factor {self.real_time_factor:g} is negative; "
                              "give 1 for real time, 0 for as fast as it goes")
        if self.seed is not None and not 0 <= self.seed < 2**31:
            raise ConfigError(f"seed {self.seed} is not in 0 to {2**31 - 1}")


def sim_graph(options: SimOptions) -> tuple[GraphNode, ...]:
    """The simulated robot, the nodes that diagnose, decide, ask and re-check, and the show driving them."""
    common: dict[str, Value] = {"use_sim_time": options.use_sim_time, "autostart": options.autostart}
    robot: dict[str, Value] = {**common, "robot": "panda_sim"}
    seed = _stated(seed=options.seed)
    pace = _stated(real_time_factor=options.real_time_factor)
    figures = _stated(scenario=options.scenario, episodes=options.episodes, report=options.report)
    nodes = [
        # The bridge makes the simulated time, so it does not wait for it.
        GraphNode("sim_bridge", "sim_bridge.node", "sim_bridge_node",
                  {"autostart": options.autostart, **seed, **pace}),
        GraphNode("diagnosis", "failure_dialogue.nodes.diagnosis", "diagnosis_node", robot),
        GraphNode("decision", "failure_dialogue.nodes.decision", "decision_node", robot),
        GraphNode("dialogue", "failure_dialogue.nodes.dialogue", "dialogue_node", common),
        GraphNode("recheck", "failure_dialogue.nodes.recheck", "recheck_node", robot),
    ]
    if options.record:
        nodes.append(GraphNode("recorder", "failure_dialogue.nodes.recorder", "recorder_node",
                               {**common, "directory": options.record}))
    if options.human is Human.SCRIPTED:
        nodes.append(GraphNode("scripted_person", "sim_bridge.person_node", "scripted_person_node",
                               {**common, **seed}))
    # The show measures in real time: it watches a graph, and is not part of the robot.
    nodes.append(GraphNode("show", "sim_bridge.show", "show",
                           {"human": options.human.value, **seed, **figures},
                           respawn=False, ends_graph=True, terminal=True))
    if not options.use_respawn:
        nodes = [replace(node, respawn=False) for node in nodes]
    return tuple(nodes)


def parameter_text(value: Value) -> str:
    """A parameter value as `-p name:=` reads it (YAML); text is quoted, or "7" would become a number."""
    if isinstance(value, bool):
        return "true" if value else "false"
    if isinstance(value, str):
        return "'" + value.replace("'", "''") + "'"
    return repr(value)


def _stated(**values: Value | None) -> dict[str, Value]:
    return {name: value for name, value in values.items() if value is not None}

