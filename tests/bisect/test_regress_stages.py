"""Crashes, races, slowdowns and peaks of memory in every kind of range: real git and trees, a made-up trainer."""

import ast
import itertools
import json
import random
from collections.abc import Mapping, Sequence
from dataclasses import replace
from pathlib import Path

import pytest

from lossbisect.bisect import Answer, BisectResult, bisect_range
from lossbisect.bisect.options import Regress, SearchOptions
from lossbisect.bisect.scope import Scope, Searched, StageKind
from lossbisect.cause import Cause
from lossbisect.errors import EndpointError, LossbisectError
from lossbisect.report.bisect import bisect_json, bisect_markdown, bisect_text
from lossbisect.report.html.bisect import write_bisect_page
from lossbisect.train.executors import ExecutorOptions
from lossbisect.train.types import Outcome, RunRecord, RunSpec
from tests.bisect import support
from tests.bisect.support import GOOD_CURVE, commit, git, make_record, write_curve
from tests.bisect.test_descent import CODE, PIN
from tests.bisect.test_figure_hunt import console

type Step = int | Mapping[str, object] | tuple[int, Mapping[str, object]]
"""A commit of Bridge: a pin by its number, what Bridge says itself, or both."""

_CHANCE = random.Random(1)
_RUNS = itertools.count()

SHOWN: dict[Regress, Mapping[str, object]] = {
    Regress.CRASH: {"FAIL": "KeyError: 'moe'"},
    Regress.REPEATABILITY: {"WAVERS": True},
    Regress.THROUGHPUT: {"MS": 130.0},
    Regress.MEMORY: {"MB": 2048.0},
}
"""What a commit says of itself to be bad."""
HUNTS = list(SHOWN)


def play(spec: RunSpec, out: Path, **_: object) -> RunRecord:
    """Stand in for `run_recipe`: Megatron-LM's file says what a run shows, and Bridge's file has the last word."""
    assert spec.sources.mcore is not None
    out.mkdir(parents=True, exist_ok=True)
    says = _says(spec.sources.mcore / "megatron/core/run.py")
    if spec.sources.bridge is not None:
        says |= _says(spec.sources.bridge / CODE)
    record = replace(make_record(git(spec.sources.mcore, "rev-parse", "HEAD"), out), spec=spec)
    if failure := says.get("FAIL"):
        text = f'Traceback (most recent call last):\n  File "x.py", line 3, in f\n{failure}\n'
        record.console.write_text(text, encoding="utf-8")
        return replace(record, outcome=Outcome.FAILED, reason=str(failure), exit_code=1, cause=Cause.OWN)
    wavers = 1e-6 * next(_RUNS) if says.get("WAVERS") else 0.0
    write_curve(record.scalars, [*GOOD_CURVE[:3], GOOD_CURVE[3] + wavers])
    base = float(str(says.get("MS", 100.0))) * (1 + _CHANCE.gauss(0, 0.01))
    times = [5000.0, 900.0, *(base * (1 + _CHANCE.gauss(0, 0.01)) for _ in range(8))]
    record.console.write_text(console(times, mb=float(str(says.get("MB", 1024.0)))), encoding="utf-8")
    return record


def _says(file: Path) -> dict[str, object]:
    pairs = (line.split(" = ") for line in file.read_text(encoding="utf-8").splitlines())
    return {name: ast.literal_eval(value) for name, value in pairs}


def _text(says: Mapping[str, object]) -> str:
    return "".join(f"{name} = {value!r}\n" for name, value in says.items())


@pytest.fixture(autouse=True)
def _played(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    _CHANCE.seed(1)
    monkeypatch.setattr("lossbisect.train.executors.local.run_recipe", play)
    monkeypatch.setattr("lossbisect.bisect.runner.read_curves", support.read_play)
    monkeypatch.setenv("LOSSBISECT_CACHE_DIR", str(tmp_path / "cache"))


def says(repo: Path, what: Mapping[str, object], **files: str) -> str:
    """Commit what a run of Megatron-LM shows from now on; the SHA."""
    return commit(repo, "Change", {"megatron/core/run.py": _text({"NUMBER": next(_RUNS), **what}), **files})


def start(folder: Path) -> Path:
    """A Megatron-LM checkout with one commit."""
    folder.mkdir()
    git(folder, "init", "--quiet")
    says(folder, {}, **{"megatron/core/__init__.py": ""})
    return folder


def hunt(regress: Regress, **options: object) -> SearchOptions:
    """What is looked for, without the last run."""
    return SearchOptions(regress=regress, revert=False, **options)  # type: ignore[arg-type]


def named(result: BisectResult) -> str | None:
    """The SHA that was named."""
    return result.culprit.commit.sha if result.culprit else None


@pytest.mark.parametrize("regress", [Regress.CRASH, Regress.THROUGHPUT])
def test_only_some_paths(tmp_path: Path, regress: Regress) -> None:
    """With --paths the culprit is named, and the commit before it, which was left out, has run too."""
    repo = start(tmp_path / "mlm")
    shas = []
    for number in range(6):
        commit(repo, "Aside", {f"aside{number}.txt": "x"})
        shas.append(says(repo, SHOWN[regress] if number >= 3 else {}))
    scope = Scope(paths=("megatron/core",))
    result = bisect_range(repo, "HEAD~12", "HEAD", scope=scope, search=hunt(regress))
    assert (result.answer, named(result)) == (Answer.FOUND, shas[3])
    assert [passage.kind for passage in result.passages] == [StageKind.GAP]
    assert "rests on no assumption" in result.passages[0].text


def merged(repo: Path, side: list[Mapping[str, object]], after: Mapping[str, object]) -> list[str]:
    """Merge a branch whose commits show these, the merge shows ``after``: the branch's SHAs, then the merge's."""
    base = git(repo, "rev-parse", "HEAD")
    says(repo, {})
    git(repo, "checkout", "--quiet", "-b", "topic", base)
    inner = [says(repo, each) for each in side]
    git(repo, "checkout", "--quiet", "main")
    git(repo, "merge", "--quiet", "--no-ff", "--no-commit", "--strategy", "ours", "topic")
    inner.append(says(repo, after))
    says(repo, after)
    return inner


@pytest.mark.parametrize("regress", HUNTS)
def test_inside_a_merge(tmp_path: Path, regress: Regress) -> None:
    """With --all-parents the commit of the branch is named that shows it by itself, and all runs are counted."""
    repo, bad = start(tmp_path / "mlm"), SHOWN[regress]
    shas = merged(repo, [{}, bad, bad], bad)
    result = bisect_range(repo, "HEAD~3", "HEAD", scope=Scope(all_parents=True), search=hunt(regress))
    assert (result.answer, named(result)) == (Answer.FOUND, shas[1])
    assert f"{shas[-1][:10]} is the first bad commit of the first-parent line, a merge" in result.passages[0].text
    every = [*result.finding.steps, *result.other_steps]
    journals = tmp_path.glob("cache/bisects/*/journal.ndjson")
    assert len(every) == sum(path.read_text(encoding="utf-8").count('"kind": "step"') for path in journals)
    assert f"{len(every)} runs judged, 0 skipped" in result.confidence
    assert f"{len(result.finding.steps)} of all {len(every)} in the stage" in result.confidence


@pytest.mark.parametrize("regress", [Regress.CRASH, Regress.THROUGHPUT])
def test_a_merge_that_breaks_only_together(tmp_path: Path, regress: Regress) -> None:
    """A branch that shows nothing by itself leaves the merge the answer."""
    repo = start(tmp_path / "mlm")
    shas = merged(repo, [{}, {}], SHOWN[regress])
    result = bisect_range(repo, "HEAD~3", "HEAD", scope=Scope(all_parents=True), search=hunt(regress))
    assert (result.answer, named(result)) == (Answer.FOUND, shas[-1])
    told = result.passages[0].text
    is_open = regress is Regress.THROUGHPUT and "can't be told in this noise" in told
    assert is_open or "only in the combination with its first parent" in told


@pytest.mark.parametrize(
    ("regress", "side"),
    [(Regress.CRASH, {"FAIL": "TypeError: other"}), (Regress.THROUGHPUT, {"MS": 400.0}), (Regress.MEMORY, {"MB": 9e3})],
)
def test_another_change_inside_a_merge_is_not_its_own(
    tmp_path: Path, regress: Regress, side: Mapping[str, object]
) -> None:
    """A branch that fails otherwise than the merge, or is far slower, doesn't make the merge's change."""
    repo = start(tmp_path / "mlm")
    shas = merged(repo, [{}, side], SHOWN[regress])
    result = bisect_range(repo, "HEAD~3", "HEAD", scope=Scope(all_parents=True), search=hunt(regress))
    assert (result.answer, named(result)) == (Answer.FOUND, shas[-1])
    assert "but not as the merge does" in result.passages[0].text


@pytest.mark.parametrize(
    ("regress", "is_base_bad"),
    [*((regress, True) for regress in HUNTS), (Regress.CRASH, False), (Regress.MEMORY, False)],
)
def test_ends_on_two_branches(tmp_path: Path, regress: Regress, is_base_bad: bool) -> None:
    """The merge base tells the side: the bad end's commit that brought it, or the good end's that mended it."""
    repo, bad = start(tmp_path / "mlm"), SHOWN[regress]
    base = says(repo, bad if is_base_bad else {})
    good_side = [says(repo, bad if is_base_bad and number < 2 else {}) for number in range(4)]
    git(repo, "checkout", "--quiet", "-b", "topic", base)
    bad_side = [says(repo, bad if is_base_bad or number >= 2 else {}) for number in range(4)]
    result = bisect_range(repo, good_side[-1], bad_side[-1], search=hunt(regress))
    assert (result.answer, named(result)) == (Answer.FOUND, (good_side if is_base_bad else bad_side)[2])
    assert result.plan.search.find_fix is is_base_bad
    assert result.passages[0].kind is StageKind.SIDES


def test_a_merge_base_that_fails_otherwise(tmp_path: Path) -> None:
    """It says nothing of the crash, so no side is searched."""
    repo = start(tmp_path / "mlm")
    base = says(repo, {"FAIL": "TypeError: other"})
    good = says(repo, {})
    git(repo, "checkout", "--quiet", "-b", "topic", base)
    bad = says(repo, SHOWN[Regress.CRASH])
    with pytest.raises(EndpointError, match="It can't be judged"):
        bisect_range(repo, good, bad, search=hunt(Regress.CRASH))


@pytest.mark.parametrize(("regress", "jobs"), [(Regress.CRASH, 1), (Regress.CRASH, 3), (Regress.REPEATABILITY, 1)])
def test_a_good_end_is_looked_for(tmp_path: Path, regress: Regress, jobs: int) -> None:
    """A lone bad end is walked back from, past commits that fail otherwise, to one that is good."""
    repo = start(tmp_path / "mlm")
    aside = {"FAIL": "TypeError: other"}
    shas = [says(repo, {} if n < 9 else aside if n == 14 else SHOWN[regress]) for n in range(16)]
    result = bisect_range(repo, bad="main", search=hunt(regress), executor=ExecutorOptions(jobs=jobs))
    assert (result.answer, named(result)) == (Answer.FOUND, shas[9])
    assert "is good: it" in result.passages[0].text
    with pytest.raises(EndpointError, match=r"The bad end .* is none: "):
        bisect_range(repo, bad=shas[5], search=hunt(regress))


def test_no_good_figure_is_looked_for(tmp_path: Path) -> None:
    """How fast is fast enough has to be said."""
    with pytest.raises(LossbisectError, match="Name it: --good COMMIT"):
        bisect_range(start(tmp_path / "mlm"), bad=says(tmp_path / "mlm", {}), search=hunt(Regress.THROUGHPUT))


def bridged(
    folder: Path, mcore: list[Mapping[str, object]], steps: Sequence[Step]
) -> tuple[Path, list[str], list[str]]:
    """A Bridge checkout, its Megatron-LM's SHAs and its own: of pins by number, of what it says itself, or of both."""
    start(folder / "mlm")
    inner = [says(folder / "mlm", each) for each in mcore]
    repo = folder / "bridge"
    repo.mkdir()
    git(repo, "init", "--quiet")
    commit(repo, "Start", {CODE: ""})
    git(repo, "submodule", "--quiet", "add", str(folder / "mlm"), PIN)
    shas: list[str] = []
    for step in steps:
        pin, code = step if isinstance(step, tuple) else (step, None) if isinstance(step, int) else (None, step)
        if pin is not None:
            git(repo / PIN, "checkout", "--quiet", "--detach", inner[pin])
        files = {} if code is None else {CODE: _text({"COUNT": len(shas), **code})}
        shas.append(commit(repo, "Step", {**files, "uv.lock": str(len(shas))}))
    return repo, inner, shas


@pytest.mark.parametrize(
    ("regress", "whose"),
    [
        (Regress.CRASH, "pin"),
        (Regress.CRASH, "bridge"),
        (Regress.CRASH, "megatron-core"),
        (Regress.REPEATABILITY, "bridge"),
        (Regress.THROUGHPUT, "megatron-core"),
        (Regress.MEMORY, "bridge"),
    ],
)
def test_commits_of_bridge(tmp_path: Path, regress: Regress, whose: str) -> None:
    """With --search bridge the pin's commit is named, or Bridge's own, also where one commit changes both."""
    bad = SHOWN[regress]
    mcore: list[Mapping[str, object]] = [{}, {}, {}, {}] if whose == "bridge" else [{}, {}, bad, bad]
    bumps: dict[str, Step] = {"pin": 3, "bridge": (3, bad), "megatron-core": (3, {})}
    last: Mapping[str, object] = bad if whose == "bridge" else {}
    repo, inner, shas = bridged(tmp_path, mcore, [0, {}, bumps[whose], last])
    result = bisect_range(repo, shas[0], "HEAD", scope=Scope(searched=Searched.BRIDGE), search=hunt(regress))
    assert (result.answer, named(result)) == (Answer.FOUND, shas[2] if whose == "bridge" else inner[2])
    told = {
        "pin": "only moves Bridge's pin",
        "bridge": "Bridge's own change: ",
        "megatron-core": "Megatron-Core's change: ",
    }
    assert told[whose] in result.passages[0].text
    assert "runs judged" in bisect_text(result)
    assert "runs judged" in bisect_markdown(result)


def test_every_crash_is_reported(tmp_path: Path) -> None:
    """With --all the text, the Markdown, the JSON and the page say what the runs before and after each change show."""
    repo = start(tmp_path / "mlm")
    one, other = {"FAIL": "KeyError: 'moe'"}, {"FAIL": "TypeError: other"}
    shas = [says(repo, what) for what in ({}, {}, one, one, one, other, other)]
    result = bisect_range(repo, "HEAD~7", "HEAD", search=hunt(Regress.CRASH, find_all=True))
    assert [result.commits.at(change.bad).sha for change in result.finding.changes] == [shas[2], shas[5]]
    page = tmp_path / "page.html"
    write_bisect_page(result, page, ["bisect"])
    for text in (bisect_text(result), bisect_markdown(result), page.read_text(encoding="utf-8")):
        assert "it finishes" in text
        assert "TypeError" in text
    rows = json.loads(bisect_json(result))["changes"]
    assert [row["commits"] for row in rows] == [[shas[2]], [shas[5]]]
    assert "KeyError" in rows[0]["shown"][1]
    assert "KeyError" in rows[1]["shown"][0]
