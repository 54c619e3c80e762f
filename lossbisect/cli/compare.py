"""``lossbisect compare``."""

from pathlib import Path

import click

from lossbisect.cli.options import (
    LOG_PATH,
    json_option,
    plot_option,
    read_repeats,
    repeat_candidate_option,
    repeat_option,
)
from lossbisect.compare import PRESETS, Judgement, Verdict, compare_logs, parse_tolerance, within

__all__ = ["command", "show"]

EXIT_CODES = {Verdict.SAME: 0, Verdict.DIVERGED: 1, Verdict.UNDECIDED: 3}
_BADNESS = (Verdict.SAME, Verdict.UNDECIDED, Verdict.DIVERGED)
_COLOURS = {Verdict.SAME: "green", Verdict.DIVERGED: "red", Verdict.UNDECIDED: "yellow"}


def _tolerance(_context: click.Context, _parameter: click.Parameter, value: str) -> float | str | None:
    if value in PRESETS:
        return value
    try:
        return parse_tolerance(value)
    except ValueError as error:
        raise click.BadParameter(f"{error} Nor is it a rule of another project: {', '.join(PRESETS)}.") from None


@click.command(
    epilog="Exit codes: 0 same, 1 diverged, 3 undecided, 2 wrong usage or a failure of lossbisect itself.",
)
@click.argument("baseline", type=LOG_PATH)
@click.argument("candidates", metavar="CANDIDATE...", nargs=-1, required=True, type=LOG_PATH)
@click.option(
    "--metric",
    default="lm_loss",
    show_default=True,
    help="Column to judge by, such as grad_norm; a loss is in nats per token.",
)
@click.option(
    "--tolerance",
    default="auto",
    show_default=True,
    callback=_tolerance,
    metavar="auto|exact|rtol=NUMBER|RULE",
    help="What counts as the same: 'auto' what the repeats show, or without any what the runs' number format explains; "
    "'exact' every printed digit; 'rtol=1e-5' a relative difference up to that number; 'megatron-lm', 'bridge' or "
    "'torchtitan' what the check of that project says.",
)
@click.option("--from", "first", type=click.IntRange(min=1), metavar="N", help="First iteration to compare.")
@click.option("--to", "last", type=click.IntRange(min=1), metavar="N", help="Last iteration to compare.")
@repeat_option
@repeat_candidate_option
@plot_option
@json_option
def command(
    baseline: Path,
    candidates: tuple[Path, ...],
    metric: str,
    tolerance: float | str | None,
    repeats: tuple[Path, ...],
    candidate_repeats: tuple[Path, ...],
    first: int | None,
    last: int | None,
    plot: Path | None,
    *,
    is_json: bool,
) -> int:
    """Say whether CANDIDATE shows the same loss as BASELINE, and if not, since which iteration.

    All are console logs of Megatron-LM or Megatron Bridge, in any mix. Several candidates make a table; the exit code
    is then that of the worst one.

    Example: lossbisect compare megatron-lm.log bridge.log --plot loss.png
    """
    from lossbisect.parsers import read_log

    if tolerance is not None and (repeats or candidate_repeats):
        raise click.UsageError("Repeats measure the noise, and --tolerance states it: give one of the two.")
    if len(candidates) > 1 and (plot is not None or is_json or candidate_repeats):
        raise click.UsageError("--plot, --json and --repeat-candidate take one candidate.")
    trusted = within(read_log(baseline), first, last)
    judgements = [
        compare_logs(
            trusted,
            within(read_log(candidate), first, last),
            metric=metric,
            tolerance=tolerance,
            repeats=read_repeats(repeats, candidate_repeats),
        )
        for candidate in candidates
    ]
    if len(judgements) == 1:
        return show(judgements[0], plot, is_json=is_json)
    from lossbisect.report.many import render_table

    click.echo(render_table(judgements))
    return EXIT_CODES[max((item.verdict for item in judgements), key=_BADNESS.index)]


def show(judgement: Judgement, plot: Path | None, *, is_json: bool) -> int:
    """Print a judgement, draw it if a file is named, and return its exit code."""
    if plot is not None:
        from lossbisect.report.plot import draw

        draw(judgement, plot)
    if is_json:
        from lossbisect.report.json import render_json

        click.echo(render_json(judgement))
    else:
        from lossbisect.report.text import render_text

        head, colon, rest = render_text(judgement).partition(":")
        click.echo(click.style(head, fg=_COLOURS[judgement.verdict], bold=True) + colon + rest)
    return EXIT_CODES[judgement.verdict]
