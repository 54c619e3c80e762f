"""``lossbisect runs``: output and exit codes."""

import json
from datetime import UTC, datetime, timedelta
from pathlib import Path

import polars as pl
import pytest

from lossbisect.cli import main
from lossbisect.store.store import RunStore
from tests.store.made import CURVE, made_key, made_run

type Told = tuple[int, str, str]


@pytest.fixture
def store(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> RunStore:
    """A store with a run of 40 days ago and one of now."""
    monkeypatch.setenv("LOSSBISECT_CACHE_DIR", str(tmp_path / "cache"))
    now = datetime.now(UTC)
    clock = iter((now - timedelta(days=40), now))
    store = RunStore(tmp_path / "cache", now=lambda: next(clock))
    for name in ("a", "b"):
        store.add(made_key(name * 40), made_run(tmp_path / name, made_key(name * 40)))
    return store


def told(capsys: pytest.CaptureFixture[str], *words: str) -> Told:
    """Exit code, standard output and standard error of ``lossbisect runs``."""
    with pytest.raises(SystemExit) as ended:
        main(["runs", *words])
    assert isinstance(ended.value.code, int)
    return ended.value.code, *capsys.readouterr()


def test_the_list_narrows(store: RunStore, capsys: pytest.CaptureFixture[str]) -> None:
    """Each filter leaves the runs that fit it, in a table and as JSON."""
    assert len(store.runs()) == 2
    code, table, _ = told(capsys, "list")
    assert code == 0
    assert [line.split()[3] for line in table.splitlines()[1:3]] == ["aaaaaaaaaa", "bbbbbbbbbb"]
    assert "2 runs" in table
    for words, commits in (
        (("--commit", "bbb"), "b"), (("--since", "7d"), "b"), (("--trainer", "mlm"), "ab"),
        (("--trainer", "bridge"), ""), (("--lane", "cuda"), ""), (("--recipe", "vanilla-cpu"), "ab"),
        (("--since", "2020-01-01"), "ab"),
    ):  # fmt: skip
        code, text, _ = told(capsys, "list", "--json", *words)
        found = json.loads(text)["runs"]
        assert (code, [run["mcore_commit"] for run in found]) == (0, [name * 40 for name in commits])


def test_an_empty_store_says_how_runs_get_there(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """Without a store the list is empty, says why, and makes no file."""
    monkeypatch.setenv("LOSSBISECT_CACHE_DIR", str(tmp_path / "cache"))
    code, out, err = told(capsys, "list")
    assert (code, out) == (0, "")
    assert "no run" in err
    assert not (tmp_path / "cache").exists()


def test_a_run_is_shown_and_exported(store: RunStore, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """The page has provenance, curve and files; the export has every value; a wrong name is one line and code 2."""
    run = store.runs()[0]
    code, page, _ = told(capsys, "show", run.id[-6:])
    assert code == 0
    for part in ("a" * 40, "torch 2.15.0", "OMP_NUM_THREADS=1", "9.875", "console.log"):
        assert part in page
    code, _, _ = told(capsys, "export", run.id, "-o", str(tmp_path / "run.parquet"))
    assert code == 0
    assert pl.read_parquet(tmp_path / "run.parquet")["lm_loss"].to_list() == list(CURVE)
    code, _, err = told(capsys, "show", "nothing")
    assert code == 2
    assert "no run 'nothing'" in err
    code, _, err = told(capsys, "export", run.id, "-o", "run.xlsx")
    assert code == 2
    assert ".parquet" in err


def test_pruning_says_what_goes_and_asks(
    store: RunStore, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    """Nothing goes unasked; with --yes the old run goes, with its size said, and the new one stays."""
    monkeypatch.setattr("sys.stdin.isatty", lambda: False, raising=False)
    code, _, err = told(capsys, "prune", "--older-than", "30d")
    assert code == 2
    assert "--yes" in err
    assert len(store.runs()) == 2
    code, _, err = told(capsys, "prune", "--older-than", "30d", "--yes")
    assert code == 0
    assert "Removed 1" in err
    assert [run.mcore_commit[0] for run in store.runs()] == ["b"]
    assert "Nothing to remove" in told(capsys, "prune")[2]


@pytest.mark.parametrize(
    ("words", "hint"),
    [
        (("list", "--since", "soon"), "12h"),
        (("prune", "--older-than", "x"), "30d"),
        (("prune", "--max-size", "big"), "2GB"),
    ],
)
def test_a_wrong_value_names_a_right_one(words: tuple[str, ...], hint: str, capsys: pytest.CaptureFixture[str]) -> None:
    """A span, date or size that can't be read is code 2 and an example."""
    code, _, err = told(capsys, *words)
    assert code == 2
    assert hint in err
