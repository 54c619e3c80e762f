"""``lossbisect compare``."""

from pathlib import Path

import click

from lossbisect.compare import Verdict, compare_logs, parse_tolerance

__all__ = ["command"]

EXIT_CODES = {Verdict.SAME: 0, Verdict.DIVERGED: 1, Verdict.UNDECIDED: 3}
_COLOURS = {Verdict.SAME: "green", Verdict.DIVERGED: "red", Verdict.UNDECIDED: "yellow"}
_LOG = click.Path(exists=True, dir_okay=False, readable=True, path_type=Path)


def _tolerance(_context: click.Context, _parameter: click.Parameter, value: str) -> float | None:
    try:
        return parse_tolerance(value)
    except ValueError as error:
        raise click.BadParameter(str(error)) from None


def _plot_path(_context: click.Context, _parameter: click.Parameter, value: Path | None) -> Path | None:
    """Refuse a plot that couldn't be written before any work is done."""
    from lossbisect.report.plot import check_plot_path

    if value is not None:
        try:
            check_plot_path(value)
        except ValueError as error:
            raise click.BadParameter(str(error)) from None
    return value


@click.command(
    epilog="Exit codes: 0 same, 1 diverged, 3 undecided, 2 wrong usage or a failure of lossbisect itself.",
)
@click.argument("baseline", type=_LOG)
@click.argument("candidate", type=_LOG)
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
    metavar="auto|exact|rtol=NUMBER",
    help="What counts as the same: 'auto' what the runs' number format explains, 'exact' every printed digit, "
    "'rtol=1e-5' a relative difference up to that number.",
)
@click.option(
    "--plot",
    type=click.Path(path_type=Path),
    callback=_plot_path,
    metavar="FILE.png|svg|pdf",
    help="Draw both curves and their difference into this file.  [default: no plot]",
)
@click.option("--json", "is_json", is_flag=True, help="Print one JSON object instead of text.  [default: text]")
def command(
    baseline: Path, candidate: Path, metric: str, tolerance: float | None, plot: Path | None, *, is_json: bool
) -> int:
    """Say whether CANDIDATE shows the same loss as BASELINE, and if not, since which iteration.

    Both are console logs of Megatron-LM or Megatron Bridge, in any mix.

    Example: lossbisect compare megatron-lm.log bridge.log --plot loss.png
    """
    from lossbisect.parsers import read_log

    judgement = compare_logs(read_log(baseline), read_log(candidate), metric=metric, tolerance=tolerance)
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
