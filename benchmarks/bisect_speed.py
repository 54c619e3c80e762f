"""How long the same bisect takes with `lossbisect bisect`, and with `git bisect run lossbisect judge`.

    python -m benchmarks.bisect_speed [--rounds 3] [--seed 1] [--bare]

Both search the demo's history, in turn, each time from a fresh working directory and an empty run store; the compiled
data-set helpers, and the list of what a run imports, are in the cache for both. `lossbisect bisect` trains both ends,
repeats the good one, and confirms its answer; then it is asked once more, with the runs of the first time in the
store. git trusts the ends it is given, and each of its judges starts cold. With --bare git searches a second time with
an empty cache for each judge, which compiles the helper and all of the checkout's code, as in a fresh container. If
LOSSBISECT_MLM_REPO, LOSSBISECT_MLM_GOOD and LOSSBISECT_MLM_BAD name a Megatron-LM checkout and two of its commits,
these are searched instead, with the recipe that LOSSBISECT_RECIPE names, if it does.

Time by phase is added up over runs that go on side by side: *iterations* and *compile* (of the data-set helper) are
what the trainers say, *import and set-up* is the rest of a run; *checkout* and *decision* are the tool's own. Of git's
search, where one thing goes on at a time, all that isn't iterations or compilation is *other*.
"""

import argparse
import json
import os
import re
import resource
import shutil
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Sequence
from dataclasses import dataclass, replace
from pathlib import Path

from lossbisect.bisect.codebase import SUBMODULE
from lossbisect.demo import make_history

_BARE = "git, bare"
_WITH_EMPTY_CACHE = 'LOSSBISECT_CACHE_DIR=$(mktemp -d) exec "$@"'
LOSSBISECT = [sys.executable, "-m", "lossbisect"]


@dataclass(frozen=True)
class Case:
    """What is searched: a checkout, the repository whose commits move, and its ends."""

    repo: Path
    moving: Path
    good: str
    bad: str


@dataclass(frozen=True)
class Timing:
    """One search: wall and CPU time in seconds, number of training runs, seconds by phase, the commit it named."""

    wall_s: float
    cpu_s: float
    runs: int
    phases: dict[str, float]
    named: str

    def __str__(self) -> str:
        """Two lines."""
        phases = ", ".join(f"{name} {spent_s:.1f} s" for name, spent_s in self.phases.items())
        return (
            f"wall {self.wall_s:6.1f} s  CPU {self.cpu_s:6.1f} s  {self.runs:2} runs  {self.named[:10]}\n"
            f"{'':12}{phases}"
        )


def _cpu_s() -> float:
    used = resource.getrusage(resource.RUSAGE_CHILDREN)
    return used.ru_utime + used.ru_stime


def _call(command: list[str], cwd: Path, cache: Path) -> str:
    environment = {**os.environ, "LOSSBISECT_CACHE_DIR": str(cache)}
    done = subprocess.run(command, cwd=cwd, env=environment, capture_output=True, text=True, check=False)
    if done.returncode not in (0, 1):
        sys.exit(f"{' '.join(command)} failed:\n{done.stdout[-2000:]}{done.stderr[-2000:]}")
    return done.stdout


def _timed(search: Case, cache: Path, how: str, folder: Path) -> Timing:
    is_git = how.startswith("git")
    if is_git:  # its search moves HEAD, and the user's must not move
        copy = folder / "copy"
        shutil.copytree(search.repo, copy, symlinks=True)
        search = replace(search, repo=copy, moving=copy / search.moving.relative_to(search.repo))
    wall_s, cpu_s = time.monotonic(), _cpu_s()
    consoles, named, spent = (
        _by_git(search, cache, folder, is_bare=how == _BARE) if is_git else _by_lossbisect(search, cache, folder)
    )
    wall_s, cpu_s = time.monotonic() - wall_s, _cpu_s() - cpu_s
    phases = _told(consoles)
    if is_git:
        phases["other"] = wall_s - sum(phases.values())
    else:
        phases["import and set-up"] = spent.pop("runs") - sum(phases.values())
    return Timing(wall_s=wall_s, cpu_s=cpu_s, runs=len(consoles), phases=phases | spent, named=named)


def _told(consoles: Sequence[Path]) -> dict[str, float]:
    """Seconds by phase, by the trainers' own words."""
    told = [console.read_bytes() for console in consoles if console.is_file()]

    def total(pattern: bytes) -> float:
        return sum(float(number) for text in told for number in re.findall(pattern, text))

    return {
        "iterations": total(rb"elapsed time per iteration \(ms\): ([\d.]+)") / 1000,
        "compile": total(rb"Compilation time: ([\d.]+) seconds"),
    }


type Found = tuple[list[Path], str, dict[str, float]]
"""The runs' consoles, the commit that was named, and seconds that only this way of searching tells, by phase."""


def _by_lossbisect(case: Case, cache: Path, folder: Path) -> Found:
    ends = ["--good", case.good, "--bad", case.bad]
    spent = folder / "spent.json"
    timed = [sys.executable, str(Path(__file__).with_name("timed.py")), str(spent)]
    command = [*timed, "bisect", "--repo", str(case.repo), *ends, "--work-dir", str(folder), "--json", *_recipe()]
    report = json.loads(_call(command, folder, cache))
    records = [step["record"] for step in report["steps"] if not step["record"]["stored_as"]]
    phases = {"runs": sum(record["duration_s"] for record in records), **json.loads(spent.read_text(encoding="utf-8"))}
    return [Path(record["out"]) / "console.log" for record in records], report["culprit"]["sha"], phases


def _by_git(case: Case, cache: Path, folder: Path, *, is_bare: bool) -> Found:
    _call(["git", "checkout", "--quiet", case.good], case.moving, cache)
    _call([*LOSSBISECT, "run", "--repo", str(case.repo), "--out", str(folder / "good"), *_recipe()], folder, cache)
    _call(["git", "bisect", "start", "--first-parent", case.bad, case.good], case.moving, cache)
    judge = [*LOSSBISECT, "judge", "--baseline", str(folder / "good"), "--repo", str(case.repo), *_recipe()]
    bare = ["env", f"TMPDIR={folder}", "sh", "-c", _WITH_EMPTY_CACHE, "sh"] if is_bare else []
    said = _call(["git", "bisect", "run", *bare, *judge, "--work-dir", str(folder)], case.moving, cache)
    found = re.search(r"([0-9a-f]{40}) is the first bad commit", said)
    outs = [folder / "good", *(folder / "judged").iterdir()]
    return [out / "console.log" for out in outs], found[1] if found else "none", {}


def _recipe() -> list[str]:
    recipe = os.environ.get("LOSSBISECT_RECIPE")
    return ["--recipe", recipe] if recipe else []


def _case(folder: Path, seed: int) -> Case:
    repo = os.environ.get("LOSSBISECT_MLM_REPO")
    if repo:
        path = Path(repo).resolve()
        return Case(path, path, os.environ["LOSSBISECT_MLM_GOOD"], os.environ["LOSSBISECT_MLM_BAD"])
    history = make_history(folder, Path(sys.executable), seed=seed)
    return Case(history.repo, history.repo / SUBMODULE, history.good, history.bad)


def main() -> None:
    """Run both in turn and print each timing and the median ratio."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--bare", action="store_true")
    options = parser.parse_args()
    with tempfile.TemporaryDirectory(prefix="bisect-speed-") as name:
        folder = Path(name)
        (folder / "case").mkdir()
        case = _case(folder / "case", options.seed)
        cache = folder / "cache"
        first = ["run", "--repo", str(case.repo), "--out", str(folder / "first"), *_recipe()]
        _call([*LOSSBISECT, *first], folder, cache)
        commits = _call(
            ["git", "rev-list", "--first-parent", "--count", f"{case.good}..{case.bad}"], case.moving, cache
        )
        print(f"{commits.strip()} commits; {os.cpu_count()} cores")
        ways = ["lossbisect", "once more", "git", *([_BARE] if options.bare else [])]
        timings: dict[str, list[Timing]] = {way: [] for way in ways}
        for round_number in range(options.rounds):
            kept = cache
            for how, found in timings.items():
                place = folder / f"{how}-{round_number}"
                place.mkdir()
                if how != "once more":
                    kept = place / "cache"
                    shutil.copytree(cache, kept, ignore=shutil.ignore_patterns("store*"))
                timing = _timed(case, kept, how, place)
                found.append(timing)
                print(f"{how:10}  {timing}", flush=True)
        for way in ways[2:]:
            pairs = zip(timings["lossbisect"], timings[way], strict=True)
            ratios = [ours.wall_s / git.wall_s for ours, git in pairs]
            told = ", ".join(f"{ratio:.2f}" for ratio in ratios)
            print(f"wall, lossbisect / {way}: median {statistics.median(ratios):.2f} ({told})")


if __name__ == "__main__":
    main()
