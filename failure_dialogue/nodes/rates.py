"""The verb `rates`: what a subscriber really gets of the robot's sensors, with what was lost on the way."""

from __future__ import annotations

import json
import time

import click
import numpy as np
import rclpy
from diagnostic_msgs.msg import DiagnosticArray
from geometry_msgs.msg import WrenchStamped
from rclpy.executors import ExternalShutdownException, SingleThreadedExecutor
from sensor_msgs.msg import Image, JointState

from failure_dialogue import topics
from failure_dialogue.domain import join_running_graph
from failure_dialogue.errors import SetupError
from failure_dialogue.nodes.convert import seconds
from failure_dialogue.nodes.node import SENSOR_QOS

_SENSORS = ((topics.WRENCH, WrenchStamped), (topics.JOINT_STATES, JointState), (topics.IMAGE, Image))
_DISCOVERY_S = 5.0


def summary(stamps_s: list[float]) -> dict:
    """Rate and losses from the stamps of the messages that came, in the order in which they came.

    The publisher's period is taken to be the median step; a step of k periods is k - 1 lost messages.
    rate_hz is messages per second of the publisher's own clock.
    """
    stamps = np.asarray(stamps_s)
    steps = np.diff(stamps)
    if len(steps) < 2 or not stamps[-1] > stamps[0]:
        return {
            "received": len(stamps),
            "lost": None,
            "lost_share": None,
            "rate_hz": None,
            "largest_gap_s": None,
        }
    period = float(np.median(steps))
    lost = int(np.clip(np.rint(steps / period) - 1, 0, None).sum())
    return {
        "received": len(stamps),
        "lost": lost,
        "lost_share": lost / (lost + len(stamps)),
        "rate_hz": (len(stamps) - 1) / float(stamps[-1] - stamps[0]),
        "largest_gap_s": float(steps.max()),
    }


def measure(seconds_: float) -> dict:
    """Listen to the sensor topics for so long; SetupError names those on which nothing came."""
    join_running_graph()
    rclpy.init()
    node = rclpy.create_node("rates")
    executor = SingleThreadedExecutor()
    executor.add_node(node)
    stamps: dict[str, list[float]] = {topic: [] for topic, _ in _SENSORS}
    health: dict[str, dict[str, str]] = {}

    def keep(at: list[float]):
        return lambda message: at.append(seconds(message.header.stamp))

    def on_health(message: DiagnosticArray) -> None:
        for status in message.status:
            health[status.name] = {v.key: v.value for v in status.values}

    try:
        for topic, kind in _SENSORS:
            node.create_subscription(kind, topic, keep(stamps[topic]), SENSOR_QOS)
        node.create_subscription(DiagnosticArray, "/diagnostics", on_health, 10)
        until = time.monotonic() + _DISCOVERY_S
        while time.monotonic() < until and not all(stamps.values()):
            executor.spin_once(timeout_sec=0.1)
        missing = [topic for topic, at in stamps.items() if not at]
        if missing:
            raise SetupError(
                f"nothing came on {', '.join(missing)} within {_DISCOVERY_S:g} s; is the robot running, "
                "and in this ROS_DOMAIN_ID?"
            )
        for at in stamps.values():
            at.clear()
        until = time.monotonic() + seconds_
        while time.monotonic() < until:
            executor.spin_once(timeout_sec=0.1)
    except ExternalShutdownException:
        pass
    finally:
        executor.shutdown(timeout_sec=1.0)
        node.destroy_node()
        rclpy.try_shutdown()
    return {
        "seconds": seconds_,
        "topics": {topic: summary(at) for topic, at in stamps.items()},
        "nodes": health,
    }


@click.command("rates")
@click.option(
    "--seconds",
    "seconds_",
    type=click.FloatRange(1, 3600),
    default=20.0,
    show_default=True,
    help="How long to listen.",
)
@click.option("--json", "as_json", is_flag=True, help="Print all that was measured as JSON.")
def command(seconds_: float, as_json: bool) -> int:
    """Measure the rates and losses of the robot's sensor topics as a subscriber sees them."""
    result = measure(seconds_)
    if as_json:
        click.echo(json.dumps(result, indent=1))
        return 0
    for topic, r in result["topics"].items():
        if r["rate_hz"] is None:
            click.echo(f"{topic}: {r['received']} messages, too few to tell")
        else:
            click.echo(
                f"{topic}: {r['rate_hz']:.1f} Hz, {r['lost']} of {r['lost'] + r['received']} lost "
                f"({100 * r['lost_share']:.2f} %), largest gap {1e3 * r['largest_gap_s']:.0f} ms"
            )
    for name, values in sorted(result["nodes"].items()):
        click.echo(f"{name}: " + ", ".join(f"{k} {v}" for k, v in values.items()))
    return 0
