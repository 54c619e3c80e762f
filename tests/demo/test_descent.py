"""From a range of Bridge's commits to Megatron-Core's commit by real training on the CPU lane."""

import sys
from pathlib import Path

import pytest

from lossbisect.bisect import Answer, bisect_range
from lossbisect.bisect.codebase import SUBMODULE
from lossbisect.bisect.scope import Scope, Searched, StageKind
from lossbisect.demo import make_history
from tests.bisect.support import commit, git

pytestmark = [pytest.mark.real, pytest.mark.slow]

CODE = "src/megatron/bridge/__init__.py"


def test_a_bump_among_bridges_commits(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The commit of Bridge that bumped the pin and touched Bridge too is found, told apart, and gone into."""
    monkeypatch.setenv("LOSSBISECT_CACHE_DIR", str(tmp_path / "cache"))
    history = make_history(tmp_path / "demo", Path(sys.executable), seed=4)
    repo = history.repo
    git(repo / SUBMODULE, "checkout", "--quiet", "--detach", history.good)
    good = commit(repo, "Pin the release", {"notes.md": "released\n"})
    text = (repo / CODE).read_text(encoding="utf-8")
    commit(repo, "Say something", {CODE: f"{text}\n# said\n"})
    git(repo / SUBMODULE, "checkout", "--quiet", "--detach", history.bad)
    bump = commit(repo, "Bump Megatron-LM, and more", {CODE: f"{text}\n# said more\n"})
    commit(repo, "Say less", {CODE: text})
    result = bisect_range(repo, good, "HEAD", scope=Scope(searched=Searched.BRIDGE))
    assert result.answer is Answer.FOUND
    assert result.culprit is not None
    assert result.culprit.commit.sha == history.planted
    assert [passage.kind for passage in result.passages] == [StageKind.PAIR, StageKind.PINNED]
    assert result.passages[0].commit is not None
    assert result.passages[0].commit.sha == bump
    assert "Megatron-Core's change" in result.passages[0].text
