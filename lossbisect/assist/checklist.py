"""The checklist of "the loss diverged after a commit", walked in order. Pure.

What the two logs say comes from their comparison, what the set-up says from doctor's findings. A point that neither
can tell is said to be open, never clear.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from enum import StrEnum

from lossbisect.assist.findings import Family, Finding, Severity
from lossbisect.compare.types import ConfigDifference, Judgement, Verdict
from lossbisect.parsers.runlog import ConfigValue, RunLog
from lossbisect.train.types import Provenance

__all__ = ["Answer", "Explanation", "Point", "explain"]


class Answer(StrEnum):
    """What a point of the checklist came to."""

    CLEAR = "clear"
    FOUND = "found"
    OPEN = "open"
    """It couldn't be checked from what was given."""


@dataclass(frozen=True, kw_only=True, slots=True)
class Point:
    """One point of the checklist.

    Attributes:
        name: What it is about.
        answer: What it came to.
        told: Sentences without a final full stop: what was found, or why it is clear or open.
        remedies: Exact commands that mend what was found.
    """

    name: str
    answer: Answer
    told: tuple[str, ...]
    remedies: tuple[str, ...] = ()


@dataclass(frozen=True, kw_only=True, slots=True)
class Explanation:
    """The whole checklist.

    Attributes:
        judgement: The comparison of the logs; None without logs.
        points: The points, in order.
        person: What is left for a person, most telling first.
        bisect: The command to run next; None where a bisect would find nothing.
        why: Why that one, or why none.
    """

    judgement: Judgement | None
    points: tuple[Point, ...]
    person: tuple[str, ...]
    bisect: str | None
    why: str

    @property
    def is_found(self) -> bool:
        """Something explains, or may explain, a difference that is there or wasn't looked for."""
        is_same = self.judgement is not None and self.judgement.verdict is Verdict.SAME
        return not is_same and any(point.answer is Answer.FOUND for point in self.points)


_SCHEDULE = (
    *("lr", "min_lr", "lr_warmup_iters", "lr_warmup_init", "lr_decay_style", "lr_decay_iters", "decoupled_lr"),
    "weight_decay",
)
_DATA = (
    *("data_path", "split", "mock_data", "seq_length", "global_batch_size", "rampup_batch_size", "dataloader_type"),
    *("reset_position_ids", "reset_attention_mask", "eod_mask_loss", "padded_vocab_size"),
)
_OF_RUN = ("configuration", "schedule", "data", "seeds")
"""Points that the two runs' own settings decide."""
_SEEDS = ("seed", "data_seed", "use_cpu_initialization")
_ARTEFACTS = ("last-digit", "row-2-mean", "row-shift", "loss-absent", "logging-only")
_PRINT_NOTES = ("row-2-mean", "row-2-undecided", "nan-loss", "cut-row", "resume-overlap")


def explain(
    judgement: Judgement | None,
    logs: tuple[RunLog, RunLog] | None,
    findings: Sequence[Finding] | None,
    settings: tuple[Mapping[str, ConfigValue], Mapping[str, ConfigValue]] | None = None,
    *,
    ran: tuple[Provenance, Provenance] | None = None,
    bisect: str | None,
    why: str,
) -> Explanation:
    """Walk the checklist.

    Args:
        judgement: The comparison of the two logs, the baseline's first; None without logs.
        logs: The baseline's log and the run's; None without logs.
        findings: What doctor found about the set-up; None without a checkout.
        settings: What the baseline and the run really train with; None without logs.
        ran: What the baseline and the run say that they ran; None where one of the logs doesn't.
        bisect: The bisect to run next, if it comes to one.
        why: Its range, as the end of a sentence; without a bisect a sentence that says why none can be named.
    """
    points = (
        _configuration(judgement, logs),
        _environment(ran, findings),
        _submodule(ran, findings),
        _checkpoints(logs, findings),
        _imports(ran, findings),
        _schedule(judgement, settings),
        _fields("data", judgement, _DATA, ("other-samples",)),
        _seeds(judgement, settings),
        _prints(judgement, logs),
    )
    is_same = judgement is not None and judgement.verdict is Verdict.SAME
    differing = [point.name for point in points if point.name in _OF_RUN and point.answer is Answer.FOUND]
    if is_same:
        bisect, why = None, "The two logs show the same loss, so there is nothing to bisect."
    elif differing:
        first = f"First set alike what differs ({', '.join(differing)}) and run again."
        why = f"{first} If it is still there, bisect {why}" if bisect else f"{first} {why}"
    elif bisect:
        why = f"Bisect {why}"
    return Explanation(
        judgement=judgement,
        points=points,
        person=() if is_same else _person(points, settings, is_environment_known=ran is not None),
        bisect=bisect,
        why=why,
    )


def _configuration(judgement: Judgement | None, logs: tuple[RunLog, RunLog] | None) -> Point:
    if judgement is None or logs is None:
        return _open("configuration", "no logs were given")
    silent = [str(log.path) for log in logs if not log.config]
    if silent:
        return _open("configuration", f"{' and '.join(silent)} prints no configuration")
    config = judgement.comparison.config
    told = [_difference(item) for item in config if item.field not in (*_SCHEDULE, *_DATA, *_SEEDS)]
    return _point("configuration", told, "no other setting that moves a loss differs")


def _difference(item: ConfigDifference) -> str:
    return f"{item.field} is {item.candidate}, in the baseline {item.baseline}: {item.reason}"


def _fields(
    name: str, judgement: Judgement | None, fields: Sequence[str], shapes: Sequence[str], clear: str = "equal"
) -> Point:
    """A point about some settings and what the curves say about them."""
    if judgement is None:
        return _open(name, "no logs were given")
    comparison = judgement.comparison
    told = [_difference(item) for item in comparison.config if item.field in fields]
    told += [f"{item.meaning} {item.evidence}".rstrip(".") for item in comparison.diagnoses if item.shape in shapes]
    return _point(name, told, clear)


def _schedule(
    judgement: Judgement | None, settings: tuple[Mapping[str, ConfigValue], Mapping[str, ConfigValue]] | None
) -> Point:
    point = _fields("schedule", judgement, _SCHEDULE, ("other-schedule",), "equal, and it fits the iterations")
    told = list(point.told) if point.answer is Answer.FOUND else []
    for side, its in zip(("baseline", "run"), settings or (), strict=False):
        warmup, decay = _number(its.get("lr_warmup_iters")), _number(its.get("lr_decay_iters"))
        if decay and warmup >= decay:
            told.append(
                f"the {side} warms up for {warmup:g} iterations and decays after {decay:g}: set lr_warmup_iters and "
                "lr_decay_iters with the iterations"
            )
    return _point("schedule", told, point.told[0]) if told else point


def _seeds(
    judgement: Judgement | None, settings: tuple[Mapping[str, ConfigValue], Mapping[str, ConfigValue]] | None
) -> Point:
    point = _fields("seeds", judgement, _SEEDS, ())
    if point.answer is not Answer.CLEAR or settings is None:
        return point
    if any(its.get("hidden_dropout") or its.get("attention_dropout") for its in settings):
        told = "equal; but dropout is on, and trainers or parallel layouts draw other zeros from the same seed"
        return Point(name="seeds", answer=Answer.CLEAR, told=(told,))
    return point


def _checkpoints(logs: tuple[RunLog, RunLog] | None, findings: Sequence[Finding] | None) -> Point:
    """Whether a run went on from a checkpoint that it shouldn't have, or the next one would."""
    if logs is None and findings is None:
        return _open("stale checkpoints", "neither logs nor a checkout were given")
    left = [item for item in findings or () if item.family is Family.EXPERIMENTS and item.severity is not Severity.OK]
    there = [f"{finding.where}: {finding.what}" for finding in left]
    remedies = tuple(finding.remedy for finding in left if finding.remedy)
    loads = [_loaded(log) for log in logs or ()]
    if any(loads) and loads[0] != loads[1]:
        sides = [f"the {side} {load or 'starts anew'}" for side, load in zip(("baseline", "run"), loads, strict=True)]
        return _point("stale checkpoints", [", ".join(sides), *there], "", remedies)
    if logs is None:
        return _point("stale checkpoints", there, "there is none to go on from", remedies)
    clear = f"both runs {'went on from the same one' if any(loads) else 'start anew'}"
    told = (clear, *(f"but for a next run, {what}" for what in there))
    return Point(name="stale checkpoints", answer=Answer.CLEAR, told=told, remedies=remedies)


def _loaded(log: RunLog) -> str | None:
    """From where a log says its run went on, as the end of a sentence; None if it started anew."""
    loaded = next((checkpoint for checkpoint in log.checkpoints if checkpoint.kind == "loaded"), None)
    if loaded is not None:
        return f"went on from iteration {loaded.iteration}" + (f" of {loaded.path}" if loaded.path else "")
    first = log.iterations["iteration"].min() if log.iterations.height else None
    interval = _number(log.config.get("log_interval", log.config.get("logger.log_interval", 1)))
    if isinstance(first, int) and first > max(1.0, interval):
        return f"begins at iteration {first}"
    return None


def _environment(ran: tuple[Provenance, Provenance] | None, findings: Sequence[Finding] | None) -> Point:
    """Whether the two runs had the same environment, by their own words, or what doctor says of the present one."""
    present = _family("environment", findings, (Family.VERSIONS, Family.VARIABLES))
    if ran is None:
        return present
    baseline, run = ran
    told = []
    for name in ("python", "torch", "cuda", "driver", "gpu", "processor", "image", "lane"):
        before, now = getattr(baseline, name), getattr(run, name)
        if before != now:
            told.append(f"{name} is {now}, in the baseline {before}")
    for what, before, now in (
        ("package", baseline.packages, run.packages),
        ("switch", baseline.flags, run.flags),
        ("variable", baseline.variables, run.variables),
    ):
        for name in sorted(before.keys() | now.keys()):
            if before.get(name) != now.get(name):
                ours, theirs = now.get(name, "not there"), before.get(name, "not there")
                told.append(f"the {what} {name} is {ours}, in the baseline {theirs}")
    return _point("environment", told, "both runs say that they had the same one")


def _submodule(ran: tuple[Provenance, Provenance] | None, findings: Sequence[Finding] | None) -> Point:
    """Which Megatron-Core the two runs say that they ran, or where the submodule is now."""
    present = _family("submodule", findings, (Family.CHECKOUT,))
    if ran is None:
        return present
    told = [
        f"the {side}'s Megatron-Core had changed files, so it was no commit"
        for side, one in zip(("baseline", "run"), ran, strict=True)
        if one.is_clean is False
    ]
    commits = [(one.mcore_commit or "")[:10] or f"version {one.megatron_core_version}" for one in ran]
    same = (
        f"both ran {commits[0]}" if commits[0] == commits[1] else f"the baseline ran {commits[0]}, the run {commits[1]}"
    )
    now = [f"now, {line}" for line in present.told] if present.answer is Answer.FOUND else []
    return replace(_point("submodule", told, same), told=(*told, same, *now), remedies=present.remedies)


def _imports(ran: tuple[Provenance, Provenance] | None, findings: Sequence[Finding] | None) -> Point:
    """Whether the two runs imported what they were meant to: a checkout on both sides, or a package on both."""
    present = _family("PYTHONPATH", findings, (Family.IMPORTS,))
    if ran is None:
        return present
    files = [one.megatron_core_file for one in ran]
    told = f"the baseline imported {files[0]}, the run {files[1]}"
    if (ran[0].mcore_commit is None) != (ran[1].mcore_commit is None):
        return _point("PYTHONPATH", [f"only one of them from a checkout: {told}"], "")
    now = [f"but for a next run, {line}" for line in present.told] if present.answer is Answer.FOUND else []
    return Point(name="PYTHONPATH", answer=Answer.CLEAR, told=(told, *now), remedies=present.remedies)


def _family(name: str, findings: Sequence[Finding] | None, families: Sequence[Family]) -> Point:
    """A point that doctor answers: what it warns of, and its notes about versions and variables."""
    if findings is None:
        return _open(name, "no checkout was given: --repo PATH")
    ours = [finding for finding in findings if finding.family in families and finding.family is not Family.MACHINE]
    bad = [finding for finding in ours if finding.severity in (Severity.WARNING, Severity.PROBLEM)]
    told = [f"{finding.where}: {finding.what}" for finding in bad]
    remedies = [finding.remedy for finding in bad if finding.remedy]
    noted = [f"{item.where} {item.what}" for item in ours if item.severity is Severity.NOTE and item.family in _NOTED]
    shown = sorted((item for item in ours if item.check in _SHOWN), key=lambda item: _SHOWN.index(item.check))
    clear = f"{shown[0].where}: {shown[0].what}" if shown else "nothing to report"
    if told:
        return _point(name, [*told, *noted], "", remedies)
    return Point(name=name, answer=Answer.CLEAR, told=(clear, *noted))


_NOTED = (Family.VERSIONS, Family.VARIABLES)
"""Families whose notes are told too: what differs from the lock and what is set may differ between two runs."""
_SHOWN = ("pins", "submodule", "submodule-switched", "submodule-dev", "import", "not-on-path", "tree")
"""What to show where nothing is wrong, the most telling first."""


def _prints(judgement: Judgement | None, logs: tuple[RunLog, RunLog] | None) -> Point:
    """Whether the difference is in the print and not in the training."""
    if judgement is None or logs is None:
        return _open("print artefacts", "no logs were given")
    shapes = [item for item in judgement.comparison.diagnoses if item.shape in _ARTEFACTS]
    told = [f"{item.meaning} {item.evidence}".rstrip(".") for item in shapes]
    intervals = [log.config.get("log_interval", log.config.get("logger.log_interval")) for log in logs]
    if None not in intervals and intervals[0] != intervals[1]:
        told.append(
            f"the run prints every {intervals[1]} iterations, the baseline every {intervals[0]}: rows are means"
        )
    if told:
        return _point("print artefacts", told, "")
    noted = [
        f"{side}: {note.text.rstrip('.')}"
        for side, log in zip(("baseline", "run"), logs, strict=True)
        for note in log.notes
        if note.kind in _PRINT_NOTES
    ]
    clear = "none explains the difference" + (f" ({noted[0][0].lower() + noted[0][1:]})" if noted else "")
    return Point(name="print artefacts", answer=Answer.CLEAR, told=(clear,))


def _person(
    points: Sequence[Point],
    settings: tuple[Mapping[str, ConfigValue], Mapping[str, ConfigValue]] | None,
    *,
    is_environment_known: bool,
) -> tuple[str, ...]:
    """What no program can look up."""
    left = [
        "Does the baseline repeat itself? Run it once more and compare with --repeat: noise is no difference",
    ]
    if not is_environment_known:
        left.append(
            "Did both runs have the same image, driver and kind of GPU? Logs don't say; a new image alone moves losses"
        )
    if settings is not None and any(its.get("mock_data") is False or its.get("data_path") for its in settings):
        left.append("Are the data files and the tokenizer's files byte for byte the same, and the index cache fresh?")
    if any(point.answer is Answer.OPEN for point in points):
        left.append("The points above that are open")
    return tuple(left)


def _point(name: str, told: Sequence[str], clear: str, remedies: Sequence[str] = ()) -> Point:
    if told:
        return Point(name=name, answer=Answer.FOUND, told=tuple(told), remedies=tuple(dict.fromkeys(remedies)))
    return Point(name=name, answer=Answer.CLEAR, told=(clear,))


def _open(name: str, why: str) -> Point:
    return Point(name=name, answer=Answer.OPEN, told=(why,))


def _number(value: ConfigValue) -> float:
    return float(value) if isinstance(value, int | float) and not isinstance(value, bool) else 0.0
