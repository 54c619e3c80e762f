"""``lossbisect judge``."""

import secrets
from datetime import UTC, datetime
from pathlib import Path

import click

from lossbisect.bisect.judge import judge_checkout, read_baseline
from lossbisect.bisect.state import work_root
from lossbisect.bisect.training import Training
from lossbisect.bisect.types import CommitVerdict
from lossbisect.cli.log_options import checked_tolerance
from lossbisect.cli.number import Number
from lossbisect.cli.options import lane_option, python_option, recipe_option, trainer_option
from lossbisect.train.defaults import DEFAULT_TIMEOUT_S
from lossbisect.train.types import Lane, TrainerName

__all__ = ["EXIT_CODES", "command"]

EXIT_CODES = {CommitVerdict.GOOD: 0, CommitVerdict.BAD: 1, CommitVerdict.SKIP: 125}


@click.command(
    epilog="Exit codes: 0 good, 1 bad, 125 skip (the run failed or can't be judged), 128 wrong usage or any failure of "
    "lossbisect itself: it makes 'git bisect run' stop instead of blaming a commit.",
)
@click.option(
    "--baseline",
    required=True,
    type=click.Path(path_type=Path),
    metavar="PATH",
    help="The good curve: the folder of a finished run, its scalars.ndjson, or a log.",
)
@click.option(
    "--repo",
    type=click.Path(path_type=Path),
    default=Path(),
    show_default=True,
    metavar="PATH",
    help="Megatron Bridge or Megatron-LM checkout whose checked-out files are run. Only read.",
)
@recipe_option
@trainer_option
@lane_option
@python_option
@click.option(
    "--timeout",
    type=Number(min=0, min_open=True),
    default=DEFAULT_TIMEOUT_S,
    show_default=True,
    metavar="SECONDS",
    help="Time after which the run is killed and the commit skipped.",
)
@click.option("--metric", default="lm_loss", show_default=True, metavar="COLUMN", help="Column to judge by.")
@click.option(
    "--tolerance",
    default="exact",
    show_default=True,
    callback=checked_tolerance,
    metavar="auto|exact|rtol=NUMBER",
    help="What counts as the same: 'auto' what the runs' number format explains, 'exact' every digit, 'rtol=1e-5' a "
    "relative difference up to that number.",
)
@click.option(
    "--work-dir",
    type=click.Path(file_okay=False, path_type=Path),
    metavar="DIR",
    help="Where runs are kept.  [default: $LOSSBISECT_CACHE_DIR, or the user's cache directory]",
)
def command(
    baseline: Path,
    repo: Path,
    recipe: str | None,
    trainer: str | None,
    lane: str,
    python: Path | None,
    timeout: float,
    metric: str,
    tolerance: float | None,
    work_dir: Path | None,
) -> int:
    """Train at the checked-out commit and say whether its loss is the baseline's, for 'git bisect run'.

    Example: git bisect run lossbisect judge --baseline good-run --recipe vanilla-cpu
    """
    out = work_root(work_dir) / "judged" / f"{datetime.now(UTC):%Y%m%d-%H%M%S}-{secrets.token_hex(2)}"
    training = Training(
        recipe=recipe,
        trainer=TrainerName(trainer) if trainer else None,
        lane=Lane(lane),
        python=python,
        timeout_s=timeout,
        metric=metric,
        tolerance=tolerance,
    )
    judged = judge_checkout(read_baseline(baseline), repo, out, training)
    click.echo(f"{judged.verdict.value}: {judged.reason}")
    click.echo(f"The run: {out}", err=True)
    return EXIT_CODES[judged.verdict]
