"""A triage from options to report: the library's entry."""

import sys
from collections.abc import Callable, Sequence
from datetime import UTC, datetime
from pathlib import Path
from typing import TYPE_CHECKING

from lossbisect.bisect import bisect_range
from lossbisect.bisect.codebase import CodeBase, open_codebase
from lossbisect.bisect.commits import commit_info, commit_range, github_name
from lossbisect.bisect.events import Event, EventKind
from lossbisect.bisect.names import resolve
from lossbisect.bisect.repository import ask
from lossbisect.bisect.scope import Scope, Searched
from lossbisect.bisect.training import Training
from lossbisect.errors import GitError
from lossbisect.store.runner import StoreUse
from lossbisect.train import cache_directory
from lossbisect.train.defaults import DEFAULT_TIMEOUT_S
from lossbisect.triage.bench import CodeBench, series_of, trainer_of
from lossbisect.triage.blame import is_pinned
from lossbisect.triage.judge import Judge
from lossbisect.triage.ledger import Ledger
from lossbisect.triage.saved import save_report
from lossbisect.triage.suite import FILE_NAME, default_cases, load_cases
from lossbisect.triage.types import Acknowledgement, Case, Kind, Point, TriageReport

if TYPE_CHECKING:
    from lossbisect.bisect.culprit import BisectResult

__all__ = ["acknowledge", "cases_of", "triage"]

_PIN = "bridge:"


def _silent(_: str) -> None:
    """Progress that nobody asked for."""


def triage(
    repo: Path,
    *,
    commit: str = "HEAD",
    reference: str | None = None,
    since_last: bool = False,
    suite: Path | None = None,
    python: Path | None = None,
    timeout_s: float = DEFAULT_TIMEOUT_S,
    store: StoreUse = StoreUse.NORMAL,
    say: Callable[[str], None] = _silent,
    on_line: Callable[[str], None] = _silent,
) -> TriageReport | None:
    """Say what a commit did to the loss, and whose fault it is.

    Args:
        repo: A Megatron-LM checkout, or a Megatron Bridge one. It is only read.
        commit: Commit of Megatron-LM, ``HEAD`` for the one that is checked out (in Bridge: in its submodule), or
            ``bridge:REV`` for Bridge at REV with the commit that it pins.
        reference: Commit to compare with, named in the same ways; None: the nearest commit of the history, or else the
            first parent.
        since_last: Do nothing if the history has the commit.
        suite: File with the cases; None: ``lossbisect.toml`` at the root of the checkout, or else one built-in recipe.
        python: Interpreter with the trainer's requirements; None: this one.
        timeout_s: Wall time after which a run is killed, seconds.
        store: Whether runs are taken from the run store, and kept there.
        say: Told what is being done.
        on_line: Told each line that a trainer prints.

    Returns:
        The report, which is kept beside its runs too; None if nothing is new since the last triage.

    Raises:
        LossbisectError: The checkout, a commit or the suite isn't what was said. No run that merely fails raises.
    """
    with open_codebase(repo, allow_dirty=True) as code:
        tip = _point(code, commit)
        asked = _point(code, reference) if reference else None
        if asked is not None and asked.mcore != tip.mcore:
            commit_range(code, asked.mcore, tip.mcore)
        cases = cases_of(code, suite)
        root = cache_directory()
        ledger = Ledger(root)
        if since_last and all(_is_known(code, ledger, case, tip) for case in cases):
            return None
        interpreter = (python or Path(sys.executable)).absolute()

        def bisect(case: Case, good: Point, bad: Point, *, searched: Searched, is_fresh: bool) -> "BisectResult":
            def on_event(event: Event) -> None:
                (on_line if event.kind is EventKind.LINE else say)(event.text)

            use = StoreUse.FRESH if is_fresh and store is StoreUse.NORMAL else store
            training = Training(
                recipe=case.recipe, trainer=trainer_of(case, code), lane=case.lane, python=interpreter,
                timeout_s=timeout_s, metric=case.metric, tolerance=case.tolerance or None,
            )  # fmt: skip
            is_bridge = searched is Searched.BRIDGE
            ends = (good.bridge, bad.bridge) if is_bridge else (good.mcore, bad.mcore)
            held = None if is_bridge or bad.bridge == code.bridge_commit else bad.bridge
            return bisect_range(
                code.root, *ends, training=training, scope=Scope(searched=searched), bridge=held, store=use,
                allow_dirty=True, on_event=on_event,
            )  # fmt: skip

        with CodeBench(code, root, python=interpreter, timeout_s=timeout_s, store=store, on_line=on_line) as bench:
            judge = Judge(code=code, ledger=ledger, bench=bench, bisect=bisect, say=say)
            cases_said = tuple(judge.judge(case, tip, asked) for case in cases)
            report = TriageReport(
                commit=commit_info(code.mcore, tip.mcore),
                point=tip,
                repository=github_name(code.mcore),
                cases=cases_said,
                bridge=commit_info(code.bridge, tip.bridge) if code.bridge and tip.bridge else None,
                bridge_repository=github_name(code.bridge) if code.bridge else None,
                is_bridges=is_pinned(code, tip),
                at=datetime.now(UTC),
            )
            save_report(report, bench.folder)
        return report


def acknowledge(repo: Path, commit: str, reason: str) -> Acknowledgement:
    """Write down that a commit was meant to move the loss; later commits are judged against its curve.

    Args:
        repo: The checkout.
        commit: Commit of Megatron-LM, or ``bridge:REV`` for Bridge's own commit REV.
        reason: Why.

    Raises:
        LossbisectError: There is no such commit, or the store can't be written.
    """
    with open_codebase(repo, allow_dirty=True) as code:
        point = _point(code, commit)
        sha = point.bridge if commit.startswith(_PIN) and point.bridge else point.mcore
        name, email = (ask(code.mcore, "config", "--get", key, allowed=(0, 1)) for key in ("user.name", "user.email"))
        given = Acknowledgement(
            commit=sha, reason=reason, by=f"{name} <{email}>" if email else name or "unknown", at=datetime.now(UTC)
        )
        Ledger(cache_directory()).acknowledge(given)
        return given


def cases_of(code: CodeBase, suite: Path | None) -> Sequence[Case]:
    """The cases to run: of the file that was named, of the checkout's own, or the built-in one."""
    own = code.root / FILE_NAME
    if suite is not None or own.is_file():
        return load_cases(suite or own)
    return default_cases()


def _is_known(code: CodeBase, ledger: Ledger, case: Case, tip: Point) -> bool:
    wanted = series_of(case, trainer_of(case, code), None)
    return any(
        entry.point == tip and entry.kind is not Kind.UNDECIDED
        for series in ledger.all_series()
        if (series.recipe_digest, series.trainer, series.lane, series.metric)
        == (wanted.recipe_digest, wanted.trainer, wanted.lane, wanted.metric)
        for entry in ledger.entries(series)
    )


def _point(code: CodeBase, name: str) -> Point:
    if name == "HEAD":
        return Point(mcore=code.mcore_head, bridge=code.bridge_commit)
    bridge = code.bridge_commit
    if name.startswith(_PIN) and code.bridge is not None:
        revision = name.removeprefix(_PIN)
        if revision.startswith("-"):
            raise GitError(f"'{name}' is no name of a commit.")
        mcore = resolve(code, name)
        return Point(mcore=mcore, bridge=ask(code.bridge, "rev-parse", "--verify", f"{revision}^{{commit}}"))
    return Point(mcore=resolve(code, name), bridge=bridge)
