"""What the dialogue's tests share: the vocabulary, one loaded parser, questions."""

import pytest

from failure_dialogue.dialogue.questions import Form, evidence_note, make_question
from failure_dialogue.dialogue.replies import ReplyParser
from failure_dialogue.vocabulary import load_vocabulary


@pytest.fixture(scope="session")
def vocabulary():
    return load_vocabulary()


@pytest.fixture(scope="session")
def parser(vocabulary):
    return ReplyParser(vocabulary)


@pytest.fixture(scope="session")
def ask(vocabulary):
    """A function that makes a question about a grasp failure."""
    def make(form=Form.WHICH_CAUSE, causes=None, number=1, timeout_s=60.0):
        causes = causes or list(vocabulary.family("grasp").causes)[:1 if form is Form.CONFIRM else None]
        return make_question(vocabulary, "grasp", "milk", evidence_note(0.6, "lift", "camera", 0.52, form),
                             causes,
                             form, episode_id="e7", state_id="s1", number=number, timeout_s=timeout_s)
    return make
