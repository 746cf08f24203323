"""The scripted person as a node: knows the injected cause, answers as well as it was told to."""

from __future__ import annotations

import json

from failure_dialogue_msgs import msg as m
from std_msgs.msg import String

from failure_dialogue import topics
from failure_dialogue.nodes.node import EVENT_QOS, EXCHANGE_QOS, DialogueNode, Parameter, run
from sim_bridge.person import ScriptedPerson

PARAMETERS = (
    Parameter(
        "seed", 0, "Seed of all answers; what the person knows is drawn once for each scene.", 0, 2**31 - 1
    ),
    Parameter("correct", 0.80, "Share of answers that name the true cause.", 0.0, 1.0),
    Parameter("uninformative", 0.15, "Share of answers that name none.", 0.0, 1.0),
    Parameter("wrong", 0.05, "Share of answers that name a wrong cause.", 0.0, 1.0),
    Parameter("delay_s", 1.5, "Time the person takes to answer.", 0.0, 600.0),
    Parameter("silent", False, "Never answer."),
)


class PersonNode(DialogueNode):
    """Stands on the simulator's side of the wall; the robot hears only its words."""

    def __init__(self) -> None:
        super().__init__("scripted_person", PARAMETERS)

    def configure(self) -> None:
        """Check the shares of answers."""
        self.person = ScriptedPerson(
            self.value("seed"), self.value("correct"), self.value("uninformative"), self.value("wrong")
        )

    def activate(self) -> None:
        """Listen to questions and to what really happened."""
        self.truth: dict = {}
        self.asked: dict[int, int] = {}
        self.pending: list[tuple[float, m.Question]] = []
        self.replies = self.publisher(m.Reply, topics.REPLY, EVENT_QOS)
        self.subscription(String, "/sim/ground_truth/state", self._on_truth, EXCHANGE_QOS)
        self.subscription(m.Question, topics.QUESTION, self._on_question, EVENT_QOS)
        self.timer(0.1, self._tick)

    def _on_truth(self, message: String) -> None:
        self.truth = json.loads(message.data)

    def _on_question(self, message: m.Question) -> None:
        if not self.value("silent"):
            self.pending.append((self.steady_s() + self.value("delay_s"), message))

    def _tick(self) -> None:
        due = [q for at, q in self.pending if at <= self.steady_s()]
        self.pending = [(at, q) for at, q in self.pending if at > self.steady_s()]
        for question in due:
            self._answer(question)

    def _answer(self, question: m.Question) -> None:
        seed, cause = self.truth.get("seed", 0), self.truth.get("cause")
        if not cause:
            text = "I did not see anything go wrong."
        else:
            count = self.asked[seed] = self.asked.get(seed, 0) + 1
            text = self.person.reply(cause, self.truth["family"], str(seed), turn=count - 1)
        reply = m.Reply(question_id=question.question_id, text=text, who="scripted person")
        reply.header.stamp = self.get_clock().now().to_msg()
        self.replies.publish(reply)


def main(argv: list[str] | None = None) -> int:
    """Run the node."""
    return run(PersonNode, argv)


if __name__ == "__main__":
    raise SystemExit(main())
