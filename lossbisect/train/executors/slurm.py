"""Slurm: a job for each run, submitted by submitit or by the user's own batch script, followed, and cancelled.

What the job's script says of its end (an exit code in a file) counts; Slurm's word is asked for where the script
couldn't say anything: node failure, preemption, time limit, or a script that never began. Slurm without accounting is
common, so `scontrol` is asked first and `sacct` only for a job that the controller has forgotten.
"""

import random
import time
from pathlib import Path

from lossbisect.cause import Cause
from lossbisect.errors import RunCancelledError
from lossbisect.train.executors.base import OnLine, ShouldStop, Slots
from lossbisect.train.executors.follow import Follower
from lossbisect.train.executors.options import ExecutorOptions
from lossbisect.train.executors.sbatch import Job, job_script, read_ending, read_template, render_template
from lossbisect.train.executors.slurm_commands import (
    JobState,
    cancel_job,
    job_state,
    require_slurm,
    submit_by_submitit,
    submit_script,
)
from lossbisect.train.failure import failure_in
from lossbisect.train.last_will import LastWill
from lossbisect.train.run import CUT_SHORT, Ending, Prepared, conclude, prepare
from lossbisect.train.types import Lane, Outcome, RunRecord, RunSpec

__all__ = ["SlurmExecutor"]

_TICK_S = 0.25
_LOOKS_S = (1.0, 2.0, 4.0, 8.0, 15.0)
"""Pauses between two questions to the controller; the last one stays."""
_SETTLE_S = 30.0
"""A file on a network file system may show up this long after its job has ended."""
_SILENCE_S = 1800.0
"""A controller that says nothing for so long is given up."""
_MARGIN_MIN = 5
"""A job's time limit lies so much beyond ours, so that it's us who end a run that takes too long."""
_PORTS = range(20_000, 30_000)


class SlurmExecutor:
    """Runs specs as jobs. The run's directory, the trees and the interpreter must be visible from the nodes."""

    def __init__(self, options: ExecutorOptions) -> None:
        """Look whether Slurm is there, and read the template.

        Raises:
            TrainerError: There is no Slurm here, or the template can't be used.
        """
        require_slurm()
        self._options = options
        self._template = read_template(options.sbatch_template) if options.sbatch_template else None
        self._slots = Slots(options.slots)
        self._will = LastWill()

    @property
    def slots(self) -> int:
        """How many jobs are in the queue at once."""
        return self._slots.number

    def run(self, spec: RunSpec, out: Path, *, on_line: OnLine = None, should_stop: ShouldStop = None) -> RunRecord:
        """As `Executor.run`; a failed node or a preempted job is a failed run, its cause the infrastructure."""
        with self._slots.take():
            ready = prepare(spec, out, port=random.choice(_PORTS))  # noqa: S311  # a port, not a secret
            job = self._job(ready)
            job_id = self._submit(job)
            if on_line is not None:
                on_line(f"[lossbisect] Slurm job {job_id}")
            with self._will.holding(f"scancel {job_id}"):
                watch = _Watch(job, job_id, spec.timeout_s, self._options.queue_timeout_s, on_line)
                try:
                    while (ending := watch.look()) is None:
                        if self._slots.stop.wait(_TICK_S):
                            raise RunCancelledError(f"Slurm job {job_id} was cancelled before its end.")
                        if should_stop is not None and should_stop():
                            return conclude(ready, CUT_SHORT, watch.duration_s)
                finally:
                    if not watch.is_over:
                        cancel_job(job_id)
            return conclude(ready, ending, watch.duration_s)

    def expect(self, spec: RunSpec) -> None:
        """As `Executor.expect`: a job has nothing to begin with."""

    def cancel(self) -> None:
        """As `Executor.cancel`."""
        self._slots.stop.set()

    def close(self) -> None:
        """As `Executor.close`."""
        self._slots.drain()
        self._will.close()

    def _job(self, ready: Prepared) -> Job:
        folder = ready.out / "slurm"
        folder.mkdir()
        sources, how = ready.spec.sources, ready.how
        job = Job(
            folder=folder,
            name=f"lossbisect-{ready.out.name}",
            minutes=int(ready.spec.timeout_s // 60) + _MARGIN_MIN,
            gpus=ready.recipe.ranks if ready.spec.lane is Lane.CUDA else 0,
            ranks=ready.recipe.ranks,
            visible=tuple(
                path
                for path in (ready.out, sources.mcore, sources.bridge, Path(__file__).parents[2])
                if path is not None
            ),
        )
        job.script.write_text(job_script(job, how.argv, cwd=how.cwd, variables=how.variables), encoding="utf-8")
        return job

    def _submit(self, job: Job) -> str:
        if self._template is None:
            return submit_by_submitit(job, self._options.sbatch_options)
        path = job.folder / "job.sbatch"
        path.write_text(render_template(self._template, job), encoding="utf-8")
        return submit_script(path, job, self._options.sbatch_options)


class _Watch:
    """What is known of one job, from its submission to its end."""

    def __init__(self, job: Job, job_id: str, timeout_s: float, queue_timeout_s: float, on_line: OnLine) -> None:
        self.is_over = False
        self._job = job
        self._id = job_id
        self._timeout_s = timeout_s
        self._queue_timeout_s = queue_timeout_s
        self._console = Follower(job.folder.parent / "console.log", on_line)
        self._submitted_s = self._heard_s = time.monotonic()
        self._running_since_s: float | None = None
        self._next_look_s = self._submitted_s
        self._looks = 0
        self._left: JobState | None = None
        self._left_at_s = 0.0

    @property
    def duration_s(self) -> float:
        """Wall time since the job began, or since its submission if it never did, seconds."""
        since = self._running_since_s if self._running_since_s is not None else self._submitted_s
        return time.monotonic() - since

    def look(self) -> Ending | None:
        """How the job ended; None while it goes on."""
        self._console.read()
        code = read_ending(self._job, self._id)
        if code is not None:
            self._console.read()
            self.is_over = True
            return Ending(exit_code=code)
        now = time.monotonic()
        if self._left is not None:
            return self._end(self._left) if now - self._left_at_s > self._settle_s(self._left) else None
        if now >= self._next_look_s:
            self._ask(now)
        return self._too_long(now)

    def _ask(self, now: float) -> None:
        self._next_look_s = now + _LOOKS_S[min(self._looks, len(_LOOKS_S) - 1)]
        self._looks += 1
        state = job_state(self._id)
        if state is None:
            return
        self._heard_s = now
        if state.is_running and self._running_since_s is None:
            self._running_since_s, self._looks = now, 0
        if state.is_over or state.restarts:
            self._left, self._left_at_s = state, now

    def _settle_s(self, state: JobState) -> float:
        return _SETTLE_S if state.may_have_ended_by_itself else 1.0

    def _too_long(self, now: float) -> Ending | None:
        if now - self._heard_s > _SILENCE_S:
            reason = f"Slurm job {self._id}: its controller has said nothing for {_SILENCE_S / 60:.0f} min"
            return Ending(exit_code=None, reason=reason, cause=Cause.INFRASTRUCTURE)
        if self._running_since_s is not None and now - self._running_since_s > self._timeout_s:
            reason = f"still running after {self._timeout_s:g} s, cancelled"
            return Ending(exit_code=None, reason=reason, outcome=Outcome.TIMED_OUT, cause=Cause.UNKNOWN)
        if self._running_since_s is None and now - self._submitted_s > self._queue_timeout_s:
            state = job_state(self._id)
            why = f" ({state.reason})" if state is not None and state.reason else ""
            reason = f"Slurm job {self._id} didn't start within {self._queue_timeout_s:g} s{why}"
            # A queue that is that long won't be shorter for a second job.
            return Ending(exit_code=None, reason=reason, cause=Cause.UNKNOWN)
        return None

    def _end(self, state: JobState) -> Ending:
        self.is_over = state.is_over
        self._console.read()
        outcome, cause = state.meaning
        where = f" on {state.nodes}" if state.nodes else ""
        reason = f"Slurm job {self._id}: {state.name}{where}"
        if state.restarts:
            reason += ", and queued again"
        said = self._job.log_tail()
        if said and cause is Cause.UNKNOWN and outcome is Outcome.FAILED:
            found = failure_in(said)
            reason += f": {found.text if found else said.splitlines()[-1].strip()[:300]}"
            cause = found.cause if found else cause
        return Ending(exit_code=None, reason=reason, outcome=outcome, cause=cause)
