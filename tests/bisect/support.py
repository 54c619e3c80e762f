"""Made git repositories and scripted training runs."""

import json
import os
import subprocess
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path

import polars as pl

from lossbisect.bisect.types import BisectPlan
from lossbisect.parsers.runlog import LossKind, RunLog
from lossbisect.schema import ITERATION_COLUMNS, VALIDATION_COLUMNS, empty_frame
from lossbisect.train.types import Lane, Outcome, Provenance, RunRecord, RunSpec, Sources, TrainerName

GOOD_CURVE = (10.5, 10.25, 9.875, 9.5)
BAD_CURVE = (10.5, 10.25, 9.876, 9.6)

type Script = Sequence[float] | Outcome
"""A run's losses from iteration 1 on, or how it fails."""


def git(folder: Path, *arguments: str, **variables: str) -> str:
    """Run git without the user's configuration."""
    identity = {
        "GIT_CONFIG_GLOBAL": os.devnull,
        "GIT_CONFIG_NOSYSTEM": "1",
        "GIT_AUTHOR_NAME": "Ada Löve",
        "GIT_AUTHOR_EMAIL": "ada@example.com",
        "GIT_COMMITTER_NAME": "Ada Löve",
        "GIT_COMMITTER_EMAIL": "ada@example.com",
    }
    environment = {key: value for key, value in os.environ.items() if not key.startswith("GIT_")} | identity | variables
    command = ["git", "-c", "protocol.file.allow=always", "-c", "init.defaultBranch=main", *arguments]
    done = subprocess.run(command, cwd=folder, env=environment, capture_output=True, text=True, check=False)
    assert done.returncode == 0, f"{command}: {done.stderr}"
    return done.stdout.rstrip("\n")


def commit(folder: Path, subject: str, files: Mapping[str, str], **variables: str) -> str:
    """Write files, commit everything, and return the SHA."""
    for name, text in files.items():
        (folder / name).parent.mkdir(parents=True, exist_ok=True)
        (folder / name).write_text(text, encoding="utf-8")
    git(folder, "add", "--all")
    git(folder, "commit", "--quiet", "--allow-empty", "--message", subject, **variables)
    return git(folder, "rev-parse", "HEAD")


def make_megatron_lm(folder: Path, count: int) -> list[str]:
    """A linear history of ``count`` commits after a first one; their SHAs, the first commit's first."""
    folder.mkdir(parents=True)
    git(folder, "init", "--quiet")
    shas = [commit(folder, "Start (#100)", {"megatron/core/__init__.py": "", "README.md": "Megatron\n"})]
    for number in range(1, count + 1):
        files = {"megatron/core/value.py": f"VALUE = {number}\n"}
        shas.append(commit(folder, f"Change the value to {number} (#{100 + number})", files))
    return shas


def make_bridge(folder: Path, megatron_lm: Path) -> str:
    """A Bridge checkout with Megatron-LM as its initialised submodule; the SHA of its HEAD."""
    folder.mkdir(parents=True)
    git(folder, "init", "--quiet")
    commit(folder, "Start", {"src/megatron/bridge/__init__.py": ""})
    git(folder, "submodule", "--quiet", "add", str(megatron_lm), "3rdparty/Megatron-LM")
    return commit(folder, "Pin Megatron-LM", {})


def snapshot(folder: Path) -> dict[str, tuple[int, int, bytes]]:
    """Everything in a folder, ``.git`` included: size, time of change and content of each file."""
    found = {}
    for path in sorted(folder.rglob("*")):
        if path.is_file() and not path.is_symlink():
            about = path.stat()
            found[str(path.relative_to(folder))] = (about.st_size, about.st_mtime_ns, path.read_bytes())
        else:
            found[str(path.relative_to(folder))] = (0, 0, b"")
    return found


@dataclass
class ScriptedRunner:
    """Plays a run instead of training.

    Attributes:
        script: What each commit does.
        ran: Commits in the order in which they were run.
        repeats: How many-th run of its commit each of them was said to be.
        stops: Of each commit's latest run, whether it should end.
        change: Called with each finished record and the number of the run, to change it.
        wait: Called while a run goes on.
        reverted: What a commit does with another one taken back; None: it doesn't go back cleanly.
        is_slow: A run asks after each loss whether it should end, as one that takes its time does.
    """

    script: Callable[[str], Script]
    ran: list[str] = field(default_factory=list)
    repeats: list[int | None] = field(default_factory=list)
    stops: dict[str, Callable[[], bool]] = field(default_factory=dict)
    change: Callable[[RunRecord, int], RunRecord] = lambda record, _: record
    wait: Callable[[], None] = lambda: None
    reverted: Callable[[str, str], Script] | None = None
    is_slow: bool = False

    def run(
        self,
        commit: str,
        out: Path,
        on_line: Callable[[str], None],
        *,
        repeat: int | None = 0,
        should_stop: Callable[[], bool] | None = None,
        without: str | None = None,
    ) -> RunRecord:
        """Write the scripted losses down as a run; unless it is slow it ends too fast to be cut."""
        if without is not None:
            return self._without(commit, out, without)
        self.ran.append(commit)
        self.repeats.append(repeat)
        self.stops[commit] = should_stop or (lambda: False)
        out.mkdir(parents=True)
        on_line(f"training {commit[:10]}")
        self.wait()
        scripted = self.script(commit)
        record = make_record(commit, out)
        if isinstance(scripted, Outcome):
            record.console.write_text("Traceback\nImportError: no module named te\n", encoding="utf-8")
            record = replace(record, outcome=scripted, reason="ImportError: no module named te", exit_code=1)
        else:
            shown = self._shown(record.scalars, scripted, self.stops[commit])
            if shown < len(scripted):
                record = replace(record, outcome=Outcome.CUT, reason="ended on purpose", exit_code=None)
        return self.change(record, len(self.ran))

    def _shown(self, scalars: Path, losses: Sequence[float], should_stop: Callable[[], bool]) -> int:
        """Write losses down until the run should end; how many that were."""
        if not self.is_slow:
            write_curve(scalars, losses)
            return len(losses)
        for shown in range(1, len(losses)):
            write_curve(scalars, losses[:shown])
            if should_stop():
                return shown
        write_curve(scalars, losses)
        return len(losses)

    def _without(self, commit: str, out: Path, without: str) -> RunRecord:
        out.mkdir(parents=True)
        record = make_record(commit, out)
        scripted = Outcome.VOID if self.reverted is None else self.reverted(commit, without)
        if isinstance(scripted, Outcome):
            return replace(record, outcome=scripted, reason="the revert doesn't apply: here.py:1", exit_code=None)
        write_curve(record.scalars, scripted)
        return record

    def read(self, record: RunRecord) -> RunLog:
        """The losses as a log."""
        lines = record.scalars.read_text(encoding="utf-8").splitlines()
        return make_log([(row["iteration"], row["value"]) for row in map(json.loads, lines)], record.scalars)


def write_curve(path: Path, losses: Sequence[float]) -> None:
    """Losses in the form of a real run's ``scalars.ndjson``."""
    rows = ({"tag": "lm loss", "iteration": i, "value": value} for i, value in enumerate(losses, start=1))
    path.write_text("".join(json.dumps(row) + "\n" for row in rows), encoding="utf-8")


def make_log(values: Sequence[tuple[int, float]], path: Path = Path("scalars.ndjson")) -> RunLog:
    """A log with these losses by iteration, at full precision."""
    columns = {
        "iteration": [iteration for iteration, _ in values],
        "attempt": [0] * len(values),
        "window": [1] * len(values),
        "lm_loss": [float(value) for _, value in values],
        "is_complete": [True] * len(values),
    }
    frame = pl.concat([empty_frame(ITERATION_COLUMNS), pl.DataFrame(columns)], how="diagonal")
    return RunLog(
        path=path,
        dialect="lossbisect",
        iterations=frame,
        validation=empty_frame(VALIDATION_COLUMNS),
        config={},
        attempts=(),
        loss_kind=LossKind.PER_ITERATION,
        loss_quantum_rel=0.0,
        notes=(),
    )


def make_record(commit: str, out: Path) -> RunRecord:
    """A finished run of a commit, with clean provenance."""
    spec = RunSpec(
        sources=Sources(mcore=out / "mcore", mcore_commit=commit),
        recipe="vanilla-cpu",
        trainer=TrainerName.MLM,
        lane=Lane.CPU,
        python=Path("/usr/bin/python3"),
        env={"SEED": "1"},
    )
    provenance = Provenance(
        megatron_core_file=str(out / "mcore/megatron/core/__init__.py"),
        megatron_core_version="0.19.0",
        mcore_commit=commit,
        is_clean=True,
        megatron_bridge_file=None,
        python="3.12.1",
        torch="2.9.0",
        lane="cpu",
    )
    return RunRecord(
        spec=spec,
        out=out,
        argv=("python", "pretrain_gpt.py"),
        outcome=Outcome.FINISHED,
        reason="4 iterations",
        exit_code=0,
        duration_s=1.25,
        provenance=provenance,
    )


def make_plan(repo: Path, good: str, bad: str, *, tolerance: float | None = None) -> BisectPlan:
    """A plan for a bisect on a Megatron-LM checkout."""
    return BisectPlan(
        repo=repo,
        good=good,
        bad=bad,
        bridge_commit=None,
        recipe="vanilla-cpu",
        recipe_digest=None,
        trainer=TrainerName.MLM,
        lane=Lane.CPU,
        python=Path("/usr/bin/python3"),
        timeout_s=60.0,
        metric="lm_loss",
        tolerance=tolerance,
    )


def make_history(folder: Path, losses: Sequence[float | None]) -> list[str]:
    """A Megatron-LM checkout with one commit for each loss (None: it can't be imported); all SHAs, oldest first."""
    folder.mkdir(parents=True)
    git(folder, "init", "--quiet")
    shas = []
    for number, loss in enumerate(losses):
        source = "import nothing_of_that_name\n" if loss is None else f"LOSS = {loss!r}\n"
        files = {"megatron/core/__init__.py": "", "megatron/core/loss.py": source, "number.txt": f"{number}\n"}
        shas.append(commit(folder, f"Change number {number} (#{100 + number})", files))
    return shas


def play(spec: RunSpec, out: Path, *, on_line: Callable[[str], None] | None = None, **_: object) -> RunRecord:
    """Stand in for `run_recipe`: the tree's own ``megatron/core/loss.py`` says what the loss is."""
    assert spec.sources.mcore is not None
    out.mkdir(parents=True, exist_ok=True)
    (spec.sources.mcore / "megatron/core/stale.pyc").write_text("built by a run", encoding="utf-8")
    source = (spec.sources.mcore / "megatron/core/loss.py").read_text(encoding="utf-8")
    if on_line is not None:
        on_line("iteration 1/ 4")
    record = make_record(git(spec.sources.mcore, "rev-parse", "HEAD"), out)
    if not source.startswith("LOSS = "):
        record.console.write_text("ModuleNotFoundError: No module named 'nothing_of_that_name'\n", encoding="utf-8")
        return replace(record, spec=spec, outcome=Outcome.FAILED, reason="ModuleNotFoundError", exit_code=1)
    loss = float(source.removeprefix("LOSS = "))
    write_curve(record.scalars, [11.0, 10.5, loss, loss - 0.125])
    return replace(record, spec=spec)


def read_play(record: RunRecord) -> RunLog:
    """Stand in for `read_run`."""
    return ScriptedRunner(lambda _: ()).read(record)
