"""Slurm's own commands: submit a job, ask for its state, cancel it."""

import re
import subprocess
import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path
from shutil import which

from lossbisect.cause import Cause
from lossbisect.errors import TrainerError
from lossbisect.train.executors.sbatch import Job
from lossbisect.train.types import Outcome

__all__ = [
    "JobState",
    "cancel_job",
    "job_state",
    "parse_sacct",
    "parse_scontrol",
    "require_slurm",
    "submit_by_submitit",
    "submit_script",
]

_ALIVE = frozenset(
    ("PENDING", "RUNNING", "SUSPENDED", "CONFIGURING", "COMPLETING", "STAGE_OUT", "STOPPED", "SIGNALING", "RESIZING",
     "REQUEUED", "REQUEUE_FED", "REQUEUE_HOLD", "SPECIAL_EXIT")
)  # fmt: skip
_STARTED = frozenset(("RUNNING", "SUSPENDED", "COMPLETING", "STAGE_OUT", "STOPPED", "SIGNALING", "RESIZING"))
_MEANINGS = {
    "NODE_FAIL": (Outcome.FAILED, Cause.INFRASTRUCTURE),
    "BOOT_FAIL": (Outcome.FAILED, Cause.INFRASTRUCTURE),
    "LAUNCH_FAILED": (Outcome.FAILED, Cause.INFRASTRUCTURE),
    "RECONFIG_FAIL": (Outcome.FAILED, Cause.INFRASTRUCTURE),
    "PREEMPTED": (Outcome.FAILED, Cause.INFRASTRUCTURE),
    "REVOKED": (Outcome.FAILED, Cause.INFRASTRUCTURE),
    "GONE": (Outcome.FAILED, Cause.INFRASTRUCTURE),
    "TIMEOUT": (Outcome.TIMED_OUT, Cause.UNKNOWN),
    "DEADLINE": (Outcome.TIMED_OUT, Cause.UNKNOWN),
}
"""States in which a job ends without a word of its script; any other one is a failure of unknown cause."""
_PASSES = ("Unable to contact slurm controller", "Socket timed out", "temporarily", "Resource temporarily unavailable",
           "Connection refused", "Zero Bytes were transmitted", "Unexpected message received")  # fmt: skip
_ASK_S = 60.0
_TRIES = 5


@dataclass(frozen=True, kw_only=True, slots=True)
class JobState:
    """A job, as Slurm describes it.

    Attributes:
        name: Slurm's state, such as ``RUNNING``; ``GONE`` if Slurm no longer knows the job.
        reason: Why it is in that state, in Slurm's words; empty if it says nothing.
        nodes: Where it runs or ran.
        restarts: How often Slurm queued it again.
    """

    name: str
    reason: str = ""
    nodes: str = ""
    restarts: int = 0

    @property
    def is_running(self) -> bool:
        """It has begun."""
        return self.name in _STARTED

    @property
    def is_over(self) -> bool:
        """It will do nothing more."""
        return self.name not in _ALIVE

    @property
    def may_have_ended_by_itself(self) -> bool:
        """Its script may have left an ending that isn't visible yet."""
        return self.name in ("COMPLETED", "FAILED", "GONE", "OUT_OF_MEMORY")

    @property
    def meaning(self) -> tuple[Outcome, Cause]:
        """What the end of a job that left no ending means for its run."""
        if self.restarts:
            return Outcome.FAILED, Cause.INFRASTRUCTURE  # nothing but a lost node or another job makes Slurm do that
        return _MEANINGS.get(self.name, (Outcome.FAILED, Cause.UNKNOWN))


def require_slurm() -> None:
    """Raises TrainerError: Slurm's commands aren't here."""
    missing = [name for name in ("sbatch", "scontrol", "scancel") if which(name) is None]
    if missing:
        raise TrainerError(
            f"{missing[0]}: not found, so no job can be submitted here. Start lossbisect on a machine of the cluster "
            "that has Slurm's commands, or use --executor local."
        )


def submit_by_submitit(job: Job, options: Mapping[str, str]) -> str:
    """Submit a job through submitit, on one node; its id.

    Raises:
        TrainerError: Slurm refuses it.
    """
    from submitit import SlurmExecutor
    from submitit.core.utils import CommandFunction

    asks_for_gpus = any(name.startswith(("gpus", "gres")) for name in options)
    gpus = {"gpus_per_node": job.gpus} if job.gpus and not asks_for_gpus else {}
    more = {"no_requeue": True, **gpus, **_underscored(options)}

    def submit() -> str:
        executor = SlurmExecutor(folder=job.folder)
        executor.update_parameters(
            job_name=job.name, time=job.minutes, nodes=1, ntasks_per_node=1, cpus_per_task=job.ranks,
            stderr_to_stdout=True, additional_parameters=more,
        )  # fmt: skip
        # The script is bash's; submitit's process in the job waits for it.
        return str(executor.submit(CommandFunction(["bash", str(job.script)])).job_id)

    return _patiently(submit)


def submit_script(script: Path, job: Job, options: Mapping[str, str]) -> str:
    """Submit the user's own batch script; its id.

    Raises:
        TrainerError: Slurm refuses it.
    """
    words = [f"--{name.replace('_', '-')}={value}" if value else f"--{name}" for name, value in options.items()]
    command = ["sbatch", "--parsable", "--no-requeue", f"--job-name={job.name}", f"--output={job.log}", *words]

    def submit() -> str:
        done = subprocess.run(
            [*command, str(script)], capture_output=True, text=True, check=False, timeout=_ASK_S, cwd=job.folder.parent
        )
        if done.returncode != 0:
            raise RuntimeError(done.stderr.strip() or f"sbatch exited with {done.returncode}")
        return done.stdout.strip().splitlines()[-1].partition(";")[0]

    return _patiently(submit)


def job_state(job_id: str) -> JobState | None:
    """The job's state; None if Slurm can't be asked now."""
    code, said = _ask("scontrol", "--oneliner", "show", "job", job_id)
    if code == 0 and (state := parse_scontrol(said)):
        return state
    if "Invalid job id" not in said:
        return None
    code, told = _ask("sacct", "--noheader", "--parsable2", "--allocations", f"--jobs={job_id}",
                      "--format=State,NodeList,Restarts")  # fmt: skip
    return (parse_sacct(told) if code == 0 else None) or JobState(name="GONE")


def parse_scontrol(text: str) -> JobState | None:
    """The state in what ``scontrol --oneliner show job`` prints; None if there is none."""
    found = dict(re.findall(r"(?<!\S)(JobState|Reason|NodeList|Restarts)=(\S*)", text))
    if "JobState" not in found:
        return None
    nodes = found.get("NodeList", "")
    reason = found.get("Reason", "")
    return JobState(
        name=found["JobState"], reason="" if reason == "None" else reason.replace("_", " "),
        nodes="" if nodes == "(null)" else nodes, restarts=int(found.get("Restarts") or 0),
    )  # fmt: skip


def parse_sacct(text: str) -> JobState | None:
    """The state in what ``sacct --parsable2 --format=State,NodeList,Restarts`` prints; None if there is none."""
    for line in text.splitlines():
        state, nodes, restarts, *_ = [*line.split("|"), "", ""]
        if state:
            # "CANCELLED by 1000"
            return JobState(
                name=state.split()[0], nodes="" if nodes.startswith("None") else nodes, restarts=int(restarts or 0)
            )
    return None


def cancel_job(job_id: str) -> None:
    """Cancel a job; one that is over already isn't minded, nor a controller that can't be reached."""
    _ask("scancel", job_id)


def _ask(*command: str) -> tuple[int, str]:
    """Exit code and output of a command, its complaints included."""
    try:
        done = subprocess.run(command, capture_output=True, text=True, check=False, timeout=_ASK_S)
    except (OSError, subprocess.TimeoutExpired) as error:
        return 1, str(error)
    return done.returncode, done.stdout + done.stderr


def _patiently(submit: Callable[[], str]) -> str:
    """Submit; a controller that is busy or restarts is asked again."""
    for attempt in range(_TRIES):
        try:
            return submit()
        except Exception as error:  # submitit wraps whatever sbatch says in errors of several types
            said = str(error)
            if attempt + 1 < _TRIES and any(text in said for text in _PASSES):
                time.sleep(2.0 * 2**attempt)
                continue
            raise TrainerError(f"Slurm didn't take the job: {_last_line(said)}") from error
    raise AssertionError("unreachable")


def _last_line(text: str) -> str:
    lines = [line.strip() for line in text.splitlines() if line.strip()]
    told = [line for line in lines if "fatal:" in line] or [line for line in lines if "error:" in line]
    return (told or lines or ["it said nothing"])[0][:300]


def _underscored(options: Mapping[str, str]) -> dict[str, str | bool]:
    return {name.replace("-", "_"): value or True for name, value in options.items()}
