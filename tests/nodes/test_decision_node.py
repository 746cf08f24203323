"""The decision node as a process in a real graph, with a fake robot, fake sources and a fake re-check."""

import signal
import time

import pytest
from diagnostic_msgs.msg import DiagnosticStatus
from failure_dialogue_msgs import msg as m
from failure_dialogue_msgs import srv
from failure_dialogue_msgs.action import RunRecheck
from lifecycle_msgs.msg import Transition

from failure_dialogue import topics
from failure_dialogue.nodes.node import EXCHANGE_QOS
from tests.fakes.graph import LIMIT_S, Graph
from tests.fakes.measured import make_models, model_ids, write_record
from tests.fakes.person import FakePerson
from tests.fakes.processes import until
from tests.fakes.robot import FakeRecheck, FakeRobot, FakeSources

#: rclpy 7.1 (through lark) uses a module that later Pythons have renamed.
pytestmark = pytest.mark.filterwarnings("ignore:module 'sre_:DeprecationWarning")

ACT, SENSE, ASK, HOLD = m.Decision.ACT, m.Decision.SENSE, m.Decision.ASK, m.Decision.HOLD
DEFAULTS = {"sense_sources": ["force"], "cost_ask": 3.0, "person_present": True}
BEFORE, AFTER = RunRecheck.Goal.BEFORE, RunRecheck.Goal.AFTER


class Bench:
    """The decision node and all that surrounds it; what it published since the last reset."""

    def __init__(self, graph):
        self.graph = graph
        self.models = make_models(graph.folder / "models")
        self.record = write_record(graph.folder / "record.yaml", self.models)
        self.robot, self.recheck = FakeRobot(graph), FakeRecheck(graph)
        self.sources = FakeSources(graph, model_ids(self.models))
        self.person = FakePerson(graph)
        self.meanings = graph.node.create_publisher(m.ReplyMeaning, topics.REPLY_MEANING, EXCHANGE_QOS)
        self.decisions = graph.hear(m.Decision, topics.DECISION)
        self.outcomes = graph.hear(m.Outcome, topics.OUTCOME)
        self.episodes = graph.hear(m.EpisodeStatus, topics.EPISODE)
        self.start()

    def start(self):
        self.node = self.graph.start(
            "decision", f"record:={self.record}", f"models:={self.models}"
        ).wait_state()
        self.changed = {}

    def reset(self):
        """An idle decision node with its parameters as at the start, and fakes that say yes to all."""
        if self.changed:
            self.set(**{name: DEFAULTS[name] for name in self.changed})
            self.changed = {}
        for fake in (self.robot, self.recheck, self.sources, self.person):
            fake.reset()
        for heard in (self.decisions, self.outcomes):
            heard.clear()
        del self.episodes[:-1]
        assert self.state() == "idle", "a test has left an episode open"

    def set(self, **values):
        assert self.node.set(**values) == ""
        self.changed |= values

    def set_record(self, path):
        """Lead the node through its lifecycle to another record."""
        assert self.node.change(Transition.TRANSITION_DEACTIVATE)
        assert self.node.change(Transition.TRANSITION_CLEANUP)
        assert self.node.set(record=str(path)) == ""
        assert self.node.change(Transition.TRANSITION_CONFIGURE)
        assert self.node.change(Transition.TRANSITION_ACTIVATE)

    def state(self):
        return self.episodes[-1].state if self.episodes else ""

    def wait_state(self, state):
        until(lambda: self.state() == state, f"the state {state}", LIMIT_S)

    def decision(self, number=1):
        until(lambda: len(self.decisions) >= number, f"decision {number}", LIMIT_S)
        return self.decisions[number - 1]

    def outcome(self):
        until(lambda: self.outcomes, "the outcome", LIMIT_S)
        self.wait_state("idle")
        assert len(self.outcomes) == 1
        return self.outcomes[0]

    def answer(self, act, cause="", **fields):
        """What the dialogue would publish once a reply to the open question is understood."""
        self.wait_state("asking")
        status = self.episodes[-1]
        until(lambda: self.meanings.get_subscription_count() >= 2, "listeners to meanings", LIMIT_S)
        self.meanings.publish(
            m.ReplyMeaning(
                episode_id=status.episode_id,
                state_id=status.state_id,
                act=act,
                cause=cause,
                who="ann",
                times_asked=1,
                **fields,
            )
        )

    def repairs(self):
        return [goal.repair for goal in self.robot.requests("execute_repair")]


@pytest.fixture(scope="module")
def _bench(tmp_path_factory):
    with Graph(tmp_path_factory.mktemp("decision")) as graph:
        yield Bench(graph)


@pytest.fixture
def bench(_bench):
    _bench.reset()
    return _bench


def test_it_consults_the_better_source_then_acts_and_reports_what_the_recheck_found(bench):
    state_id = bench.robot.fail()
    outcome = bench.outcome()
    sense, act = bench.decisions
    assert (sense.action, sense.source, sense.state_id) == (SENSE, "force", state_id)
    assert (sense.p, sense.n) == (pytest.approx(0.4), 80) and sense.p_low < 0.4 < sense.p_high
    assert sense.threshold == pytest.approx(0.588, abs=1e-3)
    assert {cost.action for cost in sense.costs} == {"act", "sense", "ask"}
    costs = {cost.action: cost.expected_cost for cost in sense.costs}
    assert costs["act"] == pytest.approx(7.0) and costs["ask"] == pytest.approx(5.4)
    assert costs["sense"] == min(costs.values())
    assert (act.action, act.cause, act.repair) == (ACT, "heavy_object", "payload_lift")
    assert not sense.stale and sense.record_id == act.record_id != ""
    names = [name for name, _ in bench.robot.asked]
    assert names == ["hold", "execute_repair", "hold"]
    (goal,) = bench.robot.requests("execute_repair")
    assert (goal.repair, goal.state_id) == ("payload_lift", state_id)
    assert [goal.phase for goal in bench.recheck.goals] == [BEFORE, AFTER]
    assert (outcome.disposition, outcome.claim) == ("recovered", "succeeded")
    assert outcome.grounds == "the wrist carries the milk"
    assert (outcome.cost_spent, outcome.questions_asked, outcome.repairs_tried) == (1.5, 0, 1)
    assert outcome.episode_id == sense.episode_id == act.episode_id


def test_it_holds_when_nobody_is_there_and_says_in_which_state_once_it_is_at_the_checkpoint(bench):
    bench.set(person_present=False, sense_sources=[])
    bench.robot.scripts["hold"].gate.clear()
    state_id = bench.robot.fail()
    decision = bench.decision()
    assert (decision.action, decision.state_id) == (HOLD, state_id)
    bench.wait_state("holding")
    assert bench.outcomes == []
    bench.robot.scripts["hold"].gate.set()
    outcome = bench.outcome()
    assert (outcome.disposition, outcome.claim) == ("handed_over", "not_succeeded")
    # A second request would have broken off the first motion to the checkpoint.
    assert [name for name, _ in bench.robot.asked] == ["hold"]


def test_a_checkpoint_not_reached_at_first_is_asked_for_again_before_the_question(bench):
    bench.set(sense_sources=[])
    bench.sources.first = []
    bench.robot.scripts["hold"].answer = {"at_checkpoint": False, "error_msg": "still braking"}
    state_id = bench.robot.fail()
    until(lambda: len(bench.robot.requests("hold")) == 1, "the first request", LIMIT_S)
    until(lambda: "not reached: still braking" in bench.node.logged(), "the refusal", LIMIT_S)
    bench.robot.scripts["hold"].answer = {"at_checkpoint": True}
    bench.sources.diagnose("camera", state_id)
    bench.answer("no_reply")
    assert bench.outcome().disposition == "handed_over"
    assert len(bench.robot.requests("hold")) == 2


def test_costs_changed_live_count_from_the_next_decision_on(bench):
    bench.set(sense_sources=[])
    bench.robot.fail()
    assert bench.decision().action == ASK
    bench.answer("no_reply")
    bench.outcome()
    bench.set(cost_ask=10.0)
    bench.outcomes.clear()
    bench.robot.fail()
    decision = bench.decision(3)
    assert (decision.action, decision.repair) == (ACT, "raise_grip")
    assert {c.action: c.expected_cost for c in decision.costs}["ask"] == pytest.approx(12.4)
    assert bench.outcome().disposition == "recovered"


@pytest.mark.parametrize(
    "values, words",
    [
        ({"cost_ask": -1.0}, "cost_ask"),
        ({"cost_ask": float("nan")}, "cost_ask"),
        ({"cost_ask": "much"}, "Wrong parameter type"),
        ({"answer_correct": 0.9}, "must sum to 1"),
        (
            {"cost_ask": 1.0, "answer_correct": 0.9, "answer_uninformative": 0.2, "answer_wrong": 0.1},
            "sum to 1.2",
        ),
    ],
)
def test_nonsense_is_refused_with_the_reason_and_nothing_changes(bench, values, words):
    assert words in bench.node.set(**values)
    bench.set(sense_sources=[])
    bench.robot.fail()
    costs = {cost.action: cost.expected_cost for cost in bench.decision().costs}
    assert (costs["act"], costs["ask"]) == (pytest.approx(7.0), pytest.approx(5.4))
    bench.answer("no_reply")
    bench.outcome()


def test_answer_rates_that_fit_together_are_taken_together(bench):
    bench.set(sense_sources=[])
    try:
        assert bench.node.set(answer_correct=0.2, answer_uninformative=0.1, answer_wrong=0.7) == ""
        bench.robot.fail()
        decision = bench.decision()
        assert {c.action: c.expected_cost for c in decision.costs}["ask"] == pytest.approx(
            3.0 + 0.2 * 1.0 + 0.1 * 7.0 + 0.7 * 11.0
        )
        assert decision.action == ACT
        bench.outcome()
    finally:
        assert bench.node.set(answer_correct=0.8, answer_uninformative=0.15, answer_wrong=0.05) == ""


def test_a_record_of_other_models_is_called_stale_and_the_robot_asks(bench):
    other = write_record(
        bench.graph.folder / "other.yaml", bench.models, camera=(79, 80), model_suffix="-older"
    )
    bench.set_record(other)
    try:
        bench.robot.fail()
        decision = bench.decision()
        assert decision.action == ASK and decision.stale
        assert "grasp_camera-1" in decision.stale_reason and decision.p != decision.p
        status = bench.node.says(lambda s: "grasp_camera-1" in s.message, "the stale record")
        assert status.level == DiagnosticStatus.WARN
        bench.answer("no_reply")
        assert bench.outcome().disposition == "handed_over"
    finally:
        bench.set_record(bench.record)


def test_without_a_record_it_asks_and_says_so_in_diagnostics(bench):
    missing = bench.graph.folder / "nowhere.yaml"
    bench.set_record(missing)
    try:
        status = bench.node.says(lambda s: str(missing) in s.message, "the missing record")
        assert status.level == DiagnosticStatus.WARN and "failure-dialogue commission" in status.message
        bench.robot.fail()
        decision = bench.decision()
        assert decision.action == ASK and decision.stale and str(missing) in decision.stale_reason
        bench.answer("cause", "heavy_object")
        assert bench.outcome().disposition == "recovered"
        assert bench.repairs() == ["payload_lift"]
    finally:
        bench.set_record(bench.record)


def test_another_camera_than_the_one_measured_makes_the_record_stale(bench):
    def seen(size):
        bench.node.says(lambda s: ("camera", size) in [(v.key, v.value) for v in s.values], f"camera {size}")

    bench.robot.camera = (640, 480)
    try:
        seen("640x480")
        bench.robot.fail()
        decision = bench.decision()
        assert decision.action == ASK and "recorded 256x256, running 640x480" in decision.stale_reason
        bench.answer("no_reply")
        bench.outcome()
    finally:
        bench.robot.camera = (256, 256)
        seen("256x256")


def test_a_source_that_refuses_does_not_keep_the_episode(bench):
    bench.sources.refuses = {"force"}
    start = time.monotonic()
    bench.robot.fail()
    assert bench.decision(1).action == SENSE
    assert bench.decision(2).action == ASK
    assert time.monotonic() - start < 8.0  # not the time limit of sensing
    bench.answer("cause", "slippery_surface")
    assert bench.outcome().disposition == "recovered"
    assert bench.repairs() == ["grip_pads"]


def test_a_malformed_diagnosis_is_dropped_and_the_next_one_used(bench):
    bench.sources.first = []
    state_id = bench.robot.fail()
    bench.wait_state("diagnosing")
    bench.sources.diagnose("camera", state_id, probabilities=[0.9, 0.9, 0.9])
    bench.sources.diagnose("camera", state_id, probabilities=[1.0])
    bench.sources.diagnose("camera", state_id, probabilities=[float("nan"), 0.5, 0.5])
    until(lambda: bench.node.logged().count("a diagnosis was dropped") >= 3, "the log of it", LIMIT_S)
    assert bench.decisions == []
    bench.sources.diagnose("camera", state_id)
    assert bench.decision().action == SENSE
    bench.outcome()


def test_a_failure_of_an_unknown_family_is_logged_and_nothing_hangs(bench):
    bench.robot.fail(family="cooking")
    until(lambda: "unknown family 'cooking'" in bench.node.logged(), "the log of it", LIMIT_S)
    assert bench.state() == "idle"
    bench.robot.fail()
    assert bench.outcome().disposition == "recovered"


def test_an_answer_to_an_earlier_state_changes_nothing(bench):
    bench.set(sense_sources=[])
    bench.robot.fail()
    bench.wait_state("asking")
    status = bench.episodes[-1]
    for episode_id, state_id in ((status.episode_id, "6.9"), ("e-old", status.state_id)):
        bench.meanings.publish(
            m.ReplyMeaning(
                episode_id=episode_id, state_id=state_id, act="cause", cause="weak_grip", times_asked=1
            )
        )
    bench.answer("cause", "heavy_object")
    bench.outcome()
    assert bench.repairs() == ["payload_lift"]


def test_a_robot_that_cannot_hold_is_not_talked_about_for_long(bench):
    bench.set(sense_sources=[])
    bench.robot.vanish("hold")
    try:
        bench.robot.fail()
        outcome = bench.outcome()
        assert (outcome.disposition, outcome.claim) == ("handed_over", "cannot_tell")
        assert "hold service was not found" in outcome.grounds and outcome.questions_asked == 0
    finally:
        bench.robot.appear("hold")


def test_a_repair_that_nobody_offers_ends_in_a_hand_over(bench):
    bench.robot.vanish("execute_repair")
    try:
        bench.set(person_present=False)
        bench.robot.fail()
        outcome = bench.outcome()
        assert (outcome.disposition, outcome.claim) == ("handed_over", "not_succeeded")
        assert bench.robot.requests("execute_repair") == []
    finally:
        bench.robot.appear("execute_repair")


def test_a_repair_the_robot_refuses_is_not_tried_twice(bench):
    bench.robot.scripts["execute_repair"].answer = {
        "done": False,
        "refused": True,
        "error_msg": "out of reach",
    }
    bench.set(person_present=False)
    bench.robot.fail()
    assert bench.outcome().disposition == "handed_over"
    assert len(bench.repairs()) == len(set(bench.repairs()))


def test_a_robot_that_goes_away_in_mid_repair_leaves_no_claim(bench):
    bench.recheck.verdicts[AFTER] = ("abstain", "nothing was measured")
    bench.robot.scripts["execute_repair"].gate.clear()
    bench.robot.fail()
    until(bench.repairs, "the repair", LIMIT_S)
    bench.robot.vanish("execute_repair")
    bench.robot.scripts["execute_repair"].gate.set()
    try:
        outcome = bench.outcome()
        assert (outcome.disposition, outcome.claim) == ("handed_over", "cannot_tell")
    finally:
        bench.robot.appear("execute_repair")


def test_stop_in_mid_repair_cancels_it_and_asks_for_no_motion(bench):
    bench.robot.scripts["execute_repair"].gate.clear()
    bench.robot.fail()
    until(bench.repairs, "the repair", LIMIT_S)
    asked = len(bench.robot.asked)
    bench.person.stops_the_robot(reason="my hand is in there")
    outcome = bench.outcome()
    assert (outcome.disposition, outcome.claim) == ("abandoned", "cannot_tell")
    assert outcome.grounds == "stopped by ann: my hand is in there"
    assert len(bench.robot.asked) == asked
    bench.robot.say_mode("ready")


def test_a_repair_that_is_accepted_only_after_a_stop_is_cancelled(bench):
    script = bench.robot.scripts["execute_repair"]
    script.gate.clear()
    script.admits.clear()
    bench.robot.fail()
    until(bench.repairs, "the repair", LIMIT_S)
    bench.person.stops_the_robot()
    assert bench.outcome().disposition == "abandoned"
    bench.robot.say_mode("ready")
    script.admits.set()
    until(lambda: bench.robot.cancelled == ["execute_repair"], "its cancelling", LIMIT_S)


def test_a_repair_that_waits_for_its_server_is_not_sent_after_a_stop(bench):
    bench.robot.vanish("execute_repair")
    try:
        bench.robot.fail()
        bench.wait_state("repairing")
        bench.person.stops_the_robot()
        assert bench.outcome().disposition == "abandoned"
    finally:
        bench.robot.appear("execute_repair")
    until(
        lambda: bench.robot.node.count_clients(topics.EXECUTE_REPAIR + "/_action/send_goal") >= 1,
        "the decision's client",
        LIMIT_S,
    )
    time.sleep(1.0)  # twenty chances to send it
    assert bench.repairs() == []
    bench.robot.say_mode("ready")


def test_a_person_who_takes_the_arm_has_it_until_handing_it_back(bench):
    bench.set(sense_sources=[])
    bench.robot.fail()
    bench.wait_state("asking")
    assert bench.graph.call(srv.Takeover, topics.TAKEOVER, srv.Takeover.Request(who="ann")).success
    bench.wait_state("taken_over")
    assert [o.disposition for o in bench.outcomes] == ["handed_over"]
    answer = bench.graph.call(srv.StartTask, topics.START_TASK, srv.StartTask.Request(instruction="go"))
    assert not answer.accepted and "a person has the arm" in answer.error_msg
    bench.person.stops_the_robot()
    until(lambda: bench.robot.stops, "the stop at the robot", LIMIT_S)
    answer = bench.graph.call(srv.StartTask, topics.START_TASK, srv.StartTask.Request(instruction="go"))
    assert not answer.accepted and "a person has the arm" in answer.error_msg
    assert bench.graph.call(srv.Takeover, topics.HAND_BACK, srv.Takeover.Request(who="ann")).success
    bench.wait_state("idle")
    assert len(bench.outcomes) == 1 and bench.repairs() == []
    bench.robot.fail()
    bench.answer("no_reply")
    until(lambda: len(bench.outcomes) == 2, "the next episode's outcome", LIMIT_S)
    bench.wait_state("idle")


def test_a_task_is_one_episode_from_the_attempt_to_the_outcome(bench):
    bench.robot.scripts["attempt_task"].gate.clear()
    answer = bench.graph.call(srv.StartTask, topics.START_TASK, srv.StartTask.Request(instruction="the milk"))
    assert answer.accepted and answer.episode_id
    until(lambda: bench.robot.requests("attempt_task"), "the attempt", LIMIT_S)
    (goal,) = bench.robot.requests("attempt_task")
    assert (goal.episode_id, goal.instruction) == (answer.episode_id, "the milk")
    busy = bench.graph.call(srv.StartTask, topics.START_TASK, srv.StartTask.Request(instruction="more"))
    assert not busy.accepted and answer.episode_id in busy.error_msg
    bench.robot.fail()
    bench.robot.scripts["attempt_task"].gate.set()
    assert bench.outcome().episode_id == answer.episode_id


def test_an_attempt_the_robot_refuses_ends_with_its_reason(bench):
    bench.robot.scripts["attempt_task"].answer = {
        "claimed_success": False,
        "error_msg": "the basket is missing",
    }
    bench.graph.call(srv.StartTask, topics.START_TASK, srv.StartTask.Request(instruction="go"))
    outcome = bench.outcome()
    assert (outcome.disposition, outcome.claim) == ("abandoned", "not_succeeded")
    assert "the basket is missing" in outcome.grounds


def test_the_heartbeat_keeps_coming(bench):
    until(lambda: bench.robot.heartbeats >= 5, "five heartbeats", LIMIT_S)


def test_killed_in_mid_episode_and_started_again_it_is_idle_and_a_new_failure_works(bench):
    bench.set(sense_sources=[])
    bench.robot.fail()
    bench.wait_state("asking")
    bench.node.process.send_signal(signal.SIGKILL)
    bench.node.process.wait(LIMIT_S)
    bench.start()
    bench.wait_state("idle")
    bench.decisions.clear()
    # The failure may be reported before the new node listens: others see the killed one for 20 s more.
    bench.robot.scripts["hold"].gate.clear()
    told: list[float] = []

    def tell():
        if not told or time.monotonic() - told[-1] > 1.0:
            bench.robot.say_failed()
            told.append(time.monotonic())
        time.sleep(0.02)

    state_id = bench.robot.fail()
    until(lambda: bench.state() != "idle", "an episode", LIMIT_S, tell)
    bench.robot.scripts["hold"].gate.set()
    assert bench.outcome().disposition == "recovered"
    assert [d.state_id for d in bench.decisions] == [state_id, state_id]
    assert bench.repairs() == ["payload_lift"]
