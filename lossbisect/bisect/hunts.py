"""Which search suits what is hunted, and what it can't go with."""

from collections.abc import Callable

from lossbisect.bisect.advance import AdvanceHunt
from lossbisect.bisect.changes import ChangeHunt
from lossbisect.bisect.desk import Desk
from lossbisect.bisect.ends import open_case
from lossbisect.bisect.events import Runner
from lossbisect.bisect.exact import ExactHunt
from lossbisect.bisect.figure_hunt import FigureHunt, FigureRunner, open_figures
from lossbisect.bisect.figures import FIGURES
from lossbisect.bisect.noisy_hunt import NoisyHunt
from lossbisect.bisect.options import Regress
from lossbisect.bisect.scope import Searched, StageKind
from lossbisect.bisect.sign_hunt import CrashHunt, RepeatHunt, SignHunt
from lossbisect.bisect.twice import PairRunner
from lossbisect.bisect.types import BisectPlan, CommitInfo
from lossbisect.errors import LossbisectError
from lossbisect.train.executors import ExecutorName
from lossbisect.train.types import TrainerName

__all__ = ["Hunt", "hunt_for", "refuse_unfit", "runner_for"]

type Hunt = ChangeHunt | ExactHunt | NoisyHunt | SignHunt

_BY_CURVE = (Regress.LOSS, Regress.GRAD_NORM, Regress.NAN)


def runner_for(runner: Runner, regress: Regress) -> Runner:
    """The runner of a search: what is run, how often, and what is read of it."""
    if regress is Regress.REPEATABILITY:
        return PairRunner(runner)
    return FigureRunner(runner, regress) if regress in FIGURES else runner


def hunt_for(desk: Desk, skips_enough: int, harmless: Callable[[CommitInfo], str | None]) -> Hunt:
    """The search; where curves or figures are judged, the ends have been run.

    Raises:
        EndpointError: An end can't be judged.
    """
    options = desk.journal.plan.search
    if options.advance:
        return AdvanceHunt(desk, skips_enough)
    if options.regress is Regress.CRASH:
        return CrashHunt(desk, skips_enough, harmless=harmless)
    if options.regress is Regress.REPEATABILITY:
        return RepeatHunt(desk, skips_enough, harmless=harmless)
    if options.regress in FIGURES:
        return FigureHunt(desk, open_figures(desk))
    case = open_case(desk)
    if options.find_all:
        return ChangeHunt(desk, case, skips_enough)
    if case.noise.source == "repeats":
        return NoisyHunt(desk, case)
    return ExactHunt(desk, case, skips_enough, harmless=harmless)


def refuse_unfit(plan: BisectPlan) -> None:
    """Raise where what is hunted doesn't go with the rest of what was asked.

    Raises:
        LossbisectError: It doesn't.
    """
    regress, scope = plan.search.regress, plan.scope
    if plan.search.bridge_follows:
        if plan.bridge_commit is None or plan.trainer is not TrainerName.BRIDGE:
            raise LossbisectError(
                "--bridge-follows is for a Bridge checkout whose Bridge is held and trains: --trainer bridge, without "
                "--search bridge."
            )
        if regress in (Regress.CRASH, Regress.REPEATABILITY):
            raise LossbisectError(f"--bridge-follows doesn't go with --regress {regress.value}. Leave one of them out.")
    if regress in _BY_CURVE:
        return
    asked = f"--regress {regress.value}"
    if plan.search.find_all:
        raise LossbisectError(f"{asked} looks for one change. Leave --all out.")
    if plan.stage.kind is not StageKind.RANGE:
        raise LossbisectError(f"{asked} needs both ends, one before the other: --good COMMIT --bad COMMIT.")
    if scope.searched is not Searched.MCORE or scope.paths or scope.all_parents:
        raise LossbisectError(f"{asked} searches Megatron-LM's line. Leave --search, --paths and --all-parents out.")
    if regress is Regress.THROUGHPUT and plan.executor.slots > 1 and plan.executor.name is ExecutorName.LOCAL:
        raise LossbisectError(f"{asked}: runs side by side on this machine slow each other down. Leave --jobs out.")
