"""Two whole set-ups with different curves: which part of them makes the difference, before any commit is searched.

A set-up is an interpreter, a commit of Bridge, one of Megatron-LM, and a recipe. Both run, the good one twice; then a
few runs take some parts from one and the rest from the other (`axes`). Finished runs are kept in the run store, so
asking again, or going on after a stop, repeats none.
"""

from collections.abc import Callable, Mapping
from contextlib import ExitStack, closing
from dataclasses import dataclass, fields, replace
from enum import StrEnum
from pathlib import Path

from lossbisect.bisect.axes import Axis, Carried, Mix, carried_by, next_mix
from lossbisect.bisect.case import Case
from lossbisect.bisect.codebase import CodeBase, open_codebase
from lossbisect.bisect.judging import CurveVerdict, measured_noise
from lossbisect.bisect.names import resolve
from lossbisect.bisect.options import Regress
from lossbisect.bisect.pairs import pin_at
from lossbisect.bisect.scope import Searched
from lossbisect.bisect.training import Training
from lossbisect.bisect.trees import TreePair
from lossbisect.bisect.types import CommitVerdict
from lossbisect.bisect.vanished import within_reach
from lossbisect.compare.noise import tolerance_noise
from lossbisect.compare.types import NoiseFloor
from lossbisect.compare.wording import counted
from lossbisect.errors import EndpointError, GitError, ParseError
from lossbisect.parsers.runlog import RunLog
from lossbisect.store.runner import StoredRuns, StoreUse
from lossbisect.train import cache_directory, read_run
from lossbisect.train.executors import ExecutorOptions, open_executor
from lossbisect.train.recipes import load_recipe
from lossbisect.train.types import Outcome, RunRecord, RunSpec, Sources

__all__ = ["AxesAnswer", "AxesResult", "MixedRun", "Setup", "SetupNames", "compare_setups"]


@dataclass(frozen=True, kw_only=True, slots=True)
class SetupNames:
    """A set-up as a user names it; None is what the checkout, or the other set-up, has.

    Attributes:
        mcore: Commit of Megatron-LM; None: what the commit of Bridge pins where one is named, else the checked-out one.
        bridge: Commit of Bridge; None: the one that is checked out.
        recipe: Name or file.
        python: Interpreter.
    """

    mcore: str | None = None
    bridge: str | None = None
    recipe: str | None = None
    python: Path | None = None


@dataclass(frozen=True, kw_only=True, slots=True)
class Setup:
    """All that decides a run.

    Attributes:
        mcore: Full SHA of Megatron-LM's commit.
        bridge: Full SHA of Bridge's, or None for a Megatron-LM checkout.
        recipe: Name of a built-in recipe, or path of a file.
        python: Interpreter.
    """

    mcore: str
    bridge: str | None
    recipe: str
    python: Path

    def differs_in(self, other: "Setup") -> tuple[Axis, ...]:
        """The parts that differ, in the order in which they are tried."""
        return tuple(axis for axis, name in _FIELDS.items() if getattr(self, name) != getattr(other, name))

    def with_parts_of(self, other: "Setup", mix: Mix) -> "Setup":
        """This set-up with some parts taken from another one."""
        return replace(self, **{_FIELDS[axis]: getattr(other, _FIELDS[axis]) for axis in mix})


_FIELDS: Mapping[Axis, str] = {
    Axis.MCORE: "mcore",
    Axis.BRIDGE: "bridge",
    Axis.RECIPE: "recipe",
    Axis.ENVIRONMENT: "python",
}
assert set(_FIELDS.values()) == {each.name for each in fields(Setup)}


class AxesAnswer(StrEnum):
    """How it ended."""

    FOUND = "carried"
    """It is known which parts make the difference."""
    SAME = "no difference"
    """Both set-ups have the same curve."""
    UNDECIDED = "undecided"
    """It can't be told: the difference lies within noise, or a mix can't be run."""


@dataclass(frozen=True, kw_only=True, slots=True)
class MixedRun:
    """One run.

    Attributes:
        mix: The parts from the bad set-up; none: the good set-up itself, all that differ: the bad one.
        record: The run.
        verdict: Good or bad like one of the set-ups, other, or skip.
        reason: One sentence.
    """

    mix: Mix
    record: RunRecord
    verdict: CommitVerdict
    reason: str


@dataclass(frozen=True, kw_only=True, slots=True)
class AxesResult:
    """Which part makes the difference.

    Attributes:
        answer: How it ended.
        reason: One sentence.
        good: The good set-up.
        bad: The bad one.
        axes: The parts that differ.
        runs: All runs, in order.
        carried: What the mixes say; None where there is no difference.
        repo: Root of the checkout.
        training: What both set-ups share.
    """

    answer: AxesAnswer
    reason: str
    good: Setup
    bad: Setup
    axes: tuple[Axis, ...]
    runs: tuple[MixedRun, ...]
    carried: Carried | None
    repo: Path
    training: Training


def compare_setups(
    repo: Path,
    good: SetupNames,
    bad: SetupNames,
    *,
    training: Training | None = None,
    executor: ExecutorOptions | None = None,
    store: StoreUse = StoreUse.NORMAL,
    allow_dirty: bool = False,
    out: Path,
    say: Callable[[str], None] = lambda _: None,
    on_line: Callable[[str], None] = lambda _: None,
) -> AxesResult:
    """Find out which part of two set-ups makes the difference between their curves.

    Args:
        repo: A Megatron Bridge checkout, or a Megatron-LM one. It is only read.
        good: The set-up with the right loss.
        bad: The one with the wrong loss.
        training: What both share; its recipe and interpreter are taken where a set-up names none.
        executor: Where runs take place; None: this machine.
        store: Whether runs are taken from the run store, and kept in it.
        allow_dirty: Go on although tracked files are changed; runs use committed code only.
        out: Folder for the runs, new.
        say: Told what is being done.
        on_line: Told each line that a trainer prints.

    Raises:
        GitError: The checkout or a commit isn't what was said, or the set-ups don't differ.
        EndpointError: A set-up can't be judged.
    """
    training = training or Training()
    root = cache_directory()
    with open_codebase(repo, allow_dirty=allow_dirty) as code, ExitStack() as stack:
        for side in (good, bad):
            code = stack.enter_context(within_reach(code, [side.bridge], root, Searched.BRIDGE)).code
            code = stack.enter_context(within_reach(code, [side.mcore], root)).code
        ends = [_setup(code, names, training) for names in (good, bad)]
        axes = ends[0].differs_in(ends[1])
        if not axes:
            raise GitError(f"{repo}: the two set-ups are the same: {_shown(ends[0])}. Name what differs between them.")
        for end in ends:
            load_recipe(end.recipe)
        with closing(_Bench(code, training, executor or ExecutorOptions(), store, out, on_line)) as bench:
            return _Trial(bench, ends[0], ends[1], axes, training, say).result(code.root)


class _Bench:
    """Runs set-ups, one at a time."""

    def __init__(
        self,
        code: CodeBase,
        training: Training,
        executor: ExecutorOptions,
        store: StoreUse,
        out: Path,
        on_line: Callable[[str], None],
    ) -> None:
        self._training = training
        self._options = executor
        self._executor = open_executor(executor)
        self._runs = StoredRuns(cache_directory(), store)
        self._trees = TreePair(code, out / "trees", bridge_commit=code.bridge_commit)
        self._out = out
        self._on_line = on_line
        self._asked: dict[Setup, int] = {}

    def run(self, setup: Setup, name: str) -> RunRecord:
        """Run a set-up; again if it was run before."""
        commit = setup.mcore if setup.bridge is None else f"{setup.bridge}+{setup.mcore}"
        number = sum(self._asked.values()) + 1
        folder = self._out / f"{number:02}-{name}"
        folder.parent.mkdir(parents=True, exist_ok=True)
        repeat = self._asked.get(setup, 0)
        self._asked[setup] = repeat + 1

        def run() -> RunRecord:
            try:
                sources = self._trees.checkout(commit)
            except GitError as error:
                folder.mkdir(parents=True)
                return RunRecord(
                    spec=spec, out=folder, argv=(), outcome=Outcome.VOID, reason=f"it can't be checked out: {error}",
                    exit_code=None, duration_s=0.0, provenance=None,
                )  # fmt: skip
            return self._executor.run(self._spec(setup, sources), folder, on_line=self._on_line)

        spec = self._spec(setup, Sources(mcore_commit=setup.mcore, bridge_commit=setup.bridge, is_ours=True))
        return self._runs.get(spec, folder, run, repeat=repeat, on_line=self._on_line)

    def close(self) -> None:
        """Delete the trees; runs stay."""
        self._executor.close()
        self._trees.remove()

    def _spec(self, setup: Setup, sources: Sources) -> RunSpec:
        return replace(self._training, recipe=setup.recipe, python=setup.python).run_of(sources, self._options)


class _Trial:
    """Both set-ups and their mixes, run and judged."""

    def __init__(
        self,
        bench: _Bench,
        good: Setup,
        bad: Setup,
        axes: tuple[Axis, ...],
        training: Training,
        say: Callable[[str], None],
    ) -> None:
        self._bench = bench
        self._good = good
        self._bad = bad
        self._axes = axes
        self._training = training
        self._say = say
        self._ran: list[MixedRun] = []

    def result(self, repo: Path) -> AxesResult:
        """Run until it is known which part makes the difference."""
        names = ", ".join(axis.value for axis in self._axes)
        count = len(self._axes)
        most = {1: "", 2: ", and 1 or 2 of mixes"}.get(count, f", and 1 to {2 * count} of mixes")
        self._say(f"{counted(count, 'part')} differ{'s' if count == 1 else ''}: {names}. 3 runs of the set-ups{most}.")
        good, again = (self._end("good", self._good, frozenset(), CommitVerdict.GOOD) for _ in range(2))
        bad = self._end("bad", self._bad, frozenset(self._axes), CommitVerdict.BAD)
        case = Case(
            metric=self._training.metric, regress=Regress.LOSS, noise=self._noise(good, again), good=good, bad=bad,
            is_any_difference=self._training.tolerance is not None,
        )  # fmt: skip
        ends = case.judge(bad)
        carried = None
        if ends.verdict is CommitVerdict.BAD:
            carried = self._mixes(case)
            answer = AxesAnswer.FOUND if carried.axes and not carried.others else AxesAnswer.UNDECIDED
            reason = carried.reason[0].upper() + carried.reason[1:] + "."
        elif ends.verdict is CommitVerdict.GOOD:
            answer, reason = AxesAnswer.SAME, f"Both set-ups have the same curve: {ends.reason}."
        else:
            answer, reason = AxesAnswer.UNDECIDED, f"The set-ups can't be told apart: {ends.reason}."
        return AxesResult(
            answer=answer, reason=reason, good=self._good, bad=self._bad, axes=self._axes, runs=tuple(self._ran),
            carried=carried, repo=repo, training=self._training,
        )  # fmt: skip

    def _mixes(self, case: Case) -> Carried:
        if len(self._axes) == 1:
            return Carried(
                axes=self._axes, others=(), reason=f"only {self._axes[0].value} differs, and so it carries it"
            )
        known: dict[Mix, CommitVerdict] = {}
        while (mix := next_mix(self._axes, known)) is not None:
            setup = self._good.with_parts_of(self._bad, mix)
            taken = " and ".join(axis.value for axis in self._axes if axis in mix)
            record, log, trouble = self._run(f"the good set-up with {taken} of the bad one", setup, mix)
            judged = case.judge(log) if log is not None else CurveVerdict(verdict=CommitVerdict.SKIP, reason=trouble)
            known[mix] = judged.verdict
            self._keep(mix, record, judged.verdict, judged.reason)
        return carried_by(self._axes, known)

    def _end(self, which: str, setup: Setup, mix: Mix, verdict: CommitVerdict) -> RunLog:
        record, log, trouble = self._run(f"the {which} set-up", setup, mix)
        if log is None:
            raise EndpointError(
                f"The {which} set-up ({_shown(setup)}) can't be judged: {trouble}. Name a set-up that runs on this "
                f"machine. Its log: {record.console}"
            )
        self._keep(mix, record, verdict, "as you said")
        return log

    def _run(self, what: str, setup: Setup, mix: Mix) -> tuple[RunRecord, RunLog | None, str]:
        self._say(f"Run {len(self._ran) + 1}: {what}")
        short = "-".join(axis.name.lower() for axis in self._axes if axis in mix) or "good"
        record = self._bench.run(setup, short)
        if record.outcome is not Outcome.FINISHED:
            return record, None, f"{record.outcome.value}: {record.reason}"
        try:
            return record, read_run(record), ""
        except ParseError as error:
            return record, None, f"its curves can't be read: {error}"

    def _keep(self, mix: Mix, record: RunRecord, verdict: CommitVerdict, reason: str) -> None:
        self._ran.append(MixedRun(mix=mix, record=record, verdict=verdict, reason=reason))
        took = "from the run store" if record.stored_as is not None else f"after {record.duration_s:.0f} s"
        self._say(f"{verdict.value} {took}: {reason}")

    def _noise(self, good: RunLog, again: RunLog) -> NoiseFloor:
        if self._training.tolerance is not None:
            return tolerance_noise(self._training.tolerance)
        noise = measured_noise(good, again, metric=self._training.metric)
        if noise is None:
            raise EndpointError(
                f"The good set-up doesn't repeat itself: one of its two runs has no {self._training.metric}, or none "
                "that is finite, where the other has one."
            )
        return noise


def _setup(code: CodeBase, names: SetupNames, training: Training) -> Setup:
    """A set-up with all that wasn't named filled in.

    Raises:
        GitError: A commit isn't there.
    """
    bridge = code.bridge_commit if names.bridge is None else resolve(code, names.bridge, Searched.BRIDGE)
    if names.mcore is not None:
        mcore = resolve(code, names.mcore)
    elif names.bridge is not None and code.bridge is not None:
        mcore = pin_at(code.bridge, str(bridge))
    else:
        mcore = code.mcore_head
    spec = replace(training, recipe=names.recipe or training.recipe, python=names.python or training.python).run_of(
        Sources()
    )
    return Setup(mcore=mcore, bridge=bridge, recipe=spec.recipe, python=spec.python)


def _shown(setup: Setup) -> str:
    bridge = f"Bridge {setup.bridge[:10]}, " if setup.bridge else ""
    return f"{bridge}Megatron-LM {setup.mcore[:10]}, recipe {setup.recipe}, {setup.python}"
