"""The simulated robot's sensors: what a real wrist sensor, gripper and encoders would add to the truth."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

JOINT_NAMES = tuple(f"panda_joint{i}" for i in range(1, 8)) + ("panda_finger_joint1", "panda_finger_joint2")

_BLOCK = 512
_FORCE_NOISE_N, _TORQUE_NOISE_NM = 0.15, 0.01
_FORCE_BIAS_N, _TORQUE_BIAS_NM = 4.0, 0.1
_FORCE_DRIFT_N_S, _TORQUE_DRIFT_NM_S = 0.1, 0.003
_EFFORT_GAIN, _EFFORT_NOISE_N = 0.05, 0.1
_APERTURE_STEP_M, _FINGER_NOISE_M = 1e-4, 2.5e-5
_ANGLE_NOISE_RAD, _RATE_NOISE, _ARM_TORQUE_NOISE_NM = 5e-5, 1e-3, 0.05


@dataclass(frozen=True, slots=True)
class JointSample:
    """Arm and fingers, columns as JOINT_NAMES: rad and m, rad/s and m/s, Nm and N.

    Finger positions are 0..0.04 m each (their sum is the aperture); finger effort is the grip force per
    finger, positive when closing.
    """

    position: np.ndarray
    velocity: np.ndarray
    effort: np.ndarray


@dataclass(frozen=True, slots=True)
class Sample:
    """One step of all sensors; joints is None on four steps out of five (100 Hz)."""

    stamp_s: float
    wrench: np.ndarray
    joints: JointSample | None


class _NoiseBlocks:
    """Standard normal rows, drawn in blocks: one draw per step would cost more than the physics."""

    def __init__(self, rng: np.random.Generator, width: int) -> None:
        self._rng, self._width, self._next = rng, width, _BLOCK
        self._rows = np.empty((0, width))

    def row(self) -> np.ndarray:
        if self._next == _BLOCK:
            self._rows, self._next = self._rng.standard_normal((_BLOCK, self._width)), 0
        self._next += 1
        return self._rows[self._next - 1]


class SensorSuite:
    """Noise, bias, drift, steps and gains of one episode, all from its seed."""

    def __init__(self, seed: np.random.SeedSequence) -> None:
        constants, wrench, joints = (np.random.default_rng(s) for s in seed.spawn(3))
        self._bias = np.concatenate([constants.uniform(-_FORCE_BIAS_N, _FORCE_BIAS_N, 3),
                                     constants.uniform(-_TORQUE_BIAS_NM, _TORQUE_BIAS_NM, 3)])
        self._drift = np.concatenate([constants.uniform(-_FORCE_DRIFT_N_S, _FORCE_DRIFT_N_S, 3),
                                      constants.uniform(-_TORQUE_DRIFT_NM_S, _TORQUE_DRIFT_NM_S, 3)])
        self._effort_gain = 1 + constants.uniform(-_EFFORT_GAIN, _EFFORT_GAIN)
        self._sigma = np.array([_FORCE_NOISE_N] * 3 + [_TORQUE_NOISE_NM] * 3)
        self._wrench_noise = _NoiseBlocks(wrench, 6)
        self._joint_noise = _NoiseBlocks(joints, 27)

    def wrench(self, stamp_s: float, true_n_nm: np.ndarray) -> np.ndarray:
        """(6,) measured N and Nm: truth + bias + drift + noise."""
        return true_n_nm + self._bias + self._drift * stamp_s + self._sigma * self._wrench_noise.row()

    def joints(self, position: np.ndarray, velocity: np.ndarray, effort: np.ndarray) -> JointSample:
        """Measured joints; all (9,), fingers last, in the conventions of JointSample."""
        noise = self._joint_noise.row()
        q = position + np.concatenate([noise[:7] * _ANGLE_NOISE_RAD, noise[7:9] * _FINGER_NOISE_M])
        q[7:] = np.round(q[7:] / (_APERTURE_STEP_M / 2)) * (_APERTURE_STEP_M / 2)
        measured = effort.copy()
        measured[:7] += noise[18:25] * _ARM_TORQUE_NOISE_NM
        measured[7:] = measured[7:] * self._effort_gain + noise[25:27] * _EFFORT_NOISE_N
        return JointSample(q, velocity + noise[9:18] * _RATE_NOISE, measured)
