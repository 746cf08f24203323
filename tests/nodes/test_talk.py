"""The verb talk: shows what stands on the topics and sends what is typed, over a real graph."""

import os
import queue
import signal
import subprocess
import sys
import threading
import time
from pathlib import Path
from types import SimpleNamespace

import pytest
import rclpy
from failure_dialogue_msgs import msg
from std_msgs.msg import String

from failure_dialogue import topics
from failure_dialogue.nodes.node import EVENT_QOS, EXCHANGE_QOS
from failure_dialogue.nodes.talk import Transcript

#: rclpy 7.1 (through lark) uses a module that later Pythons have renamed.
pytestmark = pytest.mark.filterwarnings("ignore:module 'sre_:DeprecationWarning")

REPOSITORY = Path(__file__).resolve().parents[2]
OPTIONS = ["your grip was too weak", "the surface is slippery"]


def question(name="q1", left_s=60.0):
    stamp = SimpleNamespace(sec=int(time.time() + left_s), nanosec=0)
    return SimpleNamespace(question_id=name, text=f"What was it ({name})?", options=OPTIONS, expiry=stamp)


def meaning(act="cause", name="q1"):
    return SimpleNamespace(question_id=name, act=act, cause="slippery_surface" if act == "cause" else "",
                           likelihoods=[0.03, 0.97], requested_repair="", who="ann")


@pytest.fixture
def seen():
    lines: list[str] = []
    transcript = Transcript(lines.append)
    return transcript, lines


def test_of_what_stood_before_only_the_open_question_is_shown(seen):
    transcript, lines = seen
    transcript.question(question("q1"))
    transcript.meaning(meaning(name="q1"))
    transcript.question(question("q2"))
    transcript.live()
    assert lines[:3] == ["robot asks: What was it (q2)?", "  1) " + OPTIONS[0], "  2) " + OPTIONS[1]]
    assert transcript.question_id == "q2"


def test_an_expired_question_is_not_shown(seen):
    transcript, lines = seen
    transcript.question(question(left_s=-5.0))
    transcript.live()
    assert lines == [] and transcript.question_id == ""


def test_the_meaning_closes_the_question_and_wait_does_not(seen):
    transcript, lines = seen
    transcript.live()
    transcript.question(question())
    transcript.meaning(meaning("wait"))
    transcript.question(question(left_s=100.0))
    assert transcript.question_id == "q1" and "s more" in lines[-1]
    transcript.meaning(meaning())
    assert transcript.question_id == ""
    assert lines[-1] == "understood from ann: cause slippery_surface (97%)"


class FakeDialogue:
    """The dialogue's end of the topics: asks one question, keeps the replies, answers each with a meaning."""

    def __init__(self, nodes):
        self.node = nodes.add(rclpy.create_node, "fake_dialogue")
        self.questions = self.node.create_publisher(msg.Question, topics.QUESTION, EXCHANGE_QOS)
        self.meanings = self.node.create_publisher(msg.ReplyMeaning, topics.REPLY_MEANING, EXCHANGE_QOS)
        self.says = self.node.create_publisher(String, topics.SAY, EVENT_QOS)
        self.replies, self.stops = [], []
        self.node.create_subscription(msg.Reply, topics.REPLY, self._on_reply, EVENT_QOS)
        self.node.create_subscription(msg.Stop, topics.STOP, self.stops.append, EVENT_QOS)

    def ask(self):
        message = msg.Question(question_id="e1-q1", text="What was it?", options=OPTIONS,
                               option_causes=["weak_grip", "slippery_surface"])
        message.expiry.sec = int(time.time()) + 60
        self.questions.publish(message)

    def _on_reply(self, reply):
        self.replies.append(reply)
        self.says.publish(String(data="One moment."))
        self.meanings.publish(msg.ReplyMeaning(
            question_id=reply.question_id, act="cause", cause="slippery_surface",
            causes=["weak_grip", "slippery_surface"], likelihoods=[0.1, 0.9], who=reply.who, text=reply.text))


class Terminal:
    """`talk` in a process of its own, its output read as it comes."""

    def __init__(self, *arguments):
        code = ("from failure_dialogue.nodes.talk import command\n"
                "raise SystemExit(command(standalone_mode=False))")
        self.process = subprocess.Popen(
            [sys.executable, "-c", code, *arguments], stdin=subprocess.PIPE, stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT, cwd=REPOSITORY, env=dict(os.environ, PYTHONPATH=str(REPOSITORY)))
        self.lines: queue.Queue[str] = queue.Queue()
        self.text = ""
        threading.Thread(target=self._read, daemon=True).start()

    def _read(self):
        for line in self.process.stdout:
            self.text += line.decode()

    def type(self, data: bytes):
        self.process.stdin.write(data)
        self.process.stdin.flush()

    def end(self):
        self.process.kill()
        self.process.wait()
        self.process.stdin.close()
        self.process.stdout.close()


@pytest.fixture
def terminal():
    opened = []

    def start(*arguments):
        opened.append(Terminal(*arguments))
        return opened[-1]

    yield start
    for one in opened:
        one.end()


def test_started_before_the_question_it_shows_it_and_sends_the_reply(nodes, terminal):
    talk = terminal("--name", "ann")
    nodes.wait("talk's start", lambda: "Waiting for questions" in talk.text)
    dialogue = FakeDialogue(nodes)
    talk.type(b"it is \xffslippery\n")
    time.sleep(1.0)
    assert not dialogue.replies  # from a pipe, a reply waits for its question
    dialogue.ask()
    nodes.wait("the reply", lambda: dialogue.replies)
    reply = dialogue.replies[0]
    assert (reply.text, reply.who, reply.question_id) == ("it is slippery", "ann", "e1-q1")
    nodes.wait("the meaning", lambda: "understood from ann: cause slippery_surface (90%)" in talk.text)
    nodes.wait("what the robot says", lambda: "robot says: One moment." in talk.text)
    assert "  2) the surface is slippery" in talk.text
    talk.process.stdin.close()
    assert talk.process.wait(10.0) == 0
    assert "Traceback" not in talk.text


def test_started_late_it_shows_the_open_question(nodes, terminal):
    dialogue = FakeDialogue(nodes)
    dialogue.ask()
    talk = terminal()
    nodes.wait("the question", lambda: "robot asks: What was it?" in talk.text)
    talk.type(b"2\n")
    nodes.wait("the reply", lambda: dialogue.replies)
    assert (dialogue.replies[0].text, dialogue.replies[0].who) == ("2", "operator")


def test_stop_goes_straight_to_the_robot_with_no_question_open(nodes, terminal):
    dialogue = FakeDialogue(nodes)
    talk = terminal()
    nodes.wait("talk's start", lambda: "Waiting for questions" in talk.text)
    talk.type(b"please stop it\n")
    nodes.wait("the stop", lambda: dialogue.stops)
    assert dialogue.stops[0].who == "operator"
    nodes.wait("the reply too", lambda: dialogue.replies)


def test_ctrl_c_ends_it_cleanly(nodes, terminal):
    talk = terminal()
    nodes.wait("talk's start", lambda: "Waiting for questions" in talk.text)
    time.sleep(1.0)
    talk.process.send_signal(signal.SIGINT)
    assert talk.process.wait(10.0) == 0
    assert "Traceback" not in talk.text


def test_a_script_without_a_question_ends_with_a_reason(nodes, terminal):
    talk = terminal("--patience", "1")
    talk.type(b"it is heavy\n")
    assert talk.process.wait(20.0) == 1
    nodes.wait("the reason", lambda: "no question came within 1 s" in talk.text)
