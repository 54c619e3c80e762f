"""A judgement as text for a terminal: the verdict first, then the evidence, shortest first."""

from lossbisect.compare.align import ITERATION
from lossbisect.compare.noise import witness_noise
from lossbisect.compare.stats import classify
from lossbisect.compare.types import Comparison, Difference, Judgement, Performance
from lossbisect.compare.wording import change_text, counted, metric_name, p_text, relative_text, value_text
from lossbisect.report.plain import printable

__all__ = ["noise_text", "render_text", "row_mark", "telling_rows", "witness_text"]

_ALL_ROWS = 12
_ROWS_BEFORE = 2
_ROWS_AFTER = 5
_MOST_SETTINGS = 10
_MOST_DIAGNOSES = 3
_MOST_NOTES = 12


def render_text(judgement: Judgement) -> str:
    """Several lines without colour and without a final newline; the first one starts with the verdict in capitals."""
    comparison = judgement.comparison
    blocks = [
        f"{judgement.verdict.value.upper()}: {judgement.reason}",
        _table(
            [
                ["baseline", comparison.baseline],
                ["candidate", comparison.candidate],
                ["noise floor", noise_text(comparison)],
            ]
        ),
        _diagnoses(comparison),
        _iterations(comparison),
        _witnesses(comparison),
        _performance(comparison),
        _settings(comparison),
        _notes(comparison),
    ]
    return printable("\n\n".join(block for block in blocks if block))


def noise_text(comparison: Comparison) -> str:
    """What counts as noise, and by whose word."""
    noise = comparison.noise
    if comparison.rule is not None:
        return f"the rule of {comparison.rule.name}; the marks below are by {noise.source}"
    effect = comparison.difference.effect
    if effect is not None:
        spread = f"rows differ by up to {relative_text(noise.surely_noise_rel)} relative"
        return f"{noise.source}: {spread}, a shift of {relative_text(effect.detectable_rel)} is found"
    if noise.source == "bit-exact":
        return "none: every printed digit must agree"
    if noise.surely_shift_rel is not None and noise.surely_real_rel == 1:
        return f"{noise.source}: a median shift for the worse of up to {relative_text(noise.surely_shift_rel)}"
    if noise.surely_real_rel == 0:
        return f"{noise.source}: every printed digit must agree"
    if noise.surely_noise_rel == noise.surely_real_rel:
        return f"{noise.source}: relative differences up to {relative_text(noise.surely_noise_rel)} are the same"
    grows = f" (growing after {noise.grows_after} iterations)" if noise.grows_after else ""
    noise_rel, real_rel = relative_text(noise.surely_noise_rel), relative_text(noise.surely_real_rel)
    return f"{noise.source}: relative differences up to {noise_rel} are noise, above {real_rel} real{grows}"


def _iterations(comparison: Comparison) -> str:
    """The rows around the first one that tells something, with the last and the most different one."""
    rows = classify(comparison.curves, comparison.noise)
    if rows.is_empty():
        return ""
    onset = comparison.difference.first_divergent
    lines = [["", "iteration", "baseline", "candidate", "relative", ""]]
    is_on_iteration = comparison.curves.on == ITERATION
    previous = -1
    for index in telling_rows(rows["iteration"].to_list(), comparison.difference):
        if index > previous + 1:
            lines.append(["", "...", "", "", "", ""])
        previous = index
        row = rows.row(index, named=True)
        lines.append(
            [
                ">" if row["iteration"] == onset else "",
                str(row["iteration"]) if is_on_iteration else f"{row['iteration']} ({row[comparison.curves.on]})",
                value_text(row["baseline"]),
                value_text(row["candidate"]),
                "" if row["relative"] is None else relative_text(row["relative"], is_signed=True),
                row_mark(row),
            ]
        )
    head = metric_name(comparison.curves.metric)
    if not is_on_iteration:
        head += f", by the baseline's iterations ({metric_name(comparison.curves.on)})"
    return f"{head}\n" + _table(lines, right=range(1, 5))


def telling_rows(iterations: list[int], difference: Difference) -> list[int]:
    """Ascending positions: around the first row that tells something, the most different one, and the last."""
    if len(iterations) <= _ALL_ROWS:
        return list(range(len(iterations)))
    tell = (difference.first_divergent, difference.first_doubtful, difference.first_difference, iterations[0])
    at = iterations.index(next(iteration for iteration in tell if iteration is not None))
    shown = {*range(max(0, at - _ROWS_BEFORE), min(len(iterations), at + _ROWS_AFTER + 1)), len(iterations) - 1}
    if difference.largest_at is not None:
        shown.add(iterations.index(difference.largest_at))
    return sorted(shown)


def row_mark(row: dict[str, object]) -> str:
    """What a classified row says, in a word or two."""
    if row["is_break"]:
        return "only one side"
    if row["is_real"]:
        return "real"
    if row["is_doubtful"]:
        return "not surely noise"
    if not row["is_compared"]:
        return "the same on both sides"
    if row["is_different"]:
        return ""
    return "equal" if row["delta"] == 0 else "equal but for the last digit"


def _diagnoses(comparison: Comparison) -> str:
    lines = [
        f"  {item.meaning}\n    evidence: {item.evidence}\n    check next: {item.check_next}"
        for item in comparison.diagnoses[:_MOST_DIAGNOSES]
    ]
    return "what its shape speaks for\n" + "\n".join(lines) if lines else ""


def _witnesses(comparison: Comparison) -> str:
    lines = [
        [metric_name(name), witness_text(difference, name, comparison)]
        for name, difference in comparison.witnesses.items()
    ]
    return "other columns\n" + _table(lines) if lines else ""


def witness_text(difference: Difference, name: str, comparison: Comparison) -> str:
    """How another column differs, as a clause."""
    if difference.effect is not None and difference.first_divergent is None:
        effect = difference.effect
        return f"median shift {relative_text(effect.shift_rel, is_signed=True)} relative, {p_text(effect.p_value)}"
    if difference.first_divergent is not None:
        largest = f", by up to {relative_text(difference.largest_rel or 0)} relative" if difference.largest_rel else ""
        return f"differs from iteration {difference.first_divergent} on{largest}"
    if difference.iterations == 0:
        return "never has a finite value on both sides"
    if difference.is_identical:
        return "identical"
    if difference.first_difference is None:
        return "equal but for the last digit"
    if difference.doubtful_rows:
        rows = counted(difference.doubtful_rows, "iteration")
        return f"not surely noise in {rows}, by up to {relative_text(difference.largest_rel or 0)} relative"
    return f"within {relative_text(witness_noise(comparison.noise, name).surely_noise_rel)} relative"


def _performance(comparison: Comparison) -> str:
    lines = [_speed(item) for item in comparison.performance]
    return "speed and memory, which decide nothing\n" + _table(lines) if lines else ""


def _speed(item: Performance) -> list[str]:
    figures = f"{item.baseline:.4g} vs {item.candidate:.4g}"
    return [metric_name(item.metric), figures, change_text(item), f"{item.source} vary by {item.noise_rel * 100:.2g} %"]


def _settings(comparison: Comparison) -> str:
    lines = [
        [item.field, f"{item.baseline} vs {item.candidate}", item.reason] for item in comparison.config[:_MOST_SETTINGS]
    ]
    if not lines:
        return ""
    more = len(comparison.config) - _MOST_SETTINGS
    return "settings that differ\n" + _table(lines) + (f"\n  and {more} more" if more > 0 else "")


def _notes(comparison: Comparison) -> str:
    if not comparison.notes:
        return ""
    more = len(comparison.notes) - _MOST_NOTES
    lines = [f"  - {note}" for note in comparison.notes[:_MOST_NOTES]] + ([f"  - and {more} more"] if more > 0 else [])
    return "notes\n" + "\n".join(lines)


def _table(rows: list[list[str]], right: range = range(0)) -> str:
    widths = [max(len(row[column]) for row in rows) for column in range(len(rows[0]))]
    return "\n".join(
        "  "
        + "  ".join(
            cell.rjust(width) if column in right else cell.ljust(width)
            for column, (cell, width) in enumerate(zip(row, widths, strict=True))
        ).rstrip()
        for row in rows
    )
