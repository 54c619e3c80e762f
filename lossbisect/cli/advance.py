"""``lossbisect advance``."""

from pathlib import Path
from typing import TYPE_CHECKING

import click

from lossbisect.cli.console import interruptible
from lossbisect.cli.keep import store_options
from lossbisect.cli.number import Number
from lossbisect.cli.options import jobs_option, json_option, lane_option, python_option, recipe_option, trainer_option
from lossbisect.cli.progress import progress
from lossbisect.train.executors import ExecutorOptions
from lossbisect.train.types import Lane, TrainerName

if TYPE_CHECKING:
    from lossbisect.store.runner import StoreUse

__all__ = ["command"]

STAY, UNSURE = 1, 3


@click.command(
    epilog="Exit codes: 0 there is a newer commit with the same loss, 1 there is none, 3 that isn't sure (the commits "
    "right after can't be tested, or a run didn't repeat), 2 wrong usage or a failure of lossbisect itself."
)
@click.option(
    "--repo",
    type=click.Path(path_type=Path),
    default=Path(),
    show_default=True,
    metavar="PATH",
    help="Megatron Bridge checkout, asked from the Megatron-LM that it pins, or Megatron-LM checkout, asked from its "
    "HEAD. Only read.",
)
@click.option(
    "--to",
    metavar="COMMIT",
    help="Newest commit to ask about, named as for 'bisect'.  [default: origin's main, or its dev, as it was fetched]",
)
@recipe_option
@trainer_option
@lane_option
@python_option
@click.option(
    "--tolerance",
    type=Number(min=0),
    metavar="NUMBER",
    help="Relative difference that counts as the same loss.  [default: what two runs of today's commit show]",
)
@click.option("--skip", multiple=True, metavar="COMMIT|A..B", help="Never run these commits; as often as needed.")
@click.option(
    "--fixup", "fixups", multiple=True, metavar="PATCH|COMMIT[@A..B]", help="Run commits with it; as often as needed."
)
@jobs_option
@click.option(
    "--work-dir", type=click.Path(file_okay=False, path_type=Path), metavar="DIR", help="Where runs are kept."
)
@click.option("--allow-dirty", is_flag=True, help="Go on although tracked files of the checkout are changed.")
@json_option
@store_options
def command(
    repo: Path,
    to: str | None,
    recipe: str | None,
    trainer: str | None,
    lane: str,
    python: Path | None,
    tolerance: float | None,
    skip: tuple[str, ...],
    fixups: tuple[str, ...],
    jobs: int | None,
    work_dir: Path | None,
    store: "StoreUse",
    *,
    allow_dirty: bool,
    is_json: bool,
) -> int:
    """Say how far Megatron-Core can be moved without the loss changing.

    Finds the newest commit that still gives the loss of the one in use today, and the first that doesn't. A commit that
    fails is searched around, unless the newest one fails too.

    Example: lossbisect advance --repo ~/Megatron-Bridge
    """
    from lossbisect.bisect.advance import advance
    from lossbisect.bisect.culprit import Answer
    from lossbisect.bisect.options import Fixup, SearchOptions
    from lossbisect.bisect.training import Training
    from lossbisect.report.advance import advance_json, advance_text, newest_of

    training = Training(
        recipe=recipe,
        trainer=TrainerName(trainer) if trainer else None,
        lane=Lane(lane),
        python=python,
        tolerance=tolerance,
    )
    with interruptible(), progress() as show:
        result = advance(
            repo,
            to,
            search=SearchOptions(skip=skip, fixups=tuple(map(Fixup.parse, fixups))),
            training=training,
            executor=ExecutorOptions(jobs=jobs),
            store=store,
            allow_dirty=allow_dirty,
            work_dir=work_dir,
            on_event=show,
        )
    click.echo(advance_json(result) if is_json else advance_text(result))
    if result.answer is Answer.UNCONFIRMED:
        return UNSURE
    if newest_of(result) is not None:
        return 0
    return STAY if result.finding.bad == 0 else UNSURE
