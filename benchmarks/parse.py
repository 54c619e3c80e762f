"""How fast a large log is read, beside `grep -c` and a plain Python loop, and how much memory that takes.

    python benchmarks/parse.py [--size-mb 1000] [--loop-mb 100] [--repeats 3]

Makes a log as eight ranks under torchrun write it (one record in seven lines, warnings, timers, NCCL's messages),
reads it, and prints one line each: MB/s of wall time and of processor time (all cores), how many times as fast ours is
by wall time, peak memory of the largest process and of all together. The best of the repeats counts, for all alike. On
a busy machine look at processor time. Each reader is a process of its own (ours starts more for a large log); the loop
reads a part of the log only, as its speed doesn't depend on the size. `ours` gives a table of every field, or of the
loss, with its meaning; the loop collects nine values a record, as the `evaluate.py` of Megatron Bridge does.
"""

import argparse
import os
import random
import select
import subprocess
import sys
import tempfile
import time
from dataclasses import dataclass
from pathlib import Path

NOISE = (
    "[rank{rank}]:[W1006 02:35:{second:02d}.{n:09d} ProcessGroup.cpp:4115] Warning: using GPU {rank} in a barrier.",
    "/opt/megatron-lm/megatron/core/tensor_parallel/layers.py:690: UserWarning: async_grad_allreduce is deprecated",
    "    forward-backward ...............................: ({n}.06, {n}.81)",
    "WARNING:megatron.core.utils:fused_indices_to_multihot has reached end of life. Please migrate.",
    "  warnings.warn(",
    "[2026-08-22 10:00:{second:02d},{n:03d}] [INFO] [logging.py:96:log_dist] [Rank {rank}] time (ms) | step: {n}.10",
    "node-3:1812:2291 [{rank}] NCCL INFO Channel {n:02d}/0 : {rank}[{rank}] -> 2[2] via P2P/CUMEM",
)
LOOP = r"""
import re, sys
patterns = {name: re.compile(text) for name, text in {
    "iteration": r"iteration\s+(\d+)/",
    "lm loss": r"lm loss:\s+([\d.E+\-]+)",
    "elapsed": r"elapsed time per iteration \(ms\):\s+([\d.]+)",
    "grad norm": r"grad norm:\s+([\d.]+|nan|inf)",
    "utilization": r"GPU utilization:\s+([\d.]+)",
    "alloc": r"mem-allocated-gigabytes:\s+([\d.]+)",
    "max_alloc": r"mem-max-allocated-gigabytes:\s+([\d.]+)",
    "max_reserved": r"mem-max-reserved-gigabytes:\s+([\d.]+)",
    "learning rate": r"learning rate:\s+([\d.E+\-]+)",
}.items()}
found = {name: [] for name in patterns}
with open(sys.argv[1], errors="replace") as file:
    for line in file:
        for name, pattern in patterns.items():
            if match := pattern.search(line):
                found[name].append(match.group(1))
print(len(found["lm loss"]))
"""
OURS = "import sys; from lossbisect import read_log; print(read_log(sys.argv[1], columns={columns}).iterations.height)"


def write_log(path: Path, n_bytes: int) -> int:
    """Write the log; the number of its records."""
    rng = random.Random(1)
    size = iteration = 0
    with path.open("w") as file:
        while size < n_bytes:
            iteration += 1
            lines = [f"[default{rng.randrange(8)}]:{_noise(rng, iteration)}" for _ in range(6)]
            lines.insert(rng.randrange(7), f"[default7]:{record(rng, iteration)}")
            size += file.write("\n".join([*lines, ""]))
    return iteration


def _noise(rng: random.Random, iteration: int) -> str:
    return rng.choice(NOISE).format(rank=rng.randrange(8), second=iteration % 60, n=rng.randrange(1000))


def record(rng: random.Random, iteration: int) -> str:
    """A row of Megatron-LM; its loss falls, the same for every seed but for noise."""
    clock = time.strftime("%Y-%m-%d %H:%M:%S", time.gmtime(1_790_000_000 + iteration))
    return (
        f" [{clock}.{rng.randrange(10**6):06d}] iteration {iteration:8d}/{5_000_000:8d} |"
        f" consumed samples: {iteration * 1024:12d} | elapsed time per iteration (ms): {rng.gauss(1000, 5):.1f} |"
        f" throughput per GPU (TFLOP/s/GPU): {rng.gauss(410, 3):.1f} | learning rate: {3e-4 * 0.99999**iteration:.6E} |"
        f" global batch size: {1024:5d} | lm loss: {12 / iteration**0.1 + rng.random() / 50:.6E} |"
        f" load_balancing_loss: {1 + rng.random() / 10:.6E} | loss scale: 1.0 | grad norm: {rng.expovariate(0.5):.3f} |"
        f" number of skipped iterations: {0:3d} | number of nan iterations: {0:3d} |"
    )


@dataclass(frozen=True, slots=True)
class Measured:
    """The least times in s, the most memory in MB, and the answer of a command."""

    wall_s: float
    cpu_s: float
    largest_mb: float
    all_mb: float
    answer: str


def measure(argv: list[str], repeats: int) -> Measured:
    """Run a command so many times."""
    wall_s, cpu_s, largest_mb, all_mb, answer = float("inf"), float("inf"), 0.0, 0.0, ""
    for _ in range(repeats):
        started = time.perf_counter()
        process = subprocess.Popen(argv, stdout=subprocess.PIPE, text=True)
        assert process.stdout is not None
        while not select.select([process.stdout], [], [], 0.1)[0]:
            all_mb = max(all_mb, memory_mb(process.pid))
        answer = process.stdout.read().strip()
        _, status, usage = os.wait4(process.pid, 0)
        process.returncode = os.waitstatus_to_exitcode(status)
        if process.returncode != 0:
            raise SystemExit(f"{argv[0]} failed with {process.returncode}")
        wall_s = min(wall_s, time.perf_counter() - started)
        cpu_s = min(cpu_s, usage.ru_utime + usage.ru_stime)
        largest_mb = max(largest_mb, usage.ru_maxrss / 1024)
    return Measured(wall_s, cpu_s, largest_mb, max(all_mb, largest_mb), answer)


def memory_mb(pid: int) -> float:
    """Resident memory of a process and of those that it started, what they share counted for each; 0 if unknown."""
    try:
        pages = int(Path(f"/proc/{pid}/statm").read_text().split()[1])
        children = Path(f"/proc/{pid}/task/{pid}/children").read_text().split()
    except (OSError, IndexError):
        return 0.0
    return pages * os.sysconf("SC_PAGE_SIZE") / 2**20 + sum(memory_mb(int(child)) for child in children)


def main() -> None:
    """Make the log, measure, print."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--size-mb", type=int, default=1000, help="MB of the log (10^6 bytes)")
    parser.add_argument("--loop-mb", type=int, default=100, help="MB of it that the plain loop reads")
    parser.add_argument("--repeats", type=int, default=3, help="runs of each, of which the fastest counts")
    options = parser.parse_args()
    with tempfile.TemporaryDirectory() as folder:
        whole, part = Path(folder) / "whole.log", Path(folder) / "part.log"
        n_records = write_log(whole, options.size_mb * 10**6)
        write_log(part, min(options.loop_mb, options.size_mb) * 10**6)
        commands = {
            "ours, all fields": ([sys.executable, "-c", OURS.format(columns=None), str(whole)], whole),
            "ours, loss only": ([sys.executable, "-c", OURS.format(columns=["lm_loss"]), str(whole)], whole),
            "grep -c iteration": (["grep", "-c", "iteration", str(whole)], whole),
            "plain loop, 9 regexes": ([sys.executable, "-c", LOOP, str(part)], part),
        }
        print(f"{whole.stat().st_size / 1e6:.0f} MB, {n_records} records, {os.cpu_count()} cores")
        speeds: dict[str, float] = {}
        for name, (argv, path) in commands.items():
            found = measure(argv, options.repeats)
            size_mb = path.stat().st_size / 1e6
            speeds[name] = size_mb / found.wall_s
            ratio = next(iter(speeds.values())) / speeds[name]
            print(
                f"{name:22} {speeds[name]:7.1f} MB/s  {size_mb / found.cpu_s:7.1f} MB a processor second"
                f"   ours: {ratio:5.2f} x   peak {found.largest_mb:4.0f} MB, all processes {found.all_mb:4.0f} MB"
                f"   {found.answer} records",
                flush=True,
            )


if __name__ == "__main__":
    main()
