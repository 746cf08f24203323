"""The robot notices by itself that a grasp fails: from the gripper's aperture and the load on the wrist."""

from __future__ import annotations

from collections import deque
from dataclasses import dataclass

import numpy as np

from failure_dialogue.errors import ConfigError

#: Fingers closed to less than this hold nothing (m).
EMPTY_APERTURE_M = 0.006
#: The aperture fell this far below the grasp: the object left the fingers (m).
APERTURE_DROP_M = 0.003
#: The wrist carries less than this share of the expected load: the object stayed behind.
LOAD_SHARE = 0.5

_SETTLED = 8  # joint samples (80 ms at 100 Hz) that make the grasp's aperture
_CONFIRM = 3  # samples in a row below the limit
_STILL_M = 0.0004
_LOAD_WINDOW = 20
_CARRYING = ("lift", "relax", "hold", "transport")


@dataclass(frozen=True)
class Noticed:
    """What gave the failure away: when (s), in which phase, by which measurement, and its text."""

    stamp_s: float
    phase: str
    by: str
    text: str


class GraspMonitor:
    """Streaming check of one attempt; give it every joint sample with the wrist force of that moment.

    phase                 what is done with the sample
    rest                  averages the wrist's z force: the tare
    close                 remembers the last aperture: the grasp; fingers that had stopped on the object and
                          close by 3 mm more: it gave way, noticed ("gave way")
    lift, relax, hold,    aperture 3 mm under the grasp, or fingers shut: noticed ("aperture")
    transport
    hold                  tared load under half of what the object should weigh: noticed ("load")
    other                 nothing

    It reports once. Heights and contacts of objects are unknown to it. expected_load_n: weight of the
    object as the robot knows it (N).
    """

    def __init__(self, expected_load_n: float) -> None:
        if not expected_load_n > 0:
            raise ConfigError(f"the expected load is {expected_load_n} N; "
                              "give the object's weight, above 0 N")
        self._expected_load_n = expected_load_n
        self._rest: list[float] = []
        self._closing: deque[float] = deque(maxlen=_SETTLED)
        self._loads: deque[float] = deque(maxlen=_LOAD_WINDOW)
        self._grasp_m: float | None = None
        self._open_m = 0.0
        self._contact_m: float | None = None
        self._below = 0
        self.noticed: Noticed | None = None

    def update(self, stamp_s: float, phase: str, aperture_m: float, fz_n: float) -> Noticed | None:
        """Take one sample; returns Noticed at the moment the failure is noticed, else None.

        fz_n: force along the hand's outward axis, untared, positive for a hanging load. NaN is left out.
        """
        if self.noticed is not None:
            return None
        if phase == "rest":
            self._open_m = aperture_m
            if np.isfinite(fz_n):
                self._rest.append(fz_n)
        elif phase == "close":
            self._closing.append(aperture_m)
            self.noticed = self._squeezing(stamp_s, aperture_m)
        elif phase in _CARRYING:
            self.noticed = self._carrying(stamp_s, phase, aperture_m, fz_n)
        return self.noticed

    def _squeezing(self, stamp_s: float, aperture_m: float) -> Noticed | None:
        stopped = (len(self._closing) == _SETTLED and max(self._closing) - min(self._closing) < _STILL_M
                   and aperture_m < self._open_m - APERTURE_DROP_M)
        if self._contact_m is None and stopped:
            self._contact_m = float(np.median(self._closing))
        if self._contact_m is None:
            return None
        self._below = self._below + 1 if aperture_m < self._contact_m - APERTURE_DROP_M else 0
        if self._below < _CONFIRM:
            return None
        return Noticed(stamp_s, "close", "gave way", f"while it was squeezed, the object gave way from "
                       f"{1e3 * self._contact_m:.1f} to {1e3 * aperture_m:.1f} mm")

    def _carrying(self, stamp_s: float, phase: str, aperture_m: float, fz_n: float) -> Noticed | None:
        if self._grasp_m is None and self._closing:
            self._grasp_m, self._below = float(np.median(self._closing)), 0
        if self._grasp_m is not None:
            limit = max(EMPTY_APERTURE_M, self._grasp_m - APERTURE_DROP_M)
            self._below = self._below + 1 if aperture_m < limit else 0
            if self._below >= _CONFIRM:
                if self._grasp_m < EMPTY_APERTURE_M:
                    text = f"the fingers closed to {1e3 * aperture_m:.1f} mm: there is nothing between them"
                else:
                    text = (f"the fingers closed to {1e3 * aperture_m:.1f} mm, "
                            f"from {1e3 * self._grasp_m:.1f} mm at the grasp")
                return Noticed(stamp_s, phase, "aperture", text)
        if phase != "hold":
            self._loads.clear()
        elif self._rest and np.isfinite(fz_n):
            self._loads.append(fz_n - float(np.mean(self._rest)))
            if len(self._loads) == _LOAD_WINDOW:
                load = float(np.mean(self._loads))
                if load < LOAD_SHARE * self._expected_load_n:
                    return Noticed(stamp_s, phase, "load", f"the wrist carries {load:.1f} N; "
                                   f"the object should weigh {self._expected_load_n:.1f} N")
        return None
