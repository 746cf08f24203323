"""The dialogue node: puts the question, takes replies from anywhere, and says what they mean."""

from __future__ import annotations

import time

from failure_dialogue_msgs import msg as m
from failure_dialogue_msgs import srv
from std_msgs.msg import String

from failure_dialogue import topics
from failure_dialogue.dialogue.acts import Act
from failure_dialogue.dialogue.conversation import (
    Close,
    Conversation,
    Event,
    PublishMeaning,
    PublishQuestion,
    Say,
)
from failure_dialogue.dialogue.questions import evidence_note, make_question
from failure_dialogue.dialogue.replies import ReplyParser
from failure_dialogue.dialogue.speech import Speaker
from failure_dialogue.errors import VocabularyError
from failure_dialogue.nodes.convert import seconds, stamp
from failure_dialogue.nodes.node import EVENT_QOS, EXCHANGE_QOS, OK, DialogueNode, Health, Parameter, run
from failure_dialogue.vocabulary import load_vocabulary

PARAMETERS = (
    Parameter("reply_limit_s", 60.0, "How long a question stays open (s); then the robot holds.", 1.0,
              3600.0),
    Parameter("speak", True, "Say questions aloud where there is an audio device."),
)
#: The lift has two stages for the robot; a person sees one.
_STAGE_WORDS = {"relax": "lift", "hold": "lift", "transport": "way to the basket"}


class QuestionNode(DialogueNode):
    """Shell round Conversation. A question is asked once decision ASK and state asking are both in."""

    def __init__(self) -> None:
        super().__init__("dialogue", PARAMETERS)

    def configure(self) -> None:
        """Load the vocabulary, the bank of replies and the sentence model."""
        self.vocabulary = load_vocabulary()
        self.parser = ReplyParser(self.vocabulary)

    def activate(self) -> None:
        """Open the topics; no question is open."""
        self.speaker = Speaker() if self.value("speak") else Speaker(silent_reason="switched off")
        self.conversation = Conversation(self.parser, self.vocabulary)
        self.failure: m.Failure | None = None
        self.sources: dict[str, list[str]] = {}
        self.decision: m.Decision | None = None
        self.asking = ("", "")
        self.asked_for: m.Decision | None = None
        self.numbers: dict[str, int] = {}
        self.questions = self.publisher(m.Question, topics.QUESTION, EXCHANGE_QOS)
        self.meanings = self.publisher(m.ReplyMeaning, topics.REPLY_MEANING, EXCHANGE_QOS)
        self.says = self.publisher(String, topics.SAY, EVENT_QOS)
        self.stops = self.publisher(m.Stop, topics.STOP, EVENT_QOS)
        self.takeover = self.client(srv.Takeover, topics.TAKEOVER)
        self.subscription(m.Failure, topics.FAILURE, self._on_failure, EVENT_QOS)
        self.subscription(m.Diagnosis, topics.DIAGNOSIS, self._on_diagnosis, EXCHANGE_QOS)
        self.subscription(m.Decision, topics.DECISION, self._on_decision, EXCHANGE_QOS)
        self.subscription(m.EpisodeStatus, topics.EPISODE, self._on_status, EXCHANGE_QOS)
        self.subscription(m.Reply, topics.REPLY, self._on_reply, EVENT_QOS)
        self.timer(0.1, self._tick)

    def _tick(self) -> None:
        # Only here, and not as messages come: who starts late sees those of earlier questions first.
        self._ask_when_due()
        self._carry_out(self.conversation.on_tick(self.steady_s()))

    # ---- what leads to a question ------------------------------------------------------------------
    def _on_failure(self, message: m.Failure) -> None:
        self.failure = message

    def _on_diagnosis(self, message: m.Diagnosis) -> None:
        self.sources = {message.state_id: [*self.sources.get(message.state_id, []), message.source]}

    def _on_decision(self, message: m.Decision) -> None:
        self.decision = message

    def _on_status(self, message: m.EpisodeStatus) -> None:
        asking = (message.episode_id, message.state_id) if message.state == "asking" else ("", "")
        if asking != self.asking and self.conversation.question is not None and asking == ("", ""):
            self._carry_out(self.conversation.close("the robot went on without an answer"))
        self.asking = asking

    def _ask_when_due(self) -> None:
        d = self.decision
        if d is None or d.action != m.Decision.ASK or d is self.asked_for or \
                self.asking != (d.episode_id, d.state_id):
            return
        self.asked_for = d
        number = self.numbers[d.episode_id] = self.numbers.get(d.episode_id, 0) + 1
        try:
            question = make_question(
                self.vocabulary, d.family, self.failure.object if self.failure else "", self._note(d),
                d.target_causes, d.question_form, episode_id=d.episode_id, state_id=d.state_id, number=number,
                timeout_s=float(self.value("reply_limit_s")), grounds=d.reason)
        except VocabularyError as error:
            self.get_logger().error(f"[{d.episode_id}] no question can be asked: {error}")
            return
        self._carry_out(self.conversation.opened(question, self.steady_s()))

    def _note(self, decision: m.Decision) -> str:
        failure = self.failure
        into, stage = None, failure.stage if failure else "attempt"
        if failure is not None:
            name = "lift" if stage in ("relax", "hold") else stage
            starts = [seconds(p.start) for p in failure.phases if p.name == name]
            into = seconds(failure.noticed_at) - starts[-1] if starts else None
        sources = " and ".join(dict.fromkeys(self.sources.get(decision.state_id, []))) or "sensors"
        accuracy = None if decision.p != decision.p else decision.p
        return evidence_note(into, _STAGE_WORDS.get(stage, stage), sources, accuracy, decision.question_form)

    # ---- what comes back ---------------------------------------------------------------------------
    def _on_reply(self, message: m.Reply) -> None:
        self.speaker.hush()
        self._carry_out(self.conversation.on_reply(message.text, message.who, message.question_id,
                                                   self.steady_s()))

    def _carry_out(self, events: tuple[Event, ...]) -> None:
        for event in events:
            match event:
                case PublishQuestion():
                    self._publish_question(event)
                case PublishMeaning():
                    self._publish_meaning(event)
                case Say():
                    self.says.publish(String(data=event.text))
                    self.speaker.say(event.text)
                case Close():
                    self.get_logger().info(f"question {event.question_id} is closed: {event.reason}")

    def _publish_question(self, event: PublishQuestion) -> None:
        q = event.question
        message = m.Question(episode_id=q.episode_id, state_id=q.state_id, question_id=q.question_id,
                             text=q.text, options=list(q.options), option_causes=list(q.option_causes),
                             expiry=stamp(time.time() + event.deadline - self.steady_s()))
        message.header.stamp = self.get_clock().now().to_msg()
        self.questions.publish(message)

    def _publish_meaning(self, event: PublishMeaning) -> None:
        meaning = event.meaning
        message = m.ReplyMeaning(
            episode_id=event.episode_id, state_id=event.state_id, question_id=event.question_id,
            text=event.text, who=event.who,
            act=meaning.act.value, cause=meaning.cause, causes=list(meaning.causes),
            likelihoods=[float(p) for p in meaning.likelihoods], requested_repair=meaning.requested_repair,
            reason=meaning.reason, times_asked=event.times_asked)
        message.header.stamp = self.get_clock().now().to_msg()
        if meaning.act is Act.STOP:  # straight to the robot, before anything else
            self.stops.publish(m.Stop(header=message.header, who=event.who, reason=event.text[:200]))
        elif meaning.act is Act.TAKEOVER:
            self._hand_arm_to(event.who, event.text[:200])
        self.meanings.publish(message)

    def _hand_arm_to(self, who: str, reason: str) -> None:
        if self.takeover.service_is_ready():
            self.takeover.call_async(srv.Takeover.Request(who=who, reason=reason))
        else:
            self.get_logger().error(f"{who or 'somebody'} wants the arm, but nobody serves "
                                    f"{topics.TAKEOVER}; the robot stays at its checkpoint")

    def deactivate(self) -> None:
        """Fall silent."""
        self.speaker.close()

    def health(self) -> Health:
        """The open question and the voice."""
        question = self.conversation.question
        return Health(OK, "ready" if question is None else "a question is open", {
            "question": question.question_id if question else "none",
            "voice": self.speaker.silent_reason or "on"})


def main(argv: list[str] | None = None) -> int:
    """Run the node."""
    return run(QuestionNode, argv)


if __name__ == "__main__":
    raise SystemExit(main())
