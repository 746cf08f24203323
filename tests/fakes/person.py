"""A person beside the robot: hears what is asked and said, and answers as a test wants it."""

from __future__ import annotations

from failure_dialogue_msgs import msg as m

from failure_dialogue import topics
from failure_dialogue.nodes.node import EVENT_QOS
from tests.fakes.graph import LIMIT_S, Graph
from tests.fakes.processes import until


class FakePerson:
    """Hears questions and meanings from the moment it joins; says and presses what it is told to."""

    def __init__(self, graph: Graph, name: str = "ann") -> None:
        self.name = name
        self.node = graph.add(f"fake_person_{name}")
        self.questions: list[m.Question] = []
        self.meanings: list[m.ReplyMeaning] = []
        self.node.create_subscription(m.Question, topics.QUESTION, self.questions.append, EVENT_QOS)
        self.node.create_subscription(m.ReplyMeaning, topics.REPLY_MEANING, self.meanings.append, EVENT_QOS)
        self._replies = self.node.create_publisher(m.Reply, topics.REPLY, EVENT_QOS)
        self._stops = self.node.create_publisher(m.Stop, topics.STOP, EVENT_QOS)

    def reset(self) -> None:
        """Forget what was heard."""
        self.questions.clear()
        self.meanings.clear()

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

    def stops_the_robot(self, listeners: int = 2, reason: str = "") -> None:
        """Press stop once the robot and the decision listen."""
        until(lambda: self._stops.get_subscription_count() >= listeners, "listeners to stop", LIMIT_S)
        self._stops.publish(m.Stop(who=self.name, reason=reason))
