"""The noise of the simulated sensors: its size, and that it follows from the seed."""

import numpy as np
import pytest

from sim_bridge.sensors import JOINT_NAMES, SensorSuite

STEPS = 5000
STEP_S = 0.002


def wrenches(seed):
    suite = SensorSuite(np.random.SeedSequence(seed))
    return np.array([suite.wrench(k * STEP_S, np.zeros(6)) for k in range(STEPS)])


def test_force_noise_bias_and_drift_are_those_of_a_wrist_sensor():
    slopes, biases, noises = [], [], []
    stamps = np.arange(STEPS) * STEP_S
    for seed in range(20):
        measured = wrenches(seed)
        slope, bias = np.polyfit(stamps, measured, 1)
        slopes.append(slope)
        biases.append(bias)
        noises.append((measured - np.outer(stamps, slope) - bias).std(axis=0))
    assert np.mean(noises, axis=0)[:3] == pytest.approx([0.15] * 3, rel=0.05)
    assert np.mean(noises, axis=0)[3:] == pytest.approx([0.01] * 3, rel=0.05)
    assert np.abs(slopes)[:, :3].max() < 0.11
    assert 2.0 < np.abs(biases)[:, :3].max() < 4.1


def test_the_same_seed_repeats_bit_for_bit_and_another_does_not():
    assert np.array_equal(wrenches(3), wrenches(3))
    assert not np.array_equal(wrenches(3), wrenches(4))


def test_finger_positions_come_in_steps_and_effort_with_an_unknown_gain():
    position = np.array([0.0] * 7 + [0.0201234, 0.0201234])
    effort = np.array([0.0] * 7 + [8.0, 8.0])
    gains = []
    for seed in range(30):
        suite = SensorSuite(np.random.SeedSequence(seed))
        samples = [suite.joints(position, np.zeros(9), effort) for _ in range(200)]
        fingers = np.array([s.position[7:] for s in samples])
        steps = fingers / 5e-5
        assert np.allclose(steps, np.round(steps), atol=1e-6)
        assert abs(fingers.mean() - 0.0201234) < 2e-5
        gains.append(np.mean([s.effort[7:] for s in samples]) / 8.0)
    assert 0.95 < min(gains) < 0.98 and 1.02 < max(gains) < 1.05
    assert len(JOINT_NAMES) == 9
