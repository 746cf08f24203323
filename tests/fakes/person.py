"""A person beside the robot: hears what is asked and said, and answers as a test wants it."""

from __future__ import annotations

from failure_dialogue_msgs import msg as m
from std_msgs.msg import String

from failure_dialogue import topics
from failure_dialogue.nodes.node import EVENT_QOS, EXCHANGE_QOS
from tests.fakes.graph import LIMIT_S, Graph
from tests.fakes.processes import until


class FakePerson:
    """Hears questions, meanings and what else the robot says; says and presses what it is told to."""

    def __init__(self, graph: Graph, name: str = "ann") -> None:
        self.name = name
        self.node = graph.add(f"fake_person_{name}")
        self.questions: list[m.Question] = []
        self.meanings: list[m.ReplyMeaning] = []
        self.said: list[str] = []
        self.node.create_subscription(m.Question, topics.QUESTION, self.questions.append, EXCHANGE_QOS)
        self.node.create_subscription(
            m.ReplyMeaning, topics.REPLY_MEANING, self.meanings.append, EXCHANGE_QOS
        )
        self.node.create_subscription(
            String, topics.SAY, lambda message: self.said.append(message.data), EVENT_QOS
        )
        self._replies = self.node.create_publisher(m.Reply, topics.REPLY, EVENT_QOS)
        self._stops = self.node.create_publisher(m.Stop, topics.STOP, EVENT_QOS)

    def reset(self) -> None:
        """Forget what was heard."""
        for heard in (self.questions, self.meanings, self.said):
            heard.clear()

    def asked(self, number: int = 1) -> m.Question:
        """The question of this number since the last reset, waited for."""
        until(lambda: len(self.questions) >= number, f"question {number}", LIMIT_S)
        return self.questions[number - 1]

    def says(self, text: str, question_id: str = "") -> None:
        """Reply to a question by its id, or to the open one."""
        until(lambda: self._replies.get_subscription_count() > 0, "somebody who takes replies", LIMIT_S)
        self._replies.publish(m.Reply(text=text, who=self.name, question_id=question_id))

    def understood(self, number: int = 1) -> m.ReplyMeaning:
        """The meaning of this number since the last reset, waited for."""
        until(lambda: len(self.meanings) >= number, f"the meaning of reply {number}", LIMIT_S)
        return self.meanings[number - 1]

    def told(self, words: str) -> None:
        """Wait until the robot has said these words."""
        until(lambda: any(words in text for text in self.said), f"{words!r} from the robot", LIMIT_S)

    def stops_the_robot(self, listeners: int = 2, reason: str = "") -> None:
        """Press stop once the robot and the decision listen."""
        until(lambda: self._stops.get_subscription_count() >= listeners, "listeners to stop", LIMIT_S)
        self._stops.publish(m.Stop(who=self.name, reason=reason))
