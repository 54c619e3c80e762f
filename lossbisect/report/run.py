"""One run, as text and as JSON."""

import json
from pathlib import Path

from lossbisect.report.plain import printable
from lossbisect.train.types import RunRecord

__all__ = ["run_json", "run_text"]

SCHEMA_VERSION = 1


def run_text(record: RunRecord) -> str:
    """A few lines for a terminal, none of which it obeys: outcome first, then what ran and where it is."""
    stored = f", from the run store ({record.stored_as})" if record.stored_as else ""
    lines = [f"{record.outcome.upper()}: {record.reason}, {record.duration_s:.0f} s{stored}"]
    ran = record.provenance
    if ran is not None:
        commit = f" at {ran.mcore_commit[:10]}" if ran.mcore_commit else ""
        changed = ", with changed files" if ran.is_clean is False else ""
        lines += [
            f"  megatron.core  {ran.megatron_core_version}{commit}{changed} ({Path(ran.megatron_core_file).parent})",
            f"  set-up         torch {ran.torch}, Python {ran.python}, lane {ran.lane}",
        ]
    lines += [f"  curves         {record.scalars}", f"  console        {record.console}"]
    return printable("\n".join(lines))


def run_json(record: RunRecord) -> str:
    """One object, indented; null for what is missing."""
    ran = record.provenance
    report = {
        "schema_version": SCHEMA_VERSION,
        "outcome": record.outcome.value,
        "reason": record.reason,
        "exit_code": record.exit_code,
        "duration_s": record.duration_s,
        "stored_as": record.stored_as,
        "trainer": record.spec.trainer.value,
        "recipe": record.spec.recipe,
        "lane": record.spec.lane.value,
        "argv": list(record.argv),
        "scalars": str(record.scalars),
        "console": str(record.console),
        "provenance": None if ran is None else {name: getattr(ran, name) for name in ran.__slots__},
    }
    return json.dumps(report, indent=2, allow_nan=False)
