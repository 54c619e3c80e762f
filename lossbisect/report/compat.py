"""What goes together, as a table and as JSON."""

import json
from collections.abc import Sequence
from dataclasses import asdict

from lossbisect.assist.compat import Together
from lossbisect.assist.pins import Pins

__all__ = ["compat_json", "compat_text", "together_object"]

SCHEMA_VERSION = 1
_UNKNOWN = "-"


def compat_text(periods: Sequence[Sequence[Together]]) -> str:
    """A table with one row a period of equal versions, oldest first, without a final newline."""
    is_bridge = periods[0][0].kind == "bridge"
    head = ["since", "commit"]
    head += ["Bridge", "Megatron-Core", "commits of Megatron-LM"] if is_bridge else ["Megatron-Core"]
    rows = [[*head, "Python", "torch", "CUDA", "Transformer Engine", "image"]]
    for period in periods:
        first, last = period[0], period[-1]
        row = [first.date[:10], first.commit[:10], first.pins.version]
        if is_bridge:
            span = first.mcore[:10] + (f" .. {last.mcore[:10]}" if last.mcore != first.mcore else "")
            row += [first.mcore_version, span]
        python = first.pins.python or (first.mcore_pins or Pins()).python
        image = first.image.partition(":")[2].removesuffix("-py3") if first.image else None
        row += [python, first.torch, first.cuda, first.transformer_engine, image]
        rows.append([_UNKNOWN if cell is None else cell for cell in row])
    widths = [max(len(row[column]) for row in rows) for column in range(len(rows[0]))]
    return "\n".join(
        "  ".join(cell.ljust(width) for cell, width in zip(row, widths, strict=True)).rstrip() for row in rows
    )


def together_object(row: Together) -> dict[str, object]:
    """One commit as plain values."""
    return asdict(row)


def compat_json(rows: Sequence[Together]) -> str:
    """One object, indented, without a final newline: every commit that changes a pin."""
    report = {"schema_version": SCHEMA_VERSION, "commits": [together_object(row) for row in rows]}
    return json.dumps(report, indent=2, allow_nan=False, ensure_ascii=False)
