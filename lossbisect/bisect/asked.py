"""What a user asked for, checked: from names and options to the plan of the first stage."""

import hashlib
import sys
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass, replace
from pathlib import Path

from lossbisect.bisect.by_hand import settled
from lossbisect.bisect.codebase import CodeBase, open_codebase
from lossbisect.bisect.hunts import refuse_unfit
from lossbisect.bisect.names import resolve
from lossbisect.bisect.options import Regress, SearchOptions
from lossbisect.bisect.outset import outset_of, stage_range
from lossbisect.bisect.scope import Scope, Searched
from lossbisect.bisect.training import Training
from lossbisect.bisect.types import BisectPlan
from lossbisect.bisect.vanished import with_bridge, with_pins, within_reach
from lossbisect.errors import GitError, RecipeError
from lossbisect.train.defaults import DEFAULT_RECIPES, trainer_for
from lossbisect.train.executors import ExecutorOptions
from lossbisect.train.recipes import load_recipe
from lossbisect.train.types import Lane

__all__ = ["Asked", "asked_for", "bridge_of", "executor_for", "recipe_digest", "recipe_name"]


@dataclass(frozen=True, kw_only=True, slots=True)
class Asked:
    """A bisection before anything has run.

    Attributes:
        code: The checkout, with what had to be fetched.
        plan: Of the first stage.
        notes: What a reader should know about the ends.
    """

    code: CodeBase
    plan: BisectPlan
    notes: tuple[str, ...]


@contextmanager
def asked_for(
    repo: Path,
    good: str | None,
    bad: str | None,
    root: Path,
    *,
    training: Training | None = None,
    scope: Scope | None = None,
    bridge: str | None = None,
    executor: ExecutorOptions | None = None,
    search: SearchOptions | None = None,
    allow_dirty: bool = False,
) -> Iterator[Asked]:
    """What is to be searched, and how; ``root`` is the work directory, all else is as for `bisect_range`.

    Nothing is run, and nothing written but commits that had to be fetched.

    Raises:
        GitError: The checkout or the range isn't what was said.
        LossbisectError: What was asked doesn't go together.
    """
    training, scope, search = training or Training(), scope or Scope(), search or SearchOptions()
    recipe = training.recipe or DEFAULT_RECIPES[training.lane]
    ranks = load_recipe(recipe).ranks
    with open_codebase(repo, allow_dirty=allow_dirty) as checkout, ExitStack() as stack:
        reach = stack.enter_context(within_reach(checkout, (good, bad, scope.oldest), root, scope.searched))
        code = stack.enter_context(with_bridge(reach.code, bridge, root))
        scope = replace(scope, oldest=reach.known(scope.oldest))
        outset = outset_of(code, reach.known(good), reach.known(bad), scope, search)
        if scope.searched is Searched.BRIDGE:
            code = stack.enter_context(with_pins(code, outset.good, outset.bad, root))
        plan = BisectPlan(
            repo=code.root,
            good=outset.good,
            bad=outset.bad,
            bridge_commit=bridge_of(code, scope, bridge),
            recipe=recipe_name(recipe),
            recipe_digest=recipe_digest(recipe),
            trainer=training.trainer or trainer_for(recipe, has_bridge=code.bridge is not None),
            lane=training.lane,
            python=(training.python or Path(sys.executable)).absolute(),
            timeout_s=training.timeout_s,
            metric="grad_norm" if search.regress is Regress.GRAD_NORM else training.metric,
            tolerance=training.tolerance,
            executor=executor_for(executor, training.lane, ranks, search),
            search=settled(code, search, scope.searched),
            scope=scope,
            stage=outset.stage,
        )
        refuse_unfit(plan)
        stage_range(code, replace(plan, search=replace(plan.search, fold=False)))  # what changed isn't asked yet
        yield Asked(code=code, plan=plan, notes=(*outset.notes, *reach.notes))


def executor_for(given: ExecutorOptions | None, lane: Lane, ranks: int, search: SearchOptions) -> ExecutorOptions:
    """A bisect's executor; unless somebody said so, runs that are timed aren't side by side."""
    executor = given or ExecutorOptions()
    if executor.jobs is None and search.regress is Regress.THROUGHPUT:
        return replace(executor, jobs=1)
    return executor.at_usual_jobs(lane, ranks)


def bridge_of(code: CodeBase, scope: Scope, name: str | None) -> str | None:
    """Full SHA of the commit at which Bridge stays; None: there is no Bridge, or it is searched."""
    if name is None:
        return code.bridge_commit if scope.searched is Searched.MCORE else None
    if scope.searched is Searched.BRIDGE:
        raise GitError(f"--bridge {name} holds Bridge at one commit, and --search bridge searches it. Leave one out.")
    if code.bridge is None:
        raise GitError(f"--bridge {name}: {code.root} is a Megatron-LM checkout. Give a Bridge checkout as --repo.")
    return resolve(code, name, Searched.BRIDGE)


def recipe_name(recipe: str) -> str:
    """A recipe as a plan names it: a file by its absolute path."""
    return str(Path(recipe).absolute()) if Path(recipe).is_file() else recipe


def recipe_digest(recipe: str) -> str | None:
    """SHA-256 of a recipe file; None for a built-in recipe."""
    try:
        return hashlib.sha256(Path(recipe).read_bytes()).hexdigest() if Path(recipe).is_file() else None
    except OSError as error:
        raise RecipeError(f"{recipe}: can't be read: {error.strerror}") from error
