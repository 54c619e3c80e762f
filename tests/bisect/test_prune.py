"""Commits that can't matter."""

import json
import random
import subprocess
import sys
from pathlib import Path

import pytest

from lossbisect.bisect.codebase import open_codebase
from lossbisect.bisect.commits import changes_between, commit_range
from lossbisect.bisect.prune import equal_span
from lossbisect.bisect.types import FileChange
from lossbisect.train.reads import Reads
from tests.bisect.support import commit, git, make_megatron_lm

_RUN = """
import sys
from pathlib import Path
from lossbisect.train.inside.reads import record
record(Path(sys.argv[2]), [sys.argv[1]])
sys.path.insert(0, sys.argv[1])
import m0
print(m0.total())
"""
_MODULES = 12


def reads(**kinds: str) -> Reads:
    """What a run took, each kind a word list."""
    names = ("opened", "looked_up", "missed", "listed", "handed_on")
    return Reads(**{name: frozenset(kinds.get(name, "").split()) for name in names})


def modified(*paths: str) -> list[FileChange]:
    """Changes of files that stay."""
    return [FileChange(path=path, status="modified") for path in paths]


@pytest.mark.parametrize(
    ("index", "expected"), [(-1, range(-1, 1)), (0, range(-1, 1)), (1, range(1, 4)), (3, range(1, 4)), (4, range(4, 5))]
)
def test_a_span_ends_where_a_commit_touches_something(index: int, expected: range) -> None:
    """A commit belongs to the span before it or after it, by whether it touches what was read itself."""
    changes = [modified("docs/a"), modified("a.py"), modified("b.py"), [], modified("docs/b", "a.py")]
    assert equal_span(index, changes, reads(opened="a.py")) == expected


def test_a_commit_whose_changes_arent_known_ends_a_span() -> None:
    """Nothing is folded over a gap in the history."""
    assert equal_span(0, [[], None, []], reads()) == range(-1, 1)


def module(rng: random.Random, number: int) -> str:
    """A module that imports some with higher numbers, some of which may not be there."""
    others = [other for other in range(number + 1, _MODULES) if rng.random() < 0.25]
    lines = [f"VALUE = {rng.randrange(10**6)}", "def total():", f"    found = {number} + VALUE"]
    for other in others:
        lines += [f"    try:\n        import m{other}\n    except ImportError:\n        found += 17"]
        lines += [f"    else:\n        found = 31 * found + m{other}.total()"]
    return "\n".join([*lines, "    return found % 10**9", ""])


@pytest.mark.parametrize("seed", [1, 2, 3])
def test_folded_commits_really_give_the_same_run(tmp_path: Path, seed: int) -> None:
    """In made-up histories each commit of a span prints what the commit printed that stands for it."""
    rng = random.Random(seed)
    folder = tmp_path / "mlm"
    make_megatron_lm(folder, 0)
    for number in range(_MODULES - 2):
        (folder / f"m{number}.py").write_text(module(rng, number), encoding="utf-8")
    good = commit(folder, "Modules", {})
    for number in range(14):
        chosen = folder / f"m{rng.randrange(1, _MODULES)}.py"
        if chosen.exists() and rng.random() < 0.3:
            chosen.unlink()
            commit(folder, f"Remove {number}", {})
        else:
            commit(folder, f"Write {number}", {chosen.name: module(rng, int(chosen.stem[1:]))})
    with open_codebase(folder) as code:
        commits = commit_range(code, good, "HEAD")
        changes = changes_between(code.mcore, commits)
    runs = [run(folder, tmp_path / "out", commits.at(index).sha) for index in range(-1, len(commits.commits))]
    n_folded = 0
    for index, (printed, taken) in enumerate(runs, start=-1):
        span = equal_span(index, changes, taken)
        assert index in span
        n_folded += len(span) - 1
        for other in span:
            assert runs[other + 1] == (printed, taken), f"seed {seed}: {other} was folded into {index}"
    assert n_folded > 3, f"seed {seed} folds too little to prove anything"


def run(folder: Path, out: Path, sha: str) -> tuple[str, Reads]:
    """What a commit prints, and what it takes."""
    git(folder, "checkout", "--quiet", sha)
    out.mkdir(exist_ok=True)
    options = {"check": True, "capture_output": True, "text": True, "cwd": out}
    printed = subprocess.run([sys.executable, "-B", "-c", _RUN, str(folder), str(out)], **options).stdout  # type: ignore[call-overload]
    (table,) = json.loads((out / "reads-0-of-1.json").read_text(encoding="utf-8"))
    del table["root"]
    return printed, Reads(**{kind: frozenset(paths) for kind, paths in table.items()})
