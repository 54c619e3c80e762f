"""``lossbisect explain``."""

import sys
from pathlib import Path

import click

from lossbisect.cli.options import LOG_PATH, json_option, python_option

__all__ = ["command"]


@click.command(
    epilog="Exit codes: 0 nothing was found that explains a difference, 1 something was, 2 wrong usage or a failure of "
    "lossbisect itself."
)
@click.argument("run", required=False, type=LOG_PATH)
@click.argument("baseline", required=False, type=LOG_PATH)
@click.option(
    "--repo",
    type=click.Path(path_type=Path),
    metavar="PATH",
    help="Megatron Bridge or Megatron-LM checkout that was run. Only read.  [default: the one around the current "
    "folder, if it is in one]",
)
@click.option(
    "--good", metavar="COMMIT", help="Last commit of Megatron-LM known to be good, for the bisect to run next."
)
@click.option("--bad", metavar="COMMIT", help="Commit of Megatron-LM known to be bad.  [default: what is checked out]")
@python_option
@json_option
def command(
    run: Path | None,
    baseline: Path | None,
    repo: Path | None,
    good: str | None,
    bad: str | None,
    python: Path | None,
    *,
    is_json: bool,
) -> int:
    """Walk the checklist of "the loss diverged after a commit", and name the bisect to run next.

    RUN is the log of the run that went astray, BASELINE that of one to trust. What can be checked is: configuration,
    environment, submodule, stale checkpoints, PYTHONPATH, schedule, data, seeds and print artefacts, in that order.
    The set-up is looked at as it is now, so look where and soon after the run was made.

    Example: lossbisect explain new.log good.log --repo ~/Megatron-Bridge
    """
    from lossbisect.assist.explain import explain_logs
    from lossbisect.report.explain import explanation_json, explanation_text

    if (run is None) != (baseline is None):
        raise click.UsageError("Give both logs, RUN and BASELINE, or none.")
    explanation = explain_logs(
        run,
        baseline,
        repo=repo,
        python=python or Path(sys.executable),
        is_python_named=python is not None,
        good=good,
        bad=bad,
    )
    if is_json:
        click.echo(explanation_json(explanation))
    else:
        head, colon, rest = explanation_text(explanation).partition(":")
        click.echo(click.style(head, fg="red" if explanation.is_found else "green", bold=True) + colon + rest)
    return 1 if explanation.is_found else 0
