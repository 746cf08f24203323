"""Between messages and values: what goes in comes out, and what is malformed is refused by name."""

import math

import numpy as np
import pytest
from builtin_interfaces.msg import Time
from failure_dialogue_msgs import msg as m
from sensor_msgs.msg import Image

from failure_dialogue.decision.policy import Action, ActionCost, Decision
from failure_dialogue.diagnosis.protocol import Diagnosis, Event
from failure_dialogue.errors import EvidenceError
from failure_dialogue.nodes import convert

NOW = Time(sec=5)


def image(width=3, height=2, encoding="rgb8", padding=0):
    """A message whose bytes count upwards, each row with so many bytes of padding."""
    step = 3 * width + padding
    return Image(
        width=width, height=height, step=step, encoding=encoding, data=[i % 256 for i in range(step * height)]
    )


def test_a_stamp_is_exact_to_the_nanosecond_and_never_negative():
    assert convert.stamp(12.000000001) == Time(sec=12, nanosec=1)
    assert convert.seconds(convert.stamp(1234.5678)) == pytest.approx(1234.5678, abs=1e-9)
    assert convert.stamp(-3.0) == Time()
    assert convert.stamp(0.9999999999) == Time(sec=1)


def test_an_image_survives_the_way_there_and_back():
    pixels = np.random.default_rng(0).integers(0, 256, (5, 7, 3), np.uint8)
    message = Image()
    convert.fill_image(message, pixels)
    assert np.array_equal(convert.image_rgb(message), pixels)


def test_padding_at_the_end_of_rows_is_left_out():
    rows = convert.image_rgb(image(padding=2))
    assert rows[0].flatten().tolist() == list(range(9)) and rows[1].flatten().tolist() == list(range(11, 20))


def test_bgr_is_turned_into_rgb():
    assert convert.image_rgb(image(encoding="bgr8"))[0, 0].tolist() == [2, 1, 0]


@pytest.mark.parametrize(
    "message, words",
    [
        (image(encoding="mono8"), "'mono8' is not understood"),
        (image(encoding=""), "'' is not understood"),
        (Image(width=3, height=2, step=9, encoding="rgb8", data=[0] * 17), "17 bytes"),
        (Image(width=4, height=2, step=9, encoding="rgb8", data=[0] * 18), "malformed"),
        (Image(encoding="rgb8"), "0x0 pixels"),
        (Image(width=2**31, height=2**31, step=0, encoding="rgb8"), "malformed"),
    ],
)
def test_a_malformed_image_is_refused_by_name(message, words):
    with pytest.raises(EvidenceError, match=words):
        convert.image_rgb(message)


def test_a_diagnosis_survives_the_way_there_and_back():
    diagnosis = Diagnosis(
        "force", "grasp", ("a", "b"), (0.25, 0.75), "m-1", 0.5, events=(Event("slip", 1.5, 2.25, "along z"),)
    )
    message = convert.diagnosis_message(diagnosis, "e-1", "7.1", NOW)
    assert (message.episode_id, message.state_id, message.header.stamp) == ("e-1", "7.1", NOW)
    assert convert.diagnosis_value(message) == diagnosis


def test_an_abstention_keeps_its_reason():
    value = convert.diagnosis_value(
        convert.diagnosis_message(Diagnosis.abstention("camera", "grasp", "m-1", "no frames"), "", "7.1", NOW)
    )
    assert value.abstained and value.reason == "no frames" and value.best == ""


@pytest.mark.parametrize(
    "fields, words",
    [
        ({"causes": ["a"], "probabilities": []}, "0 probabilities for 1 causes"),
        ({"causes": [], "probabilities": []}, "must be one for each"),
        ({"causes": ["a", "b"], "probabilities": [0.7, 0.7]}, "sum to 1.4"),
        ({"causes": ["a", "b"], "probabilities": [math.nan, 1.0]}, "sum to"),
        ({"causes": ["a", "b"], "probabilities": [-0.5, 1.5]}, "lie in 0..1"),
        ({"abstained": True}, "abstained without a reason"),
    ],
)
def test_a_malformed_diagnosis_is_refused_by_name(fields, words):
    with pytest.raises(EvidenceError, match=words) as refused:
        convert.diagnosis_value(m.Diagnosis(source="camera", family="grasp", **fields))
    assert "camera" in str(refused.value)


def test_a_decision_says_what_was_not_measured_as_nan_and_not_possible_as_infinite():
    message = convert.decision_message(
        Decision(
            Action.ASK,
            "grasp",
            (
                ActionCost(Action.ACT, "raise_grip", 7.0),
                ActionCost(Action.SENSE, "force", math.inf, "not measured"),
            ),
            "Because.",
            0.588,
            question_form="which_cause",
            target_causes=("weak_grip",),
        ),
        "e-1",
        "7.1",
        NOW,
    )
    assert message.action == m.Decision.ASK
    assert math.isnan(message.p) and message.n == 0
    assert [(c.action, c.detail, c.expected_cost) for c in message.costs] == [
        ("act", "raise_grip", 7.0),
        ("sense", "force", math.inf),
    ]
    assert message.costs[1].note == "not measured"


@pytest.mark.parametrize("action", Action)
def test_every_action_has_its_number_in_the_message(action):
    message = convert.decision_message(Decision(action, "grasp", (), "Because.", 0.588), "e-1", "7.1", NOW)
    assert message.action == getattr(m.Decision, action.name)


def test_phases_keep_their_order_and_times():
    told = convert.phases([m.Phase(name="rest", start=Time(sec=1)), m.Phase(name="lift", start=Time(sec=2))])
    assert [(p.name, p.start_s) for p in told] == [("rest", 1.0), ("lift", 2.0)]
