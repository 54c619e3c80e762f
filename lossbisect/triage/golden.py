"""Megatron-LM's golden files as a start of history: each revision of a file, at the commit that wrote it."""

import json
from collections.abc import Iterator
from datetime import datetime
from pathlib import Path, PurePosixPath
from typing import TYPE_CHECKING

from lossbisect.bisect.codebase import open_codebase
from lossbisect.bisect.judging import curve
from lossbisect.bisect.repository import ask
from lossbisect.errors import LossbisectError, ParseError
from lossbisect.parsers.golden import is_golden, read_golden
from lossbisect.store.types import digest_of
from lossbisect.train import cache_directory
from lossbisect.train.types import Lane, TrainerName
from lossbisect.triage.ledger import Ledger
from lossbisect.triage.types import Entry, Kind, Point, Series

if TYPE_CHECKING:
    from git import Repo

__all__ = ["WARNING", "import_golden"]

_METRIC = "lm_loss"
_WEAK = ("2025-10-07", "2026-04-14")
WARNING = (
    f"Golden values from {_WEAK[0]} to {_WEAK[1]} certify little: Megatron-LM's thresholds let runs pass that differed "
    "(repaired by its pull request 4238)."
)


def import_golden(repo: Path, file: Path) -> tuple[Series, int, bool]:
    """Write every revision of a golden file, on the first-parent line of HEAD, into the history.

    A revision is a curve that somebody accepted, mostly days or weeks after the commit that moved it: the history says
    when the values changed in the file, not which commit changed the loss.

    Args:
        repo: A Megatron-LM checkout.
        file: The golden file in it.

    Returns:
        The series, how many revisions were new to it, and whether some are of the weeks that certify little.

    Raises:
        LossbisectError: The file isn't in the checkout, or isn't a golden file.
    """
    with open_codebase(repo, allow_dirty=True) as code:
        try:
            name = file.resolve().relative_to(code.root.resolve()).as_posix()
        except ValueError as error:
            raise LossbisectError(f"{file}: not in the checkout {code.root}. Name it with --repo.") from error
        series = _series(PurePosixPath(name))
        ledger = Ledger(cache_directory())
        known = {entry.point for entry in ledger.entries(series)}
        words = ask(code.mcore, "log", "--first-parent", "--reverse", "--format=%H %cI", "HEAD", "--", name).split("\n")
        revisions = [word.split(" ") for word in words if word]
        if not revisions:
            raise LossbisectError(f"{file}: no commit of {code.root} holds it.")
        entries = list(_entries(code.mcore, name, revisions))
        for entry in entries:
            if entry.point not in known:
                ledger.add(series, entry)
    is_weak = any(_WEAK[0] <= at[:10] <= _WEAK[1] for _, at in revisions)
    return series, sum(entry.point not in known for entry in entries), is_weak


def _series(name: PurePosixPath) -> Series:
    return Series(
        recipe=name.parent.name or name.stem,
        recipe_digest=digest_of(["golden", str(name)]),
        trainer=TrainerName.MLM,
        lane=Lane.CUDA,
        machine=name.stem.removeprefix("golden_values_"),
        metric=_METRIC,
    )


def _entries(repo: "Repo", name: str, revisions: list[list[str]]) -> Iterator[Entry]:
    for sha, at in revisions:
        text = ask(repo, "show", f"{sha}:{name}", allowed=(0, 128))
        if not text:
            continue  # that commit deleted it
        try:
            data = json.loads(text)
        except ValueError as error:
            raise ParseError(f"{name} at {sha[:10]}: not JSON: {error}") from error
        if not is_golden(data):
            raise ParseError(f"{name} at {sha[:10]}: not a golden file: it has no metric with 'values'.")
        yield Entry(
            at=datetime.fromisoformat(at),
            point=Point(mcore=sha),
            kind=Kind.ACKNOWLEDGED,
            reason="golden values as the repository has them",
            noise_rel=0.0,
            curve=curve(read_golden(data, Path(name)), _METRIC),
        )
