"""The transcript of an episode in plain words: one function a message, lines of text out."""

from __future__ import annotations

import math
import textwrap

_ACTIONS = ("ACT", "SENSE", "ASK", "HOLD")
_WIDTH = 100
_INDENT = " " * 12


def plain(name: str) -> str:
    """'weak_grip' -> 'weak grip'."""
    return name.replace("_", " ")


def _line(time_s: float, what: str, text: str) -> list[str]:
    head = f"{time_s:7.1f} s  {what}: "
    return textwrap.wrap(head + text, _WIDTH, subsequent_indent=_INDENT) or [head]


def failure(time_s: float, message) -> list[str]:
    """What failed, and by which measurement the robot noticed."""
    stage = "lift" if message.stage in ("relax", "hold") else message.stage
    return _line(
        time_s, "Failed", f"the {message.object} was lost in the {stage}. Noticed by: {message.noticed_by}"
    )


def diagnosis(time_s: float, message) -> list[str]:
    """What one source saw."""
    who = "The force sensor" if message.source == "force" else f"The {message.source}"
    if message.abstained:
        return _line(time_s, f"{who} says", f"nothing. {message.reason}")
    ranked = sorted(zip(message.probabilities, message.causes, strict=False), reverse=True)
    text = ", ".join(f"{plain(cause)} {p:.2f}" for p, cause in ranked)
    events = "".join(f"; {e.name} {e.detail}" for e in message.events)
    return _line(time_s, f"{who} says", f"{text}{events} ({1e3 * message.latency_s:.0f} ms)")


def decision(time_s: float, message) -> list[str]:
    """The choice, p with its interval, the cost of every action."""
    what = _ACTIONS[message.action]
    detail = {0: plain(message.repair), 1: message.source}.get(message.action, "")
    lines = _line(time_s, "Decision", f"{what}{' ' + detail if detail else ''}. {message.reason}")
    if not math.isnan(message.p):
        interval = (
            ""
            if math.isnan(message.p_low)
            else f" (95 % interval {message.p_low:.2f} to {message.p_high:.2f}, n={message.n})"
        )
        limit = (
            "asking never pays"
            if math.isnan(message.threshold)
            else f"asking pays below {message.threshold:.2f}"
        )
        lines += textwrap.wrap(
            f"right with p = {message.p:.2f}{interval}; {limit}",
            _WIDTH,
            initial_indent=_INDENT,
            subsequent_indent=_INDENT,
        )
    costs = "; ".join(_cost(c) for c in message.costs)
    lines += textwrap.wrap(
        f"expected cost: {costs}", _WIDTH, initial_indent=_INDENT, subsequent_indent=_INDENT
    )
    if message.stale:
        lines += textwrap.wrap(
            f"the record is stale: {message.stale_reason}",
            _WIDTH,
            initial_indent=_INDENT,
            subsequent_indent=_INDENT,
        )
    return lines


def _cost(cost) -> str:
    name = cost.action + (f" ({plain(cost.detail)})" if cost.detail else "")
    if math.isinf(cost.expected_cost):
        return f"{name} not possible, {cost.note}"
    return f"{name} {cost.expected_cost:.2f}"


def question(time_s: float, message) -> list[str]:
    """The question as the person gets it."""
    return _line(time_s, "Robot asks", message.text)


def meaning(time_s: float, message) -> list[str]:
    """The reply, and how the robot read it."""
    if message.act == "no_reply":
        return _line(time_s, "Nobody answers", message.reason)
    understood = plain(message.cause) if message.cause else plain(message.act)
    if message.cause and message.causes:
        understood += f" {max(message.likelihoods):.2f}"
    if message.requested_repair:
        understood += f", asks for: {plain(message.requested_repair)}"
    return _line(
        time_s,
        f"{(message.who or 'somebody').capitalize()} says",
        f'"{message.text}" (understood: {understood})',
    )


def status(time_s: float, message) -> list[str]:
    """The motions that take time; the other states show in their own messages."""
    what = {
        "repairing": "Repair",
        "rechecking": "Re-check",
        "holding": "Robot holds",
        "attempting": "Robot tries",
    }.get(message.state)
    return _line(time_s, what, plain(message.detail)) if what else []


def outcome(time_s: float, message) -> list[str]:
    """The final report."""
    return _line(
        time_s,
        "Outcome",
        f"{plain(message.disposition)}; the robot says: {plain(message.claim)}. "
        f"{message.grounds} (cost {message.cost_spent:.1f} retries, {message.questions_asked} "
        f"question{'s' if message.questions_asked != 1 else ''}, {message.repairs_tried} "
        f"repair{'s' if message.repairs_tried != 1 else ''})",
    )


def truth(world: dict) -> list[str]:
    """What the simulator knows and the robot did not."""
    where = "in the basket" if world["in_basket"] else "not in the basket"
    damage = ", damaged" if world["damaged"] else ""
    return textwrap.wrap(
        f"In truth: the cause was {plain(world['cause'] or 'nothing')} "
        f"({world['severity']:.2f}); the object is {where}{damage}.",
        _WIDTH,
        initial_indent=_INDENT,
        subsequent_indent=_INDENT,
    )
