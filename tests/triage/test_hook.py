"""Git hooks: kept, chained, harmless."""

import os
import subprocess
import sys
import threading
import time
from pathlib import Path

import pytest

from lossbisect.errors import GitError
from lossbisect.triage.hook import HOOKS, background, install, place_of, remove
from tests.bisect.support import commit, git, make_bridge, make_history


@pytest.fixture
def repo(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A Megatron-LM checkout whose path wants quoting."""
    monkeypatch.setenv("LOSSBISECT_CACHE_DIR", str(tmp_path / "cache"))
    folder = tmp_path / "Megatron's LM"
    make_history(folder, [10.25])
    return folder


def _stand_in(monkeypatch: pytest.MonkeyPatch, tmp_path: Path, text: str) -> None:
    """Let the hooks start this instead of Python."""
    program = tmp_path / "python"
    program.write_text(f"#!/bin/sh\n{text}\n", encoding="utf-8")
    program.chmod(0o755)
    monkeypatch.setattr(sys, "executable", str(program))


def _wait_for(file: Path) -> str:
    for _ in range(600):
        if file.exists() and file.read_text(encoding="utf-8").endswith("\n"):
            return file.read_text(encoding="utf-8")
        time.sleep(0.05)
    raise AssertionError(f"{file} never came")


def test_a_commit_starts_a_triage_in_the_background(
    repo: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The commit is done at once, though what it starts takes long, and git's own variables don't reach it."""
    seen = tmp_path / "seen"
    _stand_in(monkeypatch, tmp_path, f"sleep 1; printf '%s\\n' \"$*\" \"[$GIT_DIR$GIT_INDEX_FILE]\" >'{seen}'")
    assert [file.name for file in install(repo, ("--notify", "mail 'a b'"))] == list(HOOKS)
    started_s = time.monotonic()
    commit(repo, "Next", {"a.txt": "a"})
    assert not seen.exists() or time.monotonic() - started_s > 1
    words, variables = _wait_for(seen).splitlines()
    assert words == f"-m lossbisect hook run --repo {repo} --notify mail 'a b'"
    assert variables == "[]"


def test_a_hook_that_was_there_runs_first_and_comes_back(
    repo: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """It keeps its arguments and its exit code, a second install changes nothing, and removing restores the file."""
    _stand_in(monkeypatch, tmp_path, "exit 0")
    old = repo / ".git/hooks/post-checkout"
    old.parent.mkdir(exist_ok=True)
    text = f"#!/bin/sh\nprintf '%s ' \"$@\" >'{tmp_path}/old'\nexit 7\n"
    old.write_text(text, encoding="utf-8")
    old.chmod(0o755)
    install(repo)
    install(repo)
    done = subprocess.run([old, "a b", "c", "1"], cwd=repo, check=False, env=_clean())
    assert done.returncode == 7
    assert (tmp_path / "old").read_text() == "a b c 1 "
    done = subprocess.run(["git", "checkout", "-q", "-b", "other"], cwd=repo, check=False, env=_clean())
    assert done.returncode == 1, "what git makes of a hook that fails"
    assert (tmp_path / "old").read_text().split()[-1] == "1"
    changed = remove(repo)
    assert len(changed) == len(HOOKS)
    assert old.read_text(encoding="utf-8") == text
    assert [file.name for file in old.parent.iterdir() if not file.name.endswith(".sample")] == ["post-checkout"]
    assert remove(repo) == []


def _clean() -> dict[str, str]:
    return {name: value for name, value in os.environ.items() if not name.startswith("GIT_")}


def test_git_works_on_after_lossbisect_is_gone(repo: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """An interpreter that was removed is no trouble for a commit or a checkout."""
    monkeypatch.setattr(sys, "executable", str(tmp_path / "gone"))
    install(repo)
    assert commit(repo, "Next", {"a.txt": "a"})
    done = subprocess.run(
        ["git", "checkout", "-b", "other"], cwd=repo, check=True, env=_clean(), capture_output=True, text=True
    )
    assert "gone" not in done.stderr


def test_a_hooks_folder_of_others_is_refused(repo: Path, tmp_path: Path) -> None:
    """A folder that core.hooksPath shares with other repositories is not written to."""
    shared = tmp_path / "shared"
    shared.mkdir()
    git(repo, "config", "core.hooksPath", str(shared))
    with pytest.raises(GitError, match=r"core\.hooksPath"):
        install(repo)
    assert list(shared.iterdir()) == []


def test_of_bridge_the_submodule_has_the_hooks_too(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Commits land in both, and both hooks judge the Bridge checkout."""
    monkeypatch.setenv("LOSSBISECT_CACHE_DIR", str(tmp_path / "cache"))
    make_history(tmp_path / "mlm", [10.25])
    bridge = tmp_path / "bridge"
    make_bridge(bridge, tmp_path / "mlm")
    files = install(bridge)
    assert {file.parent for file in files} == {
        bridge / ".git/hooks",
        bridge / ".git/modules/3rdparty/Megatron-LM/hooks",
    }
    assert all(f"--repo {bridge}" in file.read_text(encoding="utf-8") for file in files)


def test_one_at_a_time_and_none_is_lost(repo: Path) -> None:
    """Whoever comes while one is running leaves at once, and the running one goes on with what came."""
    entered, go_on = threading.Event(), threading.Event()
    runs: list[str] = []

    def slow() -> None:
        runs.append("slow")
        entered.set()
        assert go_on.wait(30)

    first = threading.Thread(target=background, args=(repo, slow))
    first.start()
    assert entered.wait(30)
    assert not background(repo, lambda: runs.append("second"))
    go_on.set()
    first.join(30)
    assert runs == ["slow", "slow"]
    assert not place_of(repo).waiting.exists()
