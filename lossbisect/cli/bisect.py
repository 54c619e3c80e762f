"""``lossbisect bisect``."""

import os
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from lossbisect.bisect import Answer, BisectResult, Event, EventKind, bisect_range, resume_bisect
from lossbisect.bisect.options import SearchOptions
from lossbisect.bisect.scope import Scope
from lossbisect.bisect.training import Training
from lossbisect.cli.bisects import COMMANDS
from lossbisect.cli.console import interruptible
from lossbisect.cli.keep import store_options
from lossbisect.cli.log_options import checked_tolerance
from lossbisect.cli.number import Number
from lossbisect.cli.options import command_line, html_option, json_option, python_option, recipe_option, trainer_option
from lossbisect.cli.place import Place, place_options
from lossbisect.cli.progress import progress
from lossbisect.cli.scope_options import scope_options
from lossbisect.cli.search_options import search_options
from lossbisect.errors import LossbisectError
from lossbisect.train.defaults import DEFAULT_TIMEOUT_S
from lossbisect.train.types import Lane, TrainerName

if TYPE_CHECKING:
    from lossbisect.store.runner import StoreUse
    from lossbisect.train.cost import RunsCost

__all__ = ["EXIT_CODES", "command"]

EXIT_CODES = {
    Answer.FOUND: 0,
    Answer.EVERY_CHANGE: 0,
    Answer.NO_CULPRIT: 1,
    Answer.SEVERAL: 3,
    Answer.UNCONFIRMED: 3,
    Answer.UNDECIDED: 3,
}
INTERRUPTED = 130
LATEST = "latest"
_COLOURS = {Answer.FOUND: "red", Answer.NO_CULPRIT: "green"}


def _tolerance(context: click.Context, parameter: click.Parameter, value: str | None) -> float | str | None:
    if value is None:
        return None
    tolerance = checked_tolerance(context, parameter, value)
    return "auto" if tolerance is None else tolerance


@click.group(
    invoke_without_command=True,
    epilog="Exit codes: 0 culprit found and verified, 1 no culprit (the ends don't differ), 3 several candidates or an "
    "unconfirmed one, 2 wrong usage or a failure of lossbisect itself, 130 interrupted.",
)
@click.option(
    "--repo",
    type=click.Path(path_type=Path),
    metavar="PATH",
    help="Megatron Bridge checkout (Bridge stays at its HEAD, its Megatron-LM submodule is searched) or Megatron-LM "
    "checkout. Only read, never changed.  [default: .]",
)
@click.option(
    "--good",
    metavar="COMMIT",
    help="Megatron-LM commit with the right loss: SHA, tag, branch, release (0.15.0), pull request ('#4057'), day "
    "(2026-03-01), or bridge:NAME for the one that Bridge pins at NAME.  [default: with --bad or --oldest one is "
    "looked for, else the pin before Bridge's latest bump]",
)
@click.option(
    "--bad",
    metavar="COMMIT",
    help="Megatron-LM commit with the wrong loss, named in the same ways; later than the good one, or on another "
    "branch.  [default: the pin since that bump; with --good, the commit that is checked out]",
)
@click.option(
    "--bridge",
    metavar="COMMIT",
    help="Commit of Bridge that every run uses, from a tree of its own.  [default: the one that is checked out]",
)
@scope_options
@recipe_option
@trainer_option
@click.option(
    "--lane",
    type=click.Choice([lane.value for lane in Lane]),
    help="Where it trains: cpu emulates CUDA and repeats bit for bit.  [default: cpu]",
)
@python_option
@click.option(
    "--timeout",
    type=Number(min=0, min_open=True),
    metavar="SECONDS",
    help=f"Time after which a run is killed and its commit skipped.  [default: {DEFAULT_TIMEOUT_S:g}]",
)
@click.option("--metric", metavar="COLUMN", help="Column to judge by, such as grad_norm.  [default: lm_loss]")
@click.option(
    "--tolerance",
    callback=_tolerance,
    metavar="auto|exact|rtol=NUMBER",
    help="What counts as the same: 'auto' what two runs of the good end show (exact if they are equal), 'exact' every "
    "digit, 'rtol=1e-5' a relative difference up to that number.  [default: auto]",
)
@click.option(
    "--resume",
    is_flag=False,
    flag_value=LATEST,
    metavar="[ID]",
    help="Go on with a stopped bisect, the latest one of --repo if no ID is given. No finished run is repeated; "
    "options may be left out, and those given must be the same as at the start.",
)
@click.option(
    "--retry-skipped",
    is_flag=True,
    help="With --resume: run commits whose run failed once more, such as after a missing package was installed.",
)
@click.option(
    "--report-dir",
    type=click.Path(file_okay=False, path_type=Path),
    metavar="DIR",
    help="Write report.html, report.md, report.json and curves.png there.  [default: no report]",
)
@html_option
@json_option
@click.option(
    "--allow-dirty",
    is_flag=True,
    help="Go on although tracked files of the checkout are changed: runs use committed code only.",
)
@click.option(
    "--work-dir",
    type=click.Path(file_okay=False, path_type=Path),
    metavar="DIR",
    help="Where journals, runs and working trees are kept.  [default: $LOSSBISECT_CACHE_DIR, or the user's cache "
    "directory]",
)
@search_options
@place_options
@store_options
@click.pass_context
def command(
    context: click.Context,
    repo: Path | None,
    good: str | None,
    bad: str | None,
    bridge: str | None,
    recipe: str | None,
    trainer: str | None,
    lane: str | None,
    python: Path | None,
    timeout: float | None,
    metric: str | None,
    tolerance: float | str | None,
    resume: str | None,
    report_dir: Path | None,
    work_dir: Path | None,
    html: Path | None,
    place: Place,
    store: "StoreUse",
    search: SearchOptions | None,
    scope: Scope | None,
    *,
    is_json: bool,
    allow_dirty: bool,
    retry_skipped: bool,
) -> int:
    """Name the Megatron-Core commit that moved the loss.

    Runs a short training at the good end (twice), at the bad end, and at commits in between, and then once more at the
    commit it found, at its parent, and at the bad end with that commit taken back. A run that fails is never counted as
    bad, unless that is what is hunted (--regress crash).

    Example: lossbisect bisect --repo ~/Megatron-Bridge --good core_v0.15.0 --bad main --report-dir report
    """
    if context.invoked_subcommand is not None:
        return 0
    if resume is None and retry_skipped:
        raise click.UsageError("--retry-skipped goes with --resume.")
    if resume is not None and place.is_plan:
        raise click.UsageError("--plan is for a new bisect; --resume goes on with the plan that it began with.")
    if report_dir is not None:
        _make_folder(report_dir)
    options = {
        "recipe": recipe,
        "trainer": TrainerName(trainer) if trainer else None,
        "lane": Lane(lane) if lane else None,
        "python": python,
        "timeout_s": timeout,
        "metric": metric,
        "tolerance": tolerance,
    }
    given: dict[str, Any] = {
        name: None if value == "auto" else value for name, value in options.items() if value is not None
    }
    if resume is None:
        place.check()
        training = Training(**given)
        if place.is_plan or not place.is_free(training.lane):
            cost = _cost(
                repo or Path(), good, bad, training, scope, bridge, search, work_dir, place, allow_dirty=allow_dirty
            )
            if cost is None:
                return 0
            place.agree(cost)
    started: list[str] = []
    try:
        with interruptible(), progress() as show:

            def on_event(event: Event) -> None:
                if event.kind is EventKind.RESUMABLE:
                    started.append(event.text)
                show(event)

            if resume is None:
                result = bisect_range(
                    repo or Path(), good, bad, training=training, scope=scope, bridge=bridge, executor=place.given,
                    search=search, store=store, allow_dirty=allow_dirty, work_dir=work_dir, on_event=on_event,
                )  # fmt: skip
            else:
                others = {"good": good, "bad": bad, "bridge_commit": bridge, "search": search, "scope": scope}
                given |= {name: value for name, value in others.items() if value is not None}
                is_latest = resume == LATEST
                result = resume_bisect(
                    None if is_latest else resume,
                    repo=repo or (Path() if is_latest else None),
                    given=given,
                    executor=place.given,
                    store=store,
                    retry_skipped=retry_skipped,
                    work_dir=work_dir,
                    on_event=on_event,
                )
    except (KeyboardInterrupt, LossbisectError) as error:
        if started:
            _say_how_to_go_on(started[0], work_dir)
        if isinstance(error, LossbisectError):
            raise
        return INTERRUPTED
    _print(result, report_dir, is_json=is_json)
    for page in (html, report_dir / "report.html" if report_dir else None):
        if page is not None:
            from lossbisect.report.html.bisect import write_bisect_page

            write_bisect_page(result, page, command_line())
            click.echo(f"Wrote {page}", err=True)
    return EXIT_CODES[result.answer]


for _subcommand in COMMANDS:
    command.add_command(_subcommand)


def _cost(
    repo: Path,
    good: str | None,
    bad: str | None,
    training: Training,
    scope: Scope | None,
    bridge: str | None,
    search: SearchOptions | None,
    work_dir: Path | None,
    place: Place,
    *,
    allow_dirty: bool,
) -> "RunsCost | None":
    """What the bisect will cost; None after --plan has said it."""
    from lossbisect.bisect.planning import plan_bisect, plan_text

    plan = plan_bisect(
        repo, good, bad, executor=place.executor, training=training, scope=scope, bridge=bridge, search=search,
        work_dir=work_dir, allow_dirty=allow_dirty,
    )  # fmt: skip
    if place.is_plan:
        click.echo(plan_text(plan))
        return None
    return plan.cost


def _print(result: BisectResult, report_dir: Path | None, *, is_json: bool) -> None:
    from lossbisect.report.bisect import bisect_json, bisect_text, write_report

    if is_json:
        click.echo(bisect_json(result))
    else:
        head, colon, rest = bisect_text(result).partition(":")
        click.echo(click.style(head, fg=_COLOURS.get(result.answer, "yellow"), bold=True) + colon + rest)
    if report_dir is not None:
        for path in write_report(result, report_dir):
            click.echo(f"Wrote {path}", err=True)


def _say_how_to_go_on(bisect_id: str, work_dir: Path | None) -> None:
    from lossbisect.report.bisect import resume_command

    click.echo(f"Finished runs are kept. Go on with: {resume_command(bisect_id, work_dir)}", err=True)


def _make_folder(path: Path) -> None:
    """Find out before the runs, not after them, that a folder can't be written."""
    try:
        path.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        raise click.BadParameter(f"'{path}' can't be made: {error.strerror}.", param_hint="--report-dir") from None
    if not os.access(path, os.W_OK):
        raise click.BadParameter(f"'{path}' is not writable.", param_hint="--report-dir")
