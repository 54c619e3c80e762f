"""``lossbisect compare``."""

from pathlib import Path

import click

from lossbisect.cli.options import json_option, plot_option
from lossbisect.compare import Judgement, Verdict, compare_logs, parse_tolerance

__all__ = ["command", "show"]

EXIT_CODES = {Verdict.SAME: 0, Verdict.DIVERGED: 1, Verdict.UNDECIDED: 3}
_COLOURS = {Verdict.SAME: "green", Verdict.DIVERGED: "red", Verdict.UNDECIDED: "yellow"}
_LOG = click.Path(exists=True, dir_okay=False, readable=True, path_type=Path)


def _tolerance(_context: click.Context, _parameter: click.Parameter, value: str) -> float | None:
    try:
        return parse_tolerance(value)
    except ValueError as error:
        raise click.BadParameter(str(error)) from None


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
@plot_option
@json_option
def command(
    baseline: Path, candidate: Path, metric: str, tolerance: float | None, plot: Path | None, *, is_json: bool
) -> int:
    """Say whether CANDIDATE shows the same loss as BASELINE, and if not, since which iteration.

    Both are console logs of Megatron-LM or Megatron Bridge, in any mix.

    Example: lossbisect compare megatron-lm.log bridge.log --plot loss.png
    """
    from lossbisect.parsers import read_log

    judgement = compare_logs(read_log(baseline), read_log(candidate), metric=metric, tolerance=tolerance)
    return show(judgement, plot, is_json=is_json)


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
