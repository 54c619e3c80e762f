"""``lossbisect history``."""

from pathlib import Path

import click

from lossbisect.cli.options import json_option, plot_option

__all__ = ["command"]


@click.group(invoke_without_command=True, epilog="Exit codes: 0 done, 2 wrong usage or a failure of lossbisect itself.")
@click.option("--recipe", metavar="NAME", help="Only this recipe's.  [default: every recipe's]")
@click.option(
    "--last", type=click.IntRange(min=1), default=30, show_default=True, metavar="N", help="Newest records to show."
)
@plot_option
@json_option
@click.pass_context
def command(context: click.Context, recipe: str | None, last: int, plot: Path | None, *, is_json: bool) -> int:
    """Show the curves that 'triage' recorded, per recipe, trainer, lane and GPU: a table, or a plot over commits.

    Example: lossbisect history --recipe vanilla-cpu --plot history.png
    """
    if context.invoked_subcommand is not None:
        return 0
    from lossbisect.report.history import draw_history, history_json, history_text
    from lossbisect.train import cache_directory
    from lossbisect.triage.ledger import Ledger

    ledger = Ledger(cache_directory())
    chosen = [series for series in ledger.all_series() if recipe in (None, series.recipe)]
    found = [(series, ledger.entries(series)) for series in chosen]
    if is_json:
        click.echo(history_json(found))
    elif not found:
        click.echo("There is no history yet: 'lossbisect triage' makes one.")
    else:
        shown = [history_text(series, entries[-last:]) for series, entries in found]
        click.echo("\n\n".join(shown))
    if plot is not None and found:
        draw_history(found, plot)
        click.echo(f"Wrote {plot}", err=True)
    return 0


@command.command("import", epilog="Exit codes: 0 done, 2 wrong usage or a failure of lossbisect itself.")
@click.argument("files", nargs=-1, required=True, type=click.Path(exists=True, dir_okay=False, path_type=Path))
@click.option(
    "--repo",
    type=click.Path(path_type=Path),
    default=Path(),
    show_default=True,
    metavar="PATH",
    help="The Megatron-LM checkout that holds the files. Only read.",
)
def import_files(files: tuple[Path, ...], repo: Path) -> int:
    """Begin a history with every revision of Megatron-LM's golden files.

    Example: lossbisect history import tests/functional_tests/test_cases/gpt/*/golden_values_dev_dgx_h100.json
    """
    from lossbisect.report.plain import printable
    from lossbisect.triage.golden import WARNING, import_golden

    weak = False
    for file in files:
        series, count, is_weak = import_golden(repo, file)
        weak = weak or is_weak
        click.echo(printable(f"{series.recipe} ({series.machine}): {count} revisions are new to the history"))
    if weak:
        click.echo(f"Warning: {WARNING}", err=True)
    return 0
