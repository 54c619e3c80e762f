"""A bisection from options to answer: the library's entry."""

from collections.abc import Callable, Mapping
from contextlib import closing
from dataclasses import fields, replace
from pathlib import Path

from lossbisect.bisect.asked import asked_for, bridge_of, recipe_digest, recipe_name
from lossbisect.bisect.by_hand import settled
from lossbisect.bisect.chain import Chain
from lossbisect.bisect.codebase import CodeBase, open_codebase
from lossbisect.bisect.culprit import BisectResult
from lossbisect.bisect.events import Event, EventKind, Runner
from lossbisect.bisect.names import resolve
from lossbisect.bisect.options import SearchOptions
from lossbisect.bisect.scope import Scope
from lossbisect.bisect.state import Journal, find_bisect, work_root
from lossbisect.bisect.training import Training
from lossbisect.bisect.types import BisectPlan
from lossbisect.bisect.vanished import commits_of
from lossbisect.bisect.work_directory import WorkDirectory
from lossbisect.errors import StateError
from lossbisect.store.runner import StoreUse
from lossbisect.train.executors import ExecutorName, ExecutorOptions

__all__ = ["bisect_range", "resume_bisect"]

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
    training: Training | None = None,
    scope: Scope | None = None,
    bridge: str | None = None,
    executor: ExecutorOptions | None = None,
    search: SearchOptions | None = None,
    store: StoreUse = StoreUse.NORMAL,
    allow_dirty: bool = False,
    work_dir: Path | None = None,
    runner: Runner | None = None,
    on_event: Callable[[Event], None] = _ignore,
) -> BisectResult:
    """Find the commit that moved the loss.

    Args:
        repo: A Megatron Bridge checkout, whose submodule is searched while Bridge stays where it is, or a Megatron-LM
            one. It is only read.
        good: A commit with the right loss, by any name that `bisect.names` knows. None: where ``bad`` is None too,
            Bridge's pin before its latest bump; else one that is looked for.
        bad: A later one with the wrong loss; None: Bridge's pin since then, or the commit that is checked out. Where a
            fix is looked for, the bad end is the older one, and both have to be named.
        training: What is trained, and by what it is judged; None: the defaults.
        scope: Which commits are candidates; None: Megatron-LM's, all on the first-parent line.
        bridge: Commit at which Bridge stays; None: its HEAD.
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
    root = work_root(work_dir)
    asked = asked_for(
        repo, good, bad, root, training=training, scope=scope, bridge=bridge, executor=executor, search=search,
        allow_dirty=allow_dirty,
    )  # fmt: skip
    with asked as first, Journal.create(root, first.plan) as journal:
        here = WorkDirectory(code=first.code, first=journal, executor=first.plan.executor, store=store, given=runner)
        return _answer(here, on_event, first.notes)


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
        given: Options by the names of `BisectPlan`. They must be those that the bisect was started with.
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
    first_stage = find_bisect(root, bisect_id, repo_root).partition(".")[0]
    with Journal.open(root, first_stage) as journal:
        plan = journal.plan
        with open_codebase(plan.repo, allow_dirty=True) as checkout, commits_of(checkout, plan, root) as code:
            asked = {**(given or {}), **({"repo": repo_root} if repo_root else {})}
            if plan.search.find_fix:  # the plan's good end is the older one, whichever of them is right
                swapped = {"good": "bad", "bad": "good"}
                asked = {swapped.get(name, name): value for name, value in asked.items()}
            _require_same(journal, code, asked)
            here = WorkDirectory(
                code=code,
                first=journal,
                executor=_same_executor(journal, executor),
                store=store,
                given=runner,
                is_retrying=retry_skipped,
            )
            return _answer(here, on_event)


def _answer(here: WorkDirectory, on_event: Callable[[Event], None], notes: tuple[str, ...] = ()) -> BisectResult:
    on_event(Event(kind=EventKind.RESUMABLE, text=here.first.id))
    if here.executor.name is ExecutorName.COMMAND:
        notes = (*notes, _WEAKER_PROOF)
    with closing(here):
        return Chain(here.code, here, on_event).answer(here.first.plan, notes)


def _same_executor(journal: Journal, asked: ExecutorOptions | None) -> ExecutorOptions:
    """The executor to go on with: another number of jobs or another queue is fine, another kind of runs isn't."""
    planned = journal.plan.executor
    if asked is not None and asked.identity != planned.identity:
        raise StateError(
            f"{journal.directory}: this bisect's runs took place by {planned.identity}, not by {asked.identity}. "
            "Leave the executor's options out to go on, or start a new bisect without --resume."
        )
    return planned if asked is None else replace(asked, jobs=asked.jobs or planned.jobs)


def _require_same(journal: Journal, code: CodeBase, given: Mapping[str, object]) -> None:
    """Refuse options that aren't those of the journal: runs of two set-ups must not be compared."""
    known = {each.name for each in fields(BisectPlan)}
    for name, value in given.items():
        assert name in known, f"{name} is no option of a bisect"
        asked = _normal(journal.plan, code, name, value)
        planned = getattr(journal.plan, name)
        if asked != planned:
            told, planned, asked = _differing(name, planned, asked)
            raise StateError(
                f"{journal.directory}: this bisect was started with {told} = {planned}, not {asked}. "
                "Leave the option out to go on with it, or start a new bisect without --resume."
            )
    if journal.plan.recipe_digest != recipe_digest(journal.plan.recipe):
        raise StateError(
            f"{journal.plan.recipe}: the recipe has changed since the bisect {journal.id} began. "
            "Restore it, or start a new bisect."
        )


def _differing(name: str, planned: object, asked: object) -> tuple[str, object, object]:
    """The option that differs, and both of its values: of a group of options the first one."""
    if isinstance(planned, Scope | SearchOptions):
        pairs = ((each.name, getattr(planned, each.name), getattr(asked, each.name)) for each in fields(planned))
        return next(pair for pair in pairs if pair[1] != pair[2])
    return name, planned, asked


def _normal(plan: BisectPlan, code: CodeBase, name: str, value: object) -> object:
    if name in ("good", "bad"):
        return resolve(code, str(value), plan.scope.searched)
    if name == "bridge_commit":
        return bridge_of(code, plan.scope, str(value))
    if name == "recipe":
        return recipe_name(str(value))
    if name == "python":
        return Path(str(value)).absolute()
    if isinstance(value, SearchOptions):
        return settled(code, value, plan.scope.searched)
    return value
