"""The whole conversation: real decision and dialogue nodes, a fake robot and a person, on a real graph."""

import time

import pytest
from failure_dialogue_msgs import msg as m
from failure_dialogue_msgs import srv
from lifecycle_msgs.msg import Transition

from failure_dialogue import topics
from tests.fakes.graph import LIMIT_S, Graph
from tests.fakes.measured import make_models, model_ids, write_record
from tests.fakes.person import FakePerson
from tests.fakes.processes import until
from tests.fakes.robot import CAUSES, FakeRecheck, FakeRobot, FakeSources

#: rclpy 7.1 (through lark) uses a module that later Pythons have renamed.
pytestmark = pytest.mark.filterwarnings("ignore:module 'sre_:DeprecationWarning")

#: Long enough for a reply to come in time on a busy machine.
PATIENT_S = 60.0


class Table:
    """Robot, person, and the two nodes between them; nothing is left to ask but the person."""

    def __init__(self, graph):
        self.graph = graph
        self.models = make_models(graph.folder / "models")
        self.record = write_record(graph.folder / "record.yaml", self.models)
        self.robot, self.recheck = FakeRobot(graph), FakeRecheck(graph)
        self.sources = FakeSources(graph, model_ids(self.models))
        self.person = FakePerson(graph)
        self.decisions = graph.hear(m.Decision, topics.DECISION)
        self.outcomes = graph.hear(m.Outcome, topics.OUTCOME)
        self.episodes = graph.hear(m.EpisodeStatus, topics.EPISODE)
        self.decision = graph.start(
            "decision", f"record:={self.record}", f"models:={self.models}", "sense_sources:=['']"
        )
        self.dialogue = self.start_dialogue()
        self.decision.wait_state()

    def start_dialogue(self):
        return self.graph.start("dialogue", "speak:=false", f"reply_limit_s:={PATIENT_S}").wait_state()

    def reset(self):
        for fake in (self.robot, self.recheck, self.sources, self.person):
            fake.reset()
        self.decisions.clear()
        self.outcomes.clear()
        del self.episodes[:-1]
        assert self.episodes[-1].state == "idle", "a test has left an episode open"

    def fail(self):
        """A failed lift of the milk, noticed by the sources and the decision."""
        return self.robot.fail(listeners=2)

    def wait_state(self, state):
        until(lambda: self.episodes[-1].state == state, f"the state {state}", LIMIT_S)

    def outcome(self):
        until(lambda: self.outcomes, "the outcome", LIMIT_S)
        self.wait_state("idle")
        assert len(self.outcomes) == 1
        return self.outcomes[0]

    def repairs(self):
        return [goal.repair for goal in self.robot.requests("execute_repair")]


@pytest.fixture(scope="module")
def _table(tmp_path_factory):
    with Graph(tmp_path_factory.mktemp("dialogue")) as graph:
        yield Table(graph)


@pytest.fixture
def table(_table):
    _table.reset()
    return _table


def test_it_asks_once_the_arm_is_safe_and_acts_on_the_answer(table):
    table.robot.scripts["hold"].gate.clear()
    state_id = table.fail()
    until(lambda: table.decisions, "the decision", LIMIT_S)
    ask = table.decisions[0]
    assert (ask.action, ask.state_id) == (m.Decision.ASK, state_id)
    assert list(ask.target_causes) == list(CAUSES)
    table.wait_state("preparing")
    time.sleep(0.5)  # a question would come at once
    assert table.person.questions == []
    table.robot.scripts["hold"].gate.set()
    question = table.person.asked()
    assert "milk" in question.text and "0.40" not in question.text
    assert list(question.option_causes) == list(CAUSES)
    assert list(question.options) == [
        "your grip was too weak",
        "the object is heavier than you expected",
        "the surface is slippery",
    ]
    left_s = question.expiry.sec - time.time()
    assert PATIENT_S - 20 < left_s < PATIENT_S + 2
    table.person.says("it is too heavy", question.question_id)
    meaning = table.person.understood()
    assert (meaning.act, meaning.cause, meaning.who) == ("cause", "heavy_object", "ann")
    assert (meaning.question_id, meaning.state_id) == (question.question_id, state_id)
    assert sum(meaning.likelihoods) == pytest.approx(1.0)
    outcome = table.outcome()
    assert table.repairs() == ["payload_lift"]
    assert (outcome.disposition, outcome.claim) == ("recovered", "succeeded")
    assert (outcome.cause, outcome.questions_asked, outcome.cost_spent) == ("heavy_object", 1, 4.0)
    assert len(table.person.questions) == 1


def test_silence_ends_in_hold_and_a_hand_over(table):
    assert table.dialogue.set(reply_limit_s=1.0) == ""
    try:
        table.fail()
        meaning = table.person.understood()
        assert (meaning.act, meaning.text) == ("no_reply", "")
        outcome = table.outcome()
        assert (outcome.disposition, outcome.claim) == ("handed_over", "not_succeeded")
        assert table.decisions[-1].action == m.Decision.HOLD
        assert table.repairs() == []
    finally:
        assert table.dialogue.set(reply_limit_s=PATIENT_S) == ""


@pytest.mark.parametrize(
    "first, second",
    [
        ("blah blah blah", "asdf qwer"),
        ("qwzx vbnm plok", "\U0001f4a5\u202e\u00ff\u0000\u00e9\u4e2d\ufffd"),
    ],
)
def test_an_unclear_reply_is_asked_once_more_in_other_words_and_then_no_more(table, first, second):
    table.fail()
    question = table.person.asked()
    table.person.says(first)
    again = table.person.asked(2)
    assert again.question_id != question.question_id and again.text != question.text
    assert list(again.option_causes) == list(CAUSES)
    table.person.says(second)
    meaning = table.person.understood()
    assert (meaning.act, meaning.cause, meaning.times_asked) == ("uninformative", "", 2)
    outcome = table.outcome()
    # No answer is left to buy: the policy acts on its own diagnosis, as Eq. 2 takes it.
    assert table.decisions[-1].action == m.Decision.ACT and table.repairs() == ["raise_grip"]
    assert outcome.questions_asked == 2
    assert len(table.person.questions) == 2


def test_after_an_unclear_reply_a_number_is_understood(table):
    table.fail()
    table.person.asked()
    table.person.says("???")
    table.person.asked(2)
    table.person.says("3")
    assert table.person.understood().cause == "slippery_surface"
    table.outcome()
    assert table.repairs() == ["grip_pads"]


def test_stop_as_a_reply_reaches_the_robot_and_ends_the_episode(table):
    table.fail()
    table.person.asked()
    table.person.says("stop")
    outcome = table.outcome()
    until(lambda: table.robot.stops, "the stop at the robot", LIMIT_S)
    assert table.robot.stops[0].who == "ann"
    assert (outcome.disposition, outcome.claim) == ("abandoned", "not_succeeded")
    assert table.repairs() == []
    table.robot.say_mode("ready")


def test_stop_counts_without_any_question(table):
    table.person.says("stop stop stop")
    until(lambda: table.robot.stops, "the stop at the robot", LIMIT_S)
    table.robot.say_mode("ready")
    assert table.outcomes == []


def test_a_request_names_the_repair_and_is_carried_out(table):
    table.sources.said["camera"] = "heavy_object"
    table.fail()
    table.person.asked()
    table.person.says("squeeze harder")
    meaning = table.person.understood()
    assert (meaning.requested_repair, meaning.cause) == ("raise_grip", "weak_grip")
    assert table.outcome().disposition == "recovered"
    assert table.repairs() == ["raise_grip"]


def test_a_person_who_offers_to_do_it_gets_the_arm(table):
    table.fail()
    table.person.asked()
    table.person.says("let me do it")
    table.wait_state("taken_over")
    (request,) = table.robot.requests("takeover")
    assert request.who == "ann"
    assert [o.disposition for o in table.outcomes] == ["handed_over"]
    assert table.graph.call(srv.Takeover, topics.HAND_BACK, srv.Takeover.Request(who="ann")).success
    table.outcome()
    assert table.repairs() == []


def test_taking_the_arm_by_its_service_withdraws_the_question(table):
    table.fail()
    question = table.person.asked()
    assert table.graph.call(srv.Takeover, topics.TAKEOVER, srv.Takeover.Request(who="bob")).success
    table.wait_state("taken_over")
    until(lambda: f"question {question.question_id} is closed" in table.dialogue.logged(), "its end", LIMIT_S)
    assert table.graph.call(srv.Takeover, topics.HAND_BACK, srv.Takeover.Request(who="bob")).success
    table.wait_state("idle")
    table.person.says("it is too heavy", question.question_id)
    table.person.told("That answers a question that is closed")
    assert table.person.meanings == [] and table.repairs() == []


def test_a_reply_to_another_question_is_not_taken_for_this_one(table):
    table.fail()
    table.person.asked()
    table.person.says("it is too heavy", "e-00000000-q1")
    table.person.told("a question I did not ask (e-00000000-q1)")
    assert table.person.meanings == []
    table.person.says("it is slippery")
    table.outcome()
    assert table.repairs() == ["grip_pads"]


def test_wait_why_and_repeat_keep_the_question_open(table):
    table.fail()
    question = table.person.asked()
    for number, (text, act) in enumerate(
        (("wait a moment", "wait"), ("why", "why"), ("can you repeat the question", "repeat")), 1
    ):
        table.person.says(text)
        assert table.person.understood(number).act == act
    table.person.told("that source was right in 32 of 80")
    until(lambda: table.person.said.count(question.text) == 2, "the question once more", LIMIT_S)
    table.person.says("your grip was too weak")
    assert table.person.understood(4).cause == "weak_grip"
    table.outcome()
    assert table.repairs() == ["raise_grip"]


def test_a_dialogue_that_is_started_again_asks_again_what_is_still_open_and_nothing_else(table):
    table.fail()
    table.person.asked()
    table.person.says("stop")
    table.outcome()
    table.robot.say_mode("ready")
    table.reset()
    state_id = table.fail()
    question = table.person.asked()
    table.dialogue.process.kill()
    table.dialogue.process.wait(LIMIT_S)
    table.dialogue = table.start_dialogue()
    again = table.person.asked(2)
    assert (again.episode_id, again.state_id) == (question.episode_id, state_id)
    table.person.says("it is too heavy")
    table.outcome()
    assert table.repairs() == ["payload_lift"]
    assert len(table.person.questions) == 2


def test_a_dialogue_that_dies_while_it_asks_counts_as_silence(table):
    assert table.decision.change(Transition.TRANSITION_DEACTIVATE)
    assert table.decision.set(question_limit_s=4.0) == ""
    assert table.decision.change(Transition.TRANSITION_ACTIVATE)
    table.wait_state("idle")
    table.reset()
    table.fail()
    table.person.asked()
    table.dialogue.process.kill()
    outcome = table.outcome()
    assert (outcome.disposition, outcome.claim) == ("handed_over", "not_succeeded")
    assert table.repairs() == []
