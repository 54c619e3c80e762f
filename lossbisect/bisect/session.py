"""A bisection from options to answer: the library's entry."""

import hashlib
import sys
from collections.abc import Callable, Mapping
from contextlib import closing
from dataclasses import fields, replace
from pathlib import Path

from lossbisect.bisect.codebase import CodeBase, open_codebase
from lossbisect.bisect.commits import changed_files, changes_between, commit_range, github_name, merged_commits
from lossbisect.bisect.culprit import Answer, BisectResult, Culprit, Finding, harmless_files, result_of
from lossbisect.bisect.driver import drive
from lossbisect.bisect.events import Event, EventKind, Runner
from lossbisect.bisect.names import named_ends, resolve
from lossbisect.bisect.options import Regress, SearchOptions
from lossbisect.bisect.runner import CommitRunner
from lossbisect.bisect.state import Journal, find_bisect, work_root
from lossbisect.bisect.types import BisectPlan, BisectStep, CommitRange, Role
from lossbisect.errors import RecipeError, StateError
from lossbisect.store.runner import StoredRunner, StoredRuns, StoreUse
from lossbisect.train import cache_directory
from lossbisect.train.defaults import DEFAULT_RECIPES, DEFAULT_TIMEOUT_S
from lossbisect.train.executors import ExecutorName, ExecutorOptions, open_executor
from lossbisect.train.recipes import load_recipe
from lossbisect.train.types import Lane, Outcome, TrainerName

__all__ = ["bisect_range", "culprit_of", "resume_bisect"]

_WEAKER_PROOF = (
    "The runs were made by a command, which can't say which megatron.core it imported. That it was the commit is known "
    "from its tree alone: at the commit and unchanged, before and after each run."
)


def _ignore(_: Event) -> None:
    """Progress that nobody asked for."""


def bisect_range(
    repo: Path,
    good: str | None = None,
    bad: str | None = None,
    *,
    recipe: str | None = None,
    trainer: TrainerName | None = None,
    lane: Lane = Lane.CPU,
    python: Path | None = None,
    timeout_s: float = DEFAULT_TIMEOUT_S,
    metric: str = "lm_loss",
    tolerance: float | None = None,
    executor: ExecutorOptions | None = None,
    search: SearchOptions | None = None,
    store: StoreUse = StoreUse.NORMAL,
    allow_dirty: bool = False,
    work_dir: Path | None = None,
    runner: Runner | None = None,
    on_event: Callable[[Event], None] = _ignore,
) -> BisectResult:
    """Find the commit of Megatron-Core that moved the loss.

    Args:
        repo: A Megatron Bridge checkout, whose submodule is searched while Bridge stays at its HEAD, or a Megatron-LM
            one. It is only read.
        good: A commit of Megatron-LM with the right loss, by any name that `bisect.names` knows; None, if ``bad`` is
            None too: Bridge's pin before its latest bump.
        bad: A later one with the wrong loss; None: Bridge's pin since then, or the commit that is checked out.
        recipe: What to train; None: the built-in recipe of the lane.
        trainer: What trains it; None: that of the checkout.
        lane: Where.
        python: Interpreter with the trainer's requirements; None: this one.
        timeout_s: Wall time after which a run is killed and its commit skipped, seconds.
        metric: Column that is judged.
        tolerance: Relative difference up to which two curves are the same; None: measured, by two runs of the good end.
        executor: Where runs take place, and how many at once; None: this machine, one at a time.
        search: What is looked for, and how sure it has to be; None: the defaults of `SearchOptions`.
        store: Whether runs are taken from the run store, and kept in it.
        allow_dirty: Go on although tracked files are changed; runs use committed code only.
        work_dir: Where journal, runs and trees are kept; None: the cache directory.
        runner: What runs a commit; None: this machine.
        on_event: Called with each progress message, also from another thread while a run prints.

    Raises:
        GitError: The checkout or the range isn't what was said.
        EndpointError: An end of the range can't be judged.
        LossbisectError: Any other failure of ours; no run that merely fails raises.
    """
    with open_codebase(repo, allow_dirty=allow_dirty) as code:
        chosen = recipe or DEFAULT_RECIPES[lane]
        load_recipe(chosen)
        ends = named_ends(code, good, bad)
        plan = BisectPlan(
            repo=code.root,
            good=resolve(code, ends.good),
            bad=resolve(code, ends.bad),
            bridge_commit=code.bridge_commit,
            recipe=_absolute(chosen),
            recipe_digest=_digest(chosen),
            trainer=trainer or (TrainerName.BRIDGE if code.bridge else TrainerName.MLM),
            lane=lane,
            python=(python or Path(sys.executable)).absolute(),
            timeout_s=timeout_s,
            metric="grad_norm" if search is not None and search.regress is Regress.GRAD_NORM else metric,
            tolerance=tolerance,
            executor=executor or ExecutorOptions(),
            search=search or SearchOptions(),
        )
        commits = commit_range(code, ends.good, ends.bad)
        commits = replace(commits, notes=(*ends.notes, *commits.notes))
        with Journal.create(work_root(work_dir), plan) as journal:
            runs = _stored_runs(journal, store)
            return _go(code, commits, journal, journal.plan.executor, runs, runner, on_event)


def resume_bisect(
    bisect_id: str | None = None,
    *,
    repo: Path | None = None,
    given: Mapping[str, object] | None = None,
    executor: ExecutorOptions | None = None,
    store: StoreUse = StoreUse.NORMAL,
    retry_skipped: bool = False,
    work_dir: Path | None = None,
    runner: Runner | None = None,
    on_event: Callable[[Event], None] = _ignore,
) -> BisectResult:
    """Go on with a bisection that was stopped, without repeating a finished run.

    Args:
        bisect_id: Which one; None: the latest one of ``repo``.
        repo: The checkout; None: the one that the bisect was started with, or any.
        given: Options by the names of `bisect_range`. They must be those that the bisect was started with.
        executor: Where runs take place from now on; it must be of the same kind. None: as at the start.
        store: As in `bisect_range`.
        retry_skipped: Run commits whose run failed once more, such as after a missing package was installed.
        work_dir: Where it was started.
        runner: As in `bisect_range`.
        on_event: As in `bisect_range`.

    Raises:
        StateError: There is no such bisect, another process has it, or an option differs.
        LossbisectError: As `bisect_range`.
    """
    root = work_root(work_dir)
    repo_root = None
    if repo is not None:
        with open_codebase(repo, allow_dirty=True) as code:
            repo_root = code.root
    with Journal.open(root, find_bisect(root, bisect_id, repo_root)) as journal:
        plan = journal.plan
        with open_codebase(plan.repo, allow_dirty=True) as code:
            _require_same(journal, code, {**(given or {}), **({"repo": repo_root} if repo_root else {})})
            if retry_skipped:
                journal.forget([step for step in journal.steps if _has_failed(step)], "to be tried again")
            where = _same_executor(journal, executor)
            runs = _stored_runs(journal, store, with_failures=not retry_skipped)
            return _go(code, commit_range(code, plan.good, plan.bad), journal, where, runs, runner, on_event)


def _go(
    code: CodeBase,
    commits: CommitRange,
    journal: Journal,
    executor: ExecutorOptions,
    runs: StoredRuns,
    runner: Runner | None,
    on_event: Callable[[Event], None],
) -> BisectResult:
    on_event(Event(kind=EventKind.RESUMABLE, text=journal.id))
    if journal.plan.search.fold:
        commits = replace(commits, changes=changes_between(code.mcore, commits))
    trees = journal.directory / "trees"
    if executor.name is ExecutorName.COMMAND:
        commits = replace(commits, notes=(*commits.notes, _WEAKER_PROOF))
    with closing(CommitRunner(code, journal.plan, trees, open_executor(executor))) as own:
        stored = StoredRunner(own, runs, own.spec_of)
        finding = drive(commits, journal, runner or stored, on_event=on_event, jobs=executor.jobs)
    return result_of(
        finding,
        bisect_id=journal.id,
        directory=journal.directory,
        plan=journal.plan,
        commits=commits,
        culprit=culprit_of(code, commits, finding),
        repository=github_name(code.mcore),
    )


def _stored_runs(journal: Journal, use: StoreUse, *, with_failures: bool = True) -> StoredRuns:
    stored = [step.record.stored_as for step in journal.steps]
    given = [name for name in stored if name is not None]
    return StoredRuns(cache_directory(), use, with_failures=with_failures, has_run=None in stored, given=given)


def _same_executor(journal: Journal, asked: ExecutorOptions | None) -> ExecutorOptions:
    """The executor to go on with: another number of jobs or another queue is fine, another kind of runs isn't."""
    planned = journal.plan.executor
    if asked is not None and asked.identity != planned.identity:
        raise StateError(
            f"{journal.directory}: this bisect's runs took place by {planned.identity}, not by {asked.identity}. "
            "Leave the executor's options out to go on, or start a new bisect without --resume."
        )
    return asked or planned


def _has_failed(step: BisectStep) -> bool:
    return step.role is Role.SEARCH and step.record.outcome is not Outcome.FINISHED


def culprit_of(code: CodeBase, commits: CommitRange, finding: Finding) -> Culprit | None:
    """What git knows of the commit that was found; None where none was."""
    if finding.answer not in (Answer.FOUND, Answer.UNCONFIRMED):
        return None
    commit = commits.at(finding.bad)
    files = changed_files(code.mcore, commit)
    return Culprit(
        commit=commit,
        parent=commits.at(finding.good),
        files=files,
        merged=merged_commits(code.mcore, commit),
        is_harmless=harmless_files(files),
    )


def _require_same(journal: Journal, code: CodeBase, given: Mapping[str, object]) -> None:
    """Refuse options that aren't those of the journal: runs of two set-ups must not be compared."""
    known = {field.name for field in fields(BisectPlan)}
    for name, value in given.items():
        assert name in known, f"{name} is no option of a bisect"
        asked = _normal(code, name, value)
        planned = getattr(journal.plan, name)
        if asked != planned:
            raise StateError(
                f"{journal.directory}: this bisect was started with {name} = {planned}, not {asked}. "
                "Leave the option out to go on with it, or start a new bisect without --resume."
            )
    if journal.plan.recipe_digest != _digest(journal.plan.recipe):
        raise StateError(
            f"{journal.plan.recipe}: the recipe has changed since the bisect {journal.id} began. "
            "Restore it, or start a new bisect."
        )


def _normal(code: CodeBase, name: str, value: object) -> object:
    if name in ("good", "bad"):
        return resolve(code, str(value))
    if name == "recipe":
        return _absolute(str(value))
    if name == "python":
        return Path(str(value)).absolute()
    return value


def _absolute(recipe: str) -> str:
    return str(Path(recipe).absolute()) if Path(recipe).is_file() else recipe


def _digest(recipe: str) -> str | None:
    """SHA-256 of a recipe file; None for a built-in recipe."""
    try:
        return hashlib.sha256(Path(recipe).read_bytes()).hexdigest() if Path(recipe).is_file() else None
    except OSError as error:
        raise RecipeError(f"{recipe}: can't be read: {error.strerror}") from error
