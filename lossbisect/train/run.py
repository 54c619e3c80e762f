"""Run a recipe once: start the trainer, keep its console, and say how it ended."""

import hashlib
import os
import secrets
import signal
import socket
import time
from collections.abc import Callable
from datetime import UTC, datetime
from pathlib import Path

from lossbisect.errors import TrainerError
from lossbisect.train.process import run_process
from lossbisect.train.provenance import mismatch, read_provenance
from lossbisect.train.recipes import Recipe, load_recipe
from lossbisect.train.trainers import launch
from lossbisect.train.types import Outcome, RunRecord, RunSpec
from lossbisect.train.warm import WarmParents

__all__ = ["cache_directory", "fresh_directory", "new_run_directory", "run_recipe"]


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


def run_recipe(
    spec: RunSpec,
    out: Path,
    *,
    on_line: Callable[[str], None] | None = None,
    warm: WarmParents | None = None,
) -> RunRecord:
    """Run the spec's recipe once, and wait for it.

    Args:
        spec: What to run.
        out: The run's own directory; made here, and must not exist or be empty: nothing is ever resumed.
        on_line: Called with each console line as it's printed, in another thread.
        warm: Where warm parents are kept between runs; None: every run starts by itself.

    Returns:
        How it ended. A trainer that fails, hangs or imports other code than asked for is no exception.

    Raises:
        TrainerError: The run couldn't even be started.
        RecipeError: There is no such recipe.
    """
    recipe = load_recipe(spec.recipe)
    out = fresh_directory(out)
    how = launch(spec, recipe, out=out, cache=_interpreter_cache(spec.python), port=_free_port())
    started_s = time.monotonic()
    exit_code = run_process(how, spec.timeout_s, out / "console.log", on_line, warm.of(how) if warm else None)
    duration_s = time.monotonic() - started_s
    with (out / "console.log").open(encoding="utf-8", errors="replace") as lines:
        provenance = read_provenance(lines)
    if exit_code is None:
        outcome, reason = Outcome.TIMED_OUT, f"still running after {spec.timeout_s:g} s, killed"
    elif exit_code != 0:
        outcome, reason = Outcome.FAILED, _failure(exit_code, out / "console.log")
    else:
        outcome, reason = _judge_ending(recipe, out)
    void = mismatch(spec, provenance)
    if outcome is Outcome.FINISHED and void:
        outcome, reason = Outcome.VOID, void
    return RunRecord(
        spec=spec, out=out, argv=how.argv, outcome=outcome, reason=reason, exit_code=exit_code, duration_s=duration_s,
        provenance=provenance,
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


def _failure(exit_code: int, console: Path) -> str:
    """The error line that ended the run, or the signal, or the bare exit code."""
    if exit_code < 0:
        return f"killed by {signal.Signals(-exit_code).name}"
    from lossbisect.train.failure import last_error

    error = last_error(console.read_text(encoding="utf-8", errors="replace"))
    return error or f"exit code {exit_code}, without a Python error"


def _judge_ending(recipe: Recipe, out: Path) -> tuple[Outcome, str]:
    """A run that exited with 0 has finished if it recorded a loss for every iteration."""
    from lossbisect.train.curves import count_losses

    recorded = count_losses(out / "scalars.ndjson")
    if recorded < recipe.iterations:
        return Outcome.FAILED, f"only {recorded} of {recipe.iterations} iterations recorded a loss"
    return Outcome.FINISHED, f"{recorded} iterations"
