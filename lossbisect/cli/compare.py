"""``lossbisect compare``."""

from glob import glob
from pathlib import Path

import click

from lossbisect.cli.log_options import (
    command_line,
    html_option,
    json_option,
    plot_option,
    read_repeats,
    repeat_candidate_option,
    repeat_option,
)
from lossbisect.compare.align import ON, within
from lossbisect.compare.noise import parse_tolerance
from lossbisect.compare.pipeline import compare_logs
from lossbisect.compare.presets import PRESETS
from lossbisect.compare.types import Judgement, Verdict
from lossbisect.parsers.runlog import RunLog

__all__ = ["command", "show"]

EXIT_CODES = {Verdict.SAME: 0, Verdict.DIVERGED: 1, Verdict.UNDECIDED: 3}
_BADNESS = (Verdict.SAME, Verdict.UNDECIDED, Verdict.DIVERGED)
_LOG = click.Path(exists=True, dir_okay=False, readable=True, allow_dash=True, path_type=Path)
_STDIN = Path("-")
_COLOURS = {Verdict.SAME: "green", Verdict.DIVERGED: "red", Verdict.UNDECIDED: "yellow"}


def _tolerance(_context: click.Context, _parameter: click.Parameter, value: str) -> float | str | None:
    if value in PRESETS:
        return value
    try:
        return parse_tolerance(value)
    except ValueError as error:
        raise click.BadParameter(f"{error} Nor is it a rule of another project: {', '.join(PRESETS)}.") from None


def _groups(_context: click.Context, _parameter: click.Parameter, values: tuple[str, ...]) -> dict[str, list[Path]]:
    """Names with the logs that their patterns find, in the order of the patterns."""
    groups: dict[str, list[Path]] = {}
    for value in values:
        name, is_named, pattern = value.partition("=")
        if not (is_named and name and pattern):
            raise click.BadParameter(f"'{value}' isn't NAME=GLOB, such as base='runs/base-*.log'.")
        matches = sorted(glob(pattern))  # noqa: PTH207  Path.glob takes no absolute pattern
        found = [Path(path) for path in matches if Path(path).is_file()]
        if not found:
            raise click.BadParameter(f"No file matches '{pattern}' of the group '{name}'.")
        groups.setdefault(name, []).extend(path for path in found if path not in groups.get(name, []))
    if len(groups) == 1:
        raise click.BadParameter("One group has nothing to be compared with: give --group twice or more.")
    return groups


@click.command(
    epilog="Exit codes: 0 same, 1 diverged, 3 undecided, 2 wrong usage or a failure of lossbisect itself.",
)
@click.argument("baseline", required=False, type=_LOG)
@click.argument("candidates", metavar="CANDIDATE...", nargs=-1, type=_LOG)
@click.option(
    "--group",
    "groups",
    multiple=True,
    metavar="NAME=GLOB",
    callback=_groups,
    help="Runs of one set-up, such as seeds, instead of BASELINE and CANDIDATE; give it once a set-up, the baseline's "
    "first. Medians are compared, and the noise is what the runs of a group differ by. Quote the pattern.",
)
@click.option(
    "--metric",
    default="lm_loss",
    show_default=True,
    help="Column to judge by, such as grad_norm or throughput_per_gpu_tflops; a loss is in nats per token.",
)
@click.option(
    "--on",
    type=click.Choice(ON),
    default=ON[0],
    show_default=True,
    help="What rows are matched by: consumed_samples where the batch sizes differ.",
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
@html_option
@json_option
def command(
    baseline: Path | None,
    candidates: tuple[Path, ...],
    groups: dict[str, list[Path]],
    metric: str,
    on: str,
    tolerance: float | str | None,
    repeats: tuple[Path, ...],
    candidate_repeats: tuple[Path, ...],
    first: int | None,
    last: int | None,
    plot: Path | None,
    html: Path | None,
    *,
    is_json: bool,
) -> int:
    """Say whether CANDIDATE shows the same loss as BASELINE, and if not, since which iteration.

    All are console logs of Megatron-LM or Megatron Bridge, in any mix; one of them may be - for standard input. Several
    candidates make a table; the exit code is then that of the worst one.

    Example: lossbisect compare megatron-lm.log bridge.log --plot loss.png

    Example: lossbisect compare --group old='runs/old-seed*.log' --group new='runs/new-seed*.log'
    """
    _require_two(baseline, candidates, groups)
    if first is not None and last is not None and first > last:
        raise click.UsageError(f"--from {first} is after --to {last}: no iteration lies between them.")
    if tolerance is not None and (repeats or candidate_repeats):
        raise click.UsageError("Repeats measure the noise, and --tolerance states it: give one of the two.")
    if max(len(candidates), len(groups) - 1) > 1 and (is_json or candidate_repeats):
        raise click.UsageError("--json and --repeat-candidate take one candidate.")
    if groups:
        from lossbisect.compare.groups import Group, compare_groups

        if repeats or candidate_repeats:
            raise click.UsageError("A group's runs are its repeats: add them to its pattern instead of --repeat.")
        trusted, *others = (
            Group(name=name, runs=tuple(_read(path, first, last) for path in paths)) for name, paths in groups.items()
        )
        judgements = [compare_groups(trusted, group, metric=metric, tolerance=tolerance, on=on) for group in others]
    else:
        assert baseline is not None
        log, measured = _read(baseline, first, last), read_repeats(repeats, candidate_repeats)
        judgements = [
            compare_logs(log, _read(path, first, last), metric=metric, tolerance=tolerance, repeats=measured, on=on)
            for path in candidates
        ]
    if plot is not None:
        from lossbisect.report.plot import draw_many

        draw_many(judgements, plot)
    if html is not None:
        from lossbisect.report.html.compare import compare_page
        from lossbisect.report.html.origin import origin_of, write_page

        given = (*((baseline,) if baseline else ()), *candidates, *repeats, *candidate_repeats)
        read = (*given, *(path for paths in groups.values() for path in paths))
        write_page(compare_page(judgements, origin_of(command_line(), read)), html)
    if len(judgements) == 1:
        return show(judgements[0], is_json=is_json)
    from lossbisect.report.many import render_table

    click.echo(render_table(judgements))
    return EXIT_CODES[max((item.verdict for item in judgements), key=_BADNESS.index)]


def _require_two(baseline: Path | None, candidates: tuple[Path, ...], groups: dict[str, list[Path]]) -> None:
    if groups and baseline is not None:
        raise click.UsageError("--group names all logs: give either BASELINE and CANDIDATE or groups.")
    if not groups and baseline is None:
        raise click.UsageError("Missing arguments 'BASELINE CANDIDATE...', or --group twice.")
    if not groups and not candidates:
        raise click.UsageError("Missing argument 'CANDIDATE...'.")
    if (baseline, *candidates).count(_STDIN) > 1:
        raise click.UsageError("Standard input holds one log: give - once, and files for the others.")


def _read(path: Path, first: int | None, last: int | None) -> RunLog:
    from lossbisect.parsers import read_log

    return within(read_log(path), first, last)


def show(judgement: Judgement, *, is_json: bool) -> int:
    """Print a judgement and return its exit code."""
    if is_json:
        from lossbisect.report.json import render_json

        click.echo(render_json(judgement))
    else:
        from lossbisect.report.text import render_text

        head, colon, rest = render_text(judgement).partition(":")
        click.echo(click.style(head, fg=_COLOURS[judgement.verdict], bold=True) + colon + rest)
    return EXIT_CODES[judgement.verdict]
