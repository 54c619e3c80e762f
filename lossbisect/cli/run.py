"""``lossbisect run``."""

from pathlib import Path

import click

from lossbisect.cli.options import (
    commit_option,
    json_option,
    lane_option,
    out_option,
    python_option,
    recipe_option,
    repo_option,
    timeout_option,
    trainer_option,
)

__all__ = ["command"]


@click.command(
    epilog="Exit codes: 0 the training finished, 1 it failed, timed out, or ran other code than asked for, 2 wrong "
    "usage or a failure of lossbisect itself."
)
@repo_option
@commit_option
@recipe_option
@trainer_option
@lane_option
@python_option
@timeout_option
@out_option
@json_option
def command(
    repo: Path | None,
    commit: str | None,
    recipe: str | None,
    trainer: str | None,
    lane: str,
    python: Path | None,
    timeout: float | None,
    out: Path | None,
    *,
    is_json: bool,
) -> int:
    """Train a correlation recipe once, and keep its curves at full precision.

    Example: lossbisect run --repo ~/Megatron-Bridge --trainer mlm --out mlm-run
    """
    from lossbisect.bisect.sources import sources_of
    from lossbisect.cli.console import iteration_lines
    from lossbisect.report.run import run_json, run_text
    from lossbisect.train.defaults import run_spec
    from lossbisect.train.run import new_run_directory, run_recipe
    from lossbisect.train.types import Lane, Outcome, TrainerName

    out = out or new_run_directory()
    with sources_of(repo, commit, out.with_name(f"{out.name}-trees")) as sources:
        spec = run_spec(
            sources,
            recipe=recipe,
            trainer=TrainerName(trainer) if trainer else None,
            lane=Lane(lane),
            python=python,
            timeout_s=timeout,
        )
        record = run_recipe(spec, out, on_line=iteration_lines)
    click.echo(run_json(record) if is_json else run_text(record))
    return 0 if record.outcome is Outcome.FINISHED else 1
