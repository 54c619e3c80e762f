"""Logs that other programs write, none of which is a training row of Megatron's: a false row would be ours.

    python tests/parsers/other_programs.py [--size-mb 200]

Writes a mixture of pip, gcc, Python tracebacks, JSON lines, nanotron, slime, tqdm and data loaders, reads it, and
prints how many rows came back.
"""

import argparse
import random
import sys
import tempfile
import time
from pathlib import Path

from lossbisect.errors import UnknownFormatError
from lossbisect.parsers import read_log

LINES = (
    "Collecting torch>=2.{a} (from -r requirements.txt (line {b}))",
    "  Downloading torch-2.{a}.0-cp312-cp312-manylinux_2_28_x86_64.whl ({b}.{c} MB)",
    "     ━━━━━━━━━━━━━━━━━━━━━━━━━━━━━━ {b}.{c}/{d}.0 MB 51.{a} MB/s eta 0:00:{a:02d}",
    "gcc -O2 -Wall -c src/module_{a}.c -o build/module_{a}.o -DITERATION={b}",
    "src/loop.c:{b}:{a}: warning: unused variable 'iteration' [-Wunused-variable]",
    "   {b} |     for (int iteration = 0; iteration < {d}; iteration++) | loop",
    "[{a}/{b}] Building CUDA object csrc/iteration_{c}.cu.o | -- ok |",
    '  File "/opt/app/train.py", line {b}, in train_step  # iteration {a}/{d} |',
    "    loss = model(batch)  # iteration {a}/{d} | loss",
    '{{"level": "info", "iteration": {a}, "total": {d}, "lm loss": {b}.{c}, "msg": "iteration {a}/{d} | done"}}',
    '{{"step": {a}, "loss": {b}.{c}, "grad_norm": 0.{c}, "lr": 1e-0{a}}}',
    (
        "05/10/2026 12:00:{a:02d} [INFO|DP=0]: iteration: {a} / {d} | consumed_tokens: {b}M | "
        "elapsed_time_per_iteration_ms: {b}.{c} | tokens_per_sec: {d}K | lm_loss: {a}.{c} | lr: 0.0003 |"
    ),
    "iteration: {a} / {d} | consumed_samples: {b} | lm_loss: 2.{c} |",
    "(MegatronTrainRayActor pid={d}) step {a}: {{'train/loss': -0.{c}, 'train/grad_norm': 0.{b}, 'train/step': {a}}}",
    "(RolloutManager pid={d}, ip=10.0.0.{a}) rollout {a}/{d} | reward: 0.{c} | [repeated {b}x across cluster]",
    "Epoch {a}:  {b}%|███       | {a}/{d} [00:{a:02d}<01:{c:02d}, {b}.{c}it/s, loss=2.{c}]",
    "Sanity Checking DataLoader {a}: {b}%| | iteration {a}/{d} | val_loss: 2.{c}",
    "Iteration {a}/{d} | Loss: {b}.{c} | LR: 0.0003 | Grad norm: 0.{c}",
    "iteration {a}/{d} | train: {b}.{c} | val: {a}.{c} | time: {b} ms |",
    "iteration {a}/{d} | loss: {b}.{c} | accuracy: 0.{c} |",
    "[iteration {a}/{d}] | d_loss: {b}.{c} | g_loss: {a}.{c} | fps: {b} |",
    "step: {a:2d}  loss: {b}.{c}  grad_norm: 0.{c}  memory: {b}.{c}GiB({a}.00%)  tps: {d}  tflops: {b}.{c}",
    "Solver iteration {a}/{d} | residual: 1.{c}E-0{a} | dt: 0.{c} |",
    "kmeans iteration {a} / {d} | inertia: {b}{c}.{c} |",
)


def text(n_bytes: int, seed: int) -> str:
    """A mixture of the lines, of at least so many bytes; numbers differ from line to line."""
    rng = random.Random(seed)
    lines: list[str] = []
    size = 0
    while size < n_bytes:
        numbers = {"a": rng.randrange(1, 10), "b": rng.randrange(100), "c": rng.randrange(10, 99), "d": 1000}
        lines.append(rng.choice(LINES).format(**numbers))
        size += len(lines[-1].encode()) + 1
    return "\n".join([*lines, ""])


def count_rows(path: Path) -> int:
    """Rows that the reader finds in a file; a refusal is none."""
    try:
        return read_log(path).iterations.height
    except UnknownFormatError:
        return 0


def main() -> None:
    """Write, read, print."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--size-mb", type=int, default=200)
    parser.add_argument("--seed", type=int, default=1)
    options = parser.parse_args()
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "other.log"
        with path.open("w", encoding="utf-8") as file:
            for index in range(options.size_mb):
                file.write(text(1_000_000, options.seed + index))
        started = time.perf_counter()
        n_rows = count_rows(path)
        seconds, size_mb = time.perf_counter() - started, path.stat().st_size / 1e6
        sys.stdout.write(f"{size_mb:.0f} MB of other programs' logs: {n_rows} rows, {seconds:.0f} s\n")


if __name__ == "__main__":
    main()
