"""Where a triage's trainings run: any commit of a checkout, with any commit of Bridge, through the run store."""

import secrets
from collections.abc import Callable
from contextlib import ExitStack, closing
from dataclasses import fields
from datetime import UTC, datetime
from pathlib import Path
from types import TracebackType
from typing import TYPE_CHECKING, Protocol, Self

from lossbisect.bisect.codebase import CodeBase
from lossbisect.bisect.judging import curve
from lossbisect.bisect.runner import CommitRunner
from lossbisect.bisect.types import BisectPlan
from lossbisect.store.runner import StoredRunner, StoredRuns, StoreUse
from lossbisect.store.types import digest_of
from lossbisect.train.defaults import trainer_for
from lossbisect.train.recipes import load_recipe
from lossbisect.train.types import Lane, RunRecord, TrainerName
from lossbisect.triage.types import Case, Curve, Point, Series

if TYPE_CHECKING:
    from lossbisect.bisect.events import Runner

__all__ = ["Bench", "CodeBench", "environment_digest", "series_of", "trainer_of"]


class Bench(Protocol):
    """What trains a commit."""

    def run(self, case: Case, point: Point, *, is_fresh: bool) -> RunRecord:
        """Train; a failed training is a record, not an exception.

        Args:
            case: What.
            point: At which commit.
            is_fresh: It must run now: no run kept from earlier will do.
        """
        ...

    def curve(self, case: Case, record: RunRecord) -> Curve:
        """The metric of a finished run."""
        ...


class CodeBench:
    """Trains in trees of lossbisect's own, made from the user's checkout; a context manager that removes them.

    Attributes:
        folder: Holds the runs of this triage; not there before the first one.
    """

    def __init__(
        self,
        code: CodeBase,
        root: Path,
        *,
        python: Path,
        timeout_s: float,
        store: StoreUse,
        on_line: Callable[[str], None],
    ) -> None:
        """Use a checkout.

        Args:
            code: The user's checkout. It is only read.
            root: The cache directory.
            python: Interpreter with the trainer's requirements.
            timeout_s: Wall time after which a run is killed, seconds.
            store: Whether runs are taken from the run store, and kept there.
            on_line: Told each line that a trainer prints.
        """
        self._code = code
        self.folder = root / "triage" / f"{datetime.now(UTC):%Y%m%d-%H%M%S}-{secrets.token_hex(2)}"
        self._python = python
        self._timeout_s = timeout_s
        self._stored = StoredRuns(root, store)
        self._on_line = on_line
        self._runners: dict[tuple[Case, str | None], Runner] = {}
        self._closing = ExitStack()
        self._count = 0

    def run(self, case: Case, point: Point, *, is_fresh: bool) -> RunRecord:
        """As `Bench.run`."""
        self._count += 1
        out = self.folder / f"{self._count:02}-{point.mcore[:10]}"
        out.parent.mkdir(parents=True, exist_ok=True)
        return self._runner(case, point).run(point.mcore, out, self._on_line, repeat=None if is_fresh else 0)

    def curve(self, case: Case, record: RunRecord) -> Curve:
        """As `Bench.curve`."""
        return curve(next(iter(self._runners.values())).read(record), case.metric)

    def __enter__(self) -> Self:
        """Return self."""
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        """Remove the trees; the runs' logs stay."""
        self._closing.close()

    def _runner(self, case: Case, point: Point) -> "Runner":
        key = (case, point.bridge)
        if key not in self._runners:
            plan = BisectPlan(
                repo=self._code.root,
                good=point.mcore,
                bad=point.mcore,
                bridge_commit=point.bridge,
                recipe=case.recipe,
                recipe_digest=None,
                trainer=trainer_of(case, self._code),
                lane=case.lane,
                python=self._python.absolute(),
                timeout_s=self._timeout_s,
                metric=case.metric,
                tolerance=None,
            )
            trees = self.folder / f"trees-{len(self._runners) + 1}"
            own = self._closing.enter_context(closing(CommitRunner(self._code, plan, trees)))
            self._runners[key] = StoredRunner(own, self._stored, own.spec_of)
        return self._runners[key]


def trainer_of(case: Case, code: CodeBase) -> TrainerName:
    """The case's trainer, or the one that goes with the checkout and the recipe."""
    return case.trainer or trainer_for(case.recipe, has_bridge=code.bridge is not None)


def series_of(case: Case, trainer: TrainerName, record: RunRecord | None) -> Series:
    """What a run's curve may be compared with over commits; on the lane cuda a run says which GPU it had."""
    ran = record.provenance if record is not None else None
    gpu = (ran.gpu if ran is not None else None) or "unknown GPU"
    recipe = load_recipe(case.recipe)
    content = {item.name: str(getattr(recipe, item.name)) for item in fields(recipe)}
    told = {name: value for name, value in content.items() if name not in ("name", "description")}
    return Series(
        recipe=Path(case.recipe).stem,
        recipe_digest=digest_of(told),
        trainer=trainer,
        lane=case.lane,
        machine=gpu if case.lane is Lane.CUDA else "cpu",
        metric=case.metric,
    )


def environment_digest(record: RunRecord) -> str:
    """Digest of what a run said of its interpreter and machine; empty if it said nothing."""
    ran = record.provenance
    if ran is None:
        return ""
    machine = (ran.processor, ran.gpu, ran.driver, ran.image)
    told = (ran.python, ran.torch, dict(ran.packages), machine, dict(ran.variables))
    return digest_of(told)[:16]
