"""What the ends have shown, and what it says about a run in between. Pure."""

import math
from collections.abc import Mapping
from dataclasses import dataclass, replace

from lossbisect.bisect.figures import FIGURES, figure_of, no_figure
from lossbisect.bisect.judging import CurveVerdict, curve, judge_curves, missing_iterations, turned
from lossbisect.bisect.options import Regress
from lossbisect.bisect.symptom import Symptom, symptom_of
from lossbisect.bisect.types import CommitVerdict
from lossbisect.compare.types import NoiseFloor
from lossbisect.compare.wording import metric_name
from lossbisect.parsers.runlog import RunLog

__all__ = ["Case", "until"]


@dataclass(frozen=True, kw_only=True, slots=True)
class Case:
    """The two ends, and how a run is judged against them.

    Attributes:
        metric: Column that is judged.
        regress: What counts as bad.
        noise: How far two curves may lie apart and still be the same.
        good: The good end's curves.
        bad: The bad end's curves.
        is_any_difference: Whatever differs from the good end is bad, the bad end's symptom or not.
        is_fix: The good end is the older one as always, but it is the broken one.
    """

    metric: str
    regress: Regress
    noise: NoiseFloor
    good: RunLog
    bad: RunLog
    is_any_difference: bool
    is_fix: bool = False

    def judge(self, log: RunLog) -> CurveVerdict:
        """Good like the good end, bad like the bad end, other like neither, or skip where that can't be said."""
        if self.regress is Regress.NAN:
            broken = self._is_broken(log)
            return broken if not self.is_fix else replace(broken, verdict=turned(broken.verdict))
        against_good = self.compare(self.good, log)
        if against_good.verdict is not CommitVerdict.BAD:
            return against_good
        is_bad_curve = self.compare(self.bad, log).verdict is not CommitVerdict.BAD
        if is_bad_curve or self.is_any_difference:
            return CurveVerdict(verdict=CommitVerdict.BAD, reason=against_good.reason, is_bad_curve=is_bad_curve)
        shown = symptom_of(*(curve(each, self.metric) for each in (self.good, self.bad, log)))
        if shown is Symptom.SMALLER:
            reason = f"{against_good.reason}: a smaller change than the ends show, which isn't looked for"
            return CurveVerdict(verdict=CommitVerdict.GOOD, reason=reason, is_bad_curve=False)
        if shown is Symptom.OTHER:
            reason = f"matches neither end: {against_good.reason}"
            return CurveVerdict(verdict=CommitVerdict.OTHER, reason=reason, is_bad_curve=False)
        return CurveVerdict(verdict=CommitVerdict.BAD, reason=against_good.reason, is_bad_curve=False)

    def judge_cut(self, log: RunLog) -> CurveVerdict:
        """As `judge`, of a run that may have been ended before its time: judged on what it recorded."""
        ran, wanted = curve(log, self.metric), curve(self.good, self.metric)
        if not ran or max(ran) >= max(wanted):
            return self.judge(log)
        last = max(ran)
        return replace(self, good=until(self.good, last), bad=until(self.bad, last)).judge(log)

    def is_finite(self, log: RunLog) -> bool:
        """Whether what is judged is a number throughout."""
        return all(math.isfinite(value) for value in self.values(log).values())

    def values(self, log: RunLog) -> Mapping[int, float]:
        """What is judged of a run, by iteration; a single figure stands at iteration 1."""
        if self.regress not in FIGURES:
            return curve(log, self.metric)
        figure = figure_of(log, self.regress)
        return {} if figure is None else {1: figure}

    def lack(self, log: RunLog) -> str | None:
        """What keeps a run from being judged, a clause; None if nothing does."""
        if self.regress not in FIGURES:
            return missing_iterations(self.good, log, metric=self.metric)
        return None if self.values(log) else no_figure(self.regress)

    def compare(self, baseline: RunLog, candidate: RunLog) -> CurveVerdict:
        """Whether two curves are the same."""
        return judge_curves(baseline, candidate, metric=self.metric, noise=self.noise)

    def _is_broken(self, log: RunLog) -> CurveVerdict:
        name = metric_name(self.metric)
        values = curve(log, self.metric)
        broken = [i for i, value in values.items() if not math.isfinite(value)]
        if broken:
            return CurveVerdict(
                verdict=CommitVerdict.BAD, reason=f"{name} is {values[broken[0]]} at iteration {broken[0]}"
            )
        if gap := missing_iterations(self.good, log, metric=self.metric):
            return CurveVerdict(verdict=CommitVerdict.SKIP, reason=gap)
        return CurveVerdict(verdict=CommitVerdict.GOOD, reason=f"{name} is finite in all {len(values)} iterations")


def until(log: RunLog, iteration: int) -> RunLog:
    """The log without what comes after an iteration: what a run that was cut there has to be compared with."""
    import polars as pl

    return replace(log, iterations=log.iterations.filter(pl.col("iteration") <= iteration))
