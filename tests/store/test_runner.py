"""Runs through the store: what is taken, what is run, what is proven first."""

import os
import sys
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

import pytest

from lossbisect.errors import RunCancelledError
from lossbisect.parsers.runlog import RunLog
from lossbisect.store.environment import interpreter_of
from lossbisect.store.key import key_of
from lossbisect.store.runner import StoredRunner, StoredRuns, StoreUse
from lossbisect.store.store import RunStore
from lossbisect.store.types import NotStored, RunKey
from lossbisect.train import Outcome, read_run, run_recipe
from lossbisect.train.inside import fingerprint
from lossbisect.train.types import RunRecord, RunSpec
from tests.train.conftest import TRAIN, MakeTree, make_tree, spec_of

__all__ = ["make_tree"]

PYTHON = Path(sys.executable)
TOKEN = "hf_" + "Zz9" * 10
PASSWORD = "correct-horse-battery-staple"  # noqa: S105  # planted
LEAKY = (
    "import os, sys\n"
    "for name, value in sorted(os.environ.items()):\n"
    "    print(f'{name}={value}')\n"
    "print(dict(os.environ), sys.argv)\n"
    "print('dialling', os.environ['DB_PASSWORD'])\n" + TRAIN
)


@pytest.fixture(autouse=True)
def cache(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A cache directory of the test's own."""
    monkeypatch.setenv("LOSSBISECT_CACHE_DIR", str(tmp_path / "cache"))
    return tmp_path / "cache"


def ours(tree: Path) -> RunSpec:
    """A run of a tree that counts as lossbisect's own."""
    spec = spec_of(tree, PYTHON)
    return replace(spec, sources=replace(spec.sources, is_ours=True))


class Runs:
    """Runs a spec for real, and counts."""

    def __init__(self, spec: RunSpec, folder: Path) -> None:
        self.spec = spec
        self.ran = 0
        self._folder = folder
        self._asked = 0

    def get(self, runs: StoredRuns, told: list[str] | None = None, repetition: int = 0) -> RunRecord:
        """Ask the store for the run."""
        self._asked += 1
        out = self._folder / f"out-{self._asked}"

        def run() -> RunRecord:
            self.ran += 1
            return run_recipe(self.spec, out)

        return runs.get(self.spec, out, run, repeat=repetition, on_line=told.append if told is not None else None)


def test_a_finished_run_is_never_run_twice(make_tree: MakeTree, tmp_path: Path, cache: Path) -> None:
    """The second question is answered from the store, by whichever process and folder; its curve is the first's."""
    runs, told = Runs(ours(make_tree(TRAIN)), tmp_path), list[str]()
    first = runs.get(StoredRuns(cache), told)
    again = runs.get(StoredRuns(cache), told)
    assert told == []
    assert runs.ran == 1
    assert (first.stored_as, again.outcome) == (None, Outcome.FINISHED)
    assert again.stored_as is not None
    assert again.scalars.read_bytes() == first.scalars.read_bytes()
    assert again.out != first.out


def test_a_stored_run_stands_for_what_was_asked(make_tree: MakeTree, tmp_path: Path, cache: Path) -> None:
    """The run that answered for one commit answers for another of the same code: a commit of Bridge that pins it."""
    runs = Runs(ours(make_tree(TRAIN)), tmp_path)
    assert runs.get(StoredRuns(cache)).spec.sources.stands_for is None
    runs.spec = replace(runs.spec, sources=replace(runs.spec.sources, stands_for="b" * 40))
    again = runs.get(StoredRuns(cache))
    assert (again.spec.sources.stands_for, runs.ran) == ("b" * 40, 1)


def test_commits_that_were_run_are_known_where_the_store_may_answer(
    make_tree: MakeTree, tmp_path: Path, cache: Path
) -> None:
    """They are told to a search that takes runs from the store, and to no other; a broken store knows none."""
    runs = Runs(ours(make_tree(TRAIN)), tmp_path)
    runs.get(StoredRuns(cache))
    assert StoredRuns(cache).commits(runs.spec) == (frozenset(), {runs.spec.sources.mcore_commit})
    for use in (StoreUse.FRESH, StoreUse.OFF):
        assert not StoredRuns(cache, use).commits(runs.spec)
    RunStore(cache).file.write_bytes(b"no store")
    assert not StoredRuns(cache).commits(runs.spec)


def test_no_store_and_fresh(make_tree: MakeTree, tmp_path: Path, cache: Path) -> None:
    """Without the store nothing is taken or kept; fresh runs anew, and keeps it as a repeat."""
    runs = Runs(ours(make_tree(TRAIN)), tmp_path)
    runs.get(StoredRuns(cache, StoreUse.OFF))
    assert RunStore(cache).runs() == []
    for _ in range(2):
        runs.get(StoredRuns(cache, StoreUse.FRESH))
    assert runs.ran == 3
    assert [run.repetition for run in RunStore(cache).runs()] == [0, 1]


def test_a_commit_that_cannot_be_imported_is_run_once(make_tree: MakeTree, tmp_path: Path, cache: Path) -> None:
    """A failure inside megatron.core itself is proven and kept; asking for failures anew runs it again."""
    tree = make_tree("import megatron.core\n")
    (tree / "megatron/core/__init__.py").write_text("from megatron.core import gone\n")
    commit_all(tree)
    runs = Runs(ours(tree), tmp_path)
    assert runs.get(StoredRuns(cache)).outcome is Outcome.FAILED
    again = runs.get(StoredRuns(cache))
    assert runs.ran == 1
    assert "gone" in again.reason
    runs.get(StoredRuns(cache, with_failures=False))
    assert runs.ran == 2


def test_a_changed_tree_and_a_users_tree_are_never_stored(make_tree: MakeTree, tmp_path: Path, cache: Path) -> None:
    """A user's checkout is run each time, and so is a tree of ours whose files were changed."""
    tree = make_tree(TRAIN)
    theirs = Runs(spec_of(tree, PYTHON), tmp_path / "theirs")
    for _ in range(2):
        theirs.get(StoredRuns(cache))
    (tree / "megatron/core/__init__.py").write_text("__version__ = 'changed'\n")
    mine, told = Runs(ours(tree), tmp_path / "mine"), list[str]()
    for _ in range(2):
        assert mine.get(StoredRuns(cache), told).outcome is Outcome.VOID
    assert (theirs.ran, mine.ran) == (2, 2)
    assert "void" in told[0]
    assert RunStore(cache).runs() == []


def test_another_environment_is_another_key(
    make_tree: MakeTree, tmp_path: Path, cache: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A variable that can change numbers makes it another run; one that can't, such as a cache's place, doesn't."""
    runs = Runs(ours(make_tree(TRAIN)), tmp_path)
    runs.get(StoredRuns(cache))
    monkeypatch.setenv("TORCH_HOME", "/elsewhere")
    monkeypatch.setenv("CUDA_VISIBLE_DEVICES", "3")
    runs.get(StoredRuns(cache))
    assert runs.ran == 1
    monkeypatch.setenv("NVTE_FLASH_ATTN", "0")
    runs.get(StoredRuns(cache))
    assert runs.ran == 2


def test_planted_secrets_survive_nowhere(
    make_tree: MakeTree, tmp_path: Path, cache: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A trainer that prints its environment and words leaks neither into its folder nor into the store; rows stay."""
    monkeypatch.setenv("HF_TOKEN", TOKEN)
    monkeypatch.setenv("NCCL_SECRET_KEY", PASSWORD)
    spec = replace(ours(make_tree(LEAKY)), env={"DB_PASSWORD": PASSWORD, "OTHER": f"https://me:{PASSWORD}@example.com"})
    record = Runs(spec, tmp_path).get(StoredRuns(cache))
    assert record.outcome is Outcome.FINISHED, record.reason
    folders = [record.out, cache]
    everything = b"".join(path.read_bytes() for root in folders for path in root.rglob("*") if path.is_file())
    assert b"[redacted]" in everything
    assert TOKEN.encode() not in everything
    assert PASSWORD.encode() not in everything
    assert "dialling [redacted]" in record.console.read_text()
    assert record.console.read_text().count("lm loss: ") == 10
    assert len(RunStore(cache).runs()) == 1


class Counted:
    """A runner of commits that plays finished runs."""

    def __init__(self, play: Callable[[Path], RunRecord]) -> None:
        self.ran = 0
        self._play = play

    def run(
        self,
        commit: str,
        out: Path,
        on_line: object,
        *,
        repeat: int | None = 0,
        should_stop: object = None,
        without: str | None = None,
    ) -> RunRecord:
        """Count, and play."""
        assert commit
        assert (on_line, repeat, should_stop, without) is not None
        self.ran += 1
        return self._play(out)

    def read(self, record: RunRecord) -> RunLog:
        """The run's curves."""
        return read_run(record)


def _ask(runner: StoredRunner, folder: Path, repeat: int | None) -> bool:
    """Whether the answer came from the store."""
    out = folder / f"{len(list(folder.iterdir()))}"
    return runner.run("c", out, lambda _: None, repeat=repeat).stored_as is not None


def test_a_check_is_a_run_of_now(make_tree: MakeTree, tmp_path: Path, cache: Path) -> None:
    """Repeats come from the store only as long as nothing was run anew; what asks for the present never does."""
    spec = ours(make_tree(TRAIN))
    counted = Counted(lambda out: run_recipe(spec, out))
    folder = tmp_path / "outs"
    folder.mkdir()

    def runner(*, has_run: bool = False) -> StoredRunner:
        return StoredRunner(counted, StoredRuns(cache, has_run=has_run), lambda _commit, _without: spec)

    cold = runner()
    assert [_ask(cold, folder, 0), _ask(cold, folder, 1)] == [False, False]
    warm = runner()
    assert [_ask(warm, folder, 0), _ask(warm, folder, 1)] == [True, True]
    assert _ask(warm, folder, None) is False
    assert _ask(warm, folder, 1) is False
    resumed = runner(has_run=True)
    assert [_ask(resumed, folder, 0), _ask(resumed, folder, 1)] == [True, False]


def test_a_run_that_nobody_waited_for_is_none(make_tree: MakeTree, tmp_path: Path, cache: Path) -> None:
    """A run that was begun on the off-chance, and dropped, leaves repeats to the store."""
    spec = ours(make_tree(TRAIN))
    other = replace(spec, recipe="moe-cpu")
    folder = tmp_path / "outs"
    folder.mkdir()
    specs = {"c": spec, "d": other}
    cold = StoredRunner(
        Counted(lambda out: run_recipe(spec, out)), StoredRuns(cache), lambda commit, _without: specs[commit]
    )
    assert [_ask(cold, folder, 0), _ask(cold, folder, 1)] == [False, False]

    def dropped(_: Path) -> RunRecord:
        raise RunCancelledError("Nobody needs this run any more.")

    warm = StoredRunner(Counted(dropped), StoredRuns(cache), lambda commit, _without: specs[commit])
    assert _ask(warm, folder, 0) is True
    with pytest.raises(RunCancelledError):
        warm.run("d", folder / "dropped", lambda _: None)
    assert _ask(warm, folder, 1) is True


def test_a_machine_that_fails_takes_its_failures_back(make_tree: MakeTree, tmp_path: Path, cache: Path) -> None:
    """Once a commit that had run fails, what this bisect kept as commits' own failures is forgotten."""
    broken = make_tree("import megatron.core\nraise KeyError('moe')\n")
    spec = ours(broken)
    runner = StoredRunner(Counted(lambda out: run_recipe(spec, out)), StoredRuns(cache), lambda _commit, _without: spec)
    runner.run("c", tmp_path / "1", lambda _: None)
    assert len(RunStore(cache).runs()) == 1
    runner.run("c", tmp_path / "2", lambda _: None, repeat=None)
    assert RunStore(cache).runs() == []


def test_a_store_that_cannot_be_read_costs_time_only(make_tree: MakeTree, tmp_path: Path, cache: Path) -> None:
    """With a broken store everything is run, and the reader is told."""
    cache.mkdir()
    (cache / "store.sqlite").write_text("no database at all, only text that is long enough to be taken for one" * 20)
    runs, told = Runs(ours(make_tree(TRAIN)), tmp_path), list[str]()
    assert runs.get(StoredRuns(cache), told).outcome is Outcome.FINISHED
    assert any("--no-store" in line for line in told)


def test_an_editable_package_is_never_trusted(
    make_tree: MakeTree, cache: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Where torch's files lie in somebody's working folder nothing is stored, and the reason names it."""
    monkeypatch.setattr(fingerprint, "installed", lambda _: {"torch": f"{fingerprint.EDITABLE}file:///src/torch"})
    key = key_of(ours(make_tree(TRAIN)), cache)
    assert isinstance(key, NotStored)
    assert "torch is installed from file:///src/torch" in key.reason


def test_packages_are_read_off_their_folders(tmp_path: Path) -> None:
    """Name and version of what can change numbers, the first on the path; the rest and checkouts aren't looked at."""
    for folder, name in (
        ("a/site-packages", "torch-2.15.0+cu132.dist-info"), ("a/site-packages", "ruff-0.9.dist-info"),
        ("b/dist-packages", "torch-2.9.0.dist-info"), ("b/dist-packages", "Transformer_Engine-2.5.egg-info"),
        ("checkout", "numpy-1.0.dist-info"),
    ):  # fmt: skip
        (tmp_path / folder / name).mkdir(parents=True)
    (tmp_path / "b/dist-packages/apex-0.1.dist-info").mkdir()
    (tmp_path / "b/dist-packages/apex-0.1.dist-info/direct_url.json").write_text(
        '{"url": "file:///src/apex", "dir_info": {"editable": true}}'
    )
    path = [str(tmp_path / folder) for folder in ("gone", "a/site-packages", "b/dist-packages", "checkout")]
    assert fingerprint.installed(path) == {
        "apex": "editable:file:///src/apex", "torch": "2.15.0+cu132", "transformer-engine": "2.5",
    }  # fmt: skip


def test_an_interpreter_is_asked_once(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Its path is remembered until something that decides it changes; it is that of a run."""
    first = interpreter_of(PYTHON, tmp_path)
    assert set(first.path) >= {part for part in sys.path if part.endswith("site-packages")}
    monkeypatch.setattr("lossbisect.store.environment._ask", lambda _: pytest.fail("asked again"))
    assert interpreter_of(PYTHON, tmp_path) == first
    monkeypatch.setenv("PYTHONUSERBASE", str(tmp_path))
    with pytest.raises(pytest.fail.Exception):
        interpreter_of(PYTHON, tmp_path)


def test_the_recipes_content_counts_not_its_name(make_tree: MakeTree, tmp_path: Path, cache: Path) -> None:
    """The same training under another name has the same key; one changed number gives another."""
    spec = ours(make_tree(TRAIN))
    same, other = tmp_path / "same.toml", tmp_path / "other.toml"
    same.write_text('extends = "vanilla-cpu"\n')
    other.write_text('extends = "vanilla-cpu"\nseed = 4321\n')
    keys = [key_of(replace(spec, recipe=recipe), cache) for recipe in ("vanilla-cpu", str(same), str(other))]
    assert all(isinstance(key, RunKey) for key in keys)
    digests = [key.digest for key in keys if isinstance(key, RunKey)]
    assert digests[0] == digests[1] != digests[2]
    assert key_of(replace(spec, env={"A": "1"}), cache) != keys[0]


def commit_all(tree: Path) -> None:
    """Commit every change of a made tree."""
    from tests.train.conftest import git

    git(tree, "add", "--all")
    git(tree, "commit", "--quiet", "-m", "changed")


def test_nothing_is_said_of_the_users_own_variables(make_tree: MakeTree, cache: Path) -> None:
    """The key holds no variable but those that can change numbers."""
    key = key_of(ours(make_tree(TRAIN)), cache)
    assert isinstance(key, RunKey)
    assert "HOME" in os.environ
    assert "HOME" not in key.environment.variables
    assert key.environment.variables["CUDA_DEVICE_MAX_CONNECTIONS"] == "1"


def test_a_run_that_was_cut_short_serves_whoever_would_cut_it(make_tree: MakeTree, tmp_path: Path, cache: Path) -> None:
    """What a cut run recorded is given to a question that it settles; any other question gets a run of its own."""
    spec = ours(make_tree(TRAIN))
    cut = replace(run_recipe(spec, tmp_path / "cut"), outcome=Outcome.CUT, reason="sure at iteration 3")
    key = key_of(spec, cache)
    assert isinstance(key, RunKey)
    RunStore(cache).add(key, cut)
    counted = Counted(lambda out: run_recipe(spec, out))
    runner = StoredRunner(counted, StoredRuns(cache), lambda _commit, _without: spec)
    settled = runner.run("c", tmp_path / "1", lambda _: None, should_stop=(tmp_path / "1/scalars.ndjson").exists)
    assert (settled.outcome, settled.reason, counted.ran) == (Outcome.CUT, "sure at iteration 3", 0)
    runner = StoredRunner(counted, StoredRuns(cache), lambda _commit, _without: spec)
    seen: list[bool] = []

    def never_sure() -> bool:
        seen.append((tmp_path / "2/scalars.ndjson").exists())
        return False

    assert runner.run("c", tmp_path / "2", lambda _: None, should_stop=never_sure).outcome is Outcome.FINISHED
    assert seen == [True, False], "whoever watches the values learns that they are gone before new ones come"
    assert counted.ran == 1
    again = StoredRunner(counted, StoredRuns(cache), lambda _commit, _without: spec)
    both = [again.run("c", tmp_path / f"{3 + repeat}", lambda _: None, repeat=repeat) for repeat in range(2)]
    assert [record.stored_as is not None for record in both] == [True, False], "one run is no repeat of itself"
    once_more = StoredRunner(counted, StoredRuns(cache), lambda _commit, _without: spec)
    cut = once_more.run("c", tmp_path / "5", lambda _: None, should_stop=lambda: True)
    whole = once_more.run("c", tmp_path / "6", lambda _: None, repeat=1)
    assert (cut.outcome, whole.outcome, whole.stored_as is None) == (Outcome.CUT, Outcome.FINISHED, False)
