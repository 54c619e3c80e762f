"""Flaky and environment cases by real rounding: a tiny training in float32 whose sums are added in another order."""

import os
from dataclasses import dataclass, replace
from pathlib import Path

import numpy as np
import pytest

from lossbisect.train.types import RunRecord, RunSpec
from lossbisect.triage.run import triage
from lossbisect.triage.types import CaseReport, Kind
from tests.bisect import support
from tests.bisect.support import commit, git, make_record, write_curve

FILE = "megatron/core/sums.py"
IN_ORDER, AS_THEY_COME = "SUMS = 'in order'\n", "SUMS = 'as they come'\n"


@dataclass
class TinyTrainer:
    """Linear regression in float32, its gradient summed over samples by some threads.

    Attributes:
        threads: Parts of the batch that are summed apart, then together.
    """

    threads: int = 1

    def play(self, spec: RunSpec, out: Path, **_: object) -> RunRecord:
        """Stand in for `run_recipe`: the tree's own code says whether sums keep their order."""
        assert spec.sources.mcore is not None
        out.mkdir(parents=True, exist_ok=True)
        source = (spec.sources.mcore / FILE).read_text(encoding="utf-8")
        record = make_record(git(spec.sources.mcore, "rev-parse", "HEAD"), out)
        write_curve(record.scalars, self.losses(is_shuffled=source == AS_THEY_COME))
        return replace(record, spec=spec)

    def losses(self, *, is_shuffled: bool) -> list[float]:
        """Eight iterations."""
        chance = np.random.default_rng(20261130)
        samples = chance.standard_normal((2048, 8)).astype(np.float32)
        wanted = (samples @ np.arange(8, dtype=np.float32) + chance.standard_normal(2048)).astype(np.float32)
        order = np.arange(2048)
        weights, found = np.zeros(8, dtype=np.float32), []
        for _ in range(8):
            if is_shuffled:
                np.random.default_rng(int.from_bytes(os.urandom(8))).shuffle(order)
            error = samples @ weights - wanted
            found.append(float(np.mean(error * error, dtype=np.float64)))
            parts = [
                (error[part, None] * samples[part]).sum(axis=0, dtype=np.float32)
                for part in np.array_split(order, self.threads)
            ]
            weights -= np.float32(0.2 / 2048) * np.sum(parts, axis=0, dtype=np.float32)
        return found


@pytest.fixture
def trainer(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> TinyTrainer:
    """What trains, instead of Megatron's trainers."""
    made = TinyTrainer()
    monkeypatch.setattr("lossbisect.train.executors.local.run_recipe", made.play)
    monkeypatch.setattr("lossbisect.bisect.runner.read_curves", support.read_play)
    monkeypatch.setenv("LOSSBISECT_CACHE_DIR", str(tmp_path / "cache"))
    return made


def _one(repo: Path) -> CaseReport:
    report = triage(repo)
    assert report is not None
    return report.cases[0]


def _history(folder: Path) -> Path:
    folder.mkdir()
    git(folder, "init", "--quiet")
    commit(folder, "Start", {"megatron/core/__init__.py": "", FILE: IN_ORDER})
    commit(folder, "Change nothing", {"README.md": "Megatron\n"})
    return folder


def test_rounding_differs_by_order_alone(trainer: TinyTrainer) -> None:
    """What the other tests rest on: the same order gives the same bits, another one others, by less than 1e-5."""
    once, again = trainer.losses(is_shuffled=False), trainer.losses(is_shuffled=False)
    assert once == again
    shuffled, trainer.threads = trainer.losses(is_shuffled=True), 4
    for other in (shuffled, trainer.losses(is_shuffled=False)):
        assert other != once
        assert other == pytest.approx(once, rel=1e-5)


def test_a_commit_that_adds_in_random_order_is_flaky(tmp_path: Path, trainer: TinyTrainer) -> None:
    """Named flaky, with the commit before it that repeats itself; afterwards its noise is known."""
    repo = _history(tmp_path / "mlm")
    assert trainer.threads == 1
    assert _one(repo).kind is Kind.OK
    commit(repo, "Add as gradients come", {FILE: AS_THEY_COME})
    found = _one(repo)
    assert (found.kind, found.blame) == (Kind.FLAKY, None)
    assert 0 < found.noise_rel < 1e-5
    assert any("repeats itself" in note for note in found.notes)


def test_other_threads_are_the_environment(tmp_path: Path, trainer: TinyTrainer) -> None:
    """The same commit, then a new one, with another number of threads: nobody is blamed, and it's said once."""
    repo = _history(tmp_path / "mlm")
    assert _one(repo).kind is Kind.OK
    trainer.threads = 4
    found = _one(repo)
    assert (found.kind, found.blame) == (Kind.ENVIRONMENT, None)
    assert _one(repo).kind is Kind.OK
    trainer.threads = 7
    commit(repo, "Change nothing again", {"README.md": "Megatron-LM\n"})
    found = _one(repo)
    assert (found.kind, found.blame) == (Kind.ENVIRONMENT, None)
