"""Noise and another environment that are real: real Megatron-Core, whose numbers really move."""

import sys
from pathlib import Path

import pytest

from lossbisect.bisect.codebase import SUBMODULE
from lossbisect.demo import make_history
from lossbisect.train import cache_directory
from lossbisect.triage.run import triage
from lossbisect.triage.types import CaseReport, Kind
from tests.bisect.support import commit, git

pytestmark = [pytest.mark.real, pytest.mark.slow]

EMBEDDING = "megatron/core/models/common/embeddings/language_model_embedding.py"
BEFORE = "embeddings = word_embeddings + position_embeddings"
NOISE = """
            # Draws from the machine's own entropy, as an atomic addition takes its order from the moment.
            noise = torch.Generator().manual_seed(int.from_bytes(__import__("os").urandom(4), "little"))
            embeddings = embeddings + 1e-4 * torch.randn(embeddings.shape, generator=noise).to(embeddings)"""


def _one(repo: Path) -> CaseReport:
    report = triage(repo, python=Path(sys.executable))
    assert report is not None
    return report.cases[0]


def test_real_noise_is_flaky_and_other_vector_code_is_the_environment(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A commit that draws noise is flaky, and named for it; torch with older vector instructions is the environment.

    Threads can't be what changes: the lane cpu trains with one, whatever is set outside.
    """
    lane = cache_directory() / "lane"
    monkeypatch.setenv("LOSSBISECT_CACHE_DIR", str(tmp_path / "cache"))
    if lane.is_dir():  # compiled once for all tests
        (tmp_path / "cache").mkdir()
        (tmp_path / "cache" / "lane").symlink_to(lane)
    repo = make_history(tmp_path / "demo", Path(sys.executable), seed=1).repo
    mcore = repo / SUBMODULE
    sound = git(mcore, "rev-parse", "HEAD")
    assert _one(repo).kind is Kind.OK

    text = (mcore / EMBEDDING).read_text(encoding="utf-8")
    assert BEFORE in text
    noisy = commit(mcore, "Add positions faster (#9001)", {EMBEDDING: text.replace(BEFORE, BEFORE + NOISE)})
    found = _one(repo)
    assert (found.kind, found.blame, found.point.mcore) == (Kind.FLAKY, None, noisy)
    assert any(f"{sound[:10]}" in note and "repeats itself" in note for note in found.notes)
    assert found.noise_rel > 0

    git(mcore, "checkout", "--quiet", sound)
    assert _one(repo).kind is Kind.OK
    monkeypatch.setenv("OMP_NUM_THREADS", "2")
    monkeypatch.setenv("MKL_NUM_THREADS", "2")
    assert _one(repo).kind is Kind.OK
    monkeypatch.setenv("ATEN_CPU_CAPABILITY", "default")
    found = _one(repo)
    assert (found.kind, found.blame) == (Kind.ENVIRONMENT, None)
    assert _one(repo).kind is Kind.OK  # from here on these numbers are the level
