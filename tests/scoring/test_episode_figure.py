"""The picture of an episode shows what the bag says, legibly, and refuses what is no bag."""

import itertools
import math
import shutil

import numpy as np
import pytest
from click.testing import CliRunner
from failure_dialogue_msgs import msg as m
from geometry_msgs.msg import WrenchStamped
from matplotlib.backends.backend_agg import FigureCanvasAgg
from PIL import Image
from rclpy.serialization import serialize_message
from rosbags.interfaces import Qos, QosDurability, QosHistory, QosLiveliness, QosReliability, QosTime
from sensor_msgs.msg import Image as ImageMessage
from sensor_msgs.msg import JointState

from failure_dialogue import topics
from failure_dialogue.errors import ConfigError, EvidenceError
from failure_dialogue.nodes.convert import fill_image, stamp
from failure_dialogue.scoring import bag_reading, episode_figure, sheet
from failure_dialogue.scoring.episode_story import Kind, story, stretches, wrist_load
from failure_dialogue.scoring.plot_verb import command
from failure_dialogue.scoring.recording import BagRecording, Definitions, Limits

FOREVER = QosTime(9223372036, 854775807)
LATCHED = Qos(
    QosHistory.UNKNOWN,
    0,
    QosReliability.RELIABLE,
    QosDurability.TRANSIENT_LOCAL,
    FOREVER,
    FOREVER,
    QosLiveliness.AUTOMATIC,
    FOREVER,
    False,
)
START_S, TARE_N, LOAD_N = 10.0, 5.0, 3.0
FINGERS = ["panda_finger_joint1", "panda_finger_joint2"]
FIRST = (("approach", 0.0), ("rest", 2.0), ("close", 2.2), ("lift", 3.0), ("relax", 3.3))
SECOND = (
    ("approach", 7.0),
    ("rest", 9.0),
    ("close", 9.2),
    ("lift", 10.0),
    ("relax", 10.3),
    ("hold", 11.0),
    ("transport", 11.4),
    ("release", 14.0),
)
QUESTION = (
    "The bbq sauce slipped out of my gripper 0.4 s into the lift. The camera alone is right in 0.52 of such "
    "cases. Was my grip too weak, is the object heavier than I expected, or is the surface slippery?"
)


class Script:
    """What happened, to be written into a bag. Times are seconds since the episode began."""

    def __init__(self, episode_id="e-0001", start_s=START_S):
        self.episode_id, self.start_s, self.said = episode_id, start_s, []

    def say(self, time_s, topic, message):
        """One message at its time; the header, where there is one, is stamped so."""
        if hasattr(message, "header"):
            message.header.stamp = stamp(self.start_s + time_s)
        if hasattr(message, "episode_id"):
            message.episode_id = self.episode_id
        self.said.append((topic, self.start_s + time_s, message))

    def at(self, time_s):
        return stamp(self.start_s + time_s)

    def state(self, time_s, state, detail=""):
        self.say(time_s, topics.EPISODE, m.EpisodeStatus(state_id="7.2", state=state, detail=detail))

    def motion(self, phases):
        for name, time_s in phases:
            self.say(time_s, topics.PHASE, m.Phase(name=name, start=self.at(time_s)))

    def failure(self):
        self.motion(FIRST)
        self.say(
            4.6,
            topics.FAILURE,
            m.Failure(
                state_id="7.2",
                family="grasp",
                stage="relax",
                object="bbq sauce",
                grip_setpoint_n=5.0,
                instruction="pick up the bbq sauce and place it in the basket",
                grip_preload_n=10.0,
                attempt_start=self.at(0.0),
                attempt_end=self.at(4.5),
                noticed_at=self.at(4.0),
                phases=[m.Phase(name=n, start=self.at(t)) for n, t in FIRST],
                noticed_by="the fingers closed to 21.6 mm, from 29.6 mm at the grasp",
            ),
        )

    def diagnosis(self, time_s, source, probability, slip_s=None):
        events = (
            [] if slip_s is None else [m.Event(name="slip", start=self.at(slip_s - 0.2), end=self.at(slip_s))]
        )
        self.say(
            time_s,
            topics.DIAGNOSIS,
            m.Diagnosis(
                state_id="7.2",
                source=source,
                family="grasp",
                causes=["weak_grip", "slippery_surface"],
                probabilities=[1 - probability, probability],
                events=events,
            ),
        )

    def decision(self, time_s, action, costs, p=0.52, low=0.41, high=0.63, **fields):
        self.say(
            time_s,
            topics.DECISION,
            m.Decision(
                state_id="7.2",
                action=action,
                family="grasp",
                p=p,
                p_low=low,
                p_high=high,
                n=80,
                threshold=0.588,
                costs=[m.ActionCost(action=a, detail=d, expected_cost=c, note=n) for a, d, c, n in costs],
                **fields,
            ),
        )

    def repaired(self, begin_s):
        self.state(begin_s, "repairing", "grip_pads")
        self.motion(SECOND)
        self.state(15.0, "rechecking", "judging the result")
        self.say(
            18.0,
            topics.OUTCOME,
            m.Outcome(
                disposition="recovered",
                claim="succeeded",
                cause="slippery_surface",
                repair="grip_pads",
                grounds="gripper: held to the release; camera: gone from where it stood",
                cost_spent=1.5,
                repairs_tried=1,
            ),
        )
        self.state(18.01, "idle", "recovered")

    def sensors(self, end_s=18.0):
        """200 Hz wrench, 100 Hz joints; 10 Hz frames whose grey is ten times the time."""
        for i in range(int(end_s * 200)):
            t, message = i / 200, WrenchStamped()
            carried = 3.0 <= t < 4.0 or 10.0 <= t < 14.0
            message.wrench.force.z = TARE_N + (LOAD_N if carried else 0.0)
            self.say(t, topics.WRENCH, message)
            if i % 2 == 0:
                closed = 2.6 <= t < 4.0 or 9.6 <= t < 14.0
                self.say(
                    t,
                    topics.JOINT_STATES,
                    JointState(
                        name=FINGERS,
                        position=[0.015 if closed else 0.04] * 2,
                        velocity=[0.0] * 2,
                        effort=[4.0, -4.2] if closed else [0.0] * 2,
                    ),
                )
            if i % 20 == 0:
                picture = ImageMessage()
                fill_image(picture, np.full((16, 16, 3), round(10 * t), np.uint8))
                self.say(t, topics.IMAGE, picture)


def sense_then_act():
    s = Script()
    s.state(0.0, "attempting", "the task")
    s.failure()
    s.state(4.61, "diagnosing")
    s.diagnosis(4.70, "camera", 0.52)
    s.decision(
        4.71,
        m.Decision.SENSE,
        [("act", "grip_pads", 5.8, ""), ("sense", "force", 1.58, ""), ("ask", "", 4.8, "")],
        source="force",
    )
    s.state(4.71, "sensing")
    s.diagnosis(4.74, "force", 0.97, slip_s=3.9)
    s.decision(
        4.74,
        m.Decision.ACT,
        [("act", "grip_pads", 1.1, ""), ("ask", "", 3.9, "")],
        0.99,
        0.955,
        0.998,
        cause="slippery_surface",
        repair="grip_pads",
    )
    s.state(4.75, "preparing")
    s.repaired(7.0)
    return s


def asked(answer):
    s = Script()
    s.state(0.0, "attempting", "the task")
    s.failure()
    s.diagnosis(4.70, "camera", 0.52)
    s.decision(4.71, m.Decision.ASK, [("act", "grip_pads", 5.8, ""), ("ask", "", 4.9, "")])
    s.state(4.71, "preparing")
    s.state(5.0, "asking")
    s.say(5.02, topics.QUESTION, m.Question(question_id="e-0001-q1", text=QUESTION))
    nobody = ("ask", "", math.inf, "nobody is there to ask")
    if answer:
        s.say(6.5, topics.REPLY, m.Reply(question_id="e-0001-q1", text=answer, who="operator"))
        s.say(
            6.52,
            topics.REPLY_MEANING,
            m.ReplyMeaning(
                text=answer,
                who="operator",
                act="cause",
                cause="slippery_surface",
                causes=["slippery_surface"],
                likelihoods=[0.9],
                times_asked=1,
            ),
        )
        s.decision(
            6.53,
            m.Decision.ACT,
            [("act", "grip_pads", 2.0, ""), nobody],
            0.94,
            math.nan,
            math.nan,
            cause="slippery_surface",
            repair="grip_pads",
        )
        s.repaired(7.0)
    else:
        s.say(17.0, topics.REPLY_MEANING, m.ReplyMeaning(act="no_reply", times_asked=1))
        s.decision(17.01, m.Decision.HOLD, [("act", "grip_pads", 5.8, ""), nobody])
        s.say(
            17.02,
            topics.OUTCOME,
            m.Outcome(disposition="handed_over", claim="not_succeeded", cost_spent=3.0, questions_asked=1),
        )
        s.state(17.03, "idle")
    return s


def write(path, *scripts, without=()):
    """A bag as the recorder writes it."""
    kinds = {
        topics.IMAGE: "sensor_msgs/msg/Image",
        topics.WRENCH: "geometry_msgs/msg/WrenchStamped",
        topics.JOINT_STATES: "sensor_msgs/msg/JointState",
    }
    recording = BagRecording(path, Definitions(), Limits(min_free_bytes=0), True)
    said = [item for script in scripts for item in script.said if item[0] not in without]
    for topic, message in {topic: message for topic, _, message in said}.items():
        recording.add_topic(
            topic, kinds.get(topic, f"failure_dialogue_msgs/msg/{type(message).__name__}"), [LATCHED]
        )
    for topic, time_s, message in sorted(said, key=lambda item: item[1]):
        recording.write(topic, round(time_s * 1e9), serialize_message(message))
    assert recording.close(20.0)
    return path


@pytest.fixture(scope="module")
def bags(tmp_path_factory):
    """The three ways an episode can go, each in a bag."""
    folder = tmp_path_factory.mktemp("bags")
    scripts = {
        "sense": sense_then_act(),
        "ask": asked("I think that the bottle is slippery."),
        "hold": asked(""),
    }
    for name, script in scripts.items():
        script.sensors()
        write(folder / name, script)
    return folder


@pytest.fixture(scope="module")
def figures(bags):
    return {
        name: episode_figure.draw(episode_figure.read_recording(bags / name, "first"))
        for name in ("sense", "ask", "hold")
    }


def axes(figure, label):
    found = [ax for ax in figure.axes if ax.get_label() == label]
    assert len(found) == 1, f"{label!r} in {[ax.get_label() for ax in figure.axes]}"
    return found[0]


def texts(figure):
    """All texts that are visible, tick labels included; those beyond the limits of the axes are not drawn."""
    shown = list(figure.texts)
    for ax in figure.axes:
        shown += ax.texts
        if ax.axison:
            shown.append(ax.yaxis.label)
            for axis in (ax.xaxis, ax.yaxis):
                low, high = axis.get_view_interval()
                shown += [tick.label1 for tick in axis.get_major_ticks() if low <= tick.get_loc() <= high]
    return [text for text in shown if text.get_visible() and text.get_text().strip()]


def lines(ax):
    return [text.get_text().replace("\n", " ") for text in ax.texts]


def events(figure):
    """The words of the events, without the letters of the frames and the numbers of the decisions."""
    return [text for text in lines(axes(figure, "events")) if len(text) > 1]


def test_the_events_tell_the_episode_in_its_order(figures):
    assert events(figures["sense"]) == [
        "failure noticed: the fingers closed to 21.6 mm, from 29.6 mm at the grasp",
        "camera: slippery surface 0.52, weak grip 0.48",
        "decision: SENSE force",
        "force sensor: slippery surface 0.97, weak grip 0.03",
        "decision: ACT grip pads",
        "repair: grip pads",
        "re-check: gripper: held to the release; camera: gone from where it stood",
        "outcome: recovered; the robot says: succeeded",
    ]


def test_a_decision_stands_behind_what_it_rests_on_however_it_was_recorded(tmp_path, bags):
    """The recorder takes topic by topic: within a poll, effects may come before their causes."""
    for name, script in (("sense", sense_then_act()), ("ask", asked("I think that the bottle is slippery."))):
        recorded_s = {topics.DIAGNOSIS: 0.02, topics.REPLY_MEANING: 0.02}
        script.said = [
            (topic, time_s + recorded_s.get(topic, 0.0), message) for topic, time_s, message in script.said
        ]
        mixed_up = bag_reading.episode(write(tmp_path / name, script), "first")
        assert [e.text for e in story(mixed_up)] == [
            e.text for e in story(bag_reading.episode(bags / name, "first"))
        ]


def test_question_and_reply_stand_in_the_picture(figures):
    told = events(figures["ask"])
    assert len(told) == 9
    assert told[3].startswith("robot asks: “The bbq sauce slipped") and told[3].endswith(
        "is the surface slippery?”"
    )
    assert told[4] == "operator: “I think that the bottle is slippery.” – understood: slippery surface"
    assert events(figures["hold"])[-3:] == [
        "nobody answers",
        "decision: HOLD",
        "outcome: handed over; the robot says: not succeeded",
    ]


def test_each_event_is_marked_at_its_time(figures):
    marks = [
        line.get_xdata()[0]
        for line in axes(figures["sense"], "events").lines
        if line.get_marker() not in ("None", None, "")
    ]
    assert marks == pytest.approx([4.0, 4.70, 4.71, 4.74, 4.74, 7.0, 15.0, 18.0], abs=0.002)


def test_the_frames_are_those_of_the_four_moments(figures):
    for number, (title, time_s) in enumerate(
        (("before", 0.0), ("at the slip", 3.9), ("after the failure", 4.5), ("after the repair", 17.9)), 1
    ):
        ax = axes(figures["sense"], f"frame {number}")
        assert f"{title}, {time_s:.1f} s" in lines(ax)[0]
        assert np.unique(ax.images[0].get_array()) == [round(10 * time_s)]
    # Without a force diagnosis nothing says when it slipped.
    assert "when noticed, 4.0 s" in lines(axes(figures["ask"], "frame 2"))[0]
    assert "at the end" in lines(axes(figures["hold"], "frame 4"))[0]


def test_the_sensors_are_drawn_in_the_units_of_their_labels(figures):
    def value(label, time_s):
        times, values = axes(figures["sense"], label).lines[0].get_data()
        return float(np.interp(time_s, times, values))

    assert axes(figures["sense"], "wrist load").get_ylabel() == "wrist load\n(N)"
    assert [value("wrist load", t) for t in (1.0, 3.5, 6.0, 12.0)] == pytest.approx(
        [0, LOAD_N, 0, LOAD_N], abs=0.01
    )
    assert [value("aperture", t) for t in (1.0, 3.5, 12.0)] == pytest.approx([80, 30, 30], abs=0.1)
    assert [value("finger effort", t) for t in (1.0, 3.5, 12.0)] == pytest.approx([0, 4.1, 4.1], abs=0.01)


def test_what_was_commanded_stands_over_what_was_measured(figures):
    commanded = next(
        line for line in axes(figures["sense"], "finger effort").lines if line.get_label() == "commanded"
    )
    assert list(commanded.get_xdata()) == pytest.approx([3.0, 3.3, 3.3, 4.0])
    assert list(commanded.get_ydata()) == [10.0, 10.0, 5.0, 5.0]


def test_phases_end_with_their_motion(bags):
    phases = stretches(bag_reading.episode(bags / "sense", "first"))
    assert [p.name for p in phases] == [name for name, _ in FIRST + SECOND]
    ends = {(p.name, round(p.start_s - START_S, 1)): p.end_s - START_S for p in phases}
    assert ends["rest", 2.0] == pytest.approx(2.2)
    assert ends["relax", 3.3] == pytest.approx(4.5)  # the end of the attempt
    assert ends["release", 14.0] == pytest.approx(15.0)  # the repair is over


def test_the_load_is_tared_anew_for_each_motion(bags):
    log = bag_reading.episode(bags / "sense", "first")
    sensors = bag_reading.sensors(bags / "sense", log.start_s, log.end_s)
    sensors.wrench.wrench_n_nm[sensors.wrench.stamps_s > START_S + 8.5, 2] += 7.0  # the sensor's zero moved
    times, load = wrist_load(sensors, stretches(log))
    assert np.interp([12.0, 17.0], times - START_S, load) == pytest.approx([LOAD_N, 0.0], abs=0.01)


def test_bars_are_as_long_as_the_costs_and_the_choice_stands_out(figures):
    ax = axes(figures["sense"], "costs 1")
    lengths = [bar.get_width() for bar in ax.patches]
    assert [length / lengths[0] for length in lengths] == pytest.approx([1, 1.58 / 5.8, 4.8 / 5.8])
    assert lines(ax) == ["act: grip pads", "5.80", "sense: force", "1.58", "ask", "4.80"]
    assert [t.get_text() for t in ax.texts if t.get_weight() == "bold"] == ["sense: force", "1.58"]
    assert [bar.get_alpha() for bar in ax.patches] == [0.35, 1.0, 0.35]
    assert lines(axes(figures["hold"], "costs 2")) == [
        "act: grip pads",
        "5.80",
        "ask",
        "nobody is there to ask",
    ]


def test_p_stands_in_its_interval_against_the_threshold(figures):
    drawn = [line.get_xdata() for line in axes(figures["sense"], "p 1").lines]
    assert [list(x) for x in drawn] == [[0, 1], [0.41, 0.63], [0.52], [0.588, 0.588]]
    written = [text.get_text() for text in figures["sense"].texts]
    assert "p = 0.52  [0.41, 0.63], n = 80" in written and "p* = 0.59" in written
    assert "p = 0.94 (stated)" in [text.get_text() for text in figures["ask"].texts]


def test_an_unmeasured_p_is_said_to_be_so(tmp_path):
    s = sense_then_act()
    s.said = [item for item in s.said if item[0] != topics.DECISION]
    s.decision(
        4.71,
        m.Decision.ASK,
        [("act", "", math.inf, "no source"), ("ask", "", 5.0, "")],
        math.nan,
        math.nan,
        math.nan,
    )
    s.said[-1][2].threshold = math.nan
    figure = episode_figure.draw(episode_figure.read_recording(write(tmp_path / "bag", s), "first"))
    written = [text.get_text() for text in figure.texts]
    assert "p: not measured" in written and "asking never pays" in written
    assert len(axes(figure, "p 1").lines) == 1


@pytest.mark.parametrize("name", ["sense", "ask", "hold"])
def test_no_labels_overlap_or_leave_the_page(figures, name):
    figure = figures[name]
    renderer = FigureCanvasAgg(figure).get_renderer()
    figure.draw(renderer)
    boxes = [(text.get_text(), text.get_window_extent(renderer)) for text in texts(figure)]
    assert len(boxes) > 40
    for text, box in boxes:
        assert figure.bbox.x0 <= box.x0 and box.x1 <= figure.bbox.x1, text
        assert figure.bbox.y0 <= box.y0 and box.y1 <= figure.bbox.y1, text
    for (a, box_a), (b, box_b) in itertools.combinations(boxes, 2):
        assert not box_a.overlaps(box_b), (a, b)


def test_a_long_text_is_cut_with_an_ellipsis(tmp_path):
    s = asked("No. " + 60 * "I really do not know what it was. ")
    figure = episode_figure.draw(episode_figure.read_recording(write(tmp_path / "bag", s), "first"))
    reply = next(text for text in axes(figure, "events").texts if text.get_text().startswith("operator"))
    assert reply.get_text().count("\n") == 1 and reply.get_text().endswith("…")


def test_channels_that_were_not_recorded_are_named(tmp_path):
    s = sense_then_act()
    s.sensors()
    bag = write(tmp_path / "bag", s, without=(topics.IMAGE, topics.WRENCH))
    figure = episode_figure.draw(episode_figure.read_recording(bag, "first"))
    assert lines(axes(figure, "wrist load")) == ["not recorded"]
    assert lines(axes(figure, "frame 1"))[0] == "no camera frame recorded"
    assert axes(figure, "aperture").lines


def test_a_recording_that_stops_early_is_drawn_as_far_as_it_goes(tmp_path):
    s = sense_then_act()
    s.said = [item for item in s.said if item[1] < START_S + 9.0]
    log = bag_reading.episode(write(tmp_path / "bag", s), "first")
    assert not log.over and log.outcome is None
    figure = episode_figure.draw(episode_figure.read_recording(tmp_path / "bag", "first"))
    assert any("ends before the outcome" in text.get_text() for text in figure.texts)
    assert events(figure)[-1] == "repair: grip pads"


def test_messages_that_a_recorder_got_twice_count_once(tmp_path):
    s = sense_then_act()
    latched = [
        (topic, time_s + 0.5, message)
        for topic, time_s, message in s.said
        if topic in (topics.DECISION, topics.DIAGNOSIS)
    ]
    s.said += latched
    assert len(bag_reading.episode(write(tmp_path / "bag", s), "first").decisions) == 2


@pytest.mark.parametrize("length", range(8))
def test_empty_lists_of_numbers_are_read_whatever_stands_before_them(tmp_path, length):
    s = asked("")
    for _, _, message in s.said:
        if isinstance(message, m.ReplyMeaning):
            message.question_id = "q" * length
    (meaning,) = bag_reading.episode(write(tmp_path / "bag", s), "first").meanings
    assert (meaning.message.act, meaning.message.times_asked) == ("no_reply", 1)


def two_episodes(path):
    success = Script("e-0000", 1.0)
    success.state(0.0, "attempting")
    success.state(5.0, "idle", "the attempt succeeded")
    return write(path, success, sense_then_act(), renamed("e-0002", 40.0))


def renamed(episode_id, start_s):
    """The episode in which nobody answers, under another name and at another time."""
    s = Script(episode_id, start_s)
    for topic, time_s, message in asked("").said:
        s.say(time_s - START_S, topic, message)
    return s


def test_an_episode_is_found_by_id_number_or_place(tmp_path):
    bag = two_episodes(tmp_path / "bag")
    ids = {
        which: bag_reading.episode(bag, which).episode_id
        for which in ("first", "last", "2", "3", "e-0001", "e-0002")
    }
    assert ids == {
        "first": "e-0001",
        "last": "e-0002",
        "2": "e-0001",
        "3": "e-0002",
        "e-0001": "e-0001",
        "e-0002": "e-0002",
    }
    assert len(bag_reading.episode(bag, "last").diagnoses) == 1
    with pytest.raises(EvidenceError, match=r"no episode 'e-0009'.*2 \(e-0001\), 3 \(e-0002\)"):
        bag_reading.episode(bag, "e-0009")
    with pytest.raises(EvidenceError, match="no attempt failed in episode '1'"):
        bag_reading.episode(bag, "1")


def test_an_episode_begins_with_the_attempt_when_another_program_gave_the_task(tmp_path):
    s = sense_then_act()
    s.said = [item for item in s.said if not (item[0] == topics.EPISODE and item[2].state == "attempting")]
    log = bag_reading.episode(write(tmp_path / "bag", s), "first")
    assert log.start_s == pytest.approx(START_S)
    assert len(log.failures) == 1 and log.phases[0].name == "approach"


def test_a_bag_without_a_failed_attempt_says_what_to_do(tmp_path):
    s = Script()
    s.state(0.0, "attempting")
    s.state(5.0, "idle")
    with pytest.raises(EvidenceError, match="holds 1 of them, but in none an attempt failed.*--record"):
        bag_reading.episode(write(tmp_path / "bag", s), "first")


def test_what_is_no_bag_is_refused_by_name(tmp_path, bags):
    with pytest.raises(ConfigError, match="there is no bag .*nowhere"):
        bag_reading.episodes(tmp_path / "nowhere")
    with pytest.raises(ConfigError, match="is no bag but holds some; give one of them: ask, hold, sense"):
        bag_reading.episodes(bags)
    (tmp_path / "empty").mkdir()
    with pytest.raises(ConfigError, match="no metadata.yaml"):
        bag_reading.episodes(tmp_path / "empty")


@pytest.mark.parametrize("kept", [0.0, 0.3, 0.999])
def test_a_cut_off_bag_is_refused_with_a_remedy(tmp_path, bags, kept):
    shutil.copytree(bags / "sense", tmp_path / "bag")
    (file,) = (tmp_path / "bag").glob("*.mcap")
    file.write_bytes(file.read_bytes()[: int(kept * file.stat().st_size)])
    with pytest.raises(EvidenceError, match="cannot be read.*mcap recover"):
        bag_reading.episodes(tmp_path / "bag")


def test_damaged_metadata_is_refused(tmp_path, bags):
    shutil.copytree(bags / "sense", tmp_path / "bag")
    (tmp_path / "bag" / "metadata.yaml").write_text("rosbag2_bagfile_information: 7\n")
    with pytest.raises(EvidenceError, match="cannot be read"):
        bag_reading.episodes(tmp_path / "bag")


def test_the_verb_writes_a_small_sharp_picture(tmp_path, bags):
    out = tmp_path / "episode.png"
    result = CliRunner().invoke(command, [str(bags / "sense"), "--out", str(out)], catch_exceptions=False)
    assert result.exit_code == 0 and f"wrote {out}" in result.output
    with Image.open(out) as picture:
        assert picture.width == 9 * sheet.DPI
        paper = picture.convert("RGB").getpixel((2, 2))
    assert paper == (255, 255, 255)
    assert out.stat().st_size < 400_000


def test_colours_of_the_drawing_survive_the_palette():
    rng = np.random.default_rng(1)
    pixels = rng.integers(0, 256, (200, 200, 3), dtype=np.uint8)
    flat = [(255, 255, 255), (240, 240, 240), (207, 229, 245), (0, 158, 115)]
    for i, colour in enumerate(flat):
        pixels[i * 30 : (i + 1) * 30, :150] = colour
    few = np.asarray(sheet.with_few_colours(Image.fromarray(pixels)).convert("RGB"))
    for i, colour in enumerate(flat):
        assert (few[i * 30 : (i + 1) * 30, :150] == colour).all()
    assert len(np.unique(few.reshape(-1, 3), axis=0)) <= 256


@pytest.mark.parametrize(
    "arguments, complaint",
    [
        (["--out", "a.png"], "no bag was given"),
        (["somewhere", "--graph", "--out", "a.png"], "leave one out"),
        (["--graph", "--out", "picture.bmp"], "'.bmp'"),
        (["--graph", "--out", "no/such/folder/a.png"], "no/such/folder does not exist"),
    ],
)
def test_the_verb_refuses_what_makes_no_sense(arguments, complaint):
    with pytest.raises(ConfigError, match=complaint):
        CliRunner().invoke(command, arguments, catch_exceptions=False)


def test_every_kind_of_event_has_its_own_mark():
    marks = [episode_figure._MARKS[kind][0] for kind in Kind]
    assert len(set(marks)) == len(Kind)
