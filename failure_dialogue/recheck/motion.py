"""The robot's last motion: its phases, and where the tool was as each of them began."""

from __future__ import annotations

import numpy as np

from failure_dialogue.errors import EvidenceError
from failure_dialogue.evidence import PHASES, Evidence, Phase, RollingBuffer
from failure_dialogue.robots.profile import RobotProfile

#: A joint sample further than this from the start of a phase does not tell where the tool was then (s).
MAX_OFFSET_S = 0.25


class MotionLog:
    """Collects phases as they are announced; a phase that does not come later than the one before it in
    evidence.PHASES begins a new motion."""

    def __init__(self, profile: RobotProfile, buffer: RollingBuffer) -> None:
        self._profile, self._buffer = profile, buffer
        self.phases: tuple[Phase, ...] = ()
        self._places: dict[str, np.ndarray] = {}
        self._open: list[Phase] = []

    @property
    def start_s(self) -> float | None:
        """When the last motion began, on the evidence's clock; None: none was seen."""
        return self.phases[0].start_s if self.phases else None

    def place_m(self, phase: str) -> np.ndarray | None:
        """(3,) tool position in m in the arm's base frame as the phase began; None: not known."""
        return self._places.get(phase)

    def begin(self, phase: Phase) -> None:
        """A phase begins. EvidenceError on a name that is no phase."""
        if phase.name not in PHASES:
            raise EvidenceError(f"unknown phase {phase.name!r}; known: {', '.join(PHASES)}")
        order = PHASES.index
        if not self.phases or order(phase.name) <= order(self.phases[-1].name) \
                or phase.start_s < self.phases[-1].start_s:
            self.phases, self._places, self._open = (), {}, []
        self.phases += (phase,)
        self._open.append(phase)

    def settle(self, now_s: float) -> None:
        """Look up where the tool was in phases whose joint samples have arrived; call it now and then."""
        for phase in list(self._open):
            if now_s < phase.start_s + MAX_OFFSET_S:
                continue
            self._open.remove(phase)
            joints = self._window(phase.start_s - MAX_OFFSET_S, phase.start_s + MAX_OFFSET_S, "").joints
            if len(joints.stamps_s):
                nearest = int(np.argmin(np.abs(joints.stamps_s - phase.start_s)))
                self._places[phase.name] = self._profile.tool_position_m(joints)[nearest]

    def evidence(self, end_s: float, instruction: str) -> Evidence:
        """What was recorded from the start of the last motion; EvidenceError when none was seen."""
        if self.start_s is None:
            raise EvidenceError("no motion of the robot was seen; it must announce its phases")
        return self._window(self.start_s, max(end_s, self.start_s + MAX_OFFSET_S), instruction)

    def _window(self, start_s: float, end_s: float, instruction: str) -> Evidence:
        return self._buffer.window(start_s, end_s, family="", stage="", instruction=instruction,
                                   phases=self.phases)
