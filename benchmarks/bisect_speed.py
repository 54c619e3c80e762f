"""How long the same bisect takes with `lossbisect bisect`, and with `git bisect run lossbisect judge`.

    python -m benchmarks.bisect_speed [--rounds 3] [--seed 1]

Both search the demo's history, in turn, each time from a fresh working directory and an empty run store; the compiled
data-set helpers, and the list of what a run imports, are in the cache for both. `lossbisect bisect` trains both ends,
repeats the good one, and confirms its answer; git trusts the ends it is given, and each of its judges starts cold. If
LOSSBISECT_MLM_REPO, LOSSBISECT_MLM_GOOD and LOSSBISECT_MLM_BAD name a Megatron-LM checkout and two of its commits,
these are searched instead, with the recipe that LOSSBISECT_RECIPE names, if it does.
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
from dataclasses import dataclass
from pathlib import Path

from lossbisect.bisect.codebase import SUBMODULE
from lossbisect.demo import make_history

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
    """One search: wall and CPU time in seconds, number of training runs, seconds of iterations, the commit it named."""

    wall_s: float
    cpu_s: float
    runs: int
    training_s: float
    named: str

    def __str__(self) -> str:
        """One line."""
        return (
            f"wall {self.wall_s:6.1f} s  CPU {self.cpu_s:6.1f} s  {self.runs:2} runs, "
            f"{self.training_s:5.1f} s of iterations in them  {self.named[:10]}"
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


def _timed(search: "Case", cache: Path, how: str, folder: Path) -> Timing:
    own = folder / "cache"
    shutil.copytree(cache, own, ignore=shutil.ignore_patterns("store*"))
    wall_s, cpu_s = time.monotonic(), _cpu_s()
    consoles, named = (_by_git if how == "git" else _by_lossbisect)(search, own, folder)
    wall_s, cpu_s = time.monotonic() - wall_s, _cpu_s() - cpu_s
    return Timing(
        wall_s=wall_s, cpu_s=cpu_s, runs=len(consoles), training_s=sum(map(_training_s, consoles)), named=named
    )  # fmt: skip


def _training_s(console: Path) -> float:
    """Time that a run's iterations took by its own word, seconds."""
    if not console.is_file():
        return 0.0
    told = re.findall(rb"elapsed time per iteration \(ms\): ([\d.]+)", console.read_bytes())
    return sum(map(float, told)) / 1000


def _by_lossbisect(case: Case, cache: Path, folder: Path) -> tuple[list[Path], str]:
    ends = ["--good", case.good, "--bad", case.bad]
    command = [*LOSSBISECT, "bisect", "--repo", str(case.repo), *ends, "--work-dir", str(folder), "--json", *_recipe()]
    report = json.loads(_call(command, folder, cache))
    consoles = [Path(step["record"]["out"]) / "console.log" for step in report["steps"]]
    return consoles, report["culprit"]["sha"]


def _by_git(case: Case, cache: Path, folder: Path) -> tuple[list[Path], str]:
    """Git's search in a copy of the checkout: it moves HEAD, and the user's must not move."""
    copy = folder / "copy"
    shutil.copytree(case.repo, copy, symlinks=True)
    moving = copy / case.moving.relative_to(case.repo)
    _call(["git", "checkout", "--quiet", case.good], moving, cache)
    _call([*LOSSBISECT, "run", "--repo", str(copy), "--out", str(folder / "good"), *_recipe()], folder, cache)
    _call(["git", "bisect", "start", "--first-parent", case.bad, case.good], moving, cache)
    judge = [*LOSSBISECT, "judge", "--baseline", str(folder / "good"), "--repo", str(copy), *_recipe()]
    said = _call(["git", "bisect", "run", *judge, "--work-dir", str(folder)], moving, cache)
    found = re.search(r"([0-9a-f]{40}) is the first bad commit", said)
    outs = [folder / "good", *(folder / "judged").iterdir()]
    return [out / "console.log" for out in outs], found[1] if found else "none"


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
        timings: dict[str, list[Timing]] = {"lossbisect": [], "git": []}
        for round_number in range(options.rounds):
            for how, found in timings.items():
                place = folder / f"{how}-{round_number}"
                place.mkdir()
                timing = _timed(case, cache, how, place)
                found.append(timing)
                print(f"{how:10}  {timing}", flush=True)
        ratios = [ours.wall_s / git.wall_s for ours, git in zip(timings["lossbisect"], timings["git"], strict=True)]
        print(
            f"wall, lossbisect / git: median {statistics.median(ratios):.2f} ({', '.join(f'{r:.2f}' for r in ratios)})"
        )


if __name__ == "__main__":
    main()
