"""Bisections of several stages: real git and trees, a made-up trainer that reads the loss from its files."""

import json
import random
import sys
from collections.abc import Callable
from pathlib import Path

import pytest

from lossbisect.bisect import Answer, BisectResult, bisect_range, resume_bisect
from lossbisect.bisect.events import Event, EventKind
from lossbisect.bisect.manage import abort
from lossbisect.bisect.options import SearchOptions
from lossbisect.bisect.planning import plan_bisect
from lossbisect.bisect.recall import Unfinished, recall_bisect
from lossbisect.bisect.scope import Scope, StageKind
from lossbisect.bisect.training import Training
from lossbisect.errors import EndpointError, GitError, StateError
from lossbisect.report.bisect import bisect_json, bisect_markdown, bisect_text
from lossbisect.report.html.bisect import write_bisect_page
from lossbisect.train.executors import ExecutorOptions
from tests.bisect.support import ScriptedRunner, commit, git, make_history, snapshot

pytestmark = pytest.mark.usefixtures("played")

A, B, C = 10.25, 10.26, 10.5
"""Losses at iteration 3."""


def loss(repo: Path, value: float | None, subject: str = "Change", **files: str) -> str:
    """Commit a loss, or a tree that can't be imported; the SHA."""
    source = "import nothing_of_that_name\n" if value is None else f"LOSS = {value!r}\n"
    return commit(repo, subject, {"megatron/core/loss.py": source, **files})


def harmless(repo: Path, name: str) -> str:
    """Commit something that no loss depends on; the SHA."""
    return commit(repo, f"Write {name}", {f"{name}.txt": name})


def kinds(result: BisectResult) -> list[StageKind]:
    """What the stages were, in order, as far as they said something."""
    return [passage.kind for passage in result.passages]


def named(result: BisectResult) -> str | None:
    """The SHA that was named."""
    return result.culprit.commit.sha if result.culprit else None


def test_a_good_end_is_looked_for(tmp_path: Path) -> None:
    """With a bad end alone the way back ends at another curve, and the search at the commit that changed it."""
    repo = tmp_path / "mlm"
    shas = make_history(repo, [A] * 8 + [B] * 7)
    before = snapshot(repo)
    result = bisect_range(repo, bad="main", search=SearchOptions(revert=False))
    assert (result.answer, named(result)) == (Answer.FOUND, shas[8])
    assert kinds(result) == [StageKind.WALK]
    assert f"{shas[6][:10]}, 8 commits before the bad end" in result.passages[0].text
    assert (result.commits.good.sha, result.commits.bad.sha) == (shas[6], shas[10])
    assert snapshot(repo) == before


def test_a_walk_stops_at_the_oldest_commit(tmp_path: Path) -> None:
    """Where every commit has the bad end's curve as far as it may go, nothing is blamed."""
    repo = tmp_path / "mlm"
    shas = make_history(repo, [A] * 3 + [B] * 9)
    result = bisect_range(repo, bad="main", scope=Scope(oldest=shas[4]))
    assert result.answer is Answer.NO_CULPRIT
    assert result.commits.good.sha == shas[4]
    assert f"back to {shas[4][:10]} have the bad end's curve" in result.passages[0].text
    assert named(bisect_range(repo, bad="main", scope=Scope(oldest=shas[0]))) == shas[3]
    with pytest.raises(GitError, match="doesn't come before"):
        bisect_range(repo, bad=shas[4], scope=Scope(oldest=shas[5]))


def test_a_walk_whose_old_commits_do_not_run(tmp_path: Path) -> None:
    """If nothing older can be run that is said, with the reason, and nothing is blamed."""
    repo = tmp_path / "mlm"
    make_history(repo, [None] * 6 + [B] * 6)
    with pytest.raises(EndpointError, match=r"can't be run here \(.*ModuleNotFoundError"):
        bisect_range(repo, bad="main")


@pytest.mark.parametrize("jobs", [2, 4])
def test_a_walk_of_several_runs_at_once(tmp_path: Path, jobs: int) -> None:
    """With more slots the next steps run at once, and the answer is the same."""
    repo = tmp_path / "mlm"
    shas = make_history(repo, [A] * 8 + [B] * 7)
    result = bisect_range(repo, bad="main", executor=ExecutorOptions(jobs=jobs))
    assert (result.answer, named(result)) == (Answer.FOUND, shas[8])
    assert result.commits.good.sha == shas[6]


def test_a_walk_under_noise(tmp_path: Path) -> None:
    """Where runs don't repeat themselves a difference within noise is no other curve, and the search goes on so."""
    repo = tmp_path / "mlm"
    shas = make_history(repo, [A] * 12)
    rng = random.Random(7)
    print("seed 7")  # noqa: T201

    def script(sha: str) -> list[float]:
        mean = A if shas.index(sha) < 4 else C
        return [rng.gauss(mean, 0.001) for _ in range(12)]

    result = bisect_range(repo, bad="main", runner=ScriptedRunner(script), search=SearchOptions(revert=False))
    assert (result.answer, named(result)) == (Answer.FOUND, shas[4])
    assert kinds(result) == [StageKind.WALK]


def branches(repo: Path, *, good: list[float], bad: list[float]) -> tuple[list[str], list[str], str]:
    """Two branches from one commit with loss A: their SHAs, the good one's and the bad one's, and the merge base."""
    base = make_history(repo, [A, A])[-1]
    sides = []
    for name, losses in (("release", good), ("dev", bad)):
        git(repo, "checkout", "--quiet", "-b", name, base)
        sides.append([loss(repo, value, f"{name} {i}", **{f"{name}.txt": f"{i}"}) for i, value in enumerate(losses)])
    return sides[0], sides[1], base


def test_ends_on_two_branches_where_bad_moved(tmp_path: Path) -> None:
    """The merge base has the good end's curve: the change is on the bad end's branch."""
    repo = tmp_path / "mlm"
    _, bad, base = branches(repo, good=[A, A], bad=[A, A, B, B])
    result = bisect_range(repo, "release", "dev")
    assert (result.answer, named(result)) == (Answer.FOUND, bad[2])
    assert result.commits.good.sha == base
    assert "the bad end's side" in result.passages[0].text


def test_ends_on_two_branches_where_good_moved(tmp_path: Path) -> None:
    """The merge base has the bad end's curve: a commit of the good end's branch is named, which bad lacks."""
    repo = tmp_path / "mlm"
    good, bad, base = branches(repo, good=[A, C, C], bad=[A, A])
    result = bisect_range(repo, "release", "dev")
    assert (result.answer, named(result)) == (Answer.FOUND, good[1])
    assert (result.commits.good.sha, result.commits.bad.sha) == (base, good[2])
    assert f"the bad end {bad[1][:10]} lacks it" in result.passages[0].text


def test_ends_on_two_branches_where_both_moved(tmp_path: Path) -> None:
    """Each branch has a change: the bad end's is named, and the other search is offered."""
    repo = tmp_path / "mlm"
    good, bad, base = branches(repo, good=[A, C, C], bad=[A, A - 0.25, A - 0.25])
    result = bisect_range(repo, "release", "dev")
    assert (result.answer, named(result)) == (Answer.FOUND, bad[1])
    assert f"for the other one search {base[:10]}..{good[2][:10]}" in result.passages[0].text


def test_ends_on_two_branches_that_agree(tmp_path: Path) -> None:
    """Equal ends need no search, on two branches either."""
    repo = tmp_path / "mlm"
    branches(repo, good=[A, A], bad=[A, A])
    assert bisect_range(repo, "release", "dev").answer is Answer.NO_CULPRIT


def test_every_change_of_a_branch(tmp_path: Path) -> None:
    """What is asked of the range isn't asked of the merge base: --all and --probe come after the side is known."""
    repo = tmp_path / "mlm"
    _, bad, _ = branches(repo, good=[A], bad=[B, B, C])
    result = bisect_range(repo, "release", "dev", search=SearchOptions(find_all=True, probe=1))
    assert result.answer is Answer.EVERY_CHANGE
    for each in (result, resume_bisect(result.id)):
        assert [each.commits.at(change.bad).sha for change in each.finding.changes] == [bad[0], bad[2]]


def test_a_merge_base_that_cannot_run(tmp_path: Path) -> None:
    """Without the merge base's curve no side is blamed."""
    repo = tmp_path / "mlm"
    make_history(repo, [A, None])
    for name, value in (("dev", B), ("release", A)):
        git(repo, "checkout", "--quiet", "-b", name, "main")
        loss(repo, value)
    with pytest.raises(EndpointError, match="can't be judged"):
        bisect_range(repo, "release", "dev")


def merged(repo: Path, *, side: list[float | None], main: list[float | None], after: float | None = None) -> list[str]:
    """A history whose fourth commit merges a branch: the SHAs of the branch, the merge's last.

    Args:
        repo: Where.
        side: Losses of the branch's commits.
        main: Losses of main's commits since the branch began, before the merge.
        after: The merge's loss; None: the branch's last one.
    """
    base = make_history(repo, [A, A])[-1]
    git(repo, "checkout", "--quiet", "-b", "topic", base)
    inner = [loss(repo, value, f"Topic {i}", **{f"topic{i}.txt": ""}) for i, value in enumerate(side)]
    git(repo, "checkout", "--quiet", "main")
    for i, value in enumerate(main):
        loss(repo, value, f"Main {i}", **{f"main{i}.txt": ""})
    git(repo, "merge", "--quiet", "--no-ff", "--no-commit", "--strategy", "ours", "topic")
    value = side[-1] if after is None else after
    merge = loss(repo, value, "Merge branch 'topic' into 'main'", **{f"topic{i}.txt": "" for i in range(len(side))})
    harmless(repo, "later")
    return [*inner, merge]


def test_a_merge_is_the_answer_on_the_first_parent_line(tmp_path: Path) -> None:
    """Without --all-parents the merge is named, with the commits that it brought in beside it."""
    repo = tmp_path / "mlm"
    shas = merged(repo, side=[A, B, B], main=[A])
    result = bisect_range(repo, "main~3", "main")
    assert named(result) == shas[-1]
    assert result.passages == ()


def test_inside_a_merge(tmp_path: Path) -> None:
    """With --all-parents the commit of the branch is named that makes the change by itself; the merge is told."""
    repo = tmp_path / "mlm"
    shas = merged(repo, side=[A, B, B], main=[A])
    result = bisect_range(repo, "main~3", "main", scope=Scope(all_parents=True))
    assert (result.answer, named(result)) == (Answer.FOUND, shas[1])
    assert kinds(result) == [StageKind.MERGED]
    assert result.passages[0].commit is not None
    assert result.passages[0].commit.sha == shas[-1]


def test_inside_a_merge_although_main_moved_too(tmp_path: Path) -> None:
    """The branch's curve isn't the merge's, since main had moved: its change against the merge base is."""
    repo = tmp_path / "mlm"
    shas = merged(repo, side=[A + 0.5, A + 0.5], main=[A + 0.001], after=A + 0.501)
    result = bisect_range(repo, "main~2", "main", scope=Scope(all_parents=True))
    assert named(result) == shas[0]


def test_a_merge_that_breaks_only_together(tmp_path: Path) -> None:
    """Neither side shows the change: the merge stays the answer, and it is said that it takes both."""
    repo = tmp_path / "mlm"
    shas = merged(repo, side=[A, A], main=[A], after=B)
    result = bisect_range(repo, "main~3", "main", scope=Scope(all_parents=True))
    assert named(result) == shas[-1]
    assert "only in the combination with its first parent" in result.passages[0].text


def test_another_change_inside_a_merge_is_not_taken_for_its_own(tmp_path: Path) -> None:
    """A branch that changes the curve otherwise than the merge does isn't blamed for the merge's change."""
    repo = tmp_path / "mlm"
    shas = merged(repo, side=[A + 0.001, A + 0.001], main=[A], after=C)
    result = bisect_range(repo, "main~3", "main", scope=Scope(all_parents=True))
    assert named(result) == shas[-1]
    assert "but not as the merge does" in result.passages[0].text


def test_a_branch_that_cannot_run_alone(tmp_path: Path) -> None:
    """If the merged branch can't be run, the merge stays the answer with the reason."""
    repo = tmp_path / "mlm"
    shas = merged(repo, side=[None, None], main=[A], after=B)
    result = bisect_range(repo, "main~3", "main", scope=Scope(all_parents=True))
    assert named(result) == shas[-1]
    assert "can't be tested alone" in result.passages[0].text


def pathed(repo: Path, *, culprit_is_inside: bool) -> list[str]:
    """Commits in turn inside and outside the folder that is looked at; the loss moves with the fourth or the third."""
    shas = [make_history(repo, [A])[0]]
    for number in range(1, 9):
        inside = number % 2 == 0
        moved = number >= (4 if culprit_is_inside else 3)
        name = f"megatron/core/part{number}.py" if inside else f"other/{number}.txt"
        shas.append(loss(repo, B if moved else A, f"Number {number}", **{name: ""}))
    return shas


def test_only_commits_that_touch_paths(tmp_path: Path) -> None:
    """Other commits aren't candidates; the one right before the answer is run, so that it rests on no assumption."""
    repo = tmp_path / "mlm"
    shas = pathed(repo, culprit_is_inside=True)
    result = bisect_range(repo, shas[0], "main", scope=Scope(paths=("megatron/core/part*.py",)))
    assert (result.answer, named(result)) == (Answer.FOUND, shas[4])
    assert result.culprit is not None
    assert result.culprit.parent.sha == shas[3]
    assert [each.sha for each in result.commits.commits] == [shas[2], shas[4], shas[6], shas[8]]
    assert any("Only 4 of 8 commits touch" in warning for warning in result.finding.warnings)
    assert "rests on no assumption" in result.passages[0].text


def test_a_change_outside_the_paths_is_found_all_the_same(tmp_path: Path) -> None:
    """If a commit that was left out makes the change, its neighbour isn't blamed: it is named itself."""
    repo = tmp_path / "mlm"
    shas = pathed(repo, culprit_is_inside=False)
    result = bisect_range(repo, shas[0], "main", scope=Scope(paths=("megatron/core/part*.py",)))
    assert (result.answer, named(result)) == (Answer.FOUND, shas[3])
    assert "is bad already" in result.passages[0].text


def test_paths_that_nothing_touches(tmp_path: Path) -> None:
    """A path without commits is an error before anything is run."""
    repo = tmp_path / "mlm"
    shas = make_history(repo, [A, A, B])
    with pytest.raises(GitError, match="touches megatron/cor"):
        bisect_range(repo, shas[0], "main", scope=Scope(paths=("megatron/cor",)))
    assert not (tmp_path / "cache" / "bisects").exists()


def _stop_at_run(number: int) -> Callable[[Event], None]:
    started = 0

    def on_event(event: Event) -> None:
        nonlocal started
        started += event.kind is EventKind.RUN_STARTED
        if event.kind is EventKind.RUN_STARTED and started == number:
            raise KeyboardInterrupt

    return on_event


def test_stopping_in_any_stage_and_going_on(tmp_path: Path) -> None:
    """Stopped at every run in turn, each time it goes on where it was, whichever stage that is, and repeats nothing."""
    repo = tmp_path / "mlm"
    shas = merged(repo, side=[A, B, B], main=[A])
    scope = Scope(all_parents=True)
    with pytest.raises(KeyboardInterrupt):
        bisect_range(repo, "main~3", "main", scope=scope, on_event=_stop_at_run(1))
    stops = 0
    while True:
        try:
            result = resume_bisect(repo=repo, on_event=_stop_at_run(4))
            break
        except KeyboardInterrupt:
            stops += 1
            unfinished = recall_bisect(repo=repo)
            assert isinstance(unfinished, Unfinished)
    assert stops >= 2
    assert named(result) == shas[1]
    runs = [path.name for path in (tmp_path / "cache/bisects").glob("*/journal.ndjson")]
    assert runs == ["journal.ndjson"] * 2
    ids = sorted(path.parent.name for path in (tmp_path / "cache/bisects").glob("*/journal.ndjson"))
    assert ids == [result.id, f"{result.id}.2"]
    again = recall_bisect(result.id)
    assert isinstance(again, BisectResult)
    assert (again.id, named(again), again.passages) == (result.id, named(result), result.passages)


def test_a_later_stage_of_something_else_is_refused(tmp_path: Path) -> None:
    """A journal of a later stage that doesn't follow from the first one's answer isn't gone on with."""
    repo = tmp_path / "mlm"
    merged(repo, side=[A, B, B], main=[A])
    result = bisect_range(repo, "main~3", "main", scope=Scope(all_parents=True))
    journal = result.directory / "journal.ndjson"
    text = journal.read_text(encoding="utf-8")
    journal.write_text(text.replace('"timeout_s": 1800.0', '"timeout_s": 5.0', 1), encoding="utf-8")
    with pytest.raises(StateError, match="begun with other commits"):
        resume_bisect(result.id)


def test_a_stage_that_was_killed_before_it_began(tmp_path: Path) -> None:
    """A later stage without a plan in its journal is begun anew; a bisect that was given up is passed over."""
    repo = tmp_path / "mlm"
    shas = merged(repo, side=[A, B, B], main=[A])
    result = bisect_range(repo, "main~3", "main", scope=Scope(all_parents=True))
    (tmp_path / f"cache/bisects/{result.id}.2/journal.ndjson").write_bytes(b'{"kind": "pl')
    assert named(resume_bisect(repo=repo)) == shas[1]
    abort(tmp_path / "cache", result.id)
    with pytest.raises(StateError, match="all were given up"):
        resume_bisect(repo=repo)


def test_what_the_way_was_is_in_every_report(tmp_path: Path) -> None:
    """Text, Markdown, JSON and page say what the stages have shown."""
    repo = tmp_path / "mlm"
    merged(repo, side=[A, B, B], main=[A])
    result = bisect_range(repo, "main~3", "main", scope=Scope(all_parents=True))
    shown = "makes the change by itself. Reverted on top of"
    page = tmp_path / "page.html"
    write_bisect_page(result, page, ["lossbisect", "bisect"])
    for text in (bisect_text(result), bisect_markdown(result), page.read_text(encoding="utf-8")):
        assert "on the way" in text.lower()
        assert shown in text
    (passage,) = json.loads(bisect_json(result))["passages"]
    assert (passage["kind"], passage["id"]) == ("inside a merge", f"{result.id}.2")
    assert shown in passage["text"]


def test_the_plan_counts_what_may_be_searched(tmp_path: Path) -> None:
    """Without a run: of two branches the longer side, and without a good end all that the walk may reach."""
    repo = tmp_path / "mlm"
    good, _, _ = branches(repo, good=[A, A, A], bad=[A, B])
    python = Training(python=Path(sys.executable))
    assert plan_bisect(repo, "release", "dev", executor=ExecutorOptions(), training=python).commits == 3
    assert plan_bisect(repo, None, "dev", executor=ExecutorOptions(), training=python).commits == 3
    only = Scope(paths=("dev.txt",), oldest=good[0])
    with pytest.raises(GitError, match="doesn't come before"):
        plan_bisect(repo, None, "dev", executor=ExecutorOptions(), training=python, scope=only)
    assert not (tmp_path / "cache" / "bisects").exists()


def test_left_out_commits_that_cannot_run(tmp_path: Path) -> None:
    """If the commit before the answer can't be run the answer stays, and it is said that the assumption stands."""
    repo = tmp_path / "mlm"
    shas = make_history(repo, [A])
    for number, value in enumerate([A, None, B, B], start=1):
        name = f"part{number}.txt" if number % 2 else f"other{number}.txt"
        shas.append(loss(repo, value, f"Number {number}", **{name: ""}))
    result = bisect_range(repo, shas[0], "main", scope=Scope(paths=("part*.txt",)))
    assert named(result) == shas[3]
    assert "can't be told" in result.passages[0].text
