"""A made-up cache directory: histories, triages, bisects of every kind, runs; with any text where others' text goes."""

import random
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from pathlib import Path

from lossbisect.bisect.state import Journal
from lossbisect.bisect.types import BisectStep, CommitInfo, CommitVerdict, Role
from lossbisect.cause import Cause
from lossbisect.store.store import RunStore
from lossbisect.store.types import RunKey
from lossbisect.train.types import Lane, Outcome, TrainerName
from lossbisect.triage.ledger import Ledger
from lossbisect.triage.saved import save_report
from lossbisect.triage.types import (
    Acknowledgement,
    Axis,
    Blame,
    Case,
    CaseReport,
    Entry,
    Kind,
    Point,
    Series,
    TriageReport,
)
from tests.bisect.support import make_plan, make_record, write_curve
from tests.store.made import made_key, made_run

START = datetime(2026, 11, 1, 12, tzinfo=UTC)
SERIES = Series(
    recipe="moe-sigmoid-cpu", recipe_digest="a" * 64, trainer=TrainerName.BRIDGE, lane=Lane.CPU, machine="cpu",
    metric="lm_loss",
)  # fmt: skip
ROW = " [2026-11-30 12:00:00] iteration {at:8d}/      10 | consumed samples: 16 | lm loss: 9.871235E+00 |\n"


def sha_of(number: int) -> str:
    """A made-up SHA that tells its number at the front."""
    return f"{number:07x}".ljust(40, "c")


def make_history(root: Path, *, count: int = 30, series: Series = SERIES, text: str = "", seed: int = 1) -> None:
    """Records with some scatter: a move that is acknowledged, another environment, and a move at the end."""
    chance, ledger, level = random.Random(seed), Ledger(root), 10.125
    moved, drifted, last = count // 3, count // 2, count - 2
    for number in range(count):
        kind, reason = Kind.OK, f"the same curve as at {sha_of(max(0, number - 1))[:10]}"
        culprits: tuple[str, ...] = ()
        if number in (moved, last):
            level += 0.01 if number == moved else 0.02
            kind, reason = Kind.REGRESSION, "differs from iteration 4 on, by up to 1.1e-3 relative (iteration 9)"
        if number >= last:
            kind, culprits = Kind.REGRESSION, (sha_of(last),)
        if number == drifted:
            kind, reason, level = Kind.ENVIRONMENT, "the environment gives other numbers", level - 0.004
        end = level + chance.gauss(0, 5e-4)
        entry = Entry(
            at=START + timedelta(hours=number), point=Point(mcore=sha_of(number), bridge="b" * 40), kind=kind,
            reason=f"{reason} {text}".strip(), noise_rel=1e-4, curve={1: 10.5, 2: 10.25, 3: end},
            culprits=culprits or ((sha_of(moved),) if number == moved else ()),
        )  # fmt: skip
        ledger.add(series, entry)
    ledger.acknowledge(
        Acknowledgement(
            commit=sha_of(moved), reason=f"a new initialisation {text}".strip(), by=f"Ada <ada@example.com>{text}",
            at=START,
        )
    )  # fmt: skip


def make_report(
    root: Path, *, text: str = "Simplify the cosine decay (#7023)", name: str = "20261130-120000-ab12"
) -> str:
    """A triage that found a regression; its id."""
    commit = CommitInfo(
        sha=sha_of(28), parents=(sha_of(27),), author=f"Ada Quist {text}", email="ada@example.com",
        date="2026-11-30T12:00:00+00:00", subject=text, pull_request="#7023",
    )  # fmt: skip
    point, before = Point(mcore=sha_of(28), bridge="b" * 40), Point(mcore=sha_of(27), bridge="b" * 40)
    case = CaseReport(
        case=Case(recipe="moe-sigmoid-cpu", owners=("@moe-team",)), trainer=TrainerName.BRIDGE, point=point,
        reference=before, kind=Kind.REGRESSION, reason="differs from iteration 2 on", is_news=True, runs=3,
        blame=Blame(axis=Axis.MCORE, commits=(commit,), is_confirmed=True, reason=f"the only one {text}"),
        notes=(text,), curve={1: 10.5, 2: 10.3, 3: float("nan")}, reference_curve={1: 10.5, 2: 10.25, 3: 10.125},
        noise_rel=float("inf"),
    )  # fmt: skip
    sound = replace(case, case=Case(recipe="vanilla-cpu"), kind=Kind.OK, blame=None, notes=(), is_news=False)
    report = TriageReport(
        commit=commit, point=point, repository="NVIDIA/Megatron-LM", cases=(case, sound),
        bridge=replace(commit, sha="b" * 40, subject=f"Bridge {text}"), at=START,
    )  # fmt: skip
    save_report(report, root / "triage" / name)
    return name


def make_run(
    root: Path, *, number: int = 0, text: str = "", recipe: str = "vanilla-cpu", outcome: Outcome = Outcome.FINISHED
) -> str:
    """A stored run; its id."""
    key: RunKey = made_key(commit=sha_of(number))
    store = RunStore(root, now=lambda: START + timedelta(minutes=number))
    console = "".join(ROW.format(at=at) for at in range(1, 11)) + f"{text}\n"
    record = made_run(root / f"made-{number}", key, console=console)
    record = replace(record, spec=replace(record.spec, recipe=recipe), reason=f"{record.reason} {text}".strip())
    if outcome is Outcome.FAILED:
        record = replace(record, outcome=outcome, exit_code=1, cause=Cause.OWN)
    kept = store.add(key, record)
    assert isinstance(kept, str), kept
    return kept


def make_journal(
    root: Path, *, steps: int = 5, text: str = "", repo: Path = Path("/nowhere"), name: str | None = None
) -> str:
    """A bisect, or a later stage of one, whose checkout is gone, so that only its journal tells of it; its id."""
    with Journal.create(root, make_plan(repo, sha_of(0), sha_of(steps + 1)), name) as journal:
        for number in range(1, steps + 1):
            record = make_record(sha_of(number), journal.run_directory(Role.SEARCH, sha_of(number)))
            record.out.mkdir(parents=True)
            write_curve(record.scalars, [10.5, 10.25, 9.875])
            record.console.write_text(ROW.format(at=10) + text + "\n", encoding="utf-8")
            verdict = CommitVerdict.BAD if number > steps // 2 else CommitVerdict.GOOD
            step = BisectStep(
                role=Role.SEARCH, index=number - 1, commit=sha_of(number), record=record, verdict=verdict,
                reason=f"lm loss is equal in all 3 iterations {text}".strip(),
            )  # fmt: skip
            journal.append(step)
        return journal.id


@contextmanager
def running(root: Path, bisect_id: str, *, at: int = 3) -> Iterator[Path]:
    """Work on a bisect, as far as anybody can see from outside: one slot trains. Yields its console."""
    with Journal.open(root, bisect_id) as journal:
        folder = journal.run_directory(Role.SEARCH, sha_of(99))
        folder.mkdir(parents=True)
        console = folder / "console.log"
        console.write_text("".join(ROW.format(at=each) for each in range(1, at + 1)), encoding="utf-8")
        yield console
