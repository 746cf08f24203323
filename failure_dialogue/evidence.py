"""Evidence: what the robot's sensors recorded of one attempt, and the rolling buffer it is cut from."""

from __future__ import annotations

import math
from collections import deque
from dataclasses import dataclass
from pathlib import Path

import numpy as np

from failure_dialogue.errors import EvidenceError

#: Phases of a pick-and-place attempt, in order, as the robot's own policy goes through them.
#: rest: hand at the grasp pose, fingers open, nothing touched (the tare window);
#: lift: up with the preload; relax: on upwards while the force falls to the holding set-point.
PHASES = ("approach", "rest", "close", "lift", "relax", "hold", "transport", "release")

#: A force or torque beyond this is no measurement (N or Nm).
ABSURD_WRENCH = 1e4


@dataclass(frozen=True)
class Phase:
    """One phase of the attempt and the time it began (s, on the evidence's clock)."""

    name: str
    start_s: float


def _phase(name: np.str_, start_s: np.float64) -> Phase:
    return Phase(str(name), float(start_s))


@dataclass(frozen=True)
class Frame:
    """One camera frame: (H, W, 3) uint8 RGB, upright, with its stamp (s)."""

    stamp_s: float
    image_rgb: np.ndarray


@dataclass(frozen=True)
class WrenchSeries:
    """Wrist wrench: stamps (n,), values (n, 6) = fx fy fz (N) tx ty tz (Nm) in the sensor frame.

    The force the environment applies to the tool. NaN in a column: that axis is missing.
    """

    stamps_s: np.ndarray
    wrench_n_nm: np.ndarray


@dataclass(frozen=True)
class JointSeries:
    """Joints of arm and fingers: stamps (n,), arrays (n, k) with columns as in names. SI units."""

    stamps_s: np.ndarray
    names: tuple[str, ...]
    position: np.ndarray
    velocity: np.ndarray
    effort: np.ndarray

    def column(self, name: str, what: str = "position") -> np.ndarray:
        """(n,) values of one joint; what is position, velocity or effort."""
        if name not in self.names:
            raise EvidenceError(
                f"joint {name!r} is not in the joint states ({', '.join(self.names)}); "
                "check the joint names of the robot profile"
            )
        return getattr(self, what)[:, self.names.index(name)]


@dataclass(frozen=True)
class Evidence:
    """All that was recorded between start_s and end_s. Holds nothing a real robot would not know.

    grip_setpoint_n and grip_preload_n are what the robot itself commanded per finger (N), for
    holding and for the first part of the lift; NaN where the robot does not state them.
    """

    family: str
    stage: str
    instruction: str
    start_s: float
    end_s: float
    phases: tuple[Phase, ...]
    wrench: WrenchSeries
    joints: JointSeries
    frames: tuple[Frame, ...]
    grip_setpoint_n: float = math.nan
    grip_preload_n: float = math.nan

    def phase_window(self, name: str) -> tuple[float, float]:
        """(start, end) of a phase in seconds; the last phase ends with the evidence."""
        for i, phase in enumerate(self.phases):
            if phase.name == name:
                end = self.phases[i + 1].start_s if i + 1 < len(self.phases) else self.end_s
                return phase.start_s, end
        raise EvidenceError(
            f"the attempt has no phase {name!r}; it has: " + ", ".join(p.name for p in self.phases)
        )

    def save(self, path: Path) -> None:
        """Write to one .npz; frames are kept losslessly as PNG."""
        import cv2

        arrays: dict[str, np.ndarray] = {
            "text": np.array([self.family, self.stage, self.instruction]),
            "numbers": np.array([self.start_s, self.end_s, self.grip_setpoint_n, self.grip_preload_n]),
            "phase_names": np.array([p.name for p in self.phases]),
            "phase_starts": np.array([p.start_s for p in self.phases], dtype=float),
            "wrench_stamps": self.wrench.stamps_s,
            "wrench": self.wrench.wrench_n_nm.astype(np.float32),
            "joint_stamps": self.joints.stamps_s,
            "joint_names": np.array(self.joints.names),
            "joint_position": self.joints.position,
            "joint_velocity": self.joints.velocity.astype(np.float32),
            "joint_effort": self.joints.effort.astype(np.float32),
            "frame_stamps": np.array([f.stamp_s for f in self.frames], dtype=float),
        }
        for i, frame in enumerate(self.frames):
            ok, png = cv2.imencode(".png", frame.image_rgb[:, :, ::-1], [cv2.IMWRITE_PNG_COMPRESSION, 1])
            if not ok:
                raise EvidenceError(f"frame {i} of shape {frame.image_rgb.shape} could not be encoded as PNG")
            arrays[f"frame_{i:03d}"] = png
        np.savez(path, **arrays)  # type: ignore[arg-type]  # the stub takes every keyword for a flag

    @classmethod
    def load(cls, path: Path, frames: bool = True) -> Evidence:
        """Read what save() wrote; with frames=False no image is decoded."""
        try:
            with open(path, "rb") as file, np.load(file, allow_pickle=False) as z:
                family, stage, instruction = (str(t) for t in z["text"])
                start_s, end_s, setpoint, preload = (float(x) for x in z["numbers"])
                stamps = z["frame_stamps"] if frames else np.zeros(0)
                return cls(
                    family,
                    stage,
                    instruction,
                    start_s,
                    end_s,
                    tuple(map(_phase, z["phase_names"], z["phase_starts"])),
                    WrenchSeries(z["wrench_stamps"], z["wrench"].astype(float)),
                    JointSeries(
                        z["joint_stamps"],
                        tuple(str(n) for n in z["joint_names"]),
                        z["joint_position"],
                        z["joint_velocity"].astype(float),
                        z["joint_effort"].astype(float),
                    ),
                    tuple(
                        _frame(float(s), z[f"frame_{i:03d}"])
                        for i, s in enumerate(stamps)
                    ),
                    setpoint,
                    preload,
                )
        except FileNotFoundError:
            raise
        except Exception as error:
            raise EvidenceError(f"{path} is not an evidence file ({error}); generate it again") from error


def _frame(stamp_s: float, png: np.ndarray) -> Frame:
    import cv2

    image = cv2.imdecode(png, cv2.IMREAD_COLOR)
    if image is None:
        raise EvidenceError(f"the frame of {stamp_s:.3f} s is no PNG")
    return Frame(stamp_s, image[:, :, ::-1])


class RollingBuffer:
    """The last seconds of wrench, joints and frames, by stamp; a window of it becomes Evidence.

    A jump back in time (a bag that loops, a simulator that is reset) clears it. Bad wrench samples
    (Inf, or beyond ABSURD_WRENCH) are dropped and counted in `dropped`; NaN on an axis stays, it
    means that the axis is missing.
    """

    def __init__(self, seconds: float = 60.0, frame_period_s: float = 0.0) -> None:
        if not seconds > 0:
            raise EvidenceError(f"the buffer length must be above 0 s, it is {seconds}")
        self.seconds = seconds
        self.frame_period_s = frame_period_s
        self.dropped = 0
        self.jumps = 0
        self._wrench: deque[tuple[float, tuple[float, ...]]] = deque()
        self._joints: deque[tuple[float, tuple[str, ...], tuple[float, ...]]] = deque()
        self._frames: deque[Frame] = deque()

    def clear(self) -> None:
        """Forget everything."""
        for channel in (self._wrench, self._joints, self._frames):
            channel.clear()

    def _admit(self, channel: deque, stamp_s: float) -> None:
        if channel and stamp_s < self._stamp(channel[-1]) - 0.5:
            self.jumps += 1
            self.clear()
        while channel and self._stamp(channel[0]) < stamp_s - self.seconds:
            channel.popleft()

    @staticmethod
    def _stamp(item) -> float:
        return item.stamp_s if isinstance(item, Frame) else item[0]

    def add_wrench(self, stamp_s: float, wrench_n_nm: tuple[float, ...]) -> None:
        """Six numbers, N and Nm."""
        for value in wrench_n_nm:
            if value == value and abs(value) > ABSURD_WRENCH:
                self.dropped += 1
                return
        self._admit(self._wrench, stamp_s)
        self._wrench.append((stamp_s, wrench_n_nm))

    def add_joints(self, stamp_s: float, names: tuple[str, ...], position, velocity, effort) -> None:
        """Equally long sequences; velocity and effort may be empty (then they are NaN)."""
        k = len(names)
        missing = (math.nan,) * k
        if len(position) != k or len(velocity) not in (0, k) or len(effort) not in (0, k):
            self.dropped += 1
            return
        row = tuple(position) + (tuple(velocity) or missing) + (tuple(effort) or missing)
        self._admit(self._joints, stamp_s)
        self._joints.append((stamp_s, names, row))

    def add_frame(self, stamp_s: float, image_rgb: np.ndarray) -> None:
        """(H, W, 3) uint8; frames closer than frame_period_s to the last one are left out."""
        if self._frames and 0 <= stamp_s - self._frames[-1].stamp_s < self.frame_period_s:
            return
        self._admit(self._frames, stamp_s)
        self._frames.append(Frame(stamp_s, image_rgb))

    def window(
        self,
        start_s: float,
        end_s: float,
        *,
        family: str,
        stage: str,
        instruction: str,
        phases: tuple[Phase, ...] = (),
        grip_setpoint_n: float = math.nan,
        grip_preload_n: float = math.nan,
    ) -> Evidence:
        """The samples with start_s <= stamp <= end_s. A channel without samples comes back empty."""
        if not end_s > start_s:
            raise EvidenceError(f"the attempt ends at {end_s} s, not after its start at {start_s} s")
        wrench = [item for item in self._wrench if start_s <= item[0] <= end_s]
        joints = [item for item in self._joints if start_s <= item[0] <= end_s]
        names = joints[-1][1] if joints else ()
        joints = [item for item in joints if item[1] == names]
        k = len(names)
        rows = np.array([item[2] for item in joints], dtype=float).reshape(len(joints), 3 * k)
        return Evidence(
            family,
            stage,
            instruction,
            start_s,
            end_s,
            phases,
            WrenchSeries(
                np.array([item[0] for item in wrench], dtype=float),
                np.array([item[1] for item in wrench], dtype=float).reshape(len(wrench), 6),
            ),
            JointSeries(
                np.array([item[0] for item in joints], dtype=float),
                names,
                rows[:, :k],
                rows[:, k : 2 * k],
                rows[:, 2 * k :],
            ),
            tuple(f for f in self._frames if start_s <= f.stamp_s <= end_s),
            grip_setpoint_n,
            grip_preload_n,
        )
