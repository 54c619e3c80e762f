"""Made-up Megatron-LM commits, a trainer that needs no torch, and a real Slurm where one can be started."""

import os
import sys
from collections.abc import Iterator, Sequence
from pathlib import Path

import pytest

from lossbisect.train.types import Lane, RunSpec, Sources, TrainerName
from tests.bisect.support import commit, git
from tests.slurm.cluster import Cluster, running, why_not

TRAINER = """
import os, sys, time
import megatron.core
from megatron.core.loss import LOSS, PAUSE_S
from torch.utils.tensorboard import SummaryWriter

writer = SummaryWriter(log_dir="tb")
for iteration in range(1, 11):
    loss = 10.0 / iteration + (LOSS if iteration > 3 else 0.0)
    writer.add_scalar("lm loss", loss, iteration)
    print(f" iteration {iteration:8d}/      10 | consumed samples: {iteration} | lm loss: {loss:.6E} |", flush=True)
    time.sleep(PAUSE_S)
"""
"""Runs inside our own launcher, which records at full precision and says which code it was."""

COMMAND = f"{sys.executable} -S {{worktree}}/alone.py {{iterations}}"
"""The same curve, printed by a script of the tree's own that knows nothing of lossbisect."""
ALONE = TRAINER.replace("from torch.utils.tensorboard import SummaryWriter", "").replace(
    'writer = SummaryWriter(log_dir="tb")', ""
).replace('    writer.add_scalar("lm loss", loss, iteration)\n', "")  # fmt: skip


def make_history(folder: Path, losses: Sequence[float | None], *, pause_s: float = 0.0) -> list[str]:
    """A Megatron-LM checkout with one commit for each loss (None: it can't be imported); all SHAs, oldest first."""
    folder.mkdir(parents=True)
    git(folder, "init", "--quiet")
    shas = []
    for number, loss in enumerate(losses):
        source = "import gone\n" if loss is None else f"LOSS = {loss!r}\nPAUSE_S = {pause_s}\n"
        files = {
            "megatron/core/__init__.py": '__version__ = "0.0.0"\n', "megatron/core/loss.py": source,
            "pretrain_gpt.py": TRAINER, "alone.py": ALONE, "number.txt": f"{number}\n",
        }  # fmt: skip
        shas.append(commit(folder, f"Change number {number} (#{100 + number})", files))
    return shas


def spec_at(tree: Path, *, timeout_s: float = 60.0) -> RunSpec:
    """A run of a checkout's HEAD by its own trainer, without emulated CUDA."""
    return RunSpec(
        sources=Sources(mcore=tree, mcore_commit=git(tree, "rev-parse", "HEAD")), recipe="vanilla-cpu",
        trainer=TrainerName.MLM, lane=Lane.CUDA, python=Path(sys.executable), timeout_s=timeout_s,
    )  # fmt: skip


@pytest.fixture(scope="session")
def cluster(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Cluster]:
    """A Slurm of one node, started once; where none can be, the tests that need it are skipped with the reason."""
    if reason := why_not():
        pytest.skip(f"no Slurm here: {reason}")
    with running(tmp_path_factory.mktemp("slurm") / "cluster") as started:
        yield started


@pytest.fixture
def slurm(cluster: Cluster, monkeypatch: pytest.MonkeyPatch) -> Cluster:
    """The cluster, found by Slurm's commands, with its node up."""
    for name, value in cluster.variables.items():
        monkeypatch.setenv(name, value)
    cluster.start_node()
    return cluster


def processes_of(out: Path) -> list[int]:
    """Processes that have a run's directory in their command line."""
    found = []
    for entry in Path("/proc").glob("[0-9]*"):
        try:
            words = (entry / "cmdline").read_bytes()
        except OSError:
            continue
        if str(out).encode() in words and int(entry.name) != os.getpid():
            found.append(int(entry.name))
    return found
