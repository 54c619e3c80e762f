"""Which part of two set-ups makes the difference, as text and JSON, with the command to run next."""

import json
import shlex

from lossbisect.bisect.axes import Axis
from lossbisect.bisect.setups import AxesResult, MixedRun, Setup
from lossbisect.report.plain import printable
from lossbisect.train.records import record_to_json

__all__ = ["axes_json", "axes_text", "next_commands"]

SCHEMA_VERSION = 1


def axes_text(result: AxesResult) -> str:
    """Several lines for a terminal, without a final newline; the first starts with the answer."""
    blocks = [
        f"{result.answer.value.upper()}: {result.reason}",
        "\n".join(["set-ups", *_table([["", "good", "bad"], *_setup_rows(result)])]),
        "\n".join(["runs", *_table([["run", "from the bad set-up", "verdict", "time", "reason"], *_run_rows(result)])]),
        "\n".join([f"next: {command}" for command in next_commands(result)]),
    ]
    return printable("\n\n".join(block for block in blocks if block))


def axes_json(result: AxesResult) -> str:
    """One object, indented, without a final newline."""
    carried = result.carried
    report = {
        "schema_version": SCHEMA_VERSION,
        "answer": result.answer.value,
        "reason": result.reason,
        "axes": [axis.name.lower() for axis in result.axes],
        "carried_by": [] if carried is None else [axis.name.lower() for axis in carried.axes],
        "perhaps_by": [] if carried is None else [axis.name.lower() for axis in carried.others],
        "is_alone": carried is not None and carried.is_alone,
        "good": _setup_json(result.good),
        "bad": _setup_json(result.bad),
        "runs": [
            {
                "from_bad": [axis.name.lower() for axis in result.axes if axis in run.mix],
                "verdict": run.verdict.value,
                "reason": run.reason,
                "record": record_to_json(run.record),
            }
            for run in result.runs
        ],
        "next": list(next_commands(result)),
    }
    return json.dumps(report, indent=2, allow_nan=False)


def next_commands(result: AxesResult) -> tuple[str, ...]:
    """What to run next, for each part that makes the difference; nothing where there is none.

    A part that carries it alone is searched with the rest of the good set-up, one of several with the rest of the bad
    one: there the other parts that it takes are.
    """
    carried = result.carried
    if carried is None:
        return ()
    rest = result.good if carried.is_alone else result.bad
    return tuple(command for axis in carried.axes if (command := _next(axis, result, rest)) is not None)


def _next(axis: Axis, result: AxesResult, rest: Setup) -> str | None:
    good, bad, training = result.good, result.bad, result.training
    words = ["lossbisect", "bisect", "--repo", str(result.repo)]
    shared = ["--recipe", rest.recipe, "--python", str(rest.python), "--lane", training.lane.value]
    shared += ["--metric", training.metric, *(["--trainer", training.trainer.value] if training.trainer else [])]
    match axis:
        case Axis.MCORE:
            held = ["--bridge", rest.bridge] if rest.bridge else []
            return shlex.join([*words, "--good", good.mcore, "--bad", bad.mcore, *held, *shared])
        case Axis.BRIDGE:
            ends = ["--good", str(good.bridge), "--bad", str(bad.bridge)]
            return shlex.join([*words, "--search", "bridge", *ends, *shared])
        case Axis.RECIPE | Axis.ENVIRONMENT:
            # Two runs that differ in nothing but this part: their settings and versions are compared.
            sides = [run for run in result.runs if run.mix in _pair_of(axis, result)]
            logs = {run.mix: str(run.record.console) for run in sides}
            return shlex.join(["lossbisect", "compare", *logs.values()]) if len(logs) == 2 else None


def _pair_of(axis: Axis, result: AxesResult) -> tuple[frozenset[Axis], frozenset[Axis]]:
    if result.carried is not None and result.carried.is_alone:
        return frozenset(), frozenset([axis])
    everything = frozenset(result.axes)
    return everything - {axis}, everything


def _setup_rows(result: AxesResult) -> list[list[str]]:
    rows = []
    for axis, name in (
        (Axis.MCORE, "mcore"), (Axis.BRIDGE, "bridge"), (Axis.RECIPE, "recipe"), (Axis.ENVIRONMENT, "python")
    ):  # fmt: skip
        values = [_shown(axis, getattr(setup, name)) for setup in (result.good, result.bad)]
        rows.append([axis.value, values[0], values[1] if axis in result.axes else "the same"])
    return rows


def _shown(axis: Axis, value: object) -> str:
    text = "none" if value is None else str(value)
    return text[:10] if axis in (Axis.MCORE, Axis.BRIDGE) else text


def _run_rows(result: AxesResult) -> list[list[str]]:
    return [
        [str(number), _taken(result, run), run.verdict.value, _time(run), run.reason]
        for number, run in enumerate(result.runs, start=1)
    ]


def _taken(result: AxesResult, run: MixedRun) -> str:
    taken = [axis.value for axis in result.axes if axis in run.mix]
    return "all that differs" if len(taken) == len(result.axes) else ", ".join(taken) or "nothing"


def _time(run: MixedRun) -> str:
    return "stored" if run.record.stored_as else f"{run.record.duration_s:.0f} s"


def _setup_json(setup: Setup) -> dict[str, str | None]:
    return {"mcore": setup.mcore, "bridge": setup.bridge, "recipe": setup.recipe, "python": str(setup.python)}


def _table(rows: list[list[str]]) -> list[str]:
    widths = [max(len(row[column]) for row in rows) for column in range(len(rows[0]))]
    padded = ("  ".join(cell.ljust(width) for cell, width in zip(row, widths, strict=True)) for row in rows)
    return [f"  {line}".rstrip() for line in padded]
