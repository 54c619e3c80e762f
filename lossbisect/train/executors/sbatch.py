"""The files of a job: the script that runs the trainer, the user's template filled in, and the ending it leaves."""

import shlex
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from lossbisect.errors import TrainerError
from lossbisect.train.executors.placeholders import fill, unknown_names

__all__ = ["PLACEHOLDERS", "Job", "job_script", "read_ending", "read_template", "render_template"]

PLACEHOLDERS = {
    "command": "what runs the trainer; must occur",
    "out": "the run's directory",
    "job_name": "a name for the job",
    "minutes": "time that the job needs at most, minutes",
    "gpus": "GPUs that the recipe needs, 0 on the CPU lane",
    "ranks": "processes that the recipe needs, all on one node",
    "mounts": "what a container must see, as /a:/a,/b:/b",
}
"""What a template may name in braces."""

_LARGEST_SIGNAL = 64


@dataclass(frozen=True, kw_only=True, slots=True)
class Job:
    """One run as a job.

    Attributes:
        folder: Where its files are, in the run's directory.
        name: Its name in the queue.
        minutes: Time limit to ask for.
        gpus: GPUs that it needs.
        ranks: Processes that it starts.
        visible: Directories that it must see.
    """

    folder: Path
    name: str
    minutes: int
    gpus: int
    ranks: int
    visible: tuple[Path, ...]

    @property
    def script(self) -> Path:
        """Runs the trainer."""
        return self.folder / "job.sh"

    @property
    def log(self) -> Path:
        """What Slurm, and a template around the script, print."""
        return self.folder / "job.log"

    @property
    def ending(self) -> Path:
        """The job's id and the trainer's exit code, once there is one."""
        return self.folder / "ending"

    def log_tail(self) -> str:
        """The last lines that Slurm or the template printed; empty if there are none."""
        lines: list[str] = []
        for path in sorted({self.log, *self.folder.glob("*_log.*")}):
            if path.exists():
                lines += path.read_text(encoding="utf-8", errors="replace").splitlines()
        return "\n".join([line for line in lines if line.strip()][-40:])


def job_script(job: Job, argv: Sequence[str], *, cwd: Path, variables: Mapping[str, str]) -> str:
    """A bash script that runs the trainer, its console beside the folder, and leaves its exit code."""
    exports = [f"export {name}={shlex.quote(value)}" for name, value in sorted(variables.items())]
    unfinished = job.ending.with_suffix(".new")
    return "\n".join(
        [
            "#!/bin/bash",
            f"cd {shlex.quote(str(cwd))} || exit 1",
            *exports,
            f"{shlex.join(argv)} >>{shlex.quote(str(cwd / 'console.log'))} 2>&1 </dev/null",
            "code=$?",
            # A rename is atomic: who reads the ending reads all of it.
            f'echo "${{SLURM_JOB_ID:-unknown}} $code" >{shlex.quote(str(unfinished))}',
            f"mv {shlex.quote(str(unfinished))} {shlex.quote(str(job.ending))}",
            "exit $code",
            "",
        ]
    )


def read_ending(job: Job, job_id: str) -> int | None:
    """The exit code that this job's script left, negative for a signal; None if there is none."""
    try:
        found_id, code = job.ending.read_text(encoding="utf-8").split()
    except (OSError, ValueError):
        return None
    if found_id != job_id:
        return None
    number = int(code)
    return 128 - number if 128 < number <= 128 + _LARGEST_SIGNAL else number


def read_template(path: Path) -> str:
    """A batch script with placeholders.

    Raises:
        TrainerError: It can't be read, lacks ``{command}``, or has a placeholder that isn't known.
    """
    try:
        text = path.read_text(encoding="utf-8")
    except (OSError, UnicodeDecodeError) as error:
        raise TrainerError(f"{path}: the template can't be read: {error}.") from error
    if "{command}" not in text:
        raise TrainerError(f"{path}: nothing in it runs the trainer. Write {{command}} where it is to be run.")
    if unknown := unknown_names(text, PLACEHOLDERS):
        raise TrainerError(
            f"{path}: unknown placeholder {{{unknown[0]}}}. Known: {', '.join(PLACEHOLDERS)}. "
            "A variable of the shell is written ${name}."
        )
    return text if text.startswith("#!") else f"#!/bin/bash\n{text}"


def render_template(template: str, job: Job) -> str:
    """The template for one job."""
    values = {
        "command": shlex.join(["bash", str(job.script)]),
        "out": str(job.folder.parent),
        "job_name": job.name,
        "minutes": str(job.minutes),
        "gpus": str(job.gpus),
        "ranks": str(job.ranks),
        "mounts": ",".join(f"{path}:{path}" for path in job.visible),
    }
    assert values.keys() == PLACEHOLDERS.keys()
    return fill(template, values)
