"""Bisects that are there: looked at, taken back, written out and read in again, given up."""

import json
import shutil
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

from lossbisect.bisect.state import Journal, find_bisect, is_held, load_journal, plan_to_json, step_to_json
from lossbisect.bisect.terms import terms_of
from lossbisect.bisect.types import BisectPlan, BisectStep
from lossbisect.errors import StateError

__all__ = ["BisectState", "abort", "log_text", "read_bisects", "replay", "undo"]


@dataclass(frozen=True, kw_only=True, slots=True)
class BisectState:
    """One bisect as it stands.

    Attributes:
        id: Its name.
        directory: Its folder.
        plan: What was asked.
        steps: Finished runs.
        is_running: A process works on it now.
        is_aborted: It was given up.
    """

    id: str
    directory: Path
    plan: BisectPlan
    steps: tuple[BisectStep, ...]
    is_running: bool
    is_aborted: bool


def read_bisects(root: Path, bisect_id: str | None = None) -> Iterator[BisectState]:
    """The bisects of a work directory, oldest first, or the one that is named; damaged journals are left out.

    Raises:
        StateError: There is none of that name, or its journal can't be read.
    """
    if bisect_id is not None:
        yield _state(root, find_bisect(root, bisect_id, None))
        return
    for path in sorted((root / "bisects").glob("*/journal.ndjson")):
        try:
            yield _state(root, path.parent.name)
        except StateError:
            continue


def undo(root: Path, bisect_id: str, count: int = 1) -> tuple[BisectStep, ...]:
    """Take the last runs back, so that going on runs them again; the runs' files stay.

    Raises:
        StateError: The bisect isn't there, is worked on, or has fewer runs.
    """
    with Journal.open(root, bisect_id) as journal:
        if count > len(journal.steps):
            raise StateError(f"{journal.directory}: it has {len(journal.steps)} runs, so {count} can't be taken back.")
        steps = tuple(journal.steps[-count:])
        journal.forget(steps, "taken back")
        return steps


def abort(root: Path, bisect_id: str) -> Path:
    """Give a bisect up: nothing goes on with it unless its id is given. Journal and runs stay, its trees go.

    Raises:
        StateError: It isn't there, or is worked on.
    """
    with Journal.open(root, bisect_id) as journal:
        journal.abort()
        shutil.rmtree(journal.directory / "trees", ignore_errors=True)
        return journal.directory


def log_text(state: BisectState) -> str:
    """The bisect as text: for people after ``#``, for `replay` the other lines. A deleted line is a run taken back."""
    terms = terms_of(state.plan.search)
    lines = [f"# lossbisect bisect {state.id}: {state.plan.good[:10]}..{state.plan.bad[:10]} of {state.plan.repo}"]
    lines.append(json.dumps({"kind": "plan", "plan": plan_to_json(state.plan)}))
    for number, step in enumerate(state.steps, start=1):
        what = f"{terms.role(step.role)}: {step.commit[:10]} {terms.verdict(step.verdict)}: {step.reason}"
        lines.append(f"# run {number}, {what}")
        lines.append(json.dumps({"kind": "step", **step_to_json(step)}))
    return "\n".join(line.replace("\n", " ") for line in lines) + "\n"


def replay(root: Path, text: str, source: Path) -> str:
    """Start a new bisect from the text of `log_text`, its runs included; return its id. Their files must be there.

    Raises:
        StateError: The text is no such log, or a run's files are gone.
    """
    lines = [line for line in text.splitlines() if line and not line.startswith("#")]
    if not lines or '"kind": "plan"' not in lines[0]:
        raise StateError(
            f"{source}: not what 'lossbisect bisect log' prints. Write it anew: lossbisect bisect log ID > FILE"
        )
    plan, steps = load_journal(source, lines)
    for step in steps:
        if not step.record.out.is_dir():
            raise StateError(f"{step.record.out}: a run of {source} is gone. Delete its line to run it again.")
    with Journal.create(root, plan) as journal:
        for step in steps:
            journal.append(step)
        return journal.id


def _state(root: Path, bisect_id: str) -> BisectState:
    directory = root / "bisects" / bisect_id
    path = directory / "journal.ndjson"
    content = path.read_text(encoding="utf-8")
    plan, steps = load_journal(path, content.split("\n")[:-1])
    return BisectState(
        id=bisect_id,
        directory=directory,
        plan=plan,
        steps=tuple(steps),
        is_running=is_held(directory),
        is_aborted='"kind": "abort"' in content,
    )
