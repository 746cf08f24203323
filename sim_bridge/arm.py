"""The arm's own controller: operational-space impedance and a force-limited gripper, at the physics rate."""

from __future__ import annotations

import mujoco
import numpy as np

#: Physics and control step (s).
STEP_S = 0.002

_STIFFNESS = 150.0  # 1/s^2, times the effective mass at the hand
_DAMPING = 2 * np.sqrt(_STIFFNESS)
_POSTURE_STIFFNESS, _POSTURE_DAMPING = 10.0, 6.3
_FINGER_SPEED_M_S = 0.05
_FORCE_RATE_N_S = 20.0
_OPEN_M = 0.04
_FINGER_MAX_N = 20.0
# With the model's own finger damping (100) and friction (1 N) a weak grip would never close at all.
_FINGER_DAMPING, _FINGER_FRICTION_N = 5.0, 0.05
_FINGERS = ("gripper0_finger_joint1", "gripper0_finger_joint2")


class ArmController:
    """Turns a hand pose, a finger opening and a grip force into actuator commands, once per step.

    target_position (3,) m and target_rotation (3, 3): of the grip site, world frame. Grip force is the
    command per finger in N; what the fingers deliver is delivered_scale times that.
    Control law: O. Khatib, "A unified approach for motion and force control of robot manipulators: the
    operational space formulation", IEEE J. Robotics and Automation 3 (1987), with a posture task in the
    null space.
    """

    def __init__(self, model: mujoco.MjModel, data: mujoco.MjData) -> None:
        self._model, self._data = model, data
        self._site = model.site("gripper0_grip_site").id
        for joint in _FINGERS:
            dof = model.joint(joint).dofadr[0]
            model.dof_damping[dof] = _FINGER_DAMPING
            model.dof_frictionloss[dof] = _FINGER_FRICTION_N
        self._jac_p, self._jac_r = np.zeros((3, model.nv)), np.zeros((3, model.nv))
        self._jac = np.zeros((6, 7))
        self._mass = np.zeros((model.nv, model.nv))
        self._low, self._high = model.actuator_ctrlrange[:7].T.copy()
        self._regular = 1e-6 * np.eye(6)
        self.target_position = np.zeros(3)
        self.target_rotation = np.eye(3)
        self.delivered_scale = 1.0
        self._error = np.zeros(6)

    def reset(self, grip_n: float, delivered_scale: float) -> None:
        """Fingers open, the present arm posture and hand pose as targets. Call after mj_forward."""
        self._posture = self._data.qpos[:7].copy()
        self.delivered_scale = delivered_scale
        self._finger = self._finger_target = _OPEN_M
        self._force = self._force_target = grip_n
        self._limit_force()
        self.hold_here()

    @property
    def position(self) -> np.ndarray:
        """(3,) m, the grip site now."""
        return self._data.site_xpos[self._site].copy()

    @property
    def rotation(self) -> np.ndarray:
        """(3, 3), the grip site now."""
        return self._data.site_xmat[self._site].reshape(3, 3).copy()

    @property
    def commanded_force_n(self) -> float:
        """The force per finger that is commanded in the end (N); the command slews towards it."""
        return self._force_target

    def hold_here(self) -> None:
        """Make the present hand pose the target."""
        self.target_position, self.target_rotation = self.position, self.rotation

    def command_force(self, grip_n: float) -> None:
        """Command a grip force per finger (N, at least 0.5), reached at 20 N/s."""
        self._force_target = max(0.5, grip_n)

    def open_fingers(self) -> None:
        """Start opening from where the fingers are."""
        self._finger = float(self._data.qpos[7])
        self._finger_target = _OPEN_M

    def close_fingers(self) -> None:
        """Start closing."""
        self._finger_target = 0.0

    def apply(self) -> None:
        """Write this step's commands."""
        data = self._data
        mujoco.mj_jacSite(self._model, data, self._jac_p, self._jac_r, self._site)
        jac = self._jac
        jac[:3], jac[3:] = self._jac_p[:, :7], self._jac_r[:, :7]
        mujoco.mj_fullM(self._model, data, self._mass)
        mass = self._mass[:7, :7]
        error = self._error
        error[:3] = self.target_position - data.site_xpos[self._site]
        turn = self.target_rotation @ data.site_xmat[self._site].reshape(3, 3).T
        error[3:] = (0.5 * (turn[2, 1] - turn[1, 2]), 0.5 * (turn[0, 2] - turn[2, 0]),
                     0.5 * (turn[1, 0] - turn[0, 1]))
        rates = data.qvel[:7]
        mass_inv_jac = np.linalg.solve(mass, jac.T)
        effective_mass = np.linalg.inv(jac @ mass_inv_jac + self._regular)
        torque = jac.T @ (effective_mass @ (_STIFFNESS * error - _DAMPING * (jac @ rates)))
        posture = mass @ (_POSTURE_STIFFNESS * (self._posture - data.qpos[:7]) - _POSTURE_DAMPING * rates)
        torque += posture - jac.T @ (effective_mass @ (mass_inv_jac.T @ posture))
        data.ctrl[:7] = np.minimum(np.maximum(torque + data.qfrc_bias[:7], self._low), self._high)
        self._apply_gripper()

    def _apply_gripper(self) -> None:
        step = _FINGER_SPEED_M_S * STEP_S
        self._finger += min(step, max(-step, self._finger_target - self._finger))
        self._data.ctrl[7], self._data.ctrl[8] = self._finger, -self._finger
        if self._force != self._force_target:
            step = _FORCE_RATE_N_S * STEP_S
            self._force += min(step, max(-step, self._force_target - self._force))
            self._limit_force()

    def _limit_force(self) -> None:
        # In the closing direction only: limited both ways, a weak gripper could not open again.
        closing = min(_FINGER_MAX_N, self._force * self.delivered_scale)
        self._model.actuator_forcerange[7] = (-closing, _FINGER_MAX_N)
        self._model.actuator_forcerange[8] = (-_FINGER_MAX_N, closing)
