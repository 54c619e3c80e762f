"""The search by one figure a run: the time of an iteration, or the peak of memory. Both are noisy."""

from collections.abc import Callable, Sequence
from dataclasses import replace
from math import exp, log
from pathlib import Path
from statistics import median

from lossbisect.bisect.case import Case
from lossbisect.bisect.culprit import Answer, Finding
from lossbisect.bisect.desk import Agenda, Desk, Job
from lossbisect.bisect.ends import why_not
from lossbisect.bisect.events import EventKind, Runner
from lossbisect.bisect.figures import figure_name, figure_of, figure_text, no_figure
from lossbisect.bisect.judging import CurveVerdict
from lossbisect.bisect.noisy import Outlook
from lossbisect.bisect.noisy_hunt import NoisyHunt
from lossbisect.bisect.options import Regress
from lossbisect.bisect.types import BisectStep, CommitVerdict, Role
from lossbisect.compare.types import NoiseFloor
from lossbisect.errors import EndpointError
from lossbisect.parsers.runlog import RunLog
from lossbisect.train.types import Outcome, RunRecord

__all__ = ["FigureHunt", "FigureRunner", "open_figures"]

_SURE = 0.9
"""Probability of "no change" below which it is left open."""
_NOTABLE = 0.05
"""A change of the ends' medians that isn't called none, however noisy they are."""
_PAIRS = 3
"""Pairs of runs of the commit that was found and its parent, in turn."""
_LEAST_SHARE = 0.5
"""What the pairs' median has to show of the ends' change, so as not to be nearer to none."""
_QUIET = "Other work on the machine may have slowed some of the runs: try again when it is quiet."


class FigureRunner:
    """Runs anew what is timed, and reads what a run printed."""

    def __init__(self, runner: Runner, regress: Regress) -> None:
        """Run by another runner."""
        self._runner = runner
        self._is_timed = regress is Regress.THROUGHPUT

    def run(
        self,
        commit: str,
        out: Path,
        on_line: Callable[[str], None],
        *,
        repeat: int | None = 0,
        should_stop: Callable[[], bool] | None = None,
        without: str | None = None,
    ) -> RunRecord:
        """As `Runner.run`; how fast a stored run was says nothing of how fast the machine is now."""
        number = None if self._is_timed else repeat
        return self._runner.run(commit, out, on_line, repeat=number, should_stop=should_stop, without=without)

    def read(self, record: RunRecord) -> RunLog:
        """What the run printed: its recorded values hold neither times nor memory."""
        from lossbisect.parsers import read_log

        return read_log(record.console) if record.console.exists() else self._runner.read(record)


def open_figures(desk: Desk) -> Case:
    """Run both ends twice, in turn, after a run that only warms the machine up.

    Raises:
        EndpointError: An end can't be judged.
    """
    last, regress = len(desk.commits.commits) - 1, desk.journal.plan.search.regress
    wanted = [
        *([Job(role=Role.WARM_UP, index=-1)] if regress is Regress.THROUGHPUT else []),
        Job(role=Role.GOOD_END, index=-1),
        Job(role=Role.BAD_END, index=last),
        Job(role=Role.GOOD_AGAIN, index=-1),
        Job(role=Role.BAD_AGAIN, index=last),
    ]

    def agenda(going: Sequence[Job], _free: int) -> Agenda:
        missing = [job for job in wanted if job not in going and desk.journal.find(job.role, job.index) is None]
        return Agenda(start=missing if regress is Regress.MEMORY else missing[: not going])

    def judge(job: Job, log: RunLog, *, is_cut: bool) -> CurveVerdict:
        assert not is_cut, "ends run whole"
        figure = figure_of(log, regress)
        if figure is None:
            return CurveVerdict(verdict=CommitVerdict.SKIP, reason=no_figure(regress))
        verdict = CommitVerdict.BAD if job.index == last else CommitVerdict.GOOD
        return CurveVerdict(verdict=verdict, reason=f"{figure_name(regress)} {figure_text(figure, regress)}")

    def refuse(step: BisectStep) -> None:
        if step.verdict is CommitVerdict.SKIP:
            raise EndpointError(why_not(desk, step))

    for job in wanted:
        if (known := desk.journal.find(job.role, job.index)) is not None:
            refuse(known)
    desk.perform(agenda, judge, refuse)
    ends = (desk.journal.find(Role.GOOD_END, -1), desk.journal.find(Role.BAD_END, last))
    good, bad = (desk.read(step) for step in ends if step is not None)
    return Case(
        metric=desk.journal.plan.metric,
        regress=regress,
        noise=NoiseFloor(source="repeats", surely_noise_rel=0.0, surely_real_rel=0.0),
        good=good,
        bad=bad,
        is_any_difference=False,
    )


class FigureHunt(NoisyHunt):
    """One search, from the ends to the answer."""

    def finding(self) -> Finding:
        """Search, and put the answer together; an end that is no worse than it should be is no regression."""
        self._desk.say(EventKind.NOTE, f"{self._both()} The search goes on by probability, with repeated runs.")
        if self._change(max, min) <= 0:  # not even the worst run after is worse than the best run before
            return self._told(Answer.NO_CULPRIT, self._no_worse(), -1, self._count - 1, None)
        found = super().finding()
        if found.answer is Answer.NO_CULPRIT:
            if (found.probability or 0.0) < _SURE or self._change(median, median) > _NOTABLE:
                reason = f"Whether the ends differ can't be told in this noise. {self._both()} {_QUIET}"
                return replace(found, answer=Answer.UNDECIDED, reason=reason)
            return replace(found, reason=f"{found.reason} {self._both()}")
        if self._change(median, median) <= (self._options.min_effect or 0.0):
            return self._told(Answer.NO_CULPRIT, self._no_worse(), -1, self._count - 1, None)
        if found.answer is not Answer.FOUND:
            return found
        if self._case.regress is Regress.THROUGHPUT and (doubt := self._in_turn(found)) is not None:
            return replace(found, answer=Answer.UNCONFIRMED, reason=doubt, steps=tuple(self._desk.steps))
        found = replace(found, steps=tuple(self._desk.steps))
        regress, figures = self._case.regress, self._figures()
        sides = (figures.get(found.good), figures.get(found.bad))
        if sides[0] is None or sides[1] is None:
            return found
        before, after = (median(side) for side in sides if side is not None)
        change = f"{figure_text(before, regress)} before it, {figure_text(after, regress)} with it"
        change = f"{figure_name(regress)} {change} ({after / before - 1:+.1%})"
        return replace(found, reason=f"{found.reason.removesuffix('.')}: {change}.")

    def _in_turn(self, found: Finding) -> str | None:
        """Time the commit and its parent in turn: what speaks against the commit then, a sentence; None if nothing.

        The posterior takes the noise of one run to say nothing of the next one's. A machine that others use is slow
        for stretches, and a stretch that falls on neighbouring commits looks like a change of theirs. Two runs right
        after each other mostly share it, and the median of the pairs stands one that didn't.
        """
        order = [Role.PARENT_AGAIN, Role.CULPRIT_AGAIN, Role.CULPRIT_AGAIN, Role.PARENT_AGAIN] * _PAIRS
        sides = {Role.PARENT_AGAIN: found.good, Role.CULPRIT_AGAIN: found.bad}
        jobs = [Job(role=role, index=sides[role]) for role in order[: 2 * _PAIRS]]

        def timed() -> list[BisectStep]:
            return [step for step in self._desk.steps if (step.role, step.index) in sides.items()]

        def agenda(going: Sequence[Job], _free: int) -> Agenda:
            return Agenda(start=[] if going else jobs[len(timed()) :][:1])

        self._desk.perform(agenda, self._judge)
        figures = [figure_of(self._desk.read(step), self._case.regress) for step in timed() if step in self._whole()]
        if len(figures) < 2 * _PAIRS or None in figures:
            return f"{found.reason} But it or its parent failed when they ran in turn."
        ratios = []
        for first in range(0, 2 * _PAIRS, 2):
            pair = {timed()[place].role: figures[place] or 0.0 for place in (first, first + 1)}
            ratios.append(pair[Role.CULPRIT_AGAIN] / pair[Role.PARENT_AGAIN])
        wanted = log(median(self._figures()[self._count - 1]) / median(self._figures()[-1]))
        if log(median(ratios)) / wanted > _LEAST_SHARE:
            return None
        name = self._desk.commits.at(found.bad).short
        return (
            f"{name} looks like the {self._desk.terms.first}, but it is not confirmed: run in turn with its parent "
            f"{_PAIRS} times it changes the {figure_name(self._case.regress)} by {median(ratios) - 1:+.1%}, where the "
            f"ends differ by {exp(wanted) - 1:+.1%}. {_QUIET}"
        )

    def _usable(self) -> list[BisectStep]:
        """The runs that the search rests on; those that confirm its answer are no part of it."""
        return [step for step in self._whole() if step.role not in (Role.PARENT_AGAIN, Role.CULPRIT_AGAIN)]

    def _whole(self) -> list[BisectStep]:
        return super()._usable()

    def _change(self, after: Callable[[list[float]], float], before: Callable[[list[float]], float]) -> float:
        """How much worse the newer end is than the older one, relative; for a fix, how much worse the older one is."""
        figures = self._figures()
        old, new = figures[-1], figures[self._count - 1]
        return after(old) / before(new) - 1 if self._options.find_fix else after(new) / before(old) - 1

    def _no_worse(self) -> str:
        least, how = self._options.min_effect, "better" if self._options.find_fix else "worse"
        by = f" by more than {least:.1%}" if least else ""
        return f"The {self._desk.terms.new_end} isn't {how}{by}. {self._both()}"

    def _both(self) -> str:
        """The figures of both ends, a sentence."""
        terms, regress, figures = self._desk.terms, self._case.regress, self._figures()
        old, new = median(figures[-1]), median(figures[self._count - 1])
        return (
            f"{figure_name(regress).capitalize()}: {figure_text(old, regress)} at the {terms.old_end}, "
            f"{figure_text(new, regress)} at the {terms.new_end} ({new / old - 1:+.1%})."
        )

    def _figures(self) -> dict[int, list[float]]:
        """The figures of all runs that count, by commit."""
        figures: dict[int, list[float]] = {}
        for step in self._whole():
            if (figure := figure_of(self._desk.read(step), self._case.regress)) is not None:
                figures.setdefault(step.index, []).append(figure)
        return figures

    def _finding(self, answer: Answer, reason: str, good: int, bad: int, outlook: Outlook) -> Finding:
        return self._told(answer, reason, good, bad, outlook.probability)

    def _told(self, answer: Answer, reason: str, good: int, bad: int, probability: float | None) -> Finding:
        name = figure_name(self._case.regress)
        rests_on = f"A run counts by its {name}, without its warm-up."
        skipped = sum(step.record.outcome is not Outcome.FINISHED for step in self._desk.steps)
        failed = (f"{skipped} runs failed and say nothing.",) if skipped else ()
        return Finding(
            answer=answer,
            reason=reason,
            good=good,
            bad=bad,
            steps=tuple(self._desk.steps),
            noise=None,
            judgement=None,
            warnings=(*self._desk.commits.notes, *failed),
            probability=probability,
            rests_on=rests_on,
        )
