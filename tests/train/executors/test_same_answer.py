"""The same bisect through every executor names the same commit."""

import sys
from collections.abc import Mapping
from pathlib import Path

import pytest

from lossbisect.bisect import Answer, BisectResult, bisect_range
from lossbisect.bisect.planning import plan_bisect
from lossbisect.bisect.training import Training
from lossbisect.train.executors import ExecutorName, ExecutorOptions
from lossbisect.train.types import Lane, Outcome
from tests.slurm.cluster import Cluster

from .conftest import COMMAND, make_history

LOSSES = [0.0, 0.0, 0.0, None, 0.0, 0.25, 0.25, 0.25]
"""Commit 5 moves the loss from iteration 4 on; 3 can't be imported."""
TEMPLATE = """\
#SBATCH --time={minutes}
echo "run by ${USER:-nobody} in {out}"
srun {command}
"""


def _bisect(folder: Path, options: ExecutorOptions) -> BisectResult:
    training = Training(lane=Lane.CUDA, recipe="vanilla-cpu", python=Path(sys.executable), timeout_s=60.0)
    return bisect_range(folder / "mlm", "HEAD~7", "HEAD", training=training, executor=options, work_dir=folder / "work")


def _expect_commit_5(result: BisectResult, shas: list[str]) -> None:
    assert result.answer is Answer.FOUND
    assert result.culprit is not None
    assert (result.culprit.commit.sha, result.culprit.parent.sha) == (shas[5], shas[4])
    assert not any((result.directory / "trees").glob("*"))


def test_by_this_machine(tmp_path: Path) -> None:
    """The local executor names the commit, from values at full precision, and each run proved its code."""
    shas = make_history(tmp_path / "mlm", LOSSES)
    result = _bisect(tmp_path, ExecutorOptions(jobs=2))
    _expect_commit_5(result, shas)
    for step in result.finding.steps:
        if step.record.provenance is not None:
            assert step.record.provenance.megatron_core_file.startswith(str(result.directory / "trees"))


def test_by_a_command(tmp_path: Path) -> None:
    """A command that only prints a log names the same commit, and the result says that its proof is weaker."""
    shas = make_history(tmp_path / "mlm", LOSSES)
    result = _bisect(tmp_path, ExecutorOptions(name=ExecutorName.COMMAND, command=COMMAND))
    _expect_commit_5(result, shas)
    assert any("from its tree alone" in warning for warning in result.finding.warnings)
    again = ExecutorOptions(name=ExecutorName.COMMAND, command=COMMAND, folder=Path.cwd())
    plan = plan_bisect(
        tmp_path / "mlm",
        "HEAD~7",
        "HEAD",
        executor=again,
        training=Training(lane=Lane.CUDA, recipe="vanilla-cpu"),
        work_dir=tmp_path / "work",
    )
    assert len(plan.cost.earlier_s) == sum(step.record.outcome is Outcome.FINISHED for step in result.finding.steps)


@pytest.mark.parametrize(
    "settings",
    [{"sbatch_options": {"gpus-per-node": "0"}}, {"sbatch_template": TEMPLATE}],
    ids=["submitit", "template"],
)
@pytest.mark.usefixtures("slurm")
def test_by_slurm(tmp_path: Path, settings: Mapping[str, object]) -> None:
    """Real Slurm jobs name the same commit, through submitit as through the user's own batch script."""
    shas = make_history(tmp_path / "mlm", LOSSES)
    if "sbatch_template" in settings:
        (tmp_path / "site.sbatch").write_text(TEMPLATE)
        settings = {"sbatch_template": tmp_path / "site.sbatch"}
    result = _bisect(tmp_path, ExecutorOptions(name=ExecutorName.SLURM, jobs=2, **settings))  # type: ignore[arg-type]
    _expect_commit_5(result, shas)
    finished = [step.record for step in result.finding.steps if step.record.outcome is Outcome.FINISHED]
    ended = [(record.out / "slurm/ending").read_text() for record in finished]
    assert len({line.split()[0] for line in ended}) == len(ended)


def test_the_cluster_is_real(slurm: Cluster) -> None:
    """The jobs of these tests ran on a node of a real Slurm."""
    assert "State=" in slurm.ask("scontrol", "show", "node")
