"""What the store gives back, keeps, and refuses."""

import json
import sqlite3
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest

from lossbisect.cause import Cause
from lossbisect.errors import StoreError
from lossbisect.store import database
from lossbisect.store.prune import to_prune
from lossbisect.store.store import RunStore
from lossbisect.store.types import NotStored, RunFilter
from lossbisect.train.types import Outcome, TrainerName

from .made import CURVE, ENVIRONMENT, changed, made_key, made_run


@pytest.fixture
def store(tmp_path: Path) -> RunStore:
    """An empty store."""
    return RunStore(tmp_path / "cache")


def test_a_stored_run_comes_back_whole(store: RunStore, tmp_path: Path) -> None:
    """The record, its curve and its console are those of the run, in the folder that was named."""
    key = made_key()
    ran = made_run(tmp_path / "run", key)
    assert isinstance(store.add(key, ran), str)
    found = store.recall(key, tmp_path / "again")
    assert found is not None
    assert found.stored_as is not None
    assert replace(found, out=ran.out, stored_as=None) == ran
    for name in ("console.log", "scalars.ndjson"):
        assert (tmp_path / "again" / name).read_bytes() == (ran.out / name).read_bytes()


def test_commits_are_those_that_the_same_question_has_curves_of(store: RunStore, tmp_path: Path) -> None:
    """Cut runs and whole ones count, and are told apart; a failure and another recipe's run don't."""
    assert store.commits(made_key()) == (frozenset(), frozenset())
    failed = {"outcome": Outcome.FAILED, "exit_code": 1, "reason": "ImportError: no", "cause": Cause.OWN}
    for key, how in (
        (made_key("a" * 40), {}),
        (made_key("b" * 40), {"outcome": Outcome.CUT, "reason": "sure at iteration 3"}),
        (made_key("c" * 40), failed),
        (made_key("d" * 40, recipe="two"), {}),
    ):
        ran = replace(made_run(tmp_path / key.mcore_commit, key), **how)
        assert isinstance(store.add(key, ran), str)
    assert store.commits(made_key("f" * 40)) == (frozenset({"b" * 40}), frozenset({"a" * 40}))


def test_repetitions_are_runs_of_their_own(store: RunStore, tmp_path: Path) -> None:
    """Whoever has the first run gets the second, and whoever has both gets none."""
    key = made_key()
    for number in range(2):
        store.add(key, made_run(tmp_path / f"run-{number}", key, console=f"run {number}\n"))
    given: list[str] = []
    for number in range(2):
        found = store.recall(key, tmp_path / f"again-{number}", but=given)
        assert found is not None
        assert found.stored_as is not None
        assert found.console.read_text() == f"run {number}\n"
        given.append(found.stored_as)
    assert store.recall(key, tmp_path / "again-2", but=given) is None
    assert not (tmp_path / "again-2").exists()


@pytest.mark.parametrize(
    "other",
    [
        made_key(commit="b" * 40),
        made_key(recipe="two"),
        replace(made_key(), bridge_commit="b" * 40),
        replace(made_key(), trainer=TrainerName.BRIDGE),
        replace(made_key(), settings_digest="e" * 64),
        *(
            made_key(environment=replace(ENVIRONMENT, **{name: value}))  # type: ignore[arg-type]
            for name, value in {
                "python": "3.13.0", "packages": {"torch": "2.16.0"}, "processor": "another", "driver": "1",
                "gpu": "H200", "image": "x", "variables": {}, "code": "e" * 64,
            }.items()
        ),
    ],
)  # fmt: skip
def test_whatever_may_change_the_result_is_another_key(store: RunStore, tmp_path: Path, other: object) -> None:
    """A run isn't found under a key that differs in any one part."""
    store.add(made_key(), made_run(tmp_path / "run", made_key()))
    assert other != made_key()
    assert store.recall(other, tmp_path / "again") is None  # type: ignore[arg-type]


def test_what_says_nothing_of_the_commit_is_not_kept(store: RunStore, tmp_path: Path) -> None:
    """Void and timed-out runs, infrastructure failures, missing packages and dirty trees leave the store empty."""
    key = made_key()
    ran = made_run(tmp_path / "run", key)
    failed = replace(ran, outcome=Outcome.FAILED, exit_code=1, reason="ImportError: no", cause=Cause.OWN)
    for record, reason in (
        (replace(ran, outcome=Outcome.VOID), "void"),
        (replace(ran, outcome=Outcome.TIMED_OUT), "timed out"),
        (replace(failed, cause=Cause.INFRASTRUCTURE), "may not be the commit's"),
        (replace(failed, cause=Cause.UNKNOWN), "may not be the commit's"),
        (replace(failed, reason="ModuleNotFoundError: No module named 'te'"), "may not be the commit's"),
        (replace(ran, provenance=None), "didn't say"),
        (changed(ran, is_clean=False), "nothing else"),
        (changed(ran, mcore_commit="b" * 40), "nothing else"),
        (changed(ran, python="3.13.0"), "Python was 3.13.0 in the run"),
        (changed(ran, packages={"torch": "2.15.0"}), "numpy was not there in the run"),
        (changed(ran, processor="another"), "the CPU"),
        (changed(ran, variables={"OMP_NUM_THREADS": "2"}), "OMP_NUM_THREADS was 2"),
    ):
        kept = store.add(key, record)
        assert isinstance(kept, NotStored)
        assert reason in kept.reason
    assert store.runs() == []
    assert not store.folder.exists()


def test_the_commits_own_failure_is_kept(store: RunStore, tmp_path: Path) -> None:
    """A commit that can't be imported isn't run twice, unless failures are asked for anew."""
    key = made_key()
    reason = "ModuleNotFoundError: No module named 'megatron.core.gone'"
    failed = replace(
        made_run(tmp_path / "run", key, ()), outcome=Outcome.FAILED, exit_code=1, reason=reason, cause=Cause.OWN
    )
    assert isinstance(store.add(key, failed), str)
    found = store.recall(key, tmp_path / "again")
    assert found is not None
    assert (found.outcome, found.reason) == (Outcome.FAILED, reason)
    assert store.recall(key, tmp_path / "anew", with_failures=False) is None


def test_a_bridge_checkout_must_be_clean_too(store: RunStore, tmp_path: Path) -> None:
    """A run with changed Bridge files isn't stored under Bridge's commit."""
    key = replace(made_key(), bridge_commit="b" * 40)
    ran = made_run(tmp_path / "run", key)
    assert "megatron.bridge" in str(store.add(key, ran))
    assert "megatron.bridge" in str(store.add(key, changed(ran, bridge_commit="b" * 40, bridge_is_clean=False)))
    assert isinstance(store.add(key, changed(ran, bridge_commit="b" * 40, bridge_is_clean=True)), str)


def test_numbers_that_changed_without_a_trace_put_older_runs_aside(store: RunStore, tmp_path: Path) -> None:
    """Once a set-up that repeated itself gives other numbers, no older run of the environment is given out."""
    key, neighbour = made_key(), made_key(commit="b" * 40)
    elsewhere = made_key(environment=replace(ENVIRONMENT, python="3.13.0"))
    for number, one in enumerate((key, key, neighbour, elsewhere)):
        assert isinstance(store.add(one, made_run(tmp_path / f"{number}", one)), str)
    store.add(key, made_run(tmp_path / "drifted", key, (10.5, 10.25, 9.876)))
    assert store.recall(neighbour, tmp_path / "a") is None
    assert store.recall(elsewhere, tmp_path / "b") is not None
    found = store.recall(key, tmp_path / "c")
    assert found is not None
    assert "9.876" in found.scalars.read_text()
    assert [run.is_stale for run in store.runs()] == [True, True, True, False, False]


def test_a_set_up_that_never_repeated_itself_proves_no_drift(store: RunStore, tmp_path: Path) -> None:
    """Runs that differ from the first repeat on are noise: all of them are kept as repeats."""
    key = made_key()
    for number, last in enumerate((9.875, 9.876, 9.877)):
        store.add(key, made_run(tmp_path / f"{number}", key, (10.5, last)))
    assert not any(run.is_stale for run in store.runs())
    assert [log.iterations["lm_loss"][1] for log in store.repeats(key)] == [9.875, 9.876, 9.877]


def test_history_is_of_one_set_up(store: RunStore, tmp_path: Path) -> None:
    """Runs of the same recipe and environment at any commit, oldest first; others aren't among them."""
    others = made_key(recipe="two"), made_key(environment=replace(ENVIRONMENT, python="3.13.0"))
    for number, key in enumerate((made_key("b" * 40), made_key("a" * 40), *others)):
        store.add(key, made_run(tmp_path / f"{number}", key))
    assert [run.mcore_commit[0] for run in store.history(made_key("c" * 40))] == ["b", "a"]


def test_runs_are_listed_by_what_is_asked(store: RunStore, tmp_path: Path) -> None:
    """Filters narrow the list; a part of an id finds a run, a wrong or shared one is an error that says so."""
    clock = iter(datetime(2026, 11, day, tzinfo=UTC) for day in (1, 2))
    store = RunStore(tmp_path / "cache", now=lambda: next(clock))
    for number, commit in enumerate(("a" * 40, "b" * 40)):
        store.add(made_key(commit), made_run(tmp_path / f"{number}", made_key(commit)))
    assert [run.mcore_commit[0] for run in store.runs()] == ["a", "b"]
    assert [run.mcore_commit[0] for run in store.runs(RunFilter(commit="BBB"))] == ["b"]
    assert store.runs(RunFilter(recipe="other")) == []
    assert len(store.runs(RunFilter(since=datetime(2026, 11, 2, tzinfo=UTC)))) == 1
    first = store.runs()[0]
    assert (first.iterations, first.last_loss) == (len(CURVE), CURVE[-1])
    assert store.find(first.id[-6:]) == first
    with pytest.raises(StoreError, match="Say more"):
        store.find("2026")
    with pytest.raises(StoreError, match="no run 'nothing'"):
        store.find("nothing")


def test_a_run_whose_files_are_gone_is_not_found(store: RunStore, tmp_path: Path) -> None:
    """A folder that someone deleted is a miss, not an error, and the next repeat takes its place."""
    key = made_key()
    for number in range(2):
        store.add(key, made_run(tmp_path / f"{number}", key, console=f"run {number}\n"))
    for file in store.runs()[0].record.out.iterdir():
        file.unlink()
    store.runs()[0].record.out.rmdir()
    found = store.recall(key, tmp_path / "again")
    assert found is not None
    assert found.console.read_text() == "run 1\n"


def test_pruning_takes_what_each_limit_names(tmp_path: Path) -> None:
    """Age, size and number each remove the oldest runs; what is left is the newest."""
    now = datetime(2026, 11, 30, tzinfo=UTC)
    clock = iter(now - timedelta(days=days) for days in (40, 30, 20, 10))
    store = RunStore(tmp_path / "cache", now=lambda: next(clock))
    for number in range(4):
        store.add(made_key(f"{number}" * 40), made_run(tmp_path / f"{number}", made_key(f"{number}" * 40)))
    runs = store.runs()

    def left(**limits: object) -> list[str]:
        gone = to_prune(runs, now=now, **limits)  # type: ignore[arg-type]
        return [run.mcore_commit[0] for run in runs if run not in gone]

    assert left() == ["0", "1", "2", "3"]
    assert left(older_than=timedelta(days=25)) == ["2", "3"]
    assert left(keep=1) == ["3"]
    assert left(max_bytes=3 * runs[0].size_bytes) == ["1", "2", "3"]
    assert left(max_bytes=0) == []
    store.remove(to_prune(runs, now=now, keep=1))
    assert [run.mcore_commit[0] for run in store.runs()] == ["3"]
    assert [path.name for path in store.folder.iterdir()] == [runs[3].id]


def test_a_newer_store_is_refused(store: RunStore) -> None:
    """A store that a newer lossbisect has made is an error that says what to do, and stays as it is."""
    store.runs()
    with database.writing(store.file) as connection:
        connection.execute("PRAGMA user_version = 99")
    with pytest.raises(StoreError, match="newer lossbisect"):
        store.runs()
    with sqlite3.connect(store.file) as connection:
        assert connection.execute("PRAGMA user_version").fetchone() == (99,)
    connection.close()


def test_an_older_store_is_brought_up_with_its_runs(
    store: RunStore, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Opening a store of an earlier schema applies what came since, in order, and keeps every run."""
    key = made_key()
    store.add(key, made_run(tmp_path / "run", key))
    later = (
        *database.MIGRATIONS,
        ("ALTER TABLE runs ADD COLUMN note TEXT", "UPDATE runs SET note = 'old'"),
        ("ALTER TABLE runs RENAME COLUMN note TO remark",),
    )
    monkeypatch.setattr(database, "MIGRATIONS", later)
    assert store.recall(key, tmp_path / "again") is not None
    with database.reading(store.file) as connection:
        assert connection.execute("SELECT remark FROM runs").fetchone()["remark"] == "old"
        assert connection.execute("PRAGMA user_version").fetchone()[0] == len(later)


def test_a_migration_that_fails_changes_nothing(
    store: RunStore, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A step that breaks leaves the store at its old version, usable by the old program."""
    key = made_key()
    store.add(key, made_run(tmp_path / "run", key))
    with monkeypatch.context() as patch:
        patch.setattr(database, "MIGRATIONS", (*database.MIGRATIONS, ("DELETE FROM runs", "no SQL")))
        with pytest.raises(StoreError, match="can't be used"):
            store.runs()
    assert len(store.runs()) == 1


def test_a_file_that_is_no_store_is_named(store: RunStore) -> None:
    """Something else under the store's name is an error with the way on, and isn't touched."""
    store.root.mkdir()
    store.file.write_text("something else, and long enough to be read as a header of a database" * 20)
    with pytest.raises(StoreError, match="--no-store"):
        store.runs()
    assert store.file.read_text().startswith("something else")


def test_secrets_of_a_run_stay_out_of_the_store(store: RunStore, tmp_path: Path) -> None:
    """A token in argv, environment, reason or console of a run is in no file of the store."""
    token, password = "hf_" + "q" * 30, "correct-horse-battery"
    key = made_key()
    ran = made_run(tmp_path / "run", key, console=f"login {token}\nexport DB_PASSWORD={password}\n")
    spec = replace(ran.spec, env={"HF_TOKEN": token, "DB_PASSWORD": password})
    argv = ("python", "--wandb-key", password, f"logger.hf_token={token}")
    store.add(key, replace(ran, spec=spec, argv=argv, reason=f"ended with {token}"))
    told = json.dumps([str(run) for run in store.runs()])
    everything = b"".join(path.read_bytes() for path in store.root.rglob("*") if path.is_file()) + told.encode()
    assert token.encode() not in everything
    assert password.encode() not in everything
