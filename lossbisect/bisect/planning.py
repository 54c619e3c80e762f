"""What a bisect, or a few runs, will cost: from the range, and from how long earlier runs took."""

import json
import shlex
from collections.abc import Iterable
from contextlib import suppress
from dataclasses import dataclass, replace
from math import ceil, log2
from pathlib import Path

from lossbisect.bisect.asked import asked_for
from lossbisect.bisect.codebase import CodeBase
from lossbisect.bisect.commits import commit_range
from lossbisect.bisect.figures import FIGURES
from lossbisect.bisect.options import Regress, SearchOptions
from lossbisect.bisect.scope import Scope, StageKind
from lossbisect.bisect.sources import checked_out
from lossbisect.bisect.state import work_root
from lossbisect.bisect.training import Training
from lossbisect.bisect.types import BisectPlan
from lossbisect.compare.wording import counted
from lossbisect.errors import LossbisectError, TrainerError
from lossbisect.train import cache_directory
from lossbisect.train.cost import RunsCost, cost_text, gpus_of
from lossbisect.train.executors import ExecutorName, ExecutorOptions
from lossbisect.train.recipes import load_recipe
from lossbisect.train.trainers import launch
from lossbisect.train.types import Lane, Outcome, RunSpec, TrainerName

__all__ = [
    "RunsPlan",
    "bisect_runs",
    "command_text",
    "cost_of",
    "earlier_durations",
    "plan_bisect",
    "plan_text",
]

ENDS = 3
"""The good end twice, the bad end once."""
REPEATS = 2
"""The culprit and its parent once more."""
WARM_UP, IN_TURN = 1, 6
"""Where runs are timed: one that counts for nothing, and the culprit and its parent in turn."""


@dataclass(frozen=True, kw_only=True, slots=True)
class RunsPlan:
    """What will be run.

    Attributes:
        cost: How much of it, and how long it takes.
        commands: The command line of a run, one for each kind of run; words in braces differ from run to run.
        commits: Size of the range that is searched; None if nothing is searched.
    """

    cost: RunsCost
    commands: tuple[str, ...]
    commits: int | None = None


def plan_bisect(
    repo: Path,
    good: str | None,
    bad: str | None,
    *,
    executor: ExecutorOptions,
    training: Training | None = None,
    scope: Scope | None = None,
    bridge: str | None = None,
    search: SearchOptions | None = None,
    work_dir: Path | None = None,
    allow_dirty: bool = False,
) -> RunsPlan:
    """What a bisect of the range will run; nothing is run, and nothing written but commits that had to be fetched.

    Args:
        repo: As for `lossbisect.bisect.bisect_range`, like all that follows.
        good: The good end.
        bad: The bad end.
        executor: Where runs take place.
        training: What is trained.
        scope: Which commits are candidates.
        bridge: Commit at which Bridge stays.
        search: What is looked for.
        work_dir: Whose earlier runs say how long one takes.
        allow_dirty: Go on although tracked files are changed.

    Raises:
        GitError: The checkout or the range isn't what was said.
        RecipeError: There is no such recipe.
    """
    training, root = training or Training(), work_root(work_dir)
    asked = asked_for(
        repo, good, bad, root, training=training, scope=scope, bridge=bridge, executor=executor, search=search,
        allow_dirty=allow_dirty,
    )  # fmt: skip
    with asked as first:
        count = _candidates(first.code, first.plan)
        executor = first.plan.executor
        spec = training.run_of(checked_out(first.code), executor)
        cost = cost_of(spec, bisect_runs(count, first.plan.search), executor, root)
        return RunsPlan(cost=cost, commands=(command_text(spec, executor),), commits=count)


def _candidates(code: CodeBase, plan: BisectPlan) -> int:
    """How many commits are searched, at most: of two sides of a merge base the longer one."""
    if plan.stage.kind is not StageKind.SIDES:
        return len(commit_range(code, plan.good, plan.bad, plan.scope).commits)
    sides = [(base, end) for base in plan.stage.points for end in (plan.good, plan.bad) if base != end]
    return max(len(commit_range(code, base, end, plan.scope).commits) for base, end in sides)


def command_text(spec: RunSpec, executor: ExecutorOptions) -> str:
    """The command line of a run, with what differs from run to run in braces."""
    if executor.command is not None:
        return executor.command
    out = Path("/{out}")
    try:
        how = launch(spec, load_recipe(spec.recipe), out=out, cache=cache_directory() / "lane", port=0)
    except TrainerError as error:
        return f"(can't be told from this checkout: {error})"
    roots = [(out, "{out}"), (spec.sources.mcore, "{worktree}"), (spec.sources.bridge, "{bridge}")]
    words = " ".join(_word(word, [(str(root), name) for root, name in roots if root is not None]) for word in how.argv)
    if executor.name is not ExecutorName.SLURM:
        return words
    options = "".join(
        f" --{name}={value}" if value else f" --{name}" for name, value in executor.sbatch_options.items()
    )
    return f"sbatch{options} {executor.sbatch_template or '(written by submitit)'}: {words}"


def _word(word: str, roots: list[tuple[str, str]]) -> str:
    """A word as the shell reads it, with folders that differ from run to run in braces."""
    for root, name in roots:
        word = word.replace(root, name)
    return word if "{" in word else shlex.quote(word)


def plan_text(plan: RunsPlan) -> str:
    """The plan for a terminal."""
    searched = [] if plan.commits is None else [f"  range          {counted(plan.commits, 'commit')}"]
    return "\n".join(
        [
            "Nothing was run. This would be:",
            *searched,
            cost_text(plan.cost),
            *(f"  command        {it}" for it in plan.commands),
        ]
    )


def bisect_runs(commits: int, search: SearchOptions | None = None) -> int:
    """About how many trainings a bisect of a range of ``commits`` takes, if none has to be skipped.

    Args:
        commits: Size of the range.
        search: What is looked for; None: the defaults.
    """
    search = search or SearchOptions()
    rounds = ceil(log2(max(1, commits)))
    if search.regress in FIGURES:
        timed = WARM_UP + IN_TURN if search.regress is Regress.THROUGHPUT else 0
        return 2 * ENDS + 2 * rounds + timed + search.revert
    runs = ENDS + rounds + REPEATS + search.revert
    return 2 * runs if search.regress is Regress.REPEATABILITY else runs


def cost_of(spec: RunSpec, runs: int, executor: ExecutorOptions, root: Path) -> RunsCost:
    """What ``runs`` runs like this one cost.

    Args:
        spec: One of them; of its code only the kind matters.
        runs: How many.
        executor: Where.
        root: The work directory, whose earlier runs say how long one takes.

    Raises:
        RecipeError: There is no such recipe.
    """
    ranks = load_recipe(spec.recipe).ranks
    return RunsCost(
        runs=runs,
        jobs=min(executor.slots, runs),
        gpus=gpus_of(spec.lane, ranks),
        where=executor.name,
        timeout_s=spec.timeout_s,
        earlier_s=tuple(earlier_durations(root, replace(spec, executor=executor.identity))),
    )


def earlier_durations(root: Path, spec: RunSpec) -> Iterable[float]:
    """Wall times of finished runs with the spec's recipe, trainer, lane and executor, seconds."""
    kind = (spec.recipe, spec.trainer, spec.lane, spec.executor)
    yield from (took for found, took in _journalled(root) if found == kind)
    yield from (took for found, took in _stored(root) if found == kind)


type _Kind = tuple[str, TrainerName, Lane, str]


def _journalled(root: Path) -> Iterable[tuple[_Kind, float]]:
    from lossbisect.train.records import record_from_json

    for path in sorted(root.glob("bisects/*/journal.ndjson")):
        with suppress(OSError), path.open(encoding="utf-8") as lines:
            for line in lines:
                with suppress(KeyError, TypeError, ValueError):
                    row = json.loads(line)
                    if row["kind"] != "step":
                        continue
                    record = record_from_json(row["record"])
                    if record.outcome is Outcome.FINISHED and record.stored_as is None:
                        yield _kind_of(record.spec), record.duration_s


def _stored(root: Path) -> Iterable[tuple[_Kind, float]]:
    from lossbisect.store.store import RunStore

    if not (root / "store.sqlite").exists():
        return
    with suppress(LossbisectError):
        for run in RunStore(root).runs():
            if run.record.outcome is Outcome.FINISHED:
                yield _kind_of(run.record.spec), run.record.duration_s


def _kind_of(spec: RunSpec) -> _Kind:
    return spec.recipe, spec.trainer, spec.lane, spec.executor
