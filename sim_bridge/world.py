"""The physical side of the simulated scene: objects, contacts, damage. All of it is ground truth."""

from __future__ import annotations

from dataclasses import dataclass

import mujoco
import numpy as np

from sim_bridge.arm import STEP_S
from sim_bridge.objects import GraspObject
from sim_bridge.perturbation import Scenario
from sim_bridge.scene_cache import CachedScene

_CRUSH_S = 0.1  # over the limit for this long
_DENT = 0.8  # width that is left of a crushed object
_DENT_STEPS = 50
_MOVED_M = 0.01
_LIFTED_M = 0.01
_BOX = np.array([[a, b, c] for a in (-1, 1) for b in (-1, 1) for c in (-1, 1)], dtype=float)


@dataclass(frozen=True)
class GroundTruth:
    """What really is. Only scoring and labels may see it.

    object_position (3,) m and object_quaternion (4,) wxyz of the target; rise_m: how high it has been above
    its start; moved: other objects that lie more than 1 cm from where they were at the start.
    """

    cause: str | None
    severity: float
    object_position: tuple[float, ...]
    object_quaternion: tuple[float, ...]
    rise_m: float
    held: bool
    in_basket: bool
    damaged: bool
    moved: tuple[str, ...]

    @property
    def success(self) -> bool:
        """The task is done: undamaged, in the basket and let go of."""
        return self.in_basket and not self.damaged and not self.held


class World:
    """One scene's MuJoCo state, with the perturbation of the episode applied to the model."""

    def __init__(self, scene: CachedScene) -> None:
        self._scene = scene
        self.model = model = scene.model
        self.data = mujoco.MjData(model)
        self._scratch = mujoco.MjData(model)
        self._bodies = {name: model.body(body).id for name, body in scene.objects.items()}
        self._target_body = self._bodies[scene.target]
        self._target_bodies = np.flatnonzero(model.body_rootid == self._target_body)
        self._target_geoms = self._collision_geoms(self._target_body)
        self._container_geoms = self._collision_geoms(self._bodies[scene.container])
        collides = (model.geom_contype > 0) | (model.geom_conaffinity > 0)
        self._finger_geoms = np.array([g for g in range(model.ngeom)
                                       if collides[g] and "finger" in model.geom(g).name])
        self._grip_site = model.site("gripper0_grip_site").id
        self._force_at = model.sensor("gripper0_force_ee").adr[0]
        self._torque_at = model.sensor("gripper0_torque_ee").adr[0]
        self._original = {name: getattr(model, name).copy() for name in (
            "body_mass", "body_inertia", "geom_friction", "geom_size", "geom_pos")}

    def _collision_geoms(self, body: int) -> np.ndarray:
        model = self.model
        return np.array([g for g in range(model.ngeom)
                         if model.body_rootid[model.geom_bodyid[g]] == body and model.geom_contype[g]])

    def reset(self, scenario: Scenario, target: GraspObject) -> None:
        """Put everything in the initial state of the scenario, with its mass and friction."""
        model, data = self.model, self.data
        for name, values in self._original.items():
            getattr(model, name)[:] = values
        scale = scenario.mass_kg / self._original["body_mass"][self._target_bodies].sum()
        model.body_mass[self._target_bodies] *= scale
        model.body_inertia[self._target_bodies] *= scale
        # mj_setConst writes into the data it is given.
        mujoco.mj_setConst(model, self._scratch)
        model.geom_friction[self._target_geoms, 0] = scenario.friction
        model.geom_friction[self._finger_geoms, 0] = scenario.friction
        self._crush_limit_n = target.crush_limit_n(scenario.full)
        self._over_limit_s, self._dent_left, self._damaged = 0.0, 0, False
        mujoco.mj_resetData(model, data)
        data.qpos[:] = self._scene.init_states[scenario.init_state]
        mujoco.mj_forward(model, data)
        self._start: dict[str, np.ndarray] = {}
        self._start_z, self._rise_m, self._steps = 0.0, 0.0, 0

    def mark_start(self) -> None:
        """What lies where now is the start that `moved` and `rise_m` refer to."""
        self._start = {name: self.data.xpos[body].copy() for name, body in self._bodies.items()}
        self.mark_rise()

    def mark_rise(self) -> None:
        """Measure rise_m from here."""
        self._start_z, self._rise_m = float(self.data.xpos[self._target_body][2]), 0.0

    def fit_pads(self, friction: float) -> None:
        """Other finger pads: friction of the fingers only. Contact friction is the larger of two geoms."""
        self.model.geom_friction[self._finger_geoms, 0] = friction

    # -- physics ----------------------------------------------------------------------------------------

    def step(self) -> None:
        """One physics step and what it does to the object."""
        mujoco.mj_step(self.model, self.data)
        self._steps += 1
        force = self.data.actuator_force
        if -force[7] > self._crush_limit_n and not self._damaged and self._touched():
            self._over_limit_s += STEP_S
            if self._over_limit_s >= _CRUSH_S:
                self._damaged, self._dent_left = True, _DENT_STEPS
                self._dent_axis = self.data.site_xmat[self._grip_site].reshape(3, 3)[:, 0].copy()
        else:
            self._over_limit_s = 0.0
        if self._dent_left:
            self._dent_left -= 1
            self._dent()
        if self._steps % 5 == 0:
            self._rise_m = max(self._rise_m, float(self.data.xpos[self._target_body][2]) - self._start_z)

    def _touched(self) -> bool:
        pairs = self.data.contact.geom
        finger, target = np.isin(pairs, self._finger_geoms), np.isin(pairs, self._target_geoms)
        return bool((finger & target[:, ::-1]).any())

    def _dent(self) -> None:
        """A crushed object gives way along the line of the fingers, a little in each step."""
        model, shrink = self.model, _DENT ** (1 / _DENT_STEPS)
        axis = self.data.xmat[self._target_body].reshape(3, 3).T @ self._dent_axis
        for geom in self._target_geoms:
            rotation = np.zeros(9)
            mujoco.mju_quat2Mat(rotation, model.geom_quat[geom])
            along = np.abs(rotation.reshape(3, 3).T @ axis)
            model.geom_size[geom, int(np.argmax(along))] *= shrink
            model.geom_pos[geom] -= (1 - shrink) * (model.geom_pos[geom] @ axis) * axis

    # -- what sensors are made from ---------------------------------------------------------------------

    def wrench(self) -> np.ndarray:
        """(6,) N, Nm: what the environment, gravity included, applies to the hand, in the sensor frame.

        The sensor frame's z axis points out of the hand. MuJoCo's sensor gives what the arm applies to the
        hand, which is the opposite.
        """
        force, torque = self._force_at, self._torque_at
        at = self.data.sensordata
        return -np.concatenate([at[force:force + 3], at[torque:torque + 3]])

    def joints(self) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
        """(9,) positions, velocities and efforts of arm and fingers, fingers positive towards open,
        finger effort positive when closing."""
        position, velocity = self.data.qpos[:9].copy(), self.data.qvel[:9].copy()
        effort = self.data.actuator_force[:9].copy()
        position[8], velocity[8], effort[7] = -position[8], -velocity[8], -effort[7]
        return position, velocity, effort

    # -- where things are: for planning a grasp and for scoring -----------------------------------------

    def target_corners(self) -> np.ndarray:
        """(n, 3) corners of the target's collision boxes, world frame (m)."""
        return self._corners(self._target_geoms)

    def target_centre_of_mass(self) -> np.ndarray:
        """(3,) m."""
        return self.data.subtree_com[self._target_body].copy()

    def container_box(self) -> tuple[np.ndarray, np.ndarray]:
        """Lowest and highest corner (3,) of the container (m)."""
        corners = self._corners(self._container_geoms)
        return corners.min(axis=0), corners.max(axis=0)

    def base_position(self) -> np.ndarray:
        """(3,) m, the foot of the arm."""
        return self.data.xpos[self.model.body("robot0_link0").id].copy()

    def target_in_container(self) -> bool:
        """The middle of the target is within the container's walls."""
        corners = self.target_corners()
        middle = (corners.min(axis=0) + corners.max(axis=0)) / 2
        low, high = self.container_box()
        return bool((middle > low).all() and (middle < high).all())

    def _corners(self, geoms: np.ndarray) -> np.ndarray:
        data, size = self.data, self.model.geom_size
        return np.concatenate([(_BOX * size[g]) @ data.geom_xmat[g].reshape(3, 3).T + data.geom_xpos[g]
                               for g in geoms])

    def truth(self, scenario: Scenario) -> GroundTruth:
        """Ground truth now."""
        data = self.data
        lifted = self.target_corners()[:, 2].min() > _LIFTED_M
        moved = tuple(name for name, start in self._start.items() if name != self._scene.target
                      and np.linalg.norm(data.xpos[self._bodies[name]] - start) > _MOVED_M)
        return GroundTruth(
            scenario.cause, scenario.severity, tuple(data.xpos[self._target_body].tolist()),
            tuple(data.xquat[self._target_body].tolist()), self._rise_m, bool(lifted and self._touched()),
            self.target_in_container(), self._damaged, moved)
