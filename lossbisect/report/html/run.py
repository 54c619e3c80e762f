"""The page of one run: how it ended, its curves, what it ran on, and the end of its console."""

import shlex
from collections.abc import Mapping
from typing import TYPE_CHECKING

from lossbisect.redact import redact_words
from lossbisect.report.html.charts import MOST_POINTS, run_chart_data
from lossbisect.report.html.model import (
    Block,
    Bullets,
    Charts,
    Code,
    Facts,
    Inline,
    Link,
    Mark,
    Page,
    Section,
    Table,
    Text,
    Tone,
)
from lossbisect.train.types import Outcome, RunRecord

if TYPE_CHECKING:
    from lossbisect.parsers.runlog import RunLog

__all__ = ["OUTCOME_TONES", "run_page"]

OUTCOME_TONES = {Outcome.FINISHED: Tone.GOOD, Outcome.CUT: Tone.NEUTRAL, Outcome.FAILED: Tone.BAD}
"""How an outcome looks; the others are unsure."""
_MOST_ROWS = 40


def run_page(
    record: RunRecord,
    log: "RunLog | None",
    tail: str,
    *,
    name: str,
    facts: Mapping[str, str] | None = None,
    whole_log: Link | None = None,
    once_more: Section | None = None,
) -> Page:
    """The page of a run.

    Args:
        record: The run.
        log: Its curves; None: it has none.
        tail: The end of its console, secrets masked.
        name: What it is called, such as its id in the run store.
        facts: What is known besides, such as when it was stored.
        whole_log: Where the whole console is.
        once_more: How to come to this page again.
    """
    rows = log.iterations.height if log is not None else 0
    curves: list[Block] = [Charts(run_chart_data(log, name))] if log is not None and rows else []
    if rows > MOST_POINTS:
        curves.append(Text(f"Of {rows:,} rows the lowest and the highest of each stretch are drawn."))
    console: list[Block] = [Code(tail)] if tail else []
    if whole_log is not None:
        console.append(Text(whole_log))
    sections = [
        Section(title="Curves", blocks=curves),
        Section(title="What ran", blocks=[Facts(_facts(record, facts or {})), Code(_command(record))]),
        Section(title="First iterations", blocks=[_first_rows(log)] if log is not None and rows else []),
        Section(title="Notes", blocks=[Bullets(_notes(log))] if log is not None and log.notes else []),
        Section(title="Console, its last lines", blocks=console),
    ]
    return Page(
        kind="run",
        title=f"{record.outcome}: {name}",
        verdict=Mark(record.outcome.value, OUTCOME_TONES.get(record.outcome, Tone.UNSURE)),
        reason=f"{name}: {record.reason}, {record.duration_s:.0f} s",
        sections=[*sections, *([once_more] if once_more else [])],
    )


def _facts(record: RunRecord, more: Mapping[str, str]) -> list[tuple[str, Inline]]:
    spec, ran = record.spec, record.provenance
    facts: dict[str, str | None] = {
        "Megatron-LM": spec.sources.mcore_commit,
        "Megatron Bridge": spec.sources.bridge_commit,
        "recipe": f"{spec.recipe}, trainer {spec.trainer}, lane {spec.lane}, {spec.executor}",
        **more,
    }
    if ran is not None:
        changed = {True: "", False: ", with changed files", None: ", under no git tree"}[ran.is_clean]
        facts |= {
            "Megatron-Core": f"{ran.megatron_core_version}{changed} ({ran.megatron_core_file})",
            "Python": f"{ran.python} ({spec.python})",
            "torch": f"{ran.torch}, CUDA {ran.cuda or 'not built in'}",
            "GPU": f"{ran.gpu}, driver {ran.driver}" if ran.gpu else None,
            "CPU": ran.processor,
            "image": ran.image,
            "packages": ", ".join(f"{package} {version}" for package, version in ran.packages.items()),
            "flags": ", ".join(f"{flag} {value}" for flag, value in ran.flags.items()),
            "variables": ", ".join(f"{variable}={value}" for variable, value in ran.variables.items()),
        }
    return [(label, value) for label, value in {**facts, "folder": str(record.out)}.items() if value]


def _command(record: RunRecord) -> str:
    return shlex.join(redact_words(record.argv))


def _first_rows(log: "RunLog") -> Table:
    from lossbisect.report.log import pick_columns

    rows = pick_columns(log.iterations.head(_MOST_ROWS), width=110)
    cells = [["" if value is None else str(value) for value in row] for row in rows.iter_rows()]
    return Table(head=rows.columns, rows=cells, numeric=frozenset(range(rows.width)))


def _notes(log: "RunLog") -> list[str]:
    return [f"line {note.line_no}: {note.text}" if note.line_no else note.text for note in log.notes[:_MOST_ROWS]]
