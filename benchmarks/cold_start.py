"""How long the tool takes from a cold start: whole processes, beside the libraries alone that it can't do without.

    python -m benchmarks.cold_start [--rounds 10] [--rows 1000]

Writes two logs of as many rows, with the dump of arguments of a real run before them and the noise of two seeds on
one curve, and runs in turn: an interpreter that does nothing, one that imports polars and numpy, `lossbisect --help`,
and `lossbisect compare` of the two logs. The least, the middle and the most of wall time, and the least of processor
time. One round before the others isn't counted: it compiles byte code.
"""

import argparse
import random
import resource
import statistics
import subprocess
import sys
import tempfile
import time
from pathlib import Path

from benchmarks.parse import record

REAL = Path(__file__).parents[1] / "fixtures" / "real" / "mlm-main-2026-08-1rank.log"


def write_log(path: Path, rows: int, seed: int) -> None:
    """A log of Megatron-LM: the dump of a real run, and made rows."""
    head, _, _ = REAL.read_text(encoding="utf-8").partition(" iteration        1/")
    rng = random.Random(seed)
    made = [record(rng, iteration) for iteration in range(1, rows + 1)]
    path.write_text("\n".join([head.rpartition("\n")[0], *made, ""]), encoding="utf-8")


def main() -> None:
    """Time them and print the table."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--rounds", type=int, default=10)
    parser.add_argument("--rows", type=int, default=1000)
    given = parser.parse_args()
    with tempfile.TemporaryDirectory() as folder:
        logs = [Path(folder) / name for name in ("a.log", "b.log")]
        for seed, path in enumerate(logs):
            write_log(path, given.rows, seed)
        ours = [str(Path(sys.executable).with_name("lossbisect"))]
        commands = {
            "python, nothing": [sys.executable, "-c", ""],
            "import polars, numpy": [sys.executable, "-c", "import polars, numpy"],
            "lossbisect --help": [*ours, "--help"],
            f"compare, {given.rows} rows": [*ours, "compare", *map(str, logs)],
        }
        spent: dict[str, list[tuple[float, float]]] = {name: [] for name in commands}
        for number in range(given.rounds + 1):
            for name, command in commands.items():
                took = _timed(command)
                if number:
                    spent[name].append(took)
    print(f"{'':24}{'least':>8}{'middle':>8}{'most':>8}{'CPU':>8}  s, {given.rounds} rounds")
    for name, times in spent.items():
        walls, cpus = zip(*times, strict=True)
        print(f"{name:24}{min(walls):8.3f}{statistics.median(walls):8.3f}{max(walls):8.3f}{min(cpus):8.3f}")


def _timed(command: list[str]) -> tuple[float, float]:
    """Seconds of wall and of processor time."""
    started_s, before_s = time.monotonic(), _cpu_s()
    done = subprocess.run(command, stdout=subprocess.DEVNULL, stderr=subprocess.PIPE, text=True, check=False)
    took = time.monotonic() - started_s, _cpu_s() - before_s
    if done.returncode not in (0, 1, 3):
        sys.exit(f"{' '.join(command)} failed:\n{done.stderr}")
    return took


def _cpu_s() -> float:
    used = resource.getrusage(resource.RUSAGE_CHILDREN)
    return used.ru_utime + used.ru_stime


if __name__ == "__main__":
    main()
