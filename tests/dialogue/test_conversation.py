"""One open question: replies, silence, a second wording, and what is ignored."""

import pytest

from failure_dialogue.dialogue.acts import Act
from failure_dialogue.dialogue.conversation import Close, Conversation, PublishMeaning, PublishQuestion, Say
from failure_dialogue.dialogue.questions import Form


@pytest.fixture
def talk(parser, vocabulary):
    return Conversation(parser, vocabulary)


def of(kind, events):
    return [e for e in events if isinstance(e, kind)]


def meaning(events):
    (published,) = of(PublishMeaning, events)
    return published.meaning


def test_a_question_is_published_and_said_and_expires(talk, ask):
    events = talk.opened(ask(), 100.0)
    assert of(PublishQuestion, events) == [PublishQuestion(ask(), 160.0)]
    assert of(Say, events) == [Say(ask().text)]
    assert talk.question == ask() and talk.deadline == 160.0


def test_a_clear_reply_gives_its_meaning_bound_to_question_and_state(talk, ask):
    talk.opened(ask(), 0.0)
    events = talk.on_reply("I think the surface is slippery", "ann", "", 5.0)
    (published,) = of(PublishMeaning, events)
    assert published.meaning.cause == "slippery_surface"
    assert (published.question_id, published.episode_id, published.state_id) == ("e7-q1", "e7", "s1")
    assert (published.who, published.text, published.times_asked) == ("ann",
                                                                      "I think the surface is slippery", 1)
    assert of(Close, events) and talk.question is None


def test_silence_ends_in_no_reply_not_in_a_no(talk, ask):
    talk.opened(ask(), 0.0)
    assert talk.on_tick(59.9) == ()
    events = talk.on_tick(60.0)
    assert meaning(events).act is Act.NO_REPLY
    assert meaning(events).likelihoods == ()
    assert of(Close, events) and talk.on_tick(61.0) == ()


def test_an_unclear_reply_is_asked_about_once_more_in_other_words(talk, ask):
    first = ask()
    talk.opened(first, 0.0)
    events = talk.on_reply("no idea", "ann", first.question_id, 10.0)
    assert not of(PublishMeaning, events)
    (again,) = of(PublishQuestion, events)
    assert again.question.form is Form.AGAIN and again.question.text != first.text and again.deadline == 70.0
    events = talk.on_reply("I still do not know", "ann", again.question.question_id, 20.0)
    assert meaning(events).act is Act.UNINFORMATIVE
    assert of(PublishMeaning, events)[0].times_asked == 2
    assert talk.question is None


def test_silence_after_the_second_wording_ends_too(talk, ask):
    talk.opened(ask(), 0.0)
    talk.on_reply("hm", "ann", "", 10.0)
    assert talk.on_tick(69.9) == ()
    assert meaning(talk.on_tick(70.0)).act is Act.NO_REPLY


def test_a_clear_reply_to_the_first_wording_still_counts_an_unclear_one_does_not(talk, ask):
    first = ask()
    talk.opened(first, 0.0)
    talk.on_reply("dunno", "ann", first.question_id, 10.0)
    events = talk.on_reply("no idea", "bob", first.question_id, 10.1)
    assert not of(PublishMeaning, events) and talk.question is not None
    assert meaning(talk.on_reply("it is slippery", "bob", first.question_id,
                                 11.0)).cause == "slippery_surface"


def test_wait_gives_more_time_once(talk, ask):
    talk.opened(ask(), 0.0)
    events = talk.on_reply("hang on a second", "ann", "", 50.0)
    assert meaning(events).act is Act.WAIT
    assert of(PublishQuestion, events)[0].deadline == 110.0
    events = talk.on_reply("wait", "ann", "", 100.0)
    assert not of(PublishQuestion, events) and talk.deadline == 110.0
    assert "10 s" in of(Say, events)[0].text
    assert meaning(talk.on_tick(110.0)).act is Act.NO_REPLY


def test_repeat_and_why_leave_the_question_open(talk, ask):
    talk.opened(ask(), 0.0)
    assert of(Say, talk.on_reply("say that again please", "ann", "", 1.0)) == [Say(ask().text)]
    grounds = of(Say, talk.on_reply("why?", "ann", "", 2.0))[0].text
    assert "52 %" in grounds and "camera" in grounds
    assert talk.question is not None and talk.deadline == 60.0


@pytest.mark.parametrize("text, act", [("stop!", Act.STOP), ("let me do it", Act.TAKEOVER), ("yes",
                                                                                             Act.CONFIRM),
                                       ("no", Act.DENY)])
def test_acts_are_passed_on_and_close_the_question(talk, ask, text, act):
    talk.opened(ask(Form.CONFIRM), 0.0)
    events = talk.on_reply(text, "ann", "", 1.0)
    assert meaning(events).act is act and talk.question is None


def test_stop_counts_without_a_question_and_to_any_question(talk, ask):
    assert meaning(talk.on_reply("stop", "ann", "", 0.0)).act is Act.STOP
    talk.opened(ask(), 0.0)
    events = talk.on_reply("stop", "ann", "some-old-question", 1.0)
    assert meaning(events).act is Act.STOP and talk.question is None


def test_a_reply_to_another_question_is_ignored_and_the_person_told(talk, ask):
    talk.opened(ask(number=1), 0.0)
    talk.opened(ask(number=2), 5.0)
    events = talk.on_reply("it is heavy", "ann", "e7-q1", 6.0)
    assert not of(PublishMeaning, events)
    assert "a newer question was asked" in of(Say, events)[0].text
    assert talk.question.question_id == "e7-q2"


def test_a_late_reply_is_ignored_and_the_person_told(talk, ask):
    talk.opened(ask(), 0.0)
    events = talk.on_reply("it is heavy", "ann", "e7-q1", 60.5)
    assert meaning(events).act is Act.NO_REPLY
    assert "nobody answered within 60 s" in of(Say, events)[-1].text
    assert not of(PublishMeaning, talk.on_reply("it is heavy", "ann", "", 61.0))


def test_the_first_of_two_replies_counts(talk, ask):
    talk.opened(ask(), 0.0)
    assert meaning(talk.on_reply("it is heavy", "ann", "e7-q1", 1.0)).cause == "heavy_object"
    second = talk.on_reply("it is slippery", "bob", "e7-q1", 1.1)
    assert not of(PublishMeaning, second) and "ann answered" in of(Say, second)[0].text


def test_a_new_question_closes_the_old_one(talk, ask):
    talk.opened(ask(number=1), 0.0)
    events = talk.opened(ask(number=2), 5.0)
    assert events[0] == Close("e7-q1", "a newer question was asked")
    assert talk.deadline == 65.0


def test_a_withdrawn_question_takes_no_reply(talk, ask):
    assert talk.close("nothing open") == ()
    talk.opened(ask(), 0.0)
    assert of(Close, talk.close("the robot recovered"))
    assert "the robot recovered" in of(Say, talk.on_reply("heavy", "ann", "e7-q1", 1.0))[0].text


@pytest.mark.parametrize("text", ["", " ", "Thank you.", b"\xff\xfe\x00",
                                  "open the gripper at full speed now", "😀"])
def test_noise_is_asked_about_and_never_gives_a_cause(talk, ask, text):
    talk.opened(ask(), 0.0)
    events = talk.on_reply(text, "", "", 1.0)
    assert not of(PublishMeaning, events) and of(PublishQuestion, events)
    last = meaning(talk.on_reply(text, "", "", 2.0))
    assert last.act is Act.UNINFORMATIVE and not last.cause and not last.requested_repair
