"""Run a recipe once: start the trainer, keep its console, and say how it ended."""

import hashlib
import os
import secrets
import socket
import threading
import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from datetime import UTC, datetime
from pathlib import Path

from lossbisect.errors import TrainerError
from lossbisect.redact import redact_folder, redact_words
from lossbisect.train.failure import Cause, failure_of
from lossbisect.train.last_will import LastWill
from lossbisect.train.process import CutShort, run_process
from lossbisect.train.provenance import mismatch, read_provenance
from lossbisect.train.recipes import Recipe, load_recipe
from lossbisect.train.trainers import Launch, launch, start_of
from lossbisect.train.types import Outcome, RunRecord, RunSpec
from lossbisect.train.warm import WarmParents

__all__ = [
    "CUT_SHORT",
    "Ending",
    "Prepared",
    "cache_directory",
    "conclude",
    "ending_of",
    "expect_run",
    "fresh_directory",
    "new_run_directory",
    "prepare",
    "run_recipe",
]


def cache_directory() -> Path:
    """Where lossbisect keeps what can be made again; ``LOSSBISECT_CACHE_DIR`` overrides the platform's place."""
    chosen = os.environ.get("LOSSBISECT_CACHE_DIR")
    if chosen:
        return Path(chosen).expanduser().resolve()
    import platformdirs

    return platformdirs.user_cache_path("lossbisect")


def _interpreter_cache(python: Path) -> Path:
    return cache_directory() / "lane" / hashlib.sha256(os.fsencode(python.absolute())).hexdigest()[:12]


def new_run_directory() -> Path:
    """A directory for a run that nobody named: new, in the cache, told apart by time."""
    stamp = f"{datetime.now(UTC):%Y%m%d-%H%M%S}-{secrets.token_hex(2)}"
    return cache_directory() / "runs" / stamp


@dataclass(frozen=True, kw_only=True, slots=True)
class Prepared:
    """A run that can be started.

    Attributes:
        spec: What to run.
        recipe: The spec's recipe.
        out: The run's own directory, there and empty.
        how: How to start the trainer.
    """

    spec: RunSpec
    recipe: Recipe
    out: Path
    how: Launch


@dataclass(frozen=True, kw_only=True, slots=True)
class Ending:
    """How a run's process or job ended.

    Attributes:
        exit_code: Its exit code, negative for a signal; None if it has none.
        reason: Why it ended without an exit code of its own, in one sentence; None: the exit code says it.
        outcome: What that means.
        cause: What is to blame for it; None: the console says it.
    """

    exit_code: int | None
    reason: str | None = None
    outcome: Outcome = Outcome.FAILED
    cause: Cause | None = None


CUT_SHORT = Ending(exit_code=None, reason="ended on purpose before its time", outcome=Outcome.CUT)


def run_recipe(
    spec: RunSpec,
    out: Path,
    *,
    on_line: Callable[[str], None] | None = None,
    warm: WarmParents | None = None,
    stop: threading.Event | None = None,
    will: LastWill | None = None,
    variables: Mapping[str, str] | None = None,
    should_stop: Callable[[], bool] | None = None,
) -> RunRecord:
    """Run the spec's recipe once on this machine, and wait for it.

    Args:
        spec: What to run.
        out: The run's own directory; made here, and must not exist or be empty: nothing is ever resumed.
        on_line: Called with each console line as it's printed, in another thread.
        warm: Where warm parents are kept between runs; None: every run starts by itself.
        stop: Once set, from any thread, the run is ended.
        will: Where the run is noted, so that it is ended even if this process is killed.
        variables: Environment of this run that isn't part of what was asked, such as its GPUs.
        should_stop: Asked a few times a second; once it says yes the run is ended, and its outcome is ``cut short``.

    Returns:
        How it ended. A trainer that fails, hangs or imports other code than asked for is no exception.

    Raises:
        TrainerError: The run couldn't even be started.
        RecipeError: There is no such recipe.
        RunCancelledError: ``stop`` was set.
    """
    ready = prepare(spec, out, port=_free_port())
    how = replace(ready.how, env={**ready.how.env, **(variables or {})})
    parent = warm.of(how.start) if warm else None
    started_s = time.monotonic()
    try:
        exit_code = run_process(
            how, spec.timeout_s, ready.out / "console.log", on_line, parent, stop=stop, will=will,
            should_stop=should_stop,
        )  # fmt: skip
    except CutShort:
        return conclude(ready, CUT_SHORT, time.monotonic() - started_s)
    return conclude(ready, ending_of(exit_code, spec.timeout_s), time.monotonic() - started_s)


def expect_run(spec: RunSpec, warm: WarmParents) -> None:
    """Start the warm parent of runs like this one, where they have one."""
    warm.of(start_of(spec, load_recipe(spec.recipe), cache=_interpreter_cache(spec.python), port=0))


def prepare(spec: RunSpec, out: Path, *, port: int) -> Prepared:
    """A run ready to be started, with its directory made.

    Args:
        spec: What to run.
        out: The run's own directory; made here, and must not exist or be empty.
        port: A port that is free where it will run, for torch.distributed's rendezvous.

    Raises:
        TrainerError: The directory isn't empty, or the trainer lacks what it needs.
        RecipeError: There is no such recipe.
    """
    recipe = load_recipe(spec.recipe)
    out = fresh_directory(out)
    how = launch(spec, recipe, out=out, cache=_interpreter_cache(spec.python), port=port)
    return Prepared(spec=spec, recipe=recipe, out=out, how=how)


def ending_of(exit_code: int | None, timeout_s: float) -> Ending:
    """The ending that an exit code tells; None is a run that was killed for taking too long."""
    if exit_code is None:
        reason = f"still running after {timeout_s:g} s, killed"
        return Ending(exit_code=None, reason=reason, outcome=Outcome.TIMED_OUT, cause=Cause.UNKNOWN)
    return Ending(exit_code=exit_code)


def conclude(ready: Prepared, ending: Ending, duration_s: float) -> RunRecord:
    """What came of a run: finished only with exit code 0, every iteration, and proof of the code that was asked for."""
    out = ready.out
    redact_folder(out, {**os.environ, **ready.how.env})
    provenance = None
    if (out / "console.log").exists():
        with (out / "console.log").open(encoding="utf-8", errors="replace") as lines:
            provenance = read_provenance(lines)
    cause = None
    if ending.reason is not None:
        outcome, reason = ending.outcome, ending.reason
        cause = None if outcome is Outcome.CUT else ending.cause or Cause.UNKNOWN
    elif ending.exit_code != 0:
        failure = failure_of(out / "console.log", ending.exit_code)
        outcome, reason, cause = Outcome.FAILED, failure.text, failure.cause
    else:
        outcome, reason = _judge_ending(ready.recipe, out)
    void = mismatch(ready.spec, provenance)
    if outcome in (Outcome.FINISHED, Outcome.CUT) and void:
        outcome, reason = Outcome.VOID, void
    return RunRecord(
        spec=ready.spec, out=out, argv=redact_words(ready.how.argv), outcome=outcome, reason=reason,
        exit_code=ending.exit_code, duration_s=duration_s, provenance=provenance, cause=cause,
    )  # fmt: skip


def fresh_directory(out: Path) -> Path:
    """Make a directory that nothing is in yet, and return its absolute path.

    Raises:
        TrainerError: It can't be made, or holds something.
    """
    try:
        out.mkdir(parents=True, exist_ok=True)
        if any(out.iterdir()):
            raise TrainerError(f"{out}: not empty. A run needs a directory of its own; name another.")
    except OSError as error:
        raise TrainerError(f"{out}: can't be made: {error.strerror}. Name a directory that can be written.") from error
    return out.resolve()


def _free_port() -> int:
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        port: int = probe.getsockname()[1]
        return port


def _judge_ending(recipe: Recipe, out: Path) -> tuple[Outcome, str]:
    """A run that exited with 0 has finished if it recorded a loss for every iteration."""
    from lossbisect.train.curves import count_losses

    recorded = count_losses(out / "scalars.ndjson")
    if recorded < recipe.iterations:
        return Outcome.FAILED, f"only {recorded} of {recipe.iterations} iterations recorded a loss"
    return Outcome.FINISHED, f"{recorded} iterations"
