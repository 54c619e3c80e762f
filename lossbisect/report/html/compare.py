"""The page of one comparison, or of several against one baseline."""

from collections.abc import Sequence

from lossbisect.compare.stats import classify
from lossbisect.compare.types import Comparison, Difference, Judgement, Verdict
from lossbisect.compare.wording import change_text, counted, metric_name, relative_text, value_text
from lossbisect.report.html.charts import chart_data
from lossbisect.report.html.model import (
    Block,
    Bullets,
    Charts,
    Facts,
    Inline,
    Mark,
    Page,
    Section,
    Table,
    Text,
    Tone,
)
from lossbisect.report.html.origin import Origin, again, files_section
from lossbisect.report.panels import short_names
from lossbisect.report.text import noise_text, row_mark, telling_rows, witness_text

__all__ = ["TONES", "compare_page", "evidence_sections", "line_names", "worst_of"]

TONES = {Verdict.SAME: Tone.GOOD, Verdict.DIVERGED: Tone.BAD, Verdict.UNDECIDED: Tone.UNSURE}
_BADNESS = (Verdict.SAME, Verdict.UNDECIDED, Verdict.DIVERGED)
_KINDS = {"convergence": "changes the loss", "execution": "changes how it is computed"}
_METHOD = (
    "Rows are matched by the iteration that they name, never by position; a row that only one side has, or that was "
    "cut, is left out and listed. A relative difference is (candidate - baseline) / |baseline|, less what the printed "
    "digits alone explain. A NaN never passes as a small difference. A divergence begins at the first row surely "
    "beyond the noise of which, with the four rows after it, most are so too."
)


def compare_page(judgements: Sequence[Judgement], origin: Origin) -> Page:
    """One candidate with all its evidence, or several in a table and one chart, each with its own evidence below."""
    if len(judgements) == 1:
        judgement = judgements[0]
        verdict = judgement.verdict
        sections = evidence_sections(judgement)
        reason = judgement.reason
    else:
        verdict = worst_of(judgements)
        counts = [(item, sum(each.verdict is item for each in judgements)) for item in reversed(_BADNESS)]
        reason = f"Of {len(judgements)} runs {', '.join(f'{n} {item.value}' for item, n in counts if n)}."
        sections = _many_sections(judgements)
    names = short_names([judgements[0].comparison.baseline, *(each.comparison.candidate for each in judgements)])
    return Page(
        kind="compare",
        title=f"{verdict.value}: {names[1]} against {names[0]}"
        if len(judgements) == 1
        else f"{verdict.value}: {reason}",
        verdict=Mark(verdict.value, TONES[verdict]),
        reason=reason,
        sections=[
            *sections,
            Section(title="What was compared", blocks=[files_section(origin)]),
            again(origin),
        ],
    )


def evidence_sections(judgement: Judgement, names: Sequence[str] | None = None) -> list[Section]:
    """All that speaks for a verdict, the most telling first.

    Args:
        judgement: The verdict.
        names: What the two lines are called; None: baseline and candidate with their files.
    """
    comparison = judgement.comparison
    return [
        Section(title="Curves", blocks=[Charts(chart_data([judgement], names or line_names([judgement])))]),
        Section(title="What its shape speaks for", blocks=_diagnoses(comparison)),
        Section(title="Settings that differ", blocks=_settings(comparison)),
        Section(title="In figures", blocks=[Facts(_figures(comparison))]),
        Section(title="Other columns", blocks=_witnesses(comparison)),
        Section(title="Speed and memory, which decide nothing", blocks=_performance(comparison)),
        Section(title=f"Rows that tell: {metric_name(comparison.curves.metric)}", blocks=_rows(comparison)),
        Section(title="Notes", blocks=[Bullets(comparison.notes)] if comparison.notes else []),
        Section(title="What it rests on", blocks=_grounds(comparison)),
    ]


def worst_of(judgements: Sequence[Judgement]) -> Verdict:
    """The verdict of the worst one."""
    return max((judgement.verdict for judgement in judgements), key=_BADNESS.index)


def line_names(judgements: Sequence[Judgement]) -> tuple[str, ...]:
    """What the lines of a chart are called."""
    names = short_names([judgements[0].comparison.baseline, *(each.comparison.candidate for each in judgements)])
    first = f"baseline {names[0]}"
    return (first, f"candidate {names[1]}") if len(judgements) == 1 else (first, *names[1:])


def _many_sections(judgements: Sequence[Judgement]) -> list[Section]:
    names = line_names(judgements)[1:]
    rows: list[list[Inline]] = []
    for judgement, name in zip(judgements, names, strict=True):
        difference = judgement.comparison.difference
        shift, largest = difference.shift_rel, difference.largest_rel
        rows.append(
            [
                name,
                Mark(judgement.verdict.value, TONES[judgement.verdict]),
                "" if difference.first_divergent is None else str(difference.first_divergent),
                "" if shift is None else relative_text(shift, is_signed=True),
                "" if largest is None else relative_text(largest),
                judgement.reason,
            ]
        )
    head = ["run", "verdict", "since", "median shift", "largest", "why"]
    sections = [
        Section(title="Runs", blocks=[Table(head=head, rows=rows, numeric=frozenset({2, 3, 4}))]),
        Section(title="Curves", blocks=[Charts(chart_data(judgements, line_names(judgements)))]),
    ]
    for judgement, name in zip(judgements, names, strict=True):
        comparison = judgement.comparison
        blocks = [*_diagnoses(comparison), *_settings(comparison), *_witnesses(comparison)]
        notes = [Bullets(comparison.notes)] if comparison.notes else []
        sections.append(Section(title=name, blocks=[Text(judgement.reason), *blocks, *notes]))
    return [*sections, Section(title="What it rests on", blocks=_grounds(judgements[0].comparison))]


def _figures(comparison: Comparison) -> list[tuple[str, str]]:
    difference = comparison.difference
    rows = [
        ("metric", metric_name(comparison.curves.metric)),
        ("baseline", comparison.baseline),
        ("candidate", comparison.candidate),
        ("compared", counted(difference.iterations, "iteration")),
    ]
    since, at = difference.first_divergent, difference.largest_at
    if since is not None:
        rows.append(("diverges from", f"iteration {since}"))
    elif difference.first_difference is not None:
        rows.append(("differs at all from", f"iteration {difference.first_difference}"))
    if difference.largest_rel:
        rows.append(("largest difference", f"{relative_text(difference.largest_rel)} relative, at iteration {at}"))
    if difference.shift_rel is not None:
        rows.append(("median shift", f"{relative_text(difference.shift_rel, is_signed=True)} relative"))
    if difference.spikes:
        rows.append(("lone spikes", f"{len(difference.spikes)}, the first at iteration {difference.spikes[0]}"))
    return rows


def _diagnoses(comparison: Comparison) -> list[Block]:
    blocks: list[Block] = []
    for item in comparison.diagnoses:
        blocks += [Text(item.meaning), Facts([("evidence", item.evidence), ("check next", item.check_next)])]
    return blocks


def _settings(comparison: Comparison) -> list[Block]:
    if not comparison.config:
        return []
    rows = [
        [item.field, str(item.baseline), str(item.candidate), _KINDS.get(item.kind, item.kind), item.reason]
        for item in comparison.config
    ]
    return [Table(head=["setting", "baseline", "candidate", "kind", "why it matters"], rows=rows)]


def _witnesses(comparison: Comparison) -> list[Block]:
    rows: list[list[Inline]] = [
        [
            metric_name(name),
            Mark(*_witness_mark(difference)),
            witness_text(difference, name, comparison),
            "" if difference.first_divergent is None else str(difference.first_divergent),
        ]
        for name, difference in comparison.witnesses.items()
    ]
    return [Table(head=["column", "", "says", "since"], rows=rows, numeric=frozenset({3}))] if rows else []


def _performance(comparison: Comparison) -> list[Block]:
    rows = [
        [
            metric_name(item.metric),
            f"{item.baseline:.4g}",
            f"{item.candidate:.4g}",
            change_text(item),
            f"{item.source} vary by {item.noise_rel * 100:.2g} %",
        ]
        for item in comparison.performance
    ]
    head = ["column", "baseline", "candidate", "change", "noise"]
    return [Table(head=head, rows=rows, numeric=frozenset({1, 2}))] if rows else []


def _witness_mark(difference: Difference) -> tuple[str, Tone]:
    if difference.iterations == 0:
        return "no value", Tone.NEUTRAL
    if difference.first_divergent is not None:
        return "differs", Tone.BAD
    if difference.is_identical or difference.first_difference is None:
        return "equal", Tone.GOOD
    return ("unsure", Tone.UNSURE) if difference.doubtful_rows else ("within noise", Tone.GOOD)


def _rows(comparison: Comparison) -> list[Block]:
    rows = classify(comparison.curves, comparison.noise)
    if rows.is_empty():
        return []
    cells: list[list[Inline]] = []
    marked: set[int] = set()
    for index in telling_rows(rows["iteration"].to_list(), comparison.difference):
        row = rows.row(index, named=True)
        if row["iteration"] == comparison.difference.first_divergent:
            marked.add(len(cells))
        cells.append(
            [
                str(row["iteration"]),
                value_text(row["baseline"]),
                value_text(row["candidate"]),
                "" if row["relative"] is None else relative_text(row["relative"], is_signed=True),
                row_mark(row),
            ]
        )
    head = ["iteration", "baseline", "candidate", "relative", ""]
    return [Table(head=head, rows=cells, numeric=frozenset(range(4)), marked=frozenset(marked))]


def _grounds(comparison: Comparison) -> list[Block]:
    noise, difference = comparison.noise, comparison.difference
    facts = [("noise floor", noise_text(comparison))]
    if noise.surely_shift_rel:
        facts.append(("a lasting shift counts from", f"{relative_text(noise.surely_shift_rel)} in the median"))
    effect = difference.effect
    if effect is not None:
        low, high = (relative_text(value, is_signed=True) for value in (effect.low_rel, effect.high_rel))
        facts += [
            ("shift", f"{relative_text(effect.shift_rel, is_signed=True)} relative"),
            (f"its {1 - effect.alpha:.0%} interval", f"{low} to {high}"),
            ("p value", f"{effect.p_value:.2g}, corrected for windows and metrics (Holm); alarm at {effect.alpha:g}"),
            ("would have been found", f"a shift of {relative_text(effect.detectable_rel)} in 99 of 100 cases"),
        ]
        if effect.onset is not None:
            facts.append(("onset", f"iteration {effect.onset}, 95 %: {effect.onset_low} to {effect.onset_high}"))
    if comparison.rule is not None:
        outcome = "green" if comparison.rule.passes else "red"
        facts.append((f"the check of {comparison.rule.name}", f"{outcome}: {comparison.rule.why}"))
    facts.append(("rows laid over each other by", metric_name(comparison.curves.on)))
    return [Facts(facts), Text(_METHOD)]
