"""Which search suits what is hunted, and what it can't go with."""

from collections.abc import Callable

from lossbisect.bisect.advance import AdvanceHunt
from lossbisect.bisect.changes import ChangeHunt, CurveChanges
from lossbisect.bisect.desk import Desk
from lossbisect.bisect.ends import open_case
from lossbisect.bisect.events import Runner
from lossbisect.bisect.exact import ExactHunt
from lossbisect.bisect.figure_hunt import FigureHunt, FigureRunner, open_figures
from lossbisect.bisect.figures import FIGURES
from lossbisect.bisect.noisy_hunt import NoisyHunt
from lossbisect.bisect.options import Regress
from lossbisect.bisect.scope import StageKind
from lossbisect.bisect.sign_changes import SignChanges
from lossbisect.bisect.sign_hunt import CrashHunt, RepeatHunt, SignHunt
from lossbisect.bisect.twice import PairRunner
from lossbisect.bisect.types import BisectPlan, CommitInfo
from lossbisect.bisect.weighing import BY_SIGN
from lossbisect.errors import LossbisectError
from lossbisect.train.executors import ExecutorName
from lossbisect.train.types import TrainerName

__all__ = ["Hunt", "hunt_for", "refuse_unfit", "runner_for"]

type Hunt = ChangeHunt | ExactHunt | NoisyHunt | SignHunt


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
    if options.find_all and options.regress in BY_SIGN:
        return SignChanges(desk, skips_enough)
    if options.regress is Regress.CRASH:
        return CrashHunt(desk, skips_enough, harmless=harmless)
    if options.regress is Regress.REPEATABILITY:
        return RepeatHunt(desk, skips_enough, harmless=harmless)
    if options.regress in FIGURES:
        return FigureHunt(desk, open_figures(desk))
    case = open_case(desk)
    if options.find_all:
        return CurveChanges(desk, case, skips_enough)
    if case.noise.source == "repeats":
        return NoisyHunt(desk, case)
    return ExactHunt(desk, case, skips_enough, harmless=harmless)


def refuse_unfit(plan: BisectPlan) -> None:
    """Raise where what is hunted doesn't go with the rest of what was asked.

    Raises:
        LossbisectError: It doesn't.
    """
    regress = plan.search.regress
    if plan.search.bridge_follows and (plan.bridge_commit is None or plan.trainer is not TrainerName.BRIDGE):
        raise LossbisectError(
            "--bridge-follows is for a Bridge checkout whose Bridge is held and trains: --trainer bridge, without "
            "--search bridge."
        )
    asked = f"--regress {regress.value}"
    if regress in BY_SIGN and plan.search.bridge_follows:
        raise LossbisectError(f"--bridge-follows doesn't go with {asked}. Leave one of them out.")
    if regress is Regress.CRASH and (plan.search.min_effect is not None or plan.tolerance is not None):
        raise LossbisectError(f"{asked}: a crash has no size. Leave --min-effect and --tolerance out.")
    if regress not in FIGURES:
        return
    if plan.tolerance is not None:
        raise LossbisectError(f"{asked} measures its own noise. Leave --tolerance out; a floor is set by --min-effect.")
    if plan.search.find_all:
        raise LossbisectError(
            f"{asked} finds one change at a time, by probability. Leave --all out, and then search what lies before "
            "and after the commit that was found in the same way."
        )
    if plan.stage.kind is StageKind.WALK:
        raise LossbisectError(f"{asked}: which commit is good enough is for you to say. Name it: --good COMMIT.")
    if regress is Regress.THROUGHPUT and plan.executor.slots > 1 and plan.executor.name is ExecutorName.LOCAL:
        raise LossbisectError(f"{asked}: runs side by side on this machine slow each other down. Leave --jobs out.")
