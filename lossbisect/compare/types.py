"""What a comparison is made of, from two aligned curves to a verdict with its evidence."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from enum import StrEnum
from typing import TYPE_CHECKING

from lossbisect.parsers.runlog import ConfigValue, RunLog

if TYPE_CHECKING:
    import polars as pl

__all__ = [
    "AlignedCurves",
    "Comparison",
    "ConfigDifference",
    "Diagnosis",
    "Difference",
    "Effect",
    "Ends",
    "Judgement",
    "NoiseFloor",
    "Performance",
    "Repeats",
    "RuleResult",
    "Verdict",
]


class Verdict(StrEnum):
    """What a comparison of two curves says."""

    SAME = "same"
    DIVERGED = "diverged"
    UNDECIDED = "undecided"


@dataclass(frozen=True, kw_only=True, slots=True)
class AlignedCurves:
    """Two curves of one metric, laid over each other.

    Attributes:
        metric: Column name, such as ``lm_loss``.
        on: Column that they were aligned by: ``iteration`` or ``consumed_samples``.
        frame: Columns ``iteration`` (the baseline's), `on`, ``window`` (units of `on` that a row stands for),
            ``baseline``, ``candidate``, ``delta`` (candidate - baseline), ``quantum`` (the largest absolute delta that
            printed digits alone explain; 0 for full precision), ``is_repaired`` (a value was worked out from printed
            ones); one row per position that both sides have, ascending. A value is null where that side did not log
            it, NaN where it went NaN.
        dropped: Why rows of either side are not in the frame, one sentence each.
    """

    metric: str
    on: str
    frame: "pl.DataFrame"
    dropped: tuple[str, ...]


@dataclass(frozen=True, kw_only=True, slots=True)
class NoiseFloor:
    """How far two runs of the same thing may lie apart.

    Attributes:
        source: Where the figures come from: ``bit-exact``, ``float32 rounding``, ``bfloat16 rounding``, ``rtol``,
            ``2 repeats``, ``2 repeats equal in every digit``.
        surely_noise_rel: Relative differences of a row up to this are noise.
        surely_real_rel: Relative differences of a row above this are not noise. Between the two nothing is claimed.
        grows_after: Iterations from the first compared one for which the two figures hold; beyond it they grow in
            proportion, since a rounding difference grows as training goes on. None: they never grow.
        surely_shift_rel: A median of the signed relative differences beyond this, over `lossbisect.compare.stats`'s
            ``ROWS_FOR_SHIFT`` rows or more, is no noise even where no single row is surely real. None: rows decide.
        is_measured: The figures come from further runs of the same set-up.
    """

    source: str
    surely_noise_rel: float
    surely_real_rel: float
    grows_after: int | None = None
    surely_shift_rel: float | None = None
    is_measured: bool = False


@dataclass(frozen=True, kw_only=True, slots=True)
class Repeats:
    """Further runs of the very same set-up as either side: what its noise is measured on.

    Attributes:
        baseline: Repeats of the baseline.
        candidate: Repeats of the candidate.
        noun: What one of them is called in the output.
        are_medians_shown: The curves are the medians over each side's runs, not the two logs themselves.
    """

    baseline: tuple[RunLog, ...] = ()
    candidate: tuple[RunLog, ...] = ()
    noun: str = "repeat"
    are_medians_shown: bool = False

    @property
    def count(self) -> int:
        """Number of repeats, both sides together."""
        return len(self.baseline) + len(self.candidate)


@dataclass(frozen=True, kw_only=True, slots=True)
class Effect:
    """How far the candidate lies from the baseline, measured against repeats (`lossbisect.compare.effect`).

    Attributes:
        shift_rel: Median over the rows of the relative difference between the two sides' means over their runs.
        low_rel: Lower end of the interval that holds the true median shift with probability 1 - ``alpha``.
        high_rel: Upper end.
        p_value: Probability of so large a shift without any difference, corrected for the windows that were tried and
            for the number of metrics (Holm).
        alpha: Rate of false alarms that was asked for.
        detectable_rel: Constant shift that is found in 99 of 100 cases.
        rows: Rows that were compared.
        onset_low: First iteration of the interval that holds the onset with 95 %; None where there is no alarm.
        onset: The likeliest first divergent iteration, or None.
        onset_high: Last iteration of that interval, or None.
        since_rel: Median shift from the onset on, or None.
    """

    shift_rel: float
    low_rel: float
    high_rel: float
    p_value: float
    alpha: float
    detectable_rel: float
    rows: int
    onset_low: int | None = None
    onset: int | None = None
    onset_high: int | None = None
    since_rel: float | None = None

    @property
    def is_alarm(self) -> bool:
        """Whether the noise doesn't explain the shift."""
        return self.p_value <= self.alpha


@dataclass(frozen=True, kw_only=True, slots=True)
class Ends:
    """Where the two runs end (`lossbisect.compare.ends`).

    Attributes:
        baseline: Its last iteration with a whole row; 0 without any.
        candidate: The same.
        cut: Why the shorter side isn't known to be whole, as a clause; such a pair is never called the same. Or None.
        told: What to say of a shorter side that was meant to be short, as a clause, or None.
        hole: Which rows a log lacks between its own first and last one, as a clause, or None: the same goes for them.
    """

    baseline: int
    candidate: int
    cut: str | None = None
    told: str | None = None
    hole: str | None = None


@dataclass(frozen=True, kw_only=True, slots=True)
class RuleResult:
    """What somebody else's check says of the two curves (`lossbisect.compare.presets`).

    Attributes:
        name: Name of the preset, such as ``megatron-lm``.
        passes: Whether that check is green.
        why: One clause: the figures it decides by.
    """

    name: str
    passes: bool
    why: str


@dataclass(frozen=True, kw_only=True, slots=True)
class Performance:
    """How fast the two runs are, or how much memory they take (`lossbisect.compare.performance`).

    Attributes:
        metric: Column name, or name of a memory report's value; it ends in its unit.
        baseline: Median over that run's rows, its first rows left out; the peak for memory.
        candidate: The same.
        change_rel: (candidate - baseline) / baseline.
        noise_rel: Change up to which equal runs may differ.
        source: Where that comes from.
        is_more_worse: Whether a larger value is worse.
    """

    metric: str
    baseline: float
    candidate: float
    change_rel: float
    noise_rel: float
    source: str
    is_more_worse: bool

    @property
    def is_worse(self) -> bool:
        """Whether the candidate is worse by more than equal runs differ."""
        return self.loss_rel > self.noise_rel

    @property
    def loss_rel(self) -> float:
        """The change for the worse; negative where the candidate is better."""
        return self.change_rel if self.is_more_worse else -self.change_rel


@dataclass(frozen=True, kw_only=True, slots=True)
class Diagnosis:
    """What the shape of a difference speaks for (`lossbisect.compare.diagnose`).

    Attributes:
        shape: Stable name, such as ``backward-or-optimizer``.
        meaning: One sentence: what most likely made it.
        evidence: The figures that speak for it, one sentence.
        check_next: What to look at next: settings, files of Megatron-Core, another tool.
    """

    shape: str
    meaning: str
    evidence: str
    check_next: str


@dataclass(frozen=True, kw_only=True, slots=True)
class Difference:
    """How two aligned curves of one metric differ.

    Attributes:
        metric: Column name.
        iterations: Number of iterations compared (both sides finite).
        is_identical: Every compared value is equal, and missing and NaN values stand at the same iterations.
        first_difference: First iteration whose values differ at all (beyond the printed digits), or None.
        first_divergent: First iteration from which the difference is beyond the noise floor, or None.
        largest_rel: Largest absolute relative difference, (candidate - baseline) / baseline; None: nothing compared.
        largest_at: Its iteration.
        typical_rel: Median absolute relative difference.
        only_baseline_missing: Iterations where only the baseline has no finite value.
        only_candidate_missing: Iterations where only the candidate has no finite value.
        first_doubtful: First iteration that isn't surely noise: a value beyond the noise floor, or missing on one side.
        shift_rel: Median signed relative difference; None if nothing was compared.
        spikes: Iterations surely beyond the noise that return to it at once, before ``first_divergent``.
        doubtful_rows: Number of rows that aren't surely noise.
        effect: The shift against the noise of repeats; None where no repeats measure it.
    """

    metric: str
    iterations: int
    is_identical: bool
    first_difference: int | None
    first_divergent: int | None
    largest_rel: float | None
    largest_at: int | None
    typical_rel: float | None
    only_baseline_missing: tuple[int, ...]
    only_candidate_missing: tuple[int, ...]
    first_doubtful: int | None = None
    shift_rel: float | None = None
    spikes: tuple[int, ...] = ()
    doubtful_rows: int = 0
    effect: Effect | None = None


@dataclass(frozen=True, kw_only=True, slots=True)
class ConfigDifference:
    """One setting that the two runs don't share.

    Attributes:
        field: Neutral name, Megatron-LM's where it has one.
        baseline: Normalised value on that side.
        candidate: Normalised value on that side.
        kind: ``convergence`` (changes the loss by itself) or ``execution`` (changes how it is computed: order of
            additions, initialisation per rank).
        reason: One clause on why it matters.
        needs_update: It acts once the optimizer has stepped, so it can't explain a difference in the first loss.
    """

    field: str
    baseline: ConfigValue
    candidate: ConfigValue
    kind: str
    reason: str
    needs_update: bool = False


@dataclass(frozen=True, kw_only=True, slots=True)
class Comparison:
    """All that was found out about two runs.

    Attributes:
        curves: The judged metric's aligned curves.
        noise: The noise floor that was used.
        difference: How the judged metric differs.
        witnesses: How other metrics differ, by column name (``grad_norm`` first).
        config: Settings that differ, most telling first.
        notes: Repairs and warnings of both logs that bear on the verdict.
        baseline: Name of that side, for people: its file.
        candidate: Name of that side.
        rule: What the check of another project says, if it was asked for.
        diagnoses: What the shape of the difference speaks for, the most telling first.
        ends: Where the two runs end; None where that isn't known.
        performance: Speed and memory, which decide nothing.
        witness_curves: The aligned curves of the witnesses, by column name.
        witness_noise: The noise floor of each witness, by column name.
    """

    curves: AlignedCurves
    noise: NoiseFloor
    difference: Difference
    witnesses: Mapping[str, Difference]
    config: tuple[ConfigDifference, ...]
    notes: tuple[str, ...]
    baseline: str = "baseline"
    candidate: str = "candidate"
    rule: RuleResult | None = None
    diagnoses: tuple[Diagnosis, ...] = ()
    ends: Ends | None = None
    performance: tuple[Performance, ...] = ()
    witness_curves: Mapping[str, AlignedCurves] = field(default_factory=dict)
    witness_noise: Mapping[str, NoiseFloor] = field(default_factory=dict)


@dataclass(frozen=True, kw_only=True, slots=True)
class Judgement:
    """A verdict, one sentence of reason, and the evidence."""

    verdict: Verdict
    reason: str
    comparison: Comparison
