"""Runs of the store, as text and as JSON."""

import json
import textwrap
from collections.abc import Sequence
from datetime import UTC, datetime
from typing import TYPE_CHECKING

from lossbisect.report.json import without_nan
from lossbisect.store.types import StoredRun
from lossbisect.train.records import record_to_json
from lossbisect.train.types import Outcome

if TYPE_CHECKING:
    from lossbisect.parsers.runlog import RunLog

__all__ = ["run_page", "runs_json", "runs_table", "size_text"]

SCHEMA_VERSION = 1
_HEAD = ("run", "stored", "commit", "recipe", "trainer", "lane", "outcome", "iterations", "last loss", "time", "size")
_RIGHT = frozenset({"iterations", "last loss", "time", "size"})
_CURVE_ROWS = 10
_PAGE_WIDTH = 110
_UNITS = ("B", "kB", "MB", "GB", "TB")


def runs_table(runs: Sequence[StoredRun]) -> str:
    """One line a run, the newest last, and what they come to."""
    rows = [_HEAD, *(_row(run) for run in runs)]
    widths = [max(map(len, column)) for column in zip(*rows, strict=True)]
    lines = [
        "  ".join(
            cell.rjust(width) if name in _RIGHT else cell.ljust(width)
            for name, cell, width in zip(_HEAD, row, widths, strict=True)
        ).rstrip()
        for row in rows
    ]
    total = sum(run.size_bytes for run in runs)
    aside = sum(run.is_stale for run in runs)
    notes = f", {aside} put aside: later runs of the same set-up gave other numbers" if aside else ""
    return "\n".join([*lines, "", f"{len(runs):,} {'run' if len(runs) == 1 else 'runs'}, {size_text(total)}{notes}"])


def run_page(run: StoredRun, log: "RunLog | None") -> str:
    """Everything that is known of a run: what it was, what ran, its curve's first rows, its files.

    Args:
        run: The run.
        log: Its curves; None: it has none.
    """
    record, ran = run.record, run.record.provenance
    sources = record.spec.sources
    rows = [
        ("outcome", f"{record.outcome}: {record.reason}, {record.duration_s:.0f} s"),
        ("stored", f"{_time(run.added_at)}, repetition {run.repetition}{', put aside' if run.is_stale else ''}"),
        ("megatron-lm", sources.mcore_commit),
        ("bridge", sources.bridge_commit),
        ("recipe", f"{run.recipe} ({run.recipe_digest[:10]})"),
        ("trainer", f"{record.spec.trainer}, lane {record.spec.lane}, {record.spec.executor}"),
        ("environment", run.environment.digest[:10]),
    ]
    if ran is not None:
        rows += [
            ("python", f"{ran.python} ({record.spec.python})"),
            ("torch", f"{ran.torch}, CUDA {ran.cuda or 'not built in'}"),
            ("gpu", f"{ran.gpu}, driver {ran.driver}" if ran.gpu else None),
            ("cpu", ran.processor),
            ("image", ran.image),
            ("core", f"{ran.megatron_core_version} ({ran.megatron_core_file})"),
            ("packages", ", ".join(f"{name} {version}" for name, version in ran.packages.items())),
            ("flags", ", ".join(f"{name} {value}" for name, value in ran.flags.items())),
            ("variables", ", ".join(f"{name}={value}" for name, value in ran.variables.items())),
        ]
    width = max(len(name) for name, _ in rows)
    lines = [run.id, *(_wrapped(name, value, width) for name, value in rows if value)]
    if log is not None:
        lines += ["", *_curve(log)]
    lines += ["", *(f"{file} ({size_text(file.stat().st_size)})" for file in sorted(record.out.glob("*")))]
    return _plain("\n".join(lines))


def runs_json(runs: Sequence[StoredRun]) -> str:
    """One object with a list of runs, full precision, null for what is missing."""
    report = {"schema_version": SCHEMA_VERSION, "runs": [_object(run) for run in runs]}
    return json.dumps(without_nan(report), indent=2, allow_nan=False)


def size_text(size_bytes: float) -> str:
    """A size for a person: ``166 kB``."""
    for unit in _UNITS:
        if size_bytes < 1000 or unit == _UNITS[-1]:
            return f"{size_bytes:.3g} {unit}" if size_bytes < 1000 else f"{size_bytes:,.0f} {unit}"
        size_bytes /= 1000
    raise AssertionError("unreachable")


def _wrapped(name: str, value: str, width: int) -> str:
    return textwrap.fill(
        value, _PAGE_WIDTH, initial_indent=f"  {name:{width}}  ", subsequent_indent=" " * (width + 4),
        break_long_words=False, break_on_hyphens=False,
    )  # fmt: skip


def _row(run: StoredRun) -> tuple[str, ...]:
    record = run.record
    outcome = "put aside" if run.is_stale else record.outcome.value
    return (
        run.id,
        _time(run.added_at),
        run.mcore_commit[:10],
        _plain(_short(run.recipe)),
        record.spec.trainer.value,
        record.spec.lane.value,
        outcome if record.outcome is Outcome.FINISHED else f"{outcome}: {_plain(record.reason)[:40]}",
        str(run.iterations),
        "-" if run.last_loss is None else f"{run.last_loss:.6f}",
        f"{record.duration_s:.0f} s",
        size_text(run.size_bytes),
    )


def _short(recipe: str) -> str:
    """A recipe's name; of a long path its end."""
    return recipe if len(recipe) <= 24 else f"…{recipe[-23:]}"


def _time(moment: datetime) -> str:
    return f"{moment.astimezone(UTC):%Y-%m-%d %H:%M}"


def _curve(log: "RunLog") -> list[str]:
    from lossbisect.report.log import pick_columns, render_table

    rows = log.iterations
    table = render_table(pick_columns(rows.head(_CURVE_ROWS), width=100), is_whole=True)
    left = rows.height - _CURVE_ROWS
    return [table, *([f"… {left:,} more; 'lossbisect runs export' writes all"] if left > 0 else [])]


def _object(run: StoredRun) -> dict[str, object]:
    return {
        "id": run.id,
        "key": run.key,
        "repetition": run.repetition,
        "added_at": run.added_at.isoformat(),
        "mcore_commit": run.mcore_commit,
        "bridge_commit": run.record.spec.sources.bridge_commit,
        "recipe": run.recipe,
        "recipe_digest": run.recipe_digest,
        "environment_digest": run.environment.digest,
        "iterations": run.iterations,
        "last_loss": run.last_loss,
        "size_bytes": run.size_bytes,
        "is_put_aside": run.is_stale,
        **record_to_json(run.record),
    }


def _plain(text: str) -> str:
    """Text that a terminal can't take for a command."""
    return "".join(char if char.isprintable() or char == "\n" else f"\\x{ord(char):02x}" for char in text)
