"""Several judgements against one baseline as a table: one line a candidate."""

from collections.abc import Sequence

from lossbisect.compare.types import Judgement
from lossbisect.compare.wording import change_text, relative_text
from lossbisect.report.plain import printable

__all__ = ["render_table"]


def render_table(judgements: Sequence[Judgement]) -> str:
    """Lines without colour and without a final newline, in the order of the candidates."""
    rows = [["candidate", "verdict", "since", "median shift", "largest", "speed", "its shape speaks for"]]
    for judgement in judgements:
        comparison = judgement.comparison
        difference = comparison.difference
        shift, largest = difference.shift_rel, difference.largest_rel
        rows.append(
            [
                comparison.candidate,
                judgement.verdict.value.upper(),
                "" if difference.first_divergent is None else str(difference.first_divergent),
                "" if shift is None else relative_text(shift, is_signed=True),
                "" if largest is None else relative_text(largest),
                next((change_text(item) for item in comparison.performance), ""),
                ", ".join(item.shape for item in comparison.diagnoses[:2]),
            ]
        )
    widths = [max(len(row[column]) for row in rows) for column in range(len(rows[0]))]
    first = judgements[0].comparison
    lines = ["  ".join(cell.ljust(width) for cell, width in zip(row, widths, strict=True)).rstrip() for row in rows]
    reasons = [f"{judgement.comparison.candidate}: {judgement.reason}" for judgement in judgements]
    return printable(
        "\n".join([f"baseline {first.baseline}, noise floor by {first.noise.source}", "", *lines, "", *reasons])
    )
