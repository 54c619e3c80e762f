"""``lossbisect changelog``."""

from pathlib import Path

import click

from lossbisect.bisect import bisect_range
from lossbisect.bisect.options import Fixup, SearchOptions
from lossbisect.bisect.training import Training
from lossbisect.cli.console import interruptible
from lossbisect.cli.log_options import command_line, html_option
from lossbisect.cli.number import Number
from lossbisect.cli.options import jobs_option, json_option, lane_option, python_option, recipe_option, trainer_option
from lossbisect.cli.progress import progress
from lossbisect.train.executors import ExecutorOptions
from lossbisect.train.types import Lane, TrainerName

__all__ = ["command"]


@click.command(epilog="Exit codes: 0 done, changes or not; 2 wrong usage or a failure of lossbisect itself.")
@click.argument("commits", metavar="A..B")
@click.option(
    "--repo",
    type=click.Path(path_type=Path),
    default=Path(),
    show_default=True,
    metavar="PATH",
    help="Megatron Bridge or Megatron-LM checkout. Only read.",
)
@recipe_option
@trainer_option
@lane_option
@python_option
@click.option("--probe", type=click.IntRange(min=0), default=0, show_default=True, help="Inner commits to run first.")
@click.option("--skip", multiple=True, metavar="COMMIT|A..B", help="Never run these commits; as often as needed.")
@click.option(
    "--fixup", "fixups", multiple=True, metavar="PATCH|COMMIT[@A..B]", help="Run commits with it; as often as needed."
)
@click.option(
    "--min-effect",
    type=Number(0, 1, min_open=True),
    metavar="NUMBER",
    help="Relative difference up to which curves count as the same.  [default: none]",
)
@jobs_option
@click.option(
    "--work-dir", type=click.Path(file_okay=False, path_type=Path), metavar="DIR", help="Where runs are kept."
)
@click.option("--allow-dirty", is_flag=True, help="Go on although tracked files of the checkout are changed.")
@html_option
@json_option
def command(
    commits: str,
    repo: Path,
    recipe: str | None,
    trainer: str | None,
    lane: str,
    python: Path | None,
    probe: int,
    skip: tuple[str, ...],
    fixups: tuple[str, ...],
    min_effect: float | None,
    jobs: int | None,
    work_dir: Path | None,
    html: Path | None,
    *,
    allow_dirty: bool,
    is_json: bool,
) -> int:
    """List every commit between two that changed the loss, as Markdown.

    Takes about k log2(N / k) short trainings for k changes in N commits.

    Example: lossbisect changelog core_v0.15.0..core_v0.16.0 --repo ~/Megatron-LM > changes.md
    """
    from lossbisect.report.changes import changelog_json, changelog_markdown

    good, dots, bad = commits.partition("..")
    if not (good and dots and bad):
        raise click.UsageError(f"'{commits}' names no two commits. Write them as A..B, the older one first.")
    training = Training(
        recipe=recipe, trainer=TrainerName(trainer) if trainer else None, lane=Lane(lane), python=python
    )
    with interruptible(), progress() as show:
        result = bisect_range(
            repo,
            good,
            bad.lstrip("."),
            training=training,
            executor=ExecutorOptions(jobs=jobs),
            search=SearchOptions(
                find_all=True,
                probe=probe,
                min_effect=min_effect,
                skip=skip,
                fixups=tuple(map(Fixup.parse, fixups)),
            ),
            allow_dirty=allow_dirty,
            work_dir=work_dir,
            on_event=show,
        )
    if html is not None:
        from lossbisect.report.html.bisect import write_bisect_page

        write_bisect_page(result, html, command_line())
        click.echo(f"Wrote {html}", err=True)
    click.echo(changelog_json(result) if is_json else changelog_markdown(result).rstrip("\n"))
    return 0
