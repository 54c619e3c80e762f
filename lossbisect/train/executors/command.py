"""A command of the user's: whatever it does, its output is the run's log.

Nothing of ours is inside such a run, so it can't say which code it imported. What is known is that the tree was at the
commit, with no tracked file changed, before and after it; a command that trains something else isn't noticed.
"""

import os
import re
import shlex
import subprocess
import time
from dataclasses import dataclass, replace
from pathlib import Path

from lossbisect.cause import Cause
from lossbisect.errors import ParseError, TrainerError
from lossbisect.train.executors.base import OnLine, ShouldStop, Slots
from lossbisect.train.executors.options import ExecutorOptions
from lossbisect.train.executors.placeholders import fill, unknown_names
from lossbisect.train.last_will import LastWill
from lossbisect.train.process import CutShort, run_process
from lossbisect.train.recipes import load_recipe
from lossbisect.train.run import CUT_SHORT, Prepared, conclude, ending_of, fresh_directory
from lossbisect.train.trainers import Launch, Start
from lossbisect.train.types import Outcome, Provenance, RunRecord, RunSpec

__all__ = ["PLACEHOLDERS", "CommandExecutor", "command_words"]

PLACEHOLDERS = {
    "commit": "full SHA of Megatron-LM",
    "worktree": "Megatron-LM's files at that commit",
    "bridge": "Bridge's files, in a Bridge checkout",
    "out": "the run's directory, empty",
    "iterations": "the recipe's number of iterations",
    "recipe": "the recipe's name or file",
}
"""What a command may name in braces."""

_VERSION = re.compile(r"^\s*(MAJOR|MINOR|PATCH)\s*=\s*(\d+)", re.MULTILINE)
_NOT_SAID = "not said"


def command_words(command: str) -> tuple[str, ...]:
    """The words of a command with placeholders, split as a shell would; no shell runs it.

    Raises:
        TrainerError: It is empty, a quotation has no end, or a placeholder isn't known.
    """
    try:
        words = shlex.split(command)
    except ValueError as error:
        raise TrainerError(f"--command {command!r}: can't be split into words: {error}.") from error
    if not words:
        raise TrainerError("--command is empty. Example: --command 'bash train.sh {worktree} {out}'")
    if unknown := unknown_names(command, PLACEHOLDERS):
        raise TrainerError(
            f"--command: unknown placeholder {{{unknown[0]}}}. Known: {', '.join(PLACEHOLDERS)}. "
            "A variable of the shell is written ${name}."
        )
    return tuple(words)


@dataclass(frozen=True, slots=True)
class _Trees:
    """HEAD of each tree, and whether its tracked files are unchanged; None for what can't be told."""

    mcore: tuple[str | None, bool | None]
    bridge: tuple[str | None, bool | None]

    @property
    def is_changed(self) -> bool:
        return self.mcore[1] is False or self.bridge[1] is False


class _CommandLaunch(Launch):
    """A program that knows nothing of ours: its words are all there is."""

    @property
    def argv(self) -> tuple[str, ...]:
        return self.start.launcher


class CommandExecutor:
    """Runs the user's command on this machine."""

    def __init__(self, options: ExecutorOptions) -> None:
        """Look at the command; nothing is started.

        Raises:
            TrainerError: There is no command, or it has an unknown placeholder.
        """
        if options.command is None:
            raise TrainerError(
                "--executor command needs the command: --command 'bash train.sh {worktree} {out}'"
            )  # fmt: skip
        self._words = command_words(options.command)
        self._folder = options.folder or Path.cwd()
        self._slots = Slots(options.slots)
        self._will = LastWill()

    @property
    def slots(self) -> int:
        """How many commands run at once."""
        return self._slots.number

    def run(self, spec: RunSpec, out: Path, *, on_line: OnLine = None, should_stop: ShouldStop = None) -> RunRecord:
        """As `Executor.run`. Finished means: exit code 0, a readable log, and a tree that is still the commit's."""
        with self._slots.take():
            ready = self._prepare(spec, out)
            before = _trees(spec)
            started_s = time.monotonic()
            try:
                code = run_process(
                    ready.how, spec.timeout_s, ready.out / "console.log", on_line, None, stop=self._slots.stop,
                    will=self._will, should_stop=should_stop,
                )  # fmt: skip
            except CutShort:
                return conclude(ready, CUT_SHORT, time.monotonic() - started_s)
            duration_s = time.monotonic() - started_s
            record = conclude(ready, ending_of(code, spec.timeout_s), duration_s)
            return record if code != 0 else self._judge(record, before)

    def expect(self, spec: RunSpec) -> None:
        """As `Executor.expect`: a command has nothing to begin with."""

    def cancel(self) -> None:
        """As `Executor.cancel`."""
        self._slots.stop.set()

    def close(self) -> None:
        """As `Executor.close`."""
        self._slots.drain()
        self._will.close()

    def _prepare(self, spec: RunSpec, out: Path) -> Prepared:
        recipe = load_recipe(spec.recipe)
        out = fresh_directory(out)
        sources = spec.sources
        values = {
            "commit": sources.mcore_commit or "",
            "worktree": str(sources.mcore or ""),
            "bridge": str(sources.bridge or ""),
            "out": str(out),
            "iterations": str(recipe.iterations),
            "recipe": spec.recipe,
        }
        if missing := [name for name in ("worktree", "bridge") if not values[name] and self._names(name)]:
            raise TrainerError(f"--command names {{{missing[0]}}}, and there is none here. Add --repo PATH.")
        words = tuple(fill(word, values) for word in self._words)
        start = Start(launcher=words, set_up={}, preload=None)
        how = _CommandLaunch(start=start, words=(), env={**_python_path(spec), **spec.env}, cwd=self._folder)
        return Prepared(spec=spec, recipe=recipe, out=out, how=how)

    def _names(self, name: str) -> bool:
        return any(f"{{{name}}}" in word for word in self._words)

    def _judge(self, record: RunRecord, before: _Trees) -> RunRecord:
        """A command that ended well: is there a curve, and is the tree still what it was?"""
        from lossbisect.train.curves import read_run

        after = _trees(record.spec)
        if before != after or after.is_changed:
            what = f"{record.spec.sources.mcore}: changed while the command ran"
            return replace(record, outcome=Outcome.VOID, reason=f"{what}; the run says nothing about the commit")
        wanted = record.spec.sources.mcore_commit
        if wanted is not None and after.mcore[0] != wanted:
            return replace(record, outcome=Outcome.VOID, reason=f"the tree is at {after.mcore[0]}, not at {wanted}")
        try:
            log = read_run(record)
        except ParseError as error:
            reason = f"its output is no log: {error}"
            return replace(record, outcome=Outcome.FAILED, reason=reason, cause=Cause.UNKNOWN)
        last = int(log.iterations["iteration"].max() or 0) if log.iterations.height else 0  # type: ignore[arg-type]
        if not last or (self._names("iterations") and last < load_recipe(record.spec.recipe).iterations):
            reason = f"its log ends at iteration {last}"
            return replace(record, outcome=Outcome.FAILED, reason=reason, cause=Cause.UNKNOWN)
        return replace(
            record, outcome=Outcome.FINISHED, provenance=_provenance(record.spec, after), cause=None,
            reason=f"{last} iterations; that it was this commit is known from its tree alone",
        )  # fmt: skip


def _python_path(spec: RunSpec) -> dict[str, str]:
    """So that a command that only calls Python imports the tree's code."""
    sources = spec.sources
    paths = [*([sources.mcore] if sources.mcore else []), *([sources.bridge / "src"] if sources.bridge else [])]
    return {"PYTHONPATH": ":".join(map(str, paths))} if paths else {}


def _trees(spec: RunSpec) -> _Trees:
    return _Trees(_state(spec.sources.mcore), _state(spec.sources.bridge))


def _state(tree: Path | None) -> tuple[str | None, bool | None]:
    if tree is None or (head := _git(tree, "rev-parse", "HEAD")) is None:
        return None, None
    return head, _git(tree, "status", "--porcelain", "--untracked-files=no") == ""


def _git(tree: Path, *arguments: str) -> str | None:
    environment = {name: value for name, value in os.environ.items() if not name.startswith("GIT_")}
    done = subprocess.run(
        ["git", "-C", str(tree), *arguments], capture_output=True, text=True, check=False,
        env={**environment, "GIT_OPTIONAL_LOCKS": "0"},
    )  # fmt: skip
    return done.stdout.strip() if done.returncode == 0 else None


def _provenance(spec: RunSpec, trees: _Trees) -> Provenance | None:
    """What is known of the code from outside; None for a command without a tree."""
    if spec.sources.mcore is None:
        return None
    core = spec.sources.mcore / "megatron/core"
    try:
        text = (core / "package_info.py").read_text(encoding="utf-8")
        parts = dict(_VERSION.findall(text))
        version = ".".join(parts[name] for name in ("MAJOR", "MINOR", "PATCH"))
    except (OSError, KeyError):
        version = _NOT_SAID
    return Provenance(
        megatron_core_file=str(core / "__init__.py"), megatron_core_version=version, mcore_commit=trees.mcore[0],
        is_clean=trees.mcore[1], megatron_bridge_file=None, python=_NOT_SAID, torch=_NOT_SAID, lane=spec.lane,
    )  # fmt: skip
