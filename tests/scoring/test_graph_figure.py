"""The picture of the graph: complete, as the code has it, and legible."""

import importlib.util
import itertools
import re
from pathlib import Path

import pytest
from matplotlib.backends.backend_agg import FigureCanvasAgg

from failure_dialogue import topics
from failure_dialogue.errors import ConfigError
from failure_dialogue.graph import GraphNode, SimOptions, sim_graph
from failure_dialogue.scoring import graph_figure
from failure_dialogue.scoring.graph_figure import (
    BOXES,
    GROUND_TRUTH,
    LINKS,
    SHOW_FOLLOWS,
    WALL_IN,
    Kind,
    short,
)

NAMES = {name: value for name, value in vars(topics).items() if name.isupper() and name != "PREFIX"}
NODES = {node.name: node for node in sim_graph(SimOptions(record="a folder"))}
DIAGNOSING_SIDE = ("diagnosis", "decision", "dialogue", "recheck")


@pytest.fixture(scope="module")
def figure():
    return graph_figure.draw()


def words(figure):
    """Every word or list of words in the picture."""
    return [text for ax in figure.axes for text in ax.texts if text.get_text()]


def source(node):
    """Text of the node's module and of our modules that it imports: some open topics on its behalf."""
    own = text_of(NODES[node].module)
    imported = re.findall(r"^from ((?:sim_bridge|failure_dialogue\.nodes)\.\w+) import", own, re.MULTILINE)
    return "\n".join([own, *(text_of(module) for module in imported)])


def text_of(module):
    return Path(importlib.util.find_spec(module).origin).read_text(encoding="utf-8")


@pytest.mark.parametrize("constant", sorted(NAMES))
def test_every_topic_service_and_action_is_drawn(figure, constant):
    drawn = {name for text in words(figure) for name in text.get_text().split(", ")}
    assert short(NAMES[constant]) in drawn


@pytest.mark.parametrize("node", sorted(NODES))
def test_every_node_is_drawn_and_linked(figure, node):
    assert node in {text.get_text() for text in words(figure)}
    # The recorder takes whatever topic there is, which no arrow can show.
    assert node == "recorder" or any(node in (link.source, link.target) for link in LINKS)


@pytest.mark.parametrize("node", sorted(set(NODES) - {"recorder"}))
def test_what_is_drawn_at_a_node_is_what_its_module_uses(node):
    used = {NAMES[name] for name in re.findall(r"topics\.([A-Z_]+)\b", source(node)) if name in NAMES}
    drawn = {name for link in LINKS if node in (link.source, link.target) for name in link.names}
    if node == "show":
        drawn |= set(SHOW_FOLLOWS)
    assert drawn - {GROUND_TRUTH} == used
    assert (GROUND_TRUTH in drawn) == (GROUND_TRUTH in source(node))


@pytest.mark.parametrize(
    "pattern, kind, at",
    [
        (r"\.publisher\(\S+ topics\.([A-Z_]+)", Kind.TOPIC, "source"),
        (r"\.subscription\(\S+ topics\.([A-Z_]+)", Kind.TOPIC, "target"),
        (r"\.client\(\S+ topics\.([A-Z_]+)", Kind.SERVICE, "source"),
        (r"\.service\(\S+ topics\.([A-Z_]+)", Kind.SERVICE, "target"),
        (r"ActionClient\(self, \S+ topics\.([A-Z_]+)", Kind.ACTION, "source"),
        (r"ActionServer\(self, \S+ topics\.([A-Z_]+)", Kind.ACTION, "target"),
    ],
)
def test_arrows_point_the_way_the_nodes_open_them(pattern, kind, at):
    found = {(node, NAMES[name]) for node in NODES for name in re.findall(pattern, source(node))}
    assert found, "no node opens any in this way; the pattern is out of date"
    drawn = {(getattr(link, at), name) for link in LINKS if link.kind is kind for name in link.names}
    assert found - drawn <= {("show", name) for name in SHOW_FOLLOWS} | {
        ("decision", topics.OUTCOME)
    }  # it publishes to all


def test_the_wall_stands_between_truth_and_diagnosis():
    for node in DIAGNOSING_SIDE:
        assert BOXES[node].top + BOXES[node].height < WALL_IN
    for link in LINKS:
        if GROUND_TRUTH in link.names or topics.RESET_SCENE in link.names:
            assert all(y > WALL_IN for _, y in link.path), link
            assert {link.source, link.target} <= {"sim_bridge", "show", "scripted_person"}


def test_arrows_begin_and_end_at_their_boxes():
    for link in LINKS:
        for node, (x, y) in ((link.source, link.path[0]), (link.target, link.path[-1])):
            box = BOXES[node]
            right, bottom = box.left + box.width, box.top + box.height
            inside = box.left - 1e-6 <= x <= right + 1e-6 and box.top - 1e-6 <= y <= bottom + 1e-6
            border = min(abs(x - box.left), abs(x - right), abs(y - box.top), abs(y - bottom))
            assert inside and border < 1e-6, (link, node)


def test_no_words_overlap(figure):
    renderer = FigureCanvasAgg(figure).get_renderer()
    boxes = [(text.get_text(), text.get_window_extent(renderer)) for text in words(figure)]
    page = figure.bbox
    for text, box in boxes:
        assert page.x0 <= box.x0 and box.x1 <= page.x1 and page.y0 <= box.y0 and box.y1 <= page.y1, text
    for (a, box_a), (b, box_b) in itertools.combinations(boxes, 2):
        assert not box_a.overlaps(box_b), (a, b)


def test_words_between_boxes_stay_out_of_them(figure):
    renderer = FigureCanvasAgg(figure).get_renderer()
    ax = figure.axes[0]
    labels = [text for text in words(figure) if text.get_family() == ["monospace"]]
    assert len(labels) == len(LINKS)
    for text in labels:
        extent = text.get_window_extent(renderer).transformed(ax.transData.inverted())
        for name, box in BOXES.items():
            apart = (
                extent.x1 <= box.left
                or extent.x0 >= box.left + box.width
                or max(extent.y0, extent.y1) <= box.top
                or min(extent.y0, extent.y1) >= box.top + box.height
            )
            assert apart, (text.get_text(), name)


def test_a_node_without_a_place_is_named(monkeypatch):
    monkeypatch.setattr(graph_figure, "sim_graph", lambda options: (GraphNode("torque_oracle", "m", "e"),))
    with pytest.raises(ConfigError, match="torque_oracle"):
        graph_figure.draw()
