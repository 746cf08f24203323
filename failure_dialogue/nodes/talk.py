"""The verb `talk`: a second terminal that shows the robot's questions and sends what you type."""

from __future__ import annotations

import os
import select
import sys
import time
from collections import deque
from collections.abc import Callable
from typing import Any

import click

from failure_dialogue import topics
from failure_dialogue.dialogue.acts import STAYS_OPEN, Act, is_stop
from failure_dialogue.dialogue.text import readable, short_text
from failure_dialogue.domain import join_running_graph
from failure_dialogue.errors import SetupError

#: What stood on the topics before this client came arrives within this time; only an open question is shown.
SETTLE_S = 1.5
#: How long a reply waits for the dialogue node, and how long the last one waits for its meaning.
DELIVERY_LIMIT_S = 5.0


class Transcript:
    """What happens on the topics, as lines for a person. Takes the messages; knows nothing of ROS.

    show is called with each line. Until live() nothing is shown; then only a question that is still open.
    """

    def __init__(self, show: Callable[[str], None], now_s: Callable[[], float] = time.time) -> None:
        self._show = show
        self._now_s = now_s
        self._live = False
        self._open: Any = None
        self._closed: set[str] = set()
        self._said = ""
        self.meanings = 0

    @property
    def question_id(self) -> str:
        """The question that is open and not expired ('' when there is none)."""
        if self._open is None or _seconds(self._open.expiry) < self._now_s():
            return ""
        return self._open.question_id

    def live(self) -> None:
        """From now on show all that comes."""
        self._live = True
        if self.question_id:
            self._put(self._open)

    def question(self, message) -> None:
        """A question was asked, or its time was extended."""
        if message.question_id in self._closed:
            return
        known = self._open is not None and self._open.question_id == message.question_id
        self._open = message
        if not self._live or not self.question_id:
            return
        if known:
            self._show(f"robot waits {self._left():.0f} s more for an answer")
        else:
            self._put(message)

    def meaning(self, message) -> None:
        """A reply was understood, in one way or another."""
        if message.act not in {a.value for a in STAYS_OPEN}:
            self._closed.add(message.question_id)
            if self._open is not None and self._open.question_id == message.question_id:
                self._open = None
        if not self._live:
            return
        self.meanings += 1
        if message.act == Act.NO_REPLY.value:
            self._show("nobody answered in time")
            return
        what = message.act
        if message.cause:
            what += f" {message.cause} ({max(message.likelihoods):.0%})"
        if message.requested_repair:
            what += f", asks for {message.requested_repair}"
        self._show(f"understood from {message.who or 'somebody'}: {what}")

    def said(self, message) -> None:
        """The robot says something that is no question."""
        if self._live and message.data != self._said:
            self._show(f"robot says: {message.data}")

    def decision(self, message) -> None:
        """What the robot will do next."""
        if not self._live:
            return
        name = ("acts", "consults another sensor", "asks", "holds")[min(message.action, 3)]
        detail = message.repair or message.source
        why = f": {message.reason}" if message.reason else ""
        self._show(f"robot {name}" + (f" ({detail})" if detail else "") + why)

    def outcome(self, message) -> None:
        """How the episode ended."""
        if self._live:
            claim = message.claim.replace("_", " ")
            self._show(f"outcome: {message.disposition}, {claim}. {message.grounds}")

    def _put(self, message) -> None:
        self._said = message.text
        self._show(f"robot asks: {message.text}")
        for number, option in enumerate(message.options, 1):
            self._show(f"  {number}) {option}")
        self._show(f"  (a number or your own words, within {self._left():.0f} s)")

    def _left(self) -> float:
        return max(0.0, _seconds(self._open.expiry) - self._now_s()) if self._open is not None else 0.0


def _seconds(stamp) -> float:
    return stamp.sec + stamp.nanosec * 1e-9


class LineReader:
    """Lines from a terminal, pipe or file without ever waiting for one.

    A thread that reads would still hold the stream when Python ends, which aborts the process.
    """

    def __init__(self, descriptor: int) -> None:
        self._descriptor = descriptor
        self._rest = b""
        self._lines: deque[str] = deque()
        self._ended = False

    def ended(self) -> bool:
        """True when no line will come any more."""
        return self._ended and not self._lines

    def next_line(self) -> str | None:
        """The next line that was typed, whatever its bytes; None when none is there yet."""
        while not (self._lines or self._ended) and select.select([self._descriptor], [], [], 0.0)[0]:
            try:
                data = os.read(self._descriptor, 65_536)
            except OSError:  # the terminal went away
                data = b""
            self._ended = not data
            *lines, self._rest = (self._rest + data).split(b"\n")
            if self._ended or len(self._rest) > 65_536:  # a last line without its end, or one without any
                lines, self._rest = [*lines, self._rest], b""
            self._lines.extend(short_text(readable(line)) for line in lines)
        return self._lines.popleft() if self._lines else None


@click.command("talk")
@click.option("--name", default="operator", show_default=True, help="Who you are; goes with each reply.")
@click.option("--patience", type=click.FloatRange(1.0, 3600.0), default=600.0, show_default=True,
              help="When replies come from a file or pipe: how long one waits for a question (s).")
def command(name: str, patience: float) -> int:
    """Answer the robot's questions from this terminal.

    Each line you type is a reply; "stop" stops the robot at any time. Ctrl-C or Ctrl-D leaves. The simulation
    that runs on this machine is found by itself; ROS_DOMAIN_ID chooses another graph.
    """
    domain = join_running_graph()
    try:
        import failure_dialogue_msgs.msg  # noqa: F401
        import rclpy
    except ImportError as error:
        raise SetupError(f"ROS 2 or our messages are not installed here ({error}); run `make sim` once, or "
                         "source your workspace") from error
    from rclpy.executors import ExternalShutdownException

    where = "" if domain is None else f" in ROS domain {domain}"
    click.echo(f"Waiting for questions{where}; Ctrl-C leaves.", err=True)
    rclpy.init()
    try:
        return _Client(name, patience, sys.stdin.isatty()).run(LineReader(sys.stdin.fileno()))
    except (KeyboardInterrupt, ExternalShutdownException):
        return 0
    finally:
        rclpy.try_shutdown()


class _Client:
    """The ROS ends of one terminal."""

    def __init__(self, name: str, patience: float, from_terminal: bool) -> None:
        import rclpy
        from failure_dialogue_msgs import msg
        from std_msgs.msg import String

        from failure_dialogue.nodes.node import EVENT_QOS, EXCHANGE_QOS

        self._rclpy, self._msg = rclpy, msg
        self._name, self._patience, self._from_terminal = name, patience, from_terminal
        # Several people may sit at terminals of their own: the node's name says which one this is.
        self._node = rclpy.create_node(f"talk_{time.time_ns() % 1_000_000_000}")
        self._transcript = Transcript(lambda line: click.echo(line))
        self._replies = self._node.create_publisher(msg.Reply, topics.REPLY, EVENT_QOS)
        self._stops = self._node.create_publisher(msg.Stop, topics.STOP, EVENT_QOS)
        for kind, topic, callback in (
                (msg.Question, topics.QUESTION, self._transcript.question),
                (msg.ReplyMeaning, topics.REPLY_MEANING, self._transcript.meaning),
                (msg.Decision, topics.DECISION, self._transcript.decision),
                (msg.Outcome, topics.OUTCOME, self._transcript.outcome),
                (String, topics.SAY, self._transcript.said)):
            # EVENT_QOS hears new messages only; what stood before we came matters for questions alone.
            qos = EXCHANGE_QOS if topic in (topics.QUESTION, topics.REPLY_MEANING) else EVENT_QOS
            self._node.create_subscription(kind, topic, callback, qos)

    def run(self, lines: LineReader) -> int:
        """Show and send until the input ends; the exit status."""
        self._spin_for(SETTLE_S)
        self._transcript.live()
        while self._rclpy.ok() and not lines.ended():
            line = lines.next_line()
            if line is None:
                self._rclpy.spin_once(self._node, timeout_sec=0.1)
            elif line and not self._send(line):
                return 1
        return 0

    def _send(self, line: str) -> bool:
        """Send one reply; False when it is from a script and nothing was there to take it."""
        if is_stop(line):
            # To the robot itself first; the dialogue passes it on as well, should this way be blocked.
            if not self._spin_until(lambda: self._stops.get_subscription_count() > 0, DELIVERY_LIMIT_S):
                click.echo("no robot listens for stop here; use its own stop button", err=True)
            self._stops.publish(self._msg.Stop(who=self._name, reason=line[:200]))
        elif not (self._from_terminal or self._spin_until(self._asked, self._patience)):
            click.echo(f"no question came within {self._patience:g} s; {line!r} was not sent", err=True)
            return False
        if not self._spin_until(lambda: self._replies.get_subscription_count() > 0, DELIVERY_LIMIT_S):
            click.echo("the robot's dialogue is not running here (or in another ROS_DOMAIN_ID); "
                       "nothing was sent", err=True)
            return self._from_terminal
        before, asked = self._transcript.meanings, self._transcript.question_id
        self._replies.publish(self._msg.Reply(text=line, who=self._name, question_id=asked))
        if not self._from_terminal:
            # The next line of a script answers what comes of this one.
            self._spin_until(lambda: self._transcript.meanings > before or self._asked() != asked,
                             DELIVERY_LIMIT_S)
        return True

    def _asked(self) -> str:
        return self._transcript.question_id

    def _spin_for(self, seconds: float) -> None:
        self._spin_until(lambda: False, seconds)

    def _spin_until(self, condition: Callable[[], object], limit_s: float) -> bool:
        end = time.monotonic() + limit_s
        while not condition():
            left = end - time.monotonic()
            if left <= 0 or not self._rclpy.ok():
                return False
            self._rclpy.spin_once(self._node, timeout_sec=min(0.1, left))
        return True
