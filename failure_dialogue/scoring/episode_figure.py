"""The picture of one recorded episode: frames, events, sensors on one time line, cost of each choice."""

from __future__ import annotations

import math
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.ticker import MaxNLocator

from failure_dialogue.evidence import Frame
from failure_dialogue.robots.profile import RobotProfile, load_profile
from failure_dialogue.scoring import bag_reading
from failure_dialogue.scoring.bag_reading import EpisodeLog, SensorLog, seconds
from failure_dialogue.scoring.episode_story import (
    ACTIONS,
    Kind,
    Stretch,
    moments,
    number,
    plain,
    story,
    stretches,
    wrist_load,
)
from failure_dialogue.scoring.sheet import FAINT, GREY, INK, SMALL, TEXT, Sheet

WIDTH_IN = 9.0
_HEAD = 10.5
_LINE_IN = 0.155
#: Behind text, so that no line runs through it.
_PAPER = {"facecolor": "white", "edgecolor": "none", "pad": 0.5}

# Colours that people with any colour blindness tell apart (Okabe and Ito, "Color universal design").
_ORANGE, _SKY, _GREEN, _BLUE, _RED, _PURPLE = "#E69F00", "#56B4E9", "#009E73", "#0072B2", "#D55E00", "#CC79A7"
_ACTION_COLOURS = {"act": _GREEN, "sense": _BLUE, "ask": _ORANGE, "hold": GREY}
_MARKS = {Kind.FAILURE: ("X", _RED), Kind.DIAGNOSIS: ("o", _SKY), Kind.DECISION: ("s", INK),
          Kind.QUESTION: ("^", _ORANGE), Kind.REPLY: ("v", _ORANGE), Kind.REPAIR: (">", _GREEN),
          Kind.RECHECK: ("D", _PURPLE), Kind.OUTCOME: ("*", INK)}

#: What a viewer sees of the phases: name and tint. Short ones (rest, hold) belong to their neighbours.
_TINTS = {"approach": ("approach", "#f0f0f0"), "rest": ("grasp", "#fdebc8"), "close": ("grasp", "#fdebc8"),
          "lift": ("lift", "#cfe5f5"), "relax": ("lift", "#cfe5f5"), "hold": ("lift", "#cfe5f5"),
          "transport": ("carry", "#d5eee4"), "release": ("release", "#f3dfea")}
_OTHER_TINT = "#e8e8e8"
_LINES = {Kind.QUESTION: 5}  # that the text of an event may take; others: 2


@dataclass(frozen=True)
class Recording:
    """All that the picture shows. frames: one for each of moments(log), None where none was recorded."""

    log: EpisodeLog
    sensors: SensorLog
    frames: tuple[Frame | None, ...]
    profile: RobotProfile


def read_recording(bag: Path, which: str, robot: str = "panda") -> Recording:
    """One episode of a bag; which and errors as bag_reading.episode()."""
    log = bag_reading.episode(bag, which)
    sensors = bag_reading.sensors(bag, log.start_s, log.end_s)
    frames = bag_reading.frames_at(bag, sensors, [m.stamp_s for m in moments(log)])
    return Recording(log, sensors, frames, load_profile(robot))


def draw(recording: Recording) -> Figure:
    """The picture, as wide as a page; sheet.write() saves it."""
    return _Drawing(recording).sheet.figure


class _Drawing:
    """One figure, filled from the top."""

    def __init__(self, recording: Recording) -> None:
        self.recording, self.log = recording, recording.log
        self.events = story(self.log)
        self.moments = moments(self.log)
        self.sheet = Sheet(WIDTH_IN)
        self.left_in, self.line_width_in = 0.78, 5.55
        self.rows = self._rows()
        self.decision_in = [self._decision_height(h.message) for h in self.log.decisions]
        events_in = _LINE_IN * sum(len(lines) for *_, lines in self.rows) + 0.1 * len(self.rows) + 0.12
        least_in = max(0.62, (sum(self.decision_in) - events_in - 0.2) / 3 - 0.1)
        frames_in, self.signal_in = (WIDTH_IN - 0.2 - 0.3) / 4, min(least_in, 1.1)
        top = 0.64
        below = top + frames_in + 0.35
        height_in = max(below + events_in + 0.22 + 3 * (self.signal_in + 0.08) + 0.34,
                        below + sum(self.decision_in) + 0.06 + 4 * _LINE_IN)
        self.sheet.set_height(height_in)
        self._title()
        self._frames(top, frames_in)
        self._time_line(below, events_in)
        self._decisions(below)

    def at(self, stamp_s: float) -> float:
        """Seconds since the episode began, which is what the time line shows."""
        return stamp_s - self.log.start_s

    # ---- title and frames --------------------------------------------------------------------------
    def _title(self) -> None:
        failure = self.log.failures[0].message
        title = self.sheet.fit(f"“{failure.instruction}”", WIDTH_IN - 0.2, 1, _HEAD, weight="bold")[0]
        self.sheet.write(0.1, 0.1, title, fontsize=_HEAD, weight="bold")
        o = self.log.outcome.message if self.log.outcome is not None else None
        if o is None:
            text = "the recording ends before the outcome"
        else:
            text = (f"{plain(o.disposition)} after {_count(o.repairs_tried, 'repair')} and "
                    f"{_count(o.questions_asked, 'question')}, at the cost of {o.cost_spent:.1f} retries")
        stage = _TINTS.get(failure.stage, (plain(failure.stage), ""))[0]
        text = f"failed in the {stage}, {text}   (episode {self.log.episode_id})"
        self.sheet.write(0.1, 0.35, self.sheet.fit(text, WIDTH_IN - 0.2, 1)[0], color=GREY)

    def _frames(self, top: float, size: float) -> None:
        for i, (moment, frame) in enumerate(zip(self.moments, self.recording.frames, strict=True)):
            left = 0.1 + i * (size + 0.1)
            ax = self.sheet.axes(left, top, size, size, f"frame {i + 1}")
            ax.set(xticks=[], yticks=[])
            if frame is None:
                ax.text(0.5, 0.5, "no camera frame recorded", ha="center", va="center", color=GREY,
                        fontsize=TEXT, transform=ax.transAxes)
            else:
                ax.imshow(frame.image_rgb, interpolation="lanczos")
            stamp_s = frame.stamp_s if frame is not None else moment.stamp_s
            ax.text(0.02, 0.98, f" {'ABCD'[i]}  {moment.title}, {self.at(stamp_s):.1f} s ", va="top",
                    fontsize=TEXT, color="white", transform=ax.transAxes,
                    bbox={"facecolor": "#000000", "alpha": 0.6, "edgecolor": "none", "pad": 1.5})

    # ---- the time line -----------------------------------------------------------------------------
    def _rows(self) -> list[tuple[Any, bool, list[str]]]:
        """(event, whether its text stands to the right of it, lines) for each event."""
        rows = []
        span_s = max(self.log.end_s - self.log.start_s, 1e-3)
        for event in self.events:
            first, last = (self.line_width_in * self.at(t) / span_s for t in (event.stamp_s, event.end_s))
            right = self.line_width_in - last >= first
            room = (self.line_width_in - last if right else first) - 0.2
            rows.append((event, right, self.sheet.fit(event.text, room, _LINES.get(event.kind, 2))))
        return rows

    def _time_line(self, top: float, events_in: float) -> None:
        end = self.at(self.log.end_s)
        ax = self.sheet.axes(self.left_in, top, self.line_width_in, events_in, "events", xlim=(0, end),
                       ylim=(events_in, 0))
        ax.axis("off")
        phases = [(s, *_TINTS.get(s.name, (plain(s.name), _OTHER_TINT))) for s in stretches(self.log)]
        top += events_in
        strip = self.sheet.axes(self.left_in, top, self.line_width_in, 0.2, "phases", xlim=(0, end),
                                ylim=(0, 1))
        strip.axis("off")
        unnamed = self._phase_strip(strip, phases)
        top += 0.22
        panels = []
        for label, unit, times, values in self._signals():
            panel = self.sheet.axes(self.left_in, top, self.line_width_in, self.signal_in, label,
                                    xlim=(0, end))
            self._panel(panel, label, unit, times, values, phases)
            panels.append(panel)
            top += self.signal_in + 0.08
        _limit_load(panels[0], [s for s, name, _ in phases if name in ("lift", "carry")], self.log.start_s)
        self._set_points(panels[2])
        for panel in panels[:-1]:
            panel.tick_params(labelbottom=False)
        self.sheet.write(self.left_in, top + 0.11, "time since the task began (s)", fontsize=SMALL)
        self._legend(top + 0.11, unnamed)
        self._draw_rows(ax, panels)

    def _draw_rows(self, ax: Axes, panels: list[Axes]) -> None:
        height = ax.get_ylim()[0]
        y = 0.06
        for event, right, lines in self.rows:
            row = _LINE_IN * len(lines) + 0.1
            middle = y + 0.05 + _LINE_IN / 2
            start, end = self.at(event.stamp_s), self.at(event.end_s)
            marker, colour = _MARKS[event.kind]
            if event.kind is Kind.DECISION:
                colour = _ACTION_COLOURS[event.action]
            ax.plot([start, start], [middle, height], color=colour, lw=0.7, ls=":", zorder=1)
            for panel in panels:
                panel.axvline(start, color=colour, lw=0.7, ls=":", zorder=1)
            if end > start:
                ax.plot([start, end], [middle, middle], color=colour, lw=3, solid_capstyle="butt", zorder=2)
            ax.plot([start], [middle], marker=marker, ms=9 if event.kind is Kind.OUTCOME else 7, color=colour,
                    mec="white", mew=0.5, zorder=3, clip_on=False)
            if event.number:
                ax.text(start, middle, str(event.number), color="white", fontsize=6, weight="bold",
                        ha="center", va="center_baseline", zorder=4)
            ax.annotate("\n".join(lines), (end if right else start, middle - _LINE_IN / 2),
                        xytext=(7 if right else -7, 0), textcoords="offset points",
                        ha="left" if right else "right", va="top", fontsize=TEXT, color=INK, zorder=5,
                        linespacing=1.25, bbox=_PAPER)
            y += row
        least = 0.0  # letters keep their distance where moments are close
        for letter, moment in zip("ABCD", self.moments, strict=True):
            least = max(self.at(moment.stamp_s), least)
            ax.annotate(letter, (least, 0), xytext=(0, 1), textcoords="offset points", ha="center",
                        va="bottom", fontsize=SMALL, color=GREY, weight="bold", annotation_clip=False)
            least += 0.13 * ax.get_xlim()[1] / self.line_width_in

    def _phase_strip(self, strip: Axes, phases: list[tuple[Stretch, str, str]]) -> dict[str, str]:
        """Draw the phases, each with its name where there is room; name and tint of those without."""
        groups: list[list[Any]] = []  # name, start, end, tint; neighbours of one name become one
        for stretch, name, tint in phases:
            if groups and groups[-1][0] == name and abs(groups[-1][2] - stretch.start_s) < 0.05:
                groups[-1][2] = stretch.end_s
            else:
                groups.append([name, stretch.start_s, stretch.end_s, tint])
        unnamed = {}
        for name, start_s, end_s, tint in groups:
            start, stop = self.at(start_s), self.at(end_s)
            strip.axvspan(start, stop, color=tint, lw=0)
            room = (stop - start) * self.line_width_in / strip.get_xlim()[1]
            if self.sheet.width_of(name, SMALL) + 0.04 < room:
                strip.text((start + stop) / 2, 0.45, name, ha="center", va="center", fontsize=SMALL)
            else:
                unnamed[name] = tint
        return unnamed

    def _legend(self, top: float, tints: dict[str, str]) -> None:
        """The phases that were too short for their names, below the time line at its right end."""
        right = self.left_in + self.line_width_in
        for name, tint in reversed(tints.items()):
            self.sheet.write(right, top, name, fontsize=SMALL, ha="right")
            right -= self.sheet.width_of(name, SMALL) + 0.06
            patch = {"facecolor": tint, "edgecolor": FAINT, "lw": 0.5, "pad": 0.5}
            self.sheet.write(right, top, "    ", fontsize=SMALL, bbox=patch, ha="right")
            right -= self.sheet.width_of("    ", SMALL) + 0.12

    def _panel(self, panel: Axes, label: str, unit: str, times: np.ndarray, values: np.ndarray,
               phases: list[tuple[Stretch, str, str]]) -> None:
        for stretch, _, tint in phases:
            panel.axvspan(self.at(stretch.start_s), self.at(stretch.end_s), color=tint, lw=0, zorder=0)
        if np.isfinite(values).any():
            panel.plot(times - self.log.start_s, values, color=INK, lw=0.9, zorder=3)
        else:
            panel.text(0.5, 0.5, "not recorded", ha="center", va="center", color=GREY, fontsize=TEXT,
                       transform=panel.transAxes)
        panel.set_ylabel(f"{label}\n({unit})", fontsize=SMALL, color=INK, labelpad=3, linespacing=1.1)
        panel.yaxis.set_label_coords(-0.4 / self.line_width_in, 0.5)
        _tidy(panel)

    def _signals(self) -> list[tuple[str, str, np.ndarray, np.ndarray]]:
        """(label, unit, stamps, values) of the three panels."""
        joints, profile = self.recording.sensors.joints, self.recording.profile
        none = np.zeros(0)
        load = ("wrist load", "N", *wrist_load(self.recording.sensors, stretches(self.log)))
        if not set(profile.finger_joints) <= set(joints.names):
            return [load, ("aperture", "mm", none, none), ("finger effort", "N", none, none)]
        return [load, ("aperture", "mm", joints.stamps_s, 1e3 * profile.aperture_m(joints)),
                ("finger effort", "N", joints.stamps_s, profile.finger_force_n(joints))]

    def _set_points(self, panel: Axes) -> None:
        """What the robot commanded in each attempt that failed: first the preload, then the set-point."""
        for heard in self.log.failures:
            m = heard.message
            starts = {p.name: self.at(seconds(p.start)) for p in m.phases}
            end = self.at(seconds(m.noticed_at))
            if "lift" not in starts or not math.isfinite(m.grip_setpoint_n):
                continue
            eased = min(starts.get("relax", end), end) if math.isfinite(m.grip_preload_n) else starts["lift"]
            panel.plot([starts["lift"], eased, eased, end],
                       [m.grip_preload_n, m.grip_preload_n, m.grip_setpoint_n, m.grip_setpoint_n],
                       color=_RED, lw=1.4, zorder=4, label="commanded")
            panel.annotate("commanded", (end, m.grip_setpoint_n), xytext=(4, 0), zorder=5,
                           textcoords="offset points", ha="left", va="center", fontsize=SMALL, color=_RED,
                           bbox=_PAPER)

    # ---- decisions ---------------------------------------------------------------------------------
    def _decision_height(self, message: Any) -> float:
        return 0.24 + 0.19 * len(message.costs) + 0.52

    def _decisions(self, top: float) -> None:
        left = self.left_in + self.line_width_in + 0.3
        width = WIDTH_IN - left - 0.1
        finite = [c.expected_cost for h in self.log.decisions for c in h.message.costs
                  if math.isfinite(c.expected_cost)]
        self.sheet.write(left, top - 0.17, "Expected cost of each choice, in retries", fontsize=SMALL,
                         color=GREY)
        top += 0.06
        for i, (heard, height) in enumerate(zip(self.log.decisions, self.decision_in, strict=True), 1):
            self._decision(heard.message, i, left, top, width, max(finite, default=1.0))
            top += height
        note = ("p: share of right diagnoses, with its 95 % interval, as measured beforehand. Below p*, "
                "asking is expected to cost less than acting.")
        for line in self.sheet.fit(note, width, 4, SMALL):
            self.sheet.write(left, top, line, fontsize=SMALL, color=GREY)
            top += _LINE_IN

    def _decision(self, m: Any, i: int, left: float, top: float, width: float, largest: float) -> None:
        action = ACTIONS[m.action]
        colour = _ACTION_COLOURS[action]
        detail = {"act": plain(m.repair), "sense": m.source, "ask": "a person"}.get(action, "")
        self.sheet.write(left, top + 0.02, f" {i} ", fontsize=SMALL, color="white", weight="bold",
                   bbox={"facecolor": colour, "edgecolor": "none", "pad": 1.5})
        self.sheet.write(left + 0.22, top + 0.01, f"{action.upper()} {detail}".rstrip(), weight="bold")
        costs = self.sheet.axes(left, top + 0.24, width, 0.19 * len(m.costs), f"costs {i}",
                          xlim=(0, largest), ylim=(len(m.costs) - 0.5, -0.5))
        costs.axis("off")
        names = [f"{c.action}: {plain(c.detail)}" if c.detail else c.action for c in m.costs]
        room = max((self.sheet.width_of(name, SMALL, weight="bold") for name in names), default=0.0) + 0.08
        scale = (width - room - 0.35) / largest  # inches for a retry; the rest is for the figure
        costs.set_xlim(0, width)
        for row, (cost, name) in enumerate(zip(m.costs, names, strict=True)):
            chosen = cost.action == action and cost.detail in ("", m.repair, m.source)
            style: dict[str, Any] = {"fontsize": SMALL, "color": INK, "va": "center"}
            style["weight"] = "bold" if chosen else "normal"
            costs.text(0, row, name, **style)
            if math.isfinite(cost.expected_cost):
                length = cost.expected_cost * scale
                costs.barh(row, length, left=room, height=0.66, lw=0, alpha=1.0 if chosen else 0.35,
                           color=_ACTION_COLOURS.get(cost.action, GREY))
                costs.text(room + length + 0.05, row, f"{cost.expected_cost:.2f}", **style)
            else:
                note, start = cost.note, self.sheet.width_of(name, SMALL) + 0.08
                if not note or self.sheet.width_of(note, SMALL) > width - start:
                    note = "not possible"
                costs.text(start, row, note, **style | {"color": GREY})
        self._probability(m, i, left, top + 0.24 + 0.19 * len(m.costs) + 0.04, width)

    def _probability(self, m: Any, i: int, left: float, top: float, width: float) -> None:
        """p with its interval against p*, on a line from 0 to 1."""
        measured = math.isfinite(m.p)
        interval = math.isfinite(m.p_low) and math.isfinite(m.p_high)
        text = "p: not measured" if not measured else f"p = {m.p:.2f}"
        if interval:
            text += f"  [{number(m.p_low)}, {number(m.p_high)}], n = {m.n}"
        elif measured:
            text += " (stated)"
        self.sheet.write(left, top, text, fontsize=SMALL)
        limit = "asking never pays" if math.isnan(m.threshold) else f"p* = {m.threshold:.2f}"
        self.sheet.write(left + width, top, limit, fontsize=SMALL, color=_RED, ha="right")
        ax = self.sheet.axes(left + 0.03, top + 0.17, width - 0.06, 0.12, f"p {i}", xlim=(0, 1), ylim=(-1, 1))
        ax.axis("off")
        ax.plot([0, 1], [0, 0], color=FAINT, lw=1.5, zorder=1, clip_on=False)
        if interval:
            ax.plot([m.p_low, m.p_high], [0, 0], color=_SKY, lw=5, solid_capstyle="butt", zorder=2)
        if measured:
            ax.plot([m.p], [0], "o", color=INK, ms=4.5, zorder=4, clip_on=False)
        if math.isfinite(m.threshold):
            ax.plot([m.threshold] * 2, [-1, 1], color=_RED, lw=1.6, zorder=3, clip_on=False)


def _limit_load(panel: Axes, carrying: list[Stretch], start_s: float) -> None:
    """Show the load well while something is carried; knocks in the release may leave the panel."""
    if not panel.lines:
        return
    times, load = (np.asarray(values, dtype=float) for values in panel.lines[0].get_data())
    inside = np.zeros(len(times), dtype=bool)
    for stretch in carrying:
        inside |= (times >= stretch.start_s - start_s) & (times <= stretch.end_s - start_s)
    if inside.any():
        low, high = min(0.0, float(load[inside].min())), max(1.0, float(load[inside].max()))
        panel.set_ylim(low - 0.25 * (high - low), high + 0.25 * (high - low))


def _tidy(ax: Axes) -> None:
    ax.tick_params(labelsize=SMALL, colors=INK, length=2.5, width=0.6, pad=2)
    ax.yaxis.set_major_locator(MaxNLocator(nbins=3, min_n_ticks=2))
    for side in ("top", "right"):
        ax.spines[side].set_visible(False)
    for side in ("left", "bottom"):
        ax.spines[side].set(linewidth=0.6, color=GREY)


def _count(n: int, what: str) -> str:
    return f"{n} {what}" if n == 1 else f"{n or 'no'} {what}s"
