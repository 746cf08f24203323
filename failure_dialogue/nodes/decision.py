"""The decision node: carries an episode through over ROS 2, as the episode machine says."""

from __future__ import annotations

import datetime as dt
import uuid
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

from action_msgs.msg import GoalStatus
from failure_dialogue_msgs import action, srv
from failure_dialogue_msgs import msg as m
from rclpy.action import ActionClient
from rclpy.action.client import ClientGoalHandle
from sensor_msgs.msg import CameraInfo
from std_msgs.msg import Header, String

from failure_dialogue import topics
from failure_dialogue.decision import episode as e
from failure_dialogue.decision import policy
from failure_dialogue.decision.costs import Answerer, Costs, load_costs
from failure_dialogue.decision.record import Mismatch, Running, check, record_or_reason, vocabulary_hash
from failure_dialogue.diagnosis.load import models_in_use
from failure_dialogue.errors import EvidenceError
from failure_dialogue.nodes.convert import decision_message, diagnosis_value
from failure_dialogue.nodes.node import (
    EVENT_QOS,
    EXCHANGE_QOS,
    OK,
    SENSOR_QOS,
    STATE_QOS,
    WARN,
    DialogueNode,
    Health,
    Parameter,
    run,
)
from failure_dialogue.paths import config_dir
from failure_dialogue.robots.profile import load_profile
from failure_dialogue.vocabulary import load_vocabulary

ERROR_BUSY = 400

_COSTS, _ANSWERER = load_costs()
PARAMETERS = (
    Parameter("record", "", "Commissioning record; empty: records/<robot>.yaml in the configuration folder."),
    Parameter("robot", "panda", "Robot profile, compared with the record's."),
    Parameter("models", "", "Folder of the models that diagnose, compared with the record's; empty: those "
              "that ship with the package. As for the diagnosis node."),
    Parameter("sense_sources", ["force"], "Sources that may be consulted after the first diagnosis."),
    Parameter("cost_retry", _COSTS.retry, "Cost of the right repair; the unit.", 0.0, 1e6),
    Parameter("cost_wrong_repair", _COSTS.wrong_repair, "Cost of a wrong repair on top of it.", 0.0, 1e6),
    Parameter("cost_ask", _COSTS.ask, "Cost of a question.", 0.0, 1e6),
    Parameter("cost_sense", _COSTS.sense, "Cost of consulting a source.", 0.0, 1e6),
    Parameter("answer_correct", _ANSWERER.correct, "How often a person names the right cause.", 0.0, 1.0),
    Parameter("answer_uninformative", _ANSWERER.uninformative, "How often an answer names none.", 0.0, 1.0),
    Parameter("answer_wrong", _ANSWERER.wrong, "How often an answer names a wrong cause.", 0.0, 1.0),
    Parameter("person_present", True, "Whether somebody is there to be asked."),
    Parameter("max_questions", 1, "Questions an episode may ask; an unclear answer is asked once more "
              "besides.", 0, 10),
    Parameter("max_repairs", 2, "Repairs an episode may try.", 1, 10),
    Parameter("question_limit_s", 90.0, "Longest wait for what a reply means; the dialogue's own time limit "
              "should be shorter.", 1.0, 3600.0),
)
_COST_NAMES = ("cost_retry", "cost_wrong_repair", "cost_ask", "cost_sense")
_ANSWER_NAMES = ("answer_correct", "answer_uninformative", "answer_wrong")
_READY_S = 5.0  # how long a server may take to be found


#: From why a server gave no answer, and whether what was asked may have begun, to the event that follows.
Otherwise = Callable[[str, bool], e.Event]


@dataclass
class _Request:
    """Something asked of a server: sent once it is found, given up when it is not found or goes away."""

    episode_id: str
    found: Callable[[], bool]
    send: Callable[[_Request], None]
    otherwise: Otherwise
    until_s: float
    sent: bool = False
    answered: bool = False


class DecisionNode(DialogueNode):
    """Shell round EpisodeMachine: events from topics, services and actions; commands back to them."""

    def __init__(self) -> None:
        super().__init__("decision", PARAMETERS)

    # ---- life ----------------------------------------------------------------
    def configure(self) -> None:
        """Read vocabulary, costs and the record. Without a fitting record the robot asks; it still starts."""
        self.vocabulary = load_vocabulary()
        self._read_costs({})
        profile = load_profile(self.value("robot"))
        name = self.value("record")
        path = Path(name) if name else config_dir() / "records" / f"{profile.robot_id}.yaml"
        self.record, self.no_record = record_or_reason(path)
        if self.record is None:
            self.get_logger().warning(f"no measured accuracy: {self.no_record}. The robot will ask.")
        models = self.value("models")
        self.models = models_in_use(self.vocabulary, profile, Path(models) if models else None)
        self.robot_id = profile.robot_id
        self.camera: tuple[int, int] | None = None
        self.said_stale = ""

    def activate(self) -> None:
        """Open all ends and start with no open episode."""
        self._read_costs({})  # they may have been changed since the node was configured
        limits = e.Limits(question_s=self.value("question_limit_s"), max_repairs=self.value("max_repairs"))
        self.machine = e.EpisodeMachine(self._choose, self._cost, limits)
        self.deadline: tuple[float, e.State] | None = None
        self.requests: list[_Request] = []
        self.motion: ClientGoalHandle | None = None
        self.decisions = self.publisher(m.Decision, topics.DECISION, EXCHANGE_QOS)
        self.outcomes = self.publisher(m.Outcome, topics.OUTCOME, EXCHANGE_QOS)
        self.episodes = self.publisher(m.EpisodeStatus, topics.EPISODE, EXCHANGE_QOS)
        self.heartbeats = self.publisher(Header, topics.HEARTBEAT, EVENT_QOS)
        self.subscription(m.Failure, topics.FAILURE, self._on_failure, EVENT_QOS)
        self.subscription(m.Diagnosis, topics.DIAGNOSIS, self._on_diagnosis, EXCHANGE_QOS)
        self.subscription(m.Question, topics.QUESTION, self._on_question, EXCHANGE_QOS)
        self.subscription(m.ReplyMeaning, topics.REPLY_MEANING, self._on_meaning, EXCHANGE_QOS)
        self.subscription(m.Stop, topics.STOP, self._on_stop, EVENT_QOS)
        self.subscription(String, topics.ROBOT_MODE, self._on_mode, STATE_QOS)
        self.subscription(CameraInfo, topics.CAMERA_INFO, self._on_camera, SENSOR_QOS)
        self.service(srv.StartTask, topics.START_TASK, self._on_start)
        self.hold_client = self.client(srv.Hold, topics.HOLD)
        self.sense_client = self.client(srv.Sense, topics.SENSE)
        self.attempt = self.action(ActionClient(self, action.AttemptTask, topics.ATTEMPT_TASK))
        self.repair = self.action(ActionClient(self, action.ExecuteRepair, topics.EXECUTE_REPAIR))
        self.recheck = self.action(ActionClient(self, action.RunRecheck, topics.RUN_RECHECK))
        self.taken = False
        self.timer(0.05, self._tick)
        self.beats = 0
        self.activated_s = self.now_s()
        self._show("", "", "idle", "ready for a task or a failure")

    def parameters_changed(self, changed: dict) -> None:
        """Costs and answer rates take effect with the next decision; what makes no sense is refused."""
        if any(name in changed for name in (*_COST_NAMES, *_ANSWER_NAMES)):
            self._read_costs(changed)

    def _read_costs(self, changed: dict) -> None:
        def value(name: str) -> float:
            return float(changed.get(name, self.value(name)))

        # Both are made before either is taken over: a refused change changes nothing.
        self.costs, self.answerer = (Costs(*(value(name) for name in _COST_NAMES)),
                                     Answerer(*(value(name) for name in _ANSWER_NAMES)))

    def _cost(self, name: str) -> float:
        return getattr(self.costs, name)

    def _choose(self, findings: e.Findings) -> policy.Decision:
        family = self.vocabulary.family(findings.family)
        mismatches: tuple[Mismatch, ...] = ()
        if self.record is not None:
            mismatches = check(self.record, Running(
                self.robot_id, self.camera or self.record.camera,
                {f.name: vocabulary_hash(f) for f in self.vocabulary.families.values()}, self.models,
                dt.datetime.now(dt.timezone.utc)))
        can_sense = tuple(s for s in self.value("sense_sources")
                          if s and s not in findings.diagnoses and s not in findings.unavailable)
        decision = policy.decide(policy.Situation(
            family, findings.diagnoses, self.record, self.no_record, mismatches, can_sense,
            findings.ruled_out, findings.questions_asked, self.value("max_questions"),
            findings.person_present and self.value("person_present"), findings.reply),
            self.costs, self.answerer)
        self.said_stale = decision.stale_reason
        return decision

    # ---- events --------------------------------------------------------------
    def _feed(self, event: e.Event) -> None:
        """Hand an event to the machine and carry out what follows, under the ids that hold then."""
        before = self.machine.episode_id, self.machine.state_id
        commands = self.machine.handle(event)
        episode_id, state_id = self.machine.episode_id or before[0], self.machine.state_id or before[1]
        for command in commands:
            self._do(command, episode_id, state_id)

    def _on_start(self, request: srv.StartTask.Request, response: srv.StartTask.Response):
        if self.machine.busy:
            response.error_code = ERROR_BUSY
            response.error_msg = ("a person has the arm; the robot takes tasks after the hand_back service"
                                  if self.machine.state is e.State.TAKEN_OVER else
                                  f"episode {self.machine.episode_id} is still open "
                                  f"({self.machine.state.value}); wait for its outcome or stop it")
            return response
        response.accepted, response.episode_id = True, self._new_id()
        self._feed(e.TaskStarted(response.episode_id, request.instruction))
        return response

    @staticmethod
    def _new_id() -> str:
        return f"e-{uuid.uuid4().hex[:8]}"

    def _on_failure(self, message: m.Failure) -> None:
        if message.family not in self.vocabulary.families:
            self.get_logger().error(f"a failure of unknown family {message.family!r} was reported; known: "
                                    + ", ".join(self.vocabulary.families))
            return
        self._feed(e.FailureNoticed(e.FailureInfo(message.state_id, message.family, message.stage,
                                                  message.instruction, message.object), self._new_id()))

    def _on_diagnosis(self, message: m.Diagnosis) -> None:
        try:
            self._feed(e.DiagnosisArrived(diagnosis_value(message), message.state_id))
        except EvidenceError as error:
            self.get_logger().error(f"a diagnosis was dropped: {error}")

    def _on_question(self, message: m.Question) -> None:
        if self._is_current(message):
            self._feed(e.QuestionPut())

    def _is_current(self, message) -> bool:
        """False for what belongs to an earlier episode or state, and is seen again on a late start."""
        return (message.episode_id, message.state_id) == (self.machine.episode_id, self.machine.state_id)

    def _on_meaning(self, message: m.ReplyMeaning) -> None:
        if not self._is_current(message):
            return
        self._feed(e.MeaningArrived(message.act, message.cause, message.requested_repair, message.who,
                                    message.times_asked))

    def _on_stop(self, message: m.Stop) -> None:
        self._feed(e.StopPressed(message.who, message.reason))

    def _on_mode(self, message: String) -> None:
        # Whoever had the arm and then stopped the robot has not handed it back.
        taken = message.data == "person" or (self.taken and message.data == "stopped")
        if taken != self.taken:
            self.taken = taken
            self._feed(e.TakenOver("a person") if taken else e.HandedBack("a person"))

    def _on_camera(self, message: CameraInfo) -> None:
        self.camera = (message.width, message.height)

    def _tick(self) -> None:
        now = self.steady_s()
        self.beats += 1
        if self.beats % 2:
            self.heartbeats.publish(Header(stamp=self.get_clock().now().to_msg(), frame_id="decision"))
        if self.deadline and now >= self.deadline[0]:
            state, self.deadline = self.deadline[1], None
            self._feed(e.DeadlinePassed(state))
        self._serve_requests(now)

    # ---- commands ------------------------------------------------------------
    def _do(self, command: e.Command, episode_id: str, state_id: str) -> None:
        match command:
            case e.ShowState():
                self.deadline = None
                self._show(episode_id, state_id, command.state.value, command.detail)
            case e.WaitAtMost():
                self.deadline = (self.steady_s() + command.seconds, command.state)
            case e.Announce():
                self.decisions.publish(decision_message(command.decision, episode_id, state_id,
                                                        self.get_clock().now().to_msg()))
                self.get_logger().info(
                    f"[{episode_id}] {command.decision.action.name}: {command.decision.reason}")
            case e.Report():
                self._report(command.outcome, episode_id)
            case e.GoToCheckpoint():
                self._call(self.hold_client, srv.Hold.Request(episode_id=episode_id, reason=command.reason),
                           self._hold_answer,
                           lambda why, _: e.HoldEnded(False, f"the robot's hold service {why}"), episode_id)
            case e.Consult():
                # A refusal is no diagnosis; the time limit of the state then moves the episode on at once.
                late = e.DeadlinePassed(e.State.SENSING)
                self._call(self.sense_client, srv.Sense.Request(episode_id=episode_id, state_id=state_id,
                                                                source=command.source),
                           lambda r: self._sense_answer(r, late), lambda *_: late, episode_id)
            case e.Attempt():
                self._goal(self.attempt, action.AttemptTask.Goal(episode_id=episode_id,
                                                                 instruction=command.instruction),
                           lambda status, r: e.AttemptEnded(r.claimed_success, r.message or r.error_msg),
                           lambda why, _: e.AttemptEnded(False, f"the robot's action for a task {why}"),
                           episode_id)
            case e.Repair():
                self._goal(self.repair, action.ExecuteRepair.Goal(
                    episode_id=episode_id, state_id=command.state_id, repair=command.repair),
                    lambda status, r: e.RepairEnded(r.done and status == GoalStatus.STATUS_SUCCEEDED,
                                                    r.state_id, r.error_msg, r.refused),
                    lambda why, begun: e.RepairEnded(False, "", f"the robot's action for repairs {why}",
                                                     refused=not begun), episode_id)
            case e.Recheck():
                self._recheck(command.after, episode_id, state_id)
            case e.CancelMotion():
                if self.motion is not None:
                    self.motion.cancel_goal_async()
                    self.motion = None

    def _hold_answer(self, response: srv.Hold.Response) -> e.Event:
        if not response.at_checkpoint:
            self.get_logger().warning(f"the checkpoint was not reached: {response.error_msg}")
        return e.HoldEnded(response.at_checkpoint, response.error_msg)

    def _sense_answer(self, response: srv.Sense.Response, late: e.Event) -> e.Event | None:
        if response.accepted:
            return None  # the diagnosis comes on its topic
        self.get_logger().warning(f"consulting a source was refused: {response.error_msg}")
        return late

    def _recheck(self, after: bool, episode_id: str, state_id: str) -> None:
        failure, phases = self.machine.failure, action.RunRecheck.Goal
        self._goal(self.recheck, action.RunRecheck.Goal(
            phase=phases.AFTER if after else phases.BEFORE, episode_id=episode_id, state_id=state_id,
            task=failure.instruction if failure else ""),
            lambda status, r: e.RecheckEnded(after, r.verdict or "abstain", r.reason or r.error_msg),
            lambda why, _: e.RecheckEnded(after, "abstain", f"the action for re-checks {why}"), episode_id)

    def _show(self, episode_id: str, state_id: str, state: str, detail: str) -> None:
        message = m.EpisodeStatus(episode_id=episode_id, state_id=state_id, state=state, detail=detail)
        message.header.stamp = self.get_clock().now().to_msg()
        self.episodes.publish(message)

    def _report(self, o: e.Outcome, episode_id: str) -> None:
        message = m.Outcome(episode_id=episode_id, disposition=o.disposition.value, claim=o.claim.value,
                            grounds=o.grounds, cause=o.cause, repair=o.repair, cost_spent=float(o.cost_spent),
                            questions_asked=o.questions_asked, repairs_tried=o.repairs_tried)
        message.header.stamp = self.get_clock().now().to_msg()
        self.outcomes.publish(message)
        self.get_logger().info(f"[{episode_id}] {o.disposition.value}, {o.claim.value}: {o.grounds}")

    # ---- what is asked of servers --------------------------------------------
    def _serve_requests(self, now: float) -> None:
        requests, self.requests = self.requests, []
        for request in requests:
            if request.answered or request.episode_id != self.machine.episode_id:
                continue  # nobody waits for it any more; what was not sent yet never is
            if request.found():
                if not request.sent:
                    request.sent = True
                    request.send(request)
            elif request.sent:
                self._answer(request, request.otherwise("went away", True))
            elif now >= request.until_s:
                self._answer(request, request.otherwise("was not found", False))
            if not request.answered:
                self.requests.append(request)

    def _answer(self, request: _Request, event: e.Event | None) -> None:
        """The first answer counts, and only for the episode it was asked in."""
        if request.answered:
            return
        request.answered = True
        if event is not None and self._awaited(request):
            self._feed(event)

    def _awaited(self, request: _Request) -> bool:
        return self.is_active and self.machine.episode_id == request.episode_id

    def _call(self, client, message, to_event: Callable, otherwise: Otherwise, episode_id: str) -> None:
        def send(request: _Request) -> None:
            client.call_async(message).add_done_callback(lambda future: self._answer(
                request, otherwise("failed", True) if future.exception() else to_event(future.result())))

        self.requests.append(_Request(episode_id, client.service_is_ready, send, otherwise,
                                      self.steady_s() + _READY_S))

    def _goal(self, client, goal, to_event: Callable, otherwise: Otherwise, episode_id: str) -> None:
        def send(request: _Request) -> None:
            client.send_goal_async(goal).add_done_callback(lambda future: accepted(request, future))

        def accepted(request: _Request, future) -> None:
            handle = None if future.exception() else future.result()
            if handle is None or not handle.accepted:
                self._answer(request, otherwise("refused it", False))
            elif request.answered or not self._awaited(request):
                handle.cancel_goal_async()  # the episode ended while the goal was on its way
            else:
                if client is not self.recheck:
                    self.motion = handle
                handle.get_result_async().add_done_callback(lambda done: ended(request, handle, done))

        def ended(request: _Request, handle, future) -> None:
            if self.motion is handle:
                self.motion = None
            self._answer(request, otherwise("failed", True) if future.exception()
                         else to_event(future.result().status, future.result().result))

        self.requests.append(_Request(episode_id, client.server_is_ready, send, otherwise,
                                      self.steady_s() + _READY_S))

    def deactivate(self) -> None:
        """End what moves; the robot holds by itself when the heartbeat stops."""
        if self.motion is not None:
            self.motion.cancel_goal_async()

    def health(self) -> Health:
        """The open episode, the record, and whether it still fits."""
        values = {"episode": self.machine.episode_id or "none", "state": self.machine.state.value,
                  "record": self.record.record_id if self.record else "none",
                  "camera": "{}x{}".format(*self.camera) if self.camera else "not seen yet",
                  "cost of a question": f"{self.costs.ask:g}"}
        problem = self.no_record or self.said_stale
        return Health(WARN if problem else OK, problem or "ready", values)


def main(argv: list[str] | None = None) -> int:
    """Run the node."""
    return run(DecisionNode, argv)


if __name__ == "__main__":
    raise SystemExit(main())
