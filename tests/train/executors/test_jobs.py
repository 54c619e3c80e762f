"""What is written for Slurm and read from it, without a Slurm."""

import subprocess
from pathlib import Path

import pytest

from lossbisect.cause import Cause
from lossbisect.errors import TrainerError
from lossbisect.train.executors import slurm_commands
from lossbisect.train.executors.follow import Follower
from lossbisect.train.executors.sbatch import Job, job_script, read_ending, read_template, render_template
from lossbisect.train.executors.slurm_commands import JobState, job_state, parse_sacct, parse_scontrol
from lossbisect.train.types import Outcome


def _job(folder: Path) -> Job:
    (folder / "slurm").mkdir(parents=True)
    return Job(
        folder=folder / "slurm", name="lossbisect-x", minutes=35, gpus=2, ranks=2, visible=(folder, Path("/trees"))
    )


def test_the_script_leaves_its_exit_code(tmp_path: Path) -> None:
    """Words with blanks, quotes and dollars reach the trainer as they are; its output and exit code are kept."""
    job = _job(tmp_path / "o u't")
    argv = ["bash", "-c", 'echo "$1|$NAME"; kill -9 $$', "x", "a b'c $HOME"]
    job.script.write_text(job_script(job, argv, cwd=job.folder.parent, variables={"NAME": "é 'q' $X"}))
    done = subprocess.run(
        ["bash", str(job.script)], env={"PATH": "/usr/bin:/bin", "SLURM_JOB_ID": "12"}, check=False, capture_output=True
    )
    assert done.returncode == 137
    assert (job.folder.parent / "console.log").read_text().splitlines()[0] == "a b'c $HOME|é 'q' $X"
    assert read_ending(job, "12") == -9
    assert read_ending(job, "13") is None


def test_an_ending_is_whole_or_none(tmp_path: Path) -> None:
    """No file, half a file and another job's file are no ending."""
    job = _job(tmp_path)
    assert read_ending(job, "1") is None
    for text, code in (("", None), ("1", None), ("2 0", None), ("1 0", 0), ("1 3", 3), ("1 139", -11), ("1 255", 255)):
        job.ending.write_text(text)
        assert read_ending(job, "1") == code


def test_a_template_is_filled_in(tmp_path: Path) -> None:
    """All placeholders are replaced, variables of the shell stay, and a missing first line is added."""
    path = tmp_path / "site.sbatch"
    path.write_text(
        "#SBATCH --gpus={gpus} --time={minutes}\nsrun -n1 --container-mounts={mounts} {command} ${HOME} {{x}}"
    )
    text = render_template(read_template(path), _job(tmp_path / "out"))
    assert text.splitlines()[:2] == ["#!/bin/bash", "#SBATCH --gpus=2 --time=35"]
    out = tmp_path / "out"
    assert f"--container-mounts={out}:{out},/trees:/trees bash {out}/slurm/job.sh ${{HOME}} {{{{x}}}}" in text


@pytest.mark.parametrize(
    ("text", "message"),
    [("srun train.sh", r"\{command\}"), ("{command} {partition}", r"unknown placeholder \{partition\}")],
)
def test_a_wrong_template_is_refused(tmp_path: Path, text: str, message: str) -> None:
    """A template that runs nothing, or names what nobody knows, is refused before a job is submitted."""
    path = tmp_path / "site.sbatch"
    path.write_text(text)
    with pytest.raises(TrainerError, match=message):
        read_template(path)


def _shown(state: str, **more: str) -> str:
    """A line of ``scontrol --oneliner show job``, shortened."""
    values = {"Reason": "None", "Restarts": "0", "NodeList": "n[1-2]"} | more
    return f"JobId=7 JobName=JobState=X JobState={state} " + " ".join(f"{key}={value}" for key, value in values.items())


@pytest.mark.parametrize(
    ("text", "outcome", "cause"),
    [
        (_shown("NODE_FAIL"), Outcome.FAILED, Cause.INFRASTRUCTURE),
        (_shown("PREEMPTED", Reason="Preempted"), Outcome.FAILED, Cause.INFRASTRUCTURE),
        (_shown("BOOT_FAIL"), Outcome.FAILED, Cause.INFRASTRUCTURE),
        (_shown("PENDING", Restarts="1", NodeList="(null)"), Outcome.FAILED, Cause.INFRASTRUCTURE),
        (_shown("TIMEOUT", Reason="TimeLimit"), Outcome.TIMED_OUT, Cause.UNKNOWN),
        (_shown("OUT_OF_MEMORY"), Outcome.FAILED, Cause.UNKNOWN),
        (_shown("CANCELLED"), Outcome.FAILED, Cause.UNKNOWN),
        (_shown("FAILED", Reason="NonZeroExitCode"), Outcome.FAILED, Cause.UNKNOWN),
    ],
)
def test_states_of_scontrol(text: str, outcome: Outcome, cause: Cause) -> None:
    """A node's failure, preemption and a job that was queued again are the infrastructure's; no state is a result."""
    state = parse_scontrol(text)
    assert state is not None
    assert state.meaning == (outcome, cause)


def test_the_words_of_scontrol() -> None:
    """Reason and nodes come back as Slurm has them, and a name that looks like a state is none."""
    state = parse_scontrol(_shown("PENDING", Reason="ReqNodeNotAvail,_UnavailableNodes:n1", NodeList="(null)"))
    assert state == JobState(name="PENDING", reason="ReqNodeNotAvail, UnavailableNodes:n1")
    assert parse_scontrol("slurm_load_jobs error: Unable to contact slurm controller") is None
    running = parse_scontrol(_shown("COMPLETING"))
    assert running is not None
    assert (running.is_running, running.is_over, running.nodes) == (True, False, "n[1-2]")


@pytest.mark.parametrize(
    ("text", "name"),
    [("CANCELLED by 1000|n1|0\n", "CANCELLED"), ("NODE_FAIL|n1|0\nCOMPLETED|n1|0\n", "NODE_FAIL"), ("", None)],
)
def test_states_of_sacct(text: str, name: str | None) -> None:
    """The job's own line counts, and its first word."""
    state = parse_sacct(text)
    assert (state.name if state else None) == name


@pytest.mark.parametrize(
    ("answers", "name"),
    [
        (
            {"scontrol": (1, "slurm_load_jobs error: Invalid job id specified"), "sacct": (0, "NODE_FAIL|n1|0")},
            "NODE_FAIL",
        ),
        (
            {
                "scontrol": (1, "slurm_load_jobs error: Invalid job id specified"),
                "sacct": (1, "Slurm accounting storage is disabled"),
            },
            "GONE",
        ),
        ({"scontrol": (1, "slurm_load_jobs error: Unable to contact slurm controller")}, None),
        ({"scontrol": (0, _shown("RUNNING"))}, "RUNNING"),
    ],
    ids=["accounting", "no-accounting", "no-controller", "running"],
)
def test_who_is_asked(monkeypatch: pytest.MonkeyPatch, answers: dict[str, tuple[int, str]], name: str | None) -> None:
    """The controller first; for a job that it forgot the accounting, if any; a controller that is away says nothing."""
    monkeypatch.setattr(slurm_commands, "_ask", lambda program, *_: answers[program])
    state = job_state("7")
    assert (state.name if state else None) == name


def test_a_log_is_followed_by_whole_lines(tmp_path: Path) -> None:
    """Lines come once, when they are whole, whatever pieces they are written in."""
    lines: list[str] = []
    follower = Follower(tmp_path / "log", lines.append)
    follower.read()
    with (tmp_path / "log").open("wb", buffering=0) as file:
        for piece in (b"on", b"e\ntw", b"o\r\n", "é".encode()[:1], "é".encode()[1:] + b"\n", b"rest"):
            file.write(piece)
            follower.read()
    assert lines == ["one", "two", "é"]
