"""One commit against a stored curve, for whoever lets ``git bisect run`` do the search."""

from collections.abc import Callable
from pathlib import Path

from lossbisect.bisect.codebase import open_codebase
from lossbisect.bisect.judging import CurveVerdict, curve, judge_curves
from lossbisect.bisect.sources import checked_out
from lossbisect.bisect.training import Training
from lossbisect.bisect.types import CommitVerdict
from lossbisect.compare.noise import default_noise, tolerance_noise
from lossbisect.errors import AlignmentError, ParseError
from lossbisect.parsers.runlog import RunLog
from lossbisect.train import read_run, run_recipe
from lossbisect.train.types import Outcome, RunRecord, RunSpec

__all__ = ["judge_checkout", "read_baseline"]


def judge_checkout(
    baseline: RunLog,
    repo: Path,
    out: Path,
    training: Training,
    *,
    run: Callable[[RunSpec, Path], RunRecord] = run_recipe,
    read: Callable[[RunRecord], RunLog] = read_run,
) -> CurveVerdict:
    """Train on the files that are checked out at ``repo``, and judge the curve: good, bad or skip.

    The checkout is only read. A run that fails, hangs or used other code is a skip.

    Args:
        baseline: The good curve.
        repo: A Megatron Bridge checkout (its submodule's commit is judged) or a Megatron-LM one.
        out: The run's own folder, new or empty.
        training: What is trained, and by what it is judged; no tolerance is what the number format explains.
        run: What trains.
        read: What reads a finished run.

    Raises:
        AlignmentError: The baseline has no such metric.
        GitError: The checkout isn't one, or has changed tracked files: then no commit can be judged.
    """
    if not curve(baseline, training.metric):
        raise AlignmentError(
            f"{baseline.path}: the baseline has no {training.metric}, so nothing can be judged against it."
        )
    with open_codebase(repo) as code:
        sources = checked_out(code)
    record = run(training.run_of(sources), out)
    if record.outcome is not Outcome.FINISHED:
        return CurveVerdict(verdict=CommitVerdict.SKIP, reason=f"{record.outcome.value}: {record.reason}")
    try:
        candidate = read(record)
    except ParseError as error:
        return CurveVerdict(verdict=CommitVerdict.SKIP, reason=f"its curves can't be read: {error}")
    known = training.tolerance
    noise = default_noise(baseline, candidate) if known is None else tolerance_noise(known)
    return judge_curves(baseline, candidate, metric=training.metric, noise=noise)


def read_baseline(path: Path) -> RunLog:
    """The good curve: a run's folder, its ``scalars.ndjson``, or any log that `lossbisect.parsers.read_log` reads.

    Raises:
        ParseError: There is no curve.
    """
    from lossbisect.parsers import read_log

    file = path / "scalars.ndjson" if path.is_dir() else path
    if not file.exists():
        raise ParseError(f"{file}: no such file. Give the folder of a finished run, or a log.")
    return read_log(file)
