"""Whole bisects through the store, with a trainer that needs neither torch nor Megatron-Core."""

import sys
from collections.abc import Callable
from pathlib import Path

import pytest

from lossbisect.bisect import Answer, BisectResult, bisect_range
from lossbisect.bisect.training import Training
from lossbisect.train import run as running
from lossbisect.train.executors import local
from lossbisect.train.types import Lane, Outcome
from tests.bisect.support import commit, git

TRAINER = """
import megatron.core
from megatron.core.loss import LOSS
from torch.utils.tensorboard import SummaryWriter

writer = SummaryWriter(log_dir="tb")
for iteration in range(1, 11):
    writer.add_scalar("lm loss", LOSS / iteration, iteration)
"""
LOSSES = (10.5, 10.5, None, 10.5, 10.25, 10.25)


@pytest.fixture
def history(tmp_path: Path) -> tuple[Path, list[str]]:
    """A Megatron-LM checkout whose fifth commit moves the loss, and whose third can't be imported."""
    repo = tmp_path / "Megatron-LM"
    repo.mkdir()
    git(repo, "init", "--quiet")
    shas = []
    for number, loss in enumerate(LOSSES):
        source = "from megatron.core import gone\n" if loss is None else f"LOSS = {loss!r}\n"
        files = {"megatron/core/__init__.py": "", "megatron/core/loss.py": source, "pretrain_gpt.py": TRAINER}
        shas.append(commit(repo, f"Change {number}", {**files, "number.txt": f"{number}\n"}))
    return repo, shas


@pytest.fixture
def ran(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """Commits that were really run, in order; the cache is the test's own."""
    monkeypatch.setenv("LOSSBISECT_CACHE_DIR", str(tmp_path / "cache"))
    commits: list[str] = []
    run_recipe = running.run_recipe

    def counted(spec, *arguments, **others):  # type: ignore[no-untyped-def]
        commits.append(spec.sources.mcore_commit)
        return run_recipe(spec, *arguments, **others)

    monkeypatch.setattr(local, "run_recipe", counted)
    return commits


@pytest.fixture
def bisect(history: tuple[Path, list[str]]) -> Callable[..., BisectResult]:
    """Bisect the history's range, with options."""
    repo, shas = history

    def bisect(**options: object) -> BisectResult:
        python = Path(sys.executable)
        training = Training(lane=Lane.CUDA, recipe="vanilla-cpu", python=python)
        return bisect_range(repo, shas[0], shas[-1], training=training, **options)  # type: ignore[arg-type]

    return bisect


def test_the_second_bisect_runs_nothing(
    bisect: Callable[..., BisectResult], ran: list[str], history: tuple[Path, list[str]], tmp_path: Path
) -> None:
    """Over the same range the same commit is named from the store alone, skips included, in another folder."""
    first = bisect()
    assert first.answer is Answer.FOUND
    assert first.culprit is not None
    assert first.culprit.commit.sha == history[1][4]
    runs = len(ran)
    second = bisect(work_dir=tmp_path / "elsewhere")
    assert ran[runs:] == []
    assert second.culprit is not None
    assert second.culprit.commit.sha == first.culprit.commit.sha
    assert [step.reason for step in second.finding.steps] == [step.reason for step in first.finding.steps]
    trained = [step for step in second.finding.steps if step.record.outcome is not Outcome.VOID]
    assert all(step.record.stored_as for step in trained)
    assert all(step.record.out.is_relative_to(tmp_path / "elsewhere") for step in second.finding.steps)
    ids = [step.record.stored_as for step in second.finding.steps]
    assert len(set(ids)) == len(ids), "no stored run is a repeat of itself"
