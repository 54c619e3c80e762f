"""Both ends of the range: run, checked, and measured against each other."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from functools import partial
from pathlib import Path

from lossbisect.bisect.case import Case, until
from lossbisect.bisect.cutting import Cutter, first_difference, may_cut
from lossbisect.bisect.desk import Agenda, Desk, Job, Judge
from lossbisect.bisect.events import EventKind
from lossbisect.bisect.judging import CurveVerdict, curve, measured_noise, missing_iterations
from lossbisect.bisect.likely import preferred_in
from lossbisect.bisect.options import Regress
from lossbisect.bisect.search import narrow
from lossbisect.bisect.types import BisectStep, CommitVerdict, Role
from lossbisect.compare.types import NoiseFloor
from lossbisect.errors import EndpointError
from lossbisect.parsers.runlog import RunLog
from lossbisect.train.types import Lane

__all__ = ["END_ROLES", "noise_of", "open_case", "run_in_rounds", "why_not"]

TAIL_LINES = 15
END_ROLES = (Role.GOOD_END, Role.GOOD_AGAIN, Role.BAD_END, Role.BAD_AGAIN)


def open_case(desk: Desk) -> Case:
    """Run both ends, at once where there are slots, and the good end again, and measure their noise.

    The second run is ended once it has repeated all that the search will look at. Where slots are left, the search's
    first run begins beside it.

    Raises:
        EndpointError: An end can't be judged.
    """
    plan = desk.journal.plan

    def judge(job: Job, log: RunLog, *, is_cut: bool) -> CurveVerdict:
        known = desk.journal.find(Role.GOOD_END, -1)
        whole = desk.read(known) if known else log
        gap = missing_iterations(_as_far_as(whole, log, plan.metric) if is_cut else whole, log, metric=plan.metric)
        verdict = CommitVerdict.BAD if job.role is Role.BAD_END else CommitVerdict.GOOD
        return CurveVerdict(verdict=CommitVerdict.SKIP if gap else verdict, reason=gap or "as you said")

    def refuse(step: BisectStep) -> None:
        if step.verdict is CommitVerdict.SKIP:
            raise EndpointError(why_not(desk, step))

    desk.cutter = partial(_cutter, desk)
    rounds = ((Role.GOOD_END, Role.BAD_END), (Role.GOOD_AGAIN,))
    run_in_rounds(desk, rounds, judge, refuse, overlap=partial(_is_run_anew, desk), ahead=partial(_ahead, desk))
    desk.cutter = lambda _job, _out: None
    good, bad, again = (_log_of(desk, _end(desk, role)) for role in (Role.GOOD_END, Role.BAD_END, Role.GOOD_AGAIN))
    noise = noise_of(desk, _as_far_as(good, again, plan.metric), again)
    if noise.source != "bit-exact":
        desk.drop_what_is_ahead()
    return Case(
        metric=plan.metric,
        regress=plan.search.regress,
        noise=noise,
        good=good,
        bad=bad,
        is_any_difference=plan.tolerance is not None or plan.search.find_all,
        is_fix=plan.search.find_fix,
    )


def run_in_rounds(
    desk: Desk,
    rounds: Sequence[Sequence[Role]],
    judge: Judge,
    check: Callable[[BisectStep], None],
    *,
    overlap: Callable[[], bool] = lambda: False,
    ahead: Callable[[], Sequence[Job]] = tuple,
) -> None:
    """Run the ends, those of one round side by side where there are slots, the next round after them.

    Args:
        desk: Where.
        rounds: Roles of ends.
        judge: The verdict of a run.
        check: Told each run of an end, those of before a stop too; raises if that end can't be used.
        overlap: Whether a round may begin as soon as a slot is free.
        ahead: What to begin for the work that follows once all ends have been started.
    """
    jobs = [[_end(desk, role) for role in roles] for roles in rounds]

    def agenda(going: Sequence[Job], _free: int) -> Agenda:
        by_round = ([job for job in each if desk.journal.find(job.role, job.index) is None] for each in jobs)
        missing = list(filter(None, by_round))
        now = [job for each in missing[: 2 if overlap() else 1] for job in each if job not in going]
        return Agenda(start=now, ahead=[job for job in ahead() if job not in going] if missing else ())

    for job in (job for each in jobs for job in each):
        if (known := desk.journal.find(job.role, job.index)) is not None:
            check(known)
    desk.perform(agenda, judge, check)


def _end(desk: Desk, role: Role) -> Job:
    is_old = role in (Role.GOOD_END, Role.GOOD_AGAIN)
    return Job(role=role, index=-1 if is_old else len(desk.commits.commits) - 1)


def _cutter(desk: Desk, job: Job, out: Path) -> Cutter | None:
    """Ends the good end's second run as a run of the search is ended, where the search may do so; and such a run."""
    plan = desk.journal.plan
    if job.role not in (Role.GOOD_AGAIN, Role.SEARCH) or not may_cut(plan):
        return None
    return Cutter(out / "scalars.ndjson", plan.metric, partial(_end_values, desk))


def _end_values(desk: Desk) -> tuple[Mapping[int, float], Mapping[int, float]] | None:
    """What is judged of both ends; None as long as one of them goes on."""
    good, bad = (_end(desk, role) for role in (Role.GOOD_END, Role.BAD_END))
    if any(desk.journal.find(end.role, end.index) is None for end in (good, bad)):
        return None
    return curve(_log_of(desk, good), desk.journal.plan.metric), curve(_log_of(desk, bad), desk.journal.plan.metric)


def _is_run_anew(desk: Desk) -> bool:
    """Whether an end has come from a run of now: what the store has of the second run will do only for known ends."""
    ends = (Role.GOOD_END, Role.BAD_END)
    return any(step.role in ends and step.record.stored_as is None for step in desk.steps)


def _ahead(desk: Desk) -> Sequence[Job]:
    """The search's first run, where the ends differ and single runs will say which of them a commit is like."""
    ends = _end_values(desk)
    if ends is None or not may_cut(desk.journal.plan) or first_difference(*ends) is None:
        return ()
    bracket = narrow(len(desk.commits.commits), desk.verdicts, preferred=preferred_in(desk))
    return [Job(role=Role.SEARCH, index=index) for index in bracket.wanted]


def _as_far_as(log: RunLog, other: RunLog, metric: str) -> RunLog:
    """The log up to where another one, which was ended before its time, came; whole if that one is."""
    came = curve(other, metric)
    return until(log, max(came)) if came else log


def _log_of(desk: Desk, job: Job) -> RunLog:
    step = desk.journal.find(job.role, job.index)
    assert step is not None, f"{job} has not run"
    return desk.read(step)


def noise_of(desk: Desk, first: RunLog, again: RunLog, *, which: str = "good") -> NoiseFloor:
    """The noise floor from two runs of an end, or the one that was asked for, checked against them.

    Args:
        desk: Told what was found.
        first: The end's first run.
        again: Its second.
        which: Which end, ``good`` or ``bad``.

    Raises:
        EndpointError: The two runs differ by more than the tolerance that was asked for, or can't be compared.
    """
    plan = desk.journal.plan
    measured = measured_noise(first, again, metric=plan.metric)
    word = desk.terms.old_end if which == "good" else desk.terms.new_end
    name = (desk.commits.good if which == "good" else desk.commits.bad).short
    if measured is None:
        raise EndpointError(
            f"The {word} {name} doesn't repeat itself: one of its two runs has no {plan.metric}, or none that is "
            f"finite, where the other has one: {desk.journal.directory / 'runs'}"
        )
    if plan.tolerance is not None:
        asked = plan.tolerance
        floor = NoiseFloor(source="rtol" if asked else "bit-exact", surely_noise_rel=asked, surely_real_rel=asked)
        largest = measured.surely_real_rel / 5
        if largest > asked:
            raise EndpointError(
                f"The {word} {name} doesn't repeat itself within the tolerance {asked:g}: its two runs differ by "
                f"{largest:.1e}. Take a larger --tolerance, or none: then it is measured."
            )
        return _raised(floor, plan.search.min_effect)
    if not measured.surely_real_rel:
        desk.say(EventKind.NOTE, f"The {word} repeats itself bit for bit: any difference counts.")
        return _raised(measured, plan.search.min_effect)
    spread = measured.surely_real_rel / 5
    finding = (
        " The CPU lane repeats itself bit for bit, so the code itself is not determined: an uninitialised parameter, "
        "or a race."
        if plan.lane is Lane.CPU
        else ""
    )
    desk.say(
        EventKind.NOTE,
        f"The {word} doesn't repeat itself bit for bit: its two runs differ by up to {spread:.1e}.{finding} "
        "The search goes on by probability, with repeated runs.",
    )
    return measured


def _raised(floor: NoiseFloor, least: float | None) -> NoiseFloor:
    if least is None or least <= floor.surely_noise_rel:
        return floor
    return replace(
        floor, source="min-effect", surely_noise_rel=least, surely_real_rel=max(least, floor.surely_real_rel)
    )


def why_not(desk: Desk, step: BisectStep) -> str:
    """Why an end can't be used, with the last lines of its log."""
    is_new = step.role in (Role.BAD_END, Role.BAD_AGAIN)
    which = desk.terms.new_end if is_new else desk.terms.old_end
    advice = (
        "That is no failure of the commit's own, which is what --regress crash hunts. Choose another end."
        if desk.journal.plan.search.regress is Regress.CRASH
        else "A crash is no change of the loss: hunt it by itself with --regress crash, or choose a bad end that runs."
        if is_new
        else f"Choose a {which} and a recipe that run on this machine."
    )
    tail = _tail(step.record.console)
    return (
        f"The {which} {desk.commits.at(step.index).short} can't be judged: {step.reason}. {advice} "
        f"Its log: {step.record.console}" + (f"\n{tail}" if tail else "")
    )


def _tail(path: Path) -> str:
    try:
        lines = path.read_text(encoding="utf-8", errors="replace").splitlines()
    except OSError:
        return ""
    return "\n".join(f"  | {line}" for line in lines[-TAIL_LINES:])
