"""The picture of the graph: who talks to whom by which topic, service or action, and the wall.

Nodes come from graph.py, names from topics.py. What those do not say stands in the two tables here: where a
node's box is, and which way each name goes. Places are in inches from the upper left corner.
"""

from __future__ import annotations

from dataclasses import dataclass
from enum import Enum
from typing import Any

from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.patches import FancyArrowPatch, FancyBboxPatch, Rectangle

from failure_dialogue import topics
from failure_dialogue.errors import ConfigError
from failure_dialogue.graph import SimOptions, sim_graph

WIDTH_IN, HEIGHT_IN = 9.0, 6.35
#: Below it stands what only the simulator knows.
WALL_IN = 4.6
GROUND_TRUTH = "/sim/ground_truth/state"

_INK, _GREY, _WALL = "#222222", "#6b6b6b", "#9c2f2f"
_SMALL, _TEXT = 7.5, 9.0


class Kind(Enum):
    """How something is said."""

    TOPIC = "topic"
    SERVICE = "service"
    ACTION = "action"


#: Colour, line width and line style: told apart without colour too.
_STYLES = {Kind.TOPIC: ("#0072B2", 1.2, "-"), Kind.SERVICE: ("#B34700", 1.2, (0, (4, 2))),
           Kind.ACTION: ("#007A5A", 2.6, "-")}


@dataclass(frozen=True)
class Box:
    """Where a node is drawn: left, top, width, height; and what it does."""

    left: float
    top: float
    width: float
    height: float
    does: str


@dataclass(frozen=True)
class Link:
    """Names that go from one node to another. path: corners of the arrow; label: where its text begins or,
    when it is aligned right, ends."""

    source: str
    target: str
    kind: Kind
    names: tuple[str, ...]
    path: tuple[tuple[float, float], ...]
    label: tuple[float, float]
    align: str = "left"


#: Whoever stands beside the robot, and the terminal a person answers from; no nodes of the graph.
ANYONE, TERMINAL = "anyone", "talk"

BOXES = {
    "sim_bridge": Box(0.15, 0.12, 1.45, 5.73,
                      "the robot: sensors\nand motions\n\n(a real arm's bridge\ntakes its place)"),
    "diagnosis": Box(4.5, 0.92, 1.9, 0.5, "what may have caused it"),
    "decision": Box(4.5, 1.92, 1.9, 1.2, "act, sense, ask or hold,\nby measured accuracy\nand stated costs"),
    "recheck": Box(4.5, 3.66, 1.05, 0.62, "did the repair\nhelp?"),
    "dialogue": Box(7.65, 1.92, 1.23, 1.2, "asks, and reads\nwhat a reply\nmeans"),
    "recorder": Box(6.52, 4.9, 0.93, 0.62, "all topics\ninto a bag"),
    "show": Box(4.5, 4.9, 1.9, 0.62, "lays scenes, follows the\nexchange, scores"),
    "scripted_person": Box(7.55, 4.9, 1.38, 0.62, "answers in a\nperson's place"),
    ANYONE: Box(3.4, 1.46, 0.75, 0.3, ""),
    TERMINAL: Box(6.62, 3.53, 0.83, 0.62, "a person's\nterminal"),
}

_T, _S, _A = Kind.TOPIC, Kind.SERVICE, Kind.ACTION
LINKS = (
    # robot and dialogue, over the top
    Link("dialogue", "sim_bridge", _S, (topics.TAKEOVER,),
         ((8.75, 1.92), (8.75, 0.27), (1.6, 0.27)), (1.68, 0.2)),
    Link("dialogue", "sim_bridge", _T, (topics.STOP,), ((8.5, 1.92), (8.5, 0.49), (1.6, 0.49)), (1.68, 0.42)),
    Link("sim_bridge", "dialogue", _T, (topics.FAILURE,),
         ((1.6, 0.71), (8.25, 0.71), (8.25, 1.92)), (1.68, 0.64)),
    # robot and diagnosis
    Link("sim_bridge", "diagnosis", _T, (topics.IMAGE, topics.WRENCH, topics.JOINT_STATES, topics.FAILURE),
         ((1.6, 1.17), (4.5, 1.17)), (1.68, 1.1)),
    Link(ANYONE, "sim_bridge", _S, (topics.TAKEOVER, topics.HAND_BACK),
         ((3.4, 1.54), (1.6, 1.54)), (1.68, 1.47)),
    Link(ANYONE, "sim_bridge", _T, (topics.STOP,), ((3.4, 1.7), (1.6, 1.7)), (1.68, 1.83)),
    # robot and decision
    Link("sim_bridge", "decision", _T, (topics.FAILURE, topics.ROBOT_MODE, topics.CAMERA_INFO),
         ((1.6, 2.14), (4.5, 2.14)), (1.68, 2.07)),
    Link("decision", "sim_bridge", _A, (topics.ATTEMPT_TASK, topics.EXECUTE_REPAIR),
         ((4.5, 2.42), (1.6, 2.42)), (1.68, 2.33)),
    Link("decision", "sim_bridge", _S, (topics.HOLD,), ((4.5, 2.7), (1.6, 2.7)), (1.68, 2.63)),
    Link("decision", "sim_bridge", _T, (topics.HEARTBEAT,), ((4.5, 2.98), (1.6, 2.98)), (1.68, 2.91)),
    # robot and re-check
    Link("sim_bridge", "recheck", _T, (topics.WRENCH, topics.JOINT_STATES, topics.PHASE, topics.TF_STATIC),
         ((1.6, 3.84), (4.5, 3.84)), (1.68, 3.77)),
    Link("recheck", "sim_bridge", _S, (topics.CAPTURE_STILL,), ((4.5, 4.12), (1.6, 4.12)), (1.68, 4.05)),
    # among the nodes
    Link("decision", "diagnosis", _S, (topics.SENSE,), ((4.7, 1.92), (4.7, 1.42)), (4.65, 1.72), "right"),
    Link("diagnosis", "decision", _T, (topics.DIAGNOSIS,), ((5.1, 1.42), (5.1, 1.92)), (5.15, 1.72)),
    Link("decision", "diagnosis", _T, (topics.EPISODE,), ((6.1, 1.92), (6.1, 1.42)), (6.15, 1.72)),
    Link("diagnosis", "dialogue", _T, (topics.DIAGNOSIS,),
         ((6.4, 1.17), (8.0, 1.17), (8.0, 1.92)), (6.5, 1.1)),
    Link("decision", "dialogue", _T, (topics.DECISION, topics.EPISODE),
         ((6.4, 2.14), (7.65, 2.14)), (6.45, 2.07)),
    Link("dialogue", "decision", _T, (topics.REPLY_MEANING,), ((7.65, 2.56), (6.4, 2.56)), (6.5, 2.49)),
    Link("dialogue", "decision", _T, (topics.QUESTION, topics.STOP),
         ((7.65, 2.98), (6.4, 2.98)), (6.5, 2.91)),
    Link("decision", "recheck", _A, (topics.RUN_RECHECK,), ((4.8, 3.12), (4.8, 3.66)), (4.88, 3.42)),
    # the person
    Link("dialogue", TERMINAL, _T, (topics.QUESTION, topics.SAY), ((7.75, 3.12), (7.75, 3.68), (7.45, 3.68)),
         (7.7, 3.34), "right"),
    Link(TERMINAL, "dialogue", _T, (topics.REPLY,), ((7.45, 4.0), (7.93, 4.0), (7.93, 3.12)), (7.97, 3.34)),
    # what crosses the wall: a task, words, and what anyone may hear
    Link("decision", "show", _T, (topics.OUTCOME,), ((5.7, 3.12), (5.7, 4.9)), (5.75, 3.42)),
    Link("show", "decision", _S, (topics.START_TASK,), ((6.28, 4.9), (6.28, 3.12)), (6.33, 4.45)),
    Link("dialogue", "scripted_person", _T, (topics.QUESTION,), ((8.35, 3.12), (8.35, 4.9)), (8.3, 4.3),
         "right"),
    Link("scripted_person", "dialogue", _T, (topics.REPLY,), ((8.6, 4.9), (8.6, 3.12)), (8.65, 4.3)),
    # behind the wall
    Link("sim_bridge", "show", _T, (GROUND_TRUTH,), ((1.6, 5.12), (4.5, 5.12)), (1.68, 5.05)),
    Link("show", "sim_bridge", _S, (topics.RESET_SCENE,), ((4.5, 5.38), (1.6, 5.38)), (1.68, 5.31)),
    Link("sim_bridge", "scripted_person", _T, (GROUND_TRUTH,),
         ((1.6, 5.7), (8.24, 5.7), (8.24, 5.52)), (1.68, 5.63)),
)

#: Topics of the exchange that the show follows besides; words in its box say so, for arrows would hide all.
SHOW_FOLLOWS = (topics.FAILURE, topics.DIAGNOSIS, topics.DECISION, topics.QUESTION, topics.REPLY,
                topics.REPLY_MEANING, topics.EPISODE)


def short(name: str) -> str:
    """'/failure_dialogue/sense' -> 'sense', '/camera/color/image_raw' -> 'image_raw'; /sim/... stays."""
    return name if name.startswith("/sim/") else name.rsplit("/", 1)[-1]


def draw() -> Figure:
    """The picture. ConfigError when graph.py has a node for which there is no box here."""
    figure = Figure(figsize=(WIDTH_IN, HEIGHT_IN), facecolor="white")
    ax = figure.add_axes((0, 0, 1, 1), label="graph", xlim=(0, WIDTH_IN), ylim=(HEIGHT_IN, 0))
    ax.axis("off")
    ax.add_patch(Rectangle((0, WALL_IN), WIDTH_IN, 5.98 - WALL_IN, facecolor="#f8eeee", lw=0, zorder=0))
    for node in sim_graph(SimOptions(record="a folder")):
        if node.name not in BOXES:
            raise ConfigError(f"the graph has a node {node.name!r} that its picture does not know; add it to "
                              "BOXES and LINKS in graph_figure.py")
        _draw_box(ax, node.name, BOXES[node.name], optional=node.name in ("recorder", "scripted_person"))
    for name in (ANYONE, TERMINAL):
        _draw_box(ax, name, BOXES[name], optional=True)
    for link in LINKS:
        _draw_link(ax, link)
    _draw_wall(ax)
    _draw_legend(ax)
    return figure


def _draw_box(ax: Axes, name: str, box: Box, optional: bool) -> None:
    ax.add_patch(FancyBboxPatch((box.left, box.top), box.width, box.height, facecolor="#f4f6f8",
                                edgecolor=_INK, boxstyle="round,pad=0,rounding_size=0.08", lw=1.1, zorder=3,
                                linestyle=(0, (3, 2)) if optional else "-"))
    middle = box.left + box.width / 2
    lines = box.does.count("\n") + 1 if box.does else 0
    top = box.top + (box.height - 0.17 - 0.135 * lines) / 2
    if name == "sim_bridge":
        top = box.top + 2.2
    ax.text(middle, top, name, ha="center", va="top", fontsize=_TEXT, weight="bold", color=_INK, zorder=4)
    if box.does:
        ax.text(middle, top + 0.17, box.does, ha="center", va="top", fontsize=_SMALL, color=_GREY, zorder=4,
                linespacing=1.2)


def _draw_link(ax: Axes, link: Link) -> None:
    colour, width, style = _STYLES[link.kind]
    xs, ys = zip(*link.path, strict=True)
    ax.plot(xs[:-1], ys[:-1], color=colour, lw=width, linestyle=style, zorder=2, solid_joinstyle="round")
    ax.add_patch(FancyArrowPatch(link.path[-2], link.path[-1], arrowstyle="-|>", mutation_scale=8,
                                 color=colour, lw=width, linestyle=style, shrinkA=0, shrinkB=0, zorder=2,
                                 joinstyle="miter"))
    ax.text(*link.label, ", ".join(short(name) for name in link.names), ha=link.align, va="center",
            fontsize=_SMALL, family="monospace", color=colour, zorder=5)


def _draw_wall(ax: Axes) -> None:
    ax.plot([0, WIDTH_IN], [WALL_IN, WALL_IN], color=_WALL, lw=2.2, linestyle=(0, (5, 1.5)), zorder=6)
    style: dict[str, Any] = {"fontsize": _SMALL, "color": _WALL, "va": "center", "zorder": 7}
    ax.text(1.68, WALL_IN - 0.1, "what a real robot would know too", **style)
    ax.text(1.68, WALL_IN + 0.14, "the wall", **style | {"fontsize": _TEXT, "weight": "bold"})
    ax.text(2.3, WALL_IN + 0.14, "what only the simulator knows", **style)
    bridge = BOXES["sim_bridge"]
    ax.text(bridge.left + bridge.width / 2, WALL_IN + 0.62, "injected cause,\nobject poses,\ndamage",
            ha="center", linespacing=1.2, **style)


def _draw_legend(ax: Axes) -> None:
    left, y = 0.2, 6.17
    for kind, (colour, width, style) in _STYLES.items():
        ax.plot([left, left + 0.42], [y, y], color=colour, lw=width, linestyle=style)
        ax.text(left + 0.5, y, kind.value, fontsize=_SMALL, color=_INK, va="center")
        left += 1.12
    ax.text(left + 0.05, y, "Arrows go from publisher to subscriber, from client to server. Dashed boxes "
            "come and go.", fontsize=_SMALL, color=_GREY, va="center")
