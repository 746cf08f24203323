"""`failure-dialogue decide`: what the scalar rule does for stated numbers."""

from __future__ import annotations

import dataclasses
import json

import click

from failure_dialogue.decision.costs import load_costs
from failure_dialogue.decision.threshold import Threshold, ev_act, ev_ask, ev_sense, threshold
from failure_dialogue.errors import CostError
from failure_dialogue.scoring.metrics import wilson


def _replaced(values, given: dict[str, float]):
    """The frozen values with those of its fields that were given on the command line."""
    names = {field.name for field in dataclasses.fields(values)}
    return dataclasses.replace(values, **{name: value for name, value in given.items() if name in names})


def _interval(accuracy: float, n: int | None) -> tuple[int, tuple[float, float]] | None:
    """(right, interval) of an accuracy over n episodes; CostError when it is no share of n."""
    if n is None:
        return None
    if n < 1:
        raise CostError(f"n is {n}; the accuracy must stand on at least 1 episode")
    right = round(accuracy * n)
    return right, wilson(right, n)


def _in_words(action: str, p: float, expected: dict[str, float], limit: Threshold, n: int | None,
              measured: tuple[int, tuple[float, float]] | None) -> str:
    lines = [f"diagnosis right with p = {p:g}"]
    if measured is not None:
        right, (low, high) = measured
        lines[0] += f" ({right} of {n}; 95 % interval {low:.2f} to {high:.2f})"
        if low <= limit.p_star <= high:
            lines.append("the interval contains p*: more staged failures would make this surer")
    lines.append(f"p* = {limit.p_star:.3f}: {limit.why}" if limit.p_star == limit.p_star
                 else f"no p*: {limit.why}")
    lines += [f"  {name:<5} is expected to cost {cost:.2f} retries" + ("  <- least" if name == action else "")
              for name, cost in expected.items()]
    return "\n".join([*lines, f"decision: {action.upper()}"])


def _options(command):
    """--ask, --wrong and the other stated numbers, named in the order they are printed."""
    for flag, name, text in reversed((
            ("--retry", "retry", "Cost of the right repair (Cr)."),
            ("--wrong", "wrong_repair", "Cost of a wrong repair, on top of it (Cw)."),
            ("--ask", "ask", "Cost of a question (Ca)."),
            ("--sense", "sense", "Cost of reading a sensor (Csense)."),
            ("--qc", "correct", "Rate of correct answers."),
            ("--qv", "uninformative", "Rate of uninformative answers."),
            ("--qw", "wrong", "Rate of wrong answers."))):
        option = click.option(flag, name, type=float, default=None, help=f"{text} Default: costs.yaml.")
        command = option(command)
    return command


@click.command(help="Act, sense or ask: p*, the expected costs and the choice for stated numbers.")
@click.option("--accuracy", type=float, required=True, help="Measured accuracy of the diagnosis (p).")
@click.option("--n", type=int, default=None, help="Episodes it was measured on; gives the interval.")
@click.option("--sense-accuracy", type=float, default=None,
              help="Measured accuracy with one more sensor; without it sensing is left out.")
@_options
@click.option("--json", "as_json", is_flag=True, help="Print JSON.")
def command(accuracy: float, n: int | None, sense_accuracy: float | None, as_json: bool,
            **stated: float | None) -> None:
    """See the module."""
    given = {name: value for name, value in stated.items() if value is not None}
    costs, answerer = load_costs()
    costs = _replaced(costs, given)
    answerer = _replaced(answerer, given)
    limit = threshold(costs, answerer)
    expected = {"act": ev_act(accuracy, costs)}
    if sense_accuracy is not None:
        expected["sense"] = ev_sense(max(accuracy, sense_accuracy), costs, answerer)
    expected["ask"] = ev_ask(accuracy, costs, answerer)
    action = min(expected, key=expected.__getitem__)  # a tie goes to acting, then to sensing
    measured = _interval(accuracy, n)
    if not as_json:
        click.echo(_in_words(action, accuracy, expected, limit, n, measured))
        return
    click.echo(json.dumps({
        "p": accuracy,
        "n": n,
        "interval": [round(x, 6) for x in measured[1]] if measured else None,
        "threshold": round(limit.p_star, 6) if limit.p_star == limit.p_star else None,
        "regime": limit.regime.value,
        "expected_cost": {name: round(cost, 6) for name, cost in expected.items()},
        "action": action,
        "reason": limit.why,
        "costs": dataclasses.asdict(costs),
        "answerer": dataclasses.asdict(answerer),
    }, indent=1))
