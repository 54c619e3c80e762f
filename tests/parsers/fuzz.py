"""Random and mutated inputs for `read_log`: whatever the bytes, a table or an error of ours comes back.

    python tests/parsers/fuzz.py [--inputs 100000] [--seed 1]

Starts from every fixture and from small files of the other formats; prints how many inputs were read and refused, and
stops at the first that gives another exception, whose bytes it keeps.
"""

import argparse
import json
import random
import sys
import tempfile
import time
from collections.abc import Iterator
from pathlib import Path

from lossbisect.errors import LossbisectError
from lossbisect.parsers import read_log

FIXTURES = Path(__file__).parents[2] / "fixtures"
_MOST_BYTES = 1500
_TOKENS = (
    b" iteration        7/      10 |",
    b" lm loss: 1.000000E+00 |",
    b" number of nan iterations:   0 |",
    b"iteration ",
    b"\r",
    b"\r\n",
    b"\n",
    b"\x00",
    b"\xff\xfe",
    b"\x1b[31m",
    b"| ",
    b": ",
    b"9" * 30,
    b"1e999",
    b"nan",
    b"-inf",
    b"{",
    b'"',
    b"[",
    b",",
    b"\xe2\x82",
    b"------------------------ arguments ------------------------\n",
    b"Traceback (most recent call last):\n",
    b" validation loss at iteration 7 | lm loss value: ",
    b"[Rank 0] (after 7 iterations) memory (MB) | allocated: ",
    b"(min, max) time across ranks (ms):\n",
    b"Step Time : 1.00s GPU utilization: 5.0MODEL_TFLOP/s/GPU\n",
)
_OTHERS: tuple[object, ...] = (
    {"lm loss": {"start_step": 1, "end_step": 3, "step_interval": 1, "values": {"1": 10.5, "2": "nan", "3": 10.1}}},
    {"lm loss": {"start_step": 0, "end_step": 3, "step_interval": 1, "values": [10.5, 10.4, 10.1]}},
    {"0": {"lm loss": 10.5, "GPU utilization": 400.0}, "1": {"lm loss": 10.4}, "alloc": 3.0},
    [{"_step": 1, "lm loss": 10.5}, {"_step": 2, "lm loss": None}],
    [{"key": "lm loss", "value": 10.5, "step": 1, "timestamp": 5}],
)
_TEXTS = (
    b"1 10.5\n2 10.4\n3 10.1\n",
    b"Step,run - lm loss\n1,10.5\n2,10.4\n",
    b"iteration,attempt,window,is_complete,lm_loss\n1,0,1,true,10.5\n",
    b'{"tag": "lm loss", "iteration": 1, "value": 10.5}\n{"tag": "lm loss", "iteration": 2, "value": 10.4}\n',
    b"\x1f\x8b\x08\x00",
    b"BZh91AY",
    b"\xfd7zXZ\x00",
    b"\x28\xb5\x2f\xfd\x04",
    b"PAR1",
)


def seeds() -> list[bytes]:
    """Parts of every fixture, and small files of the other formats."""
    found = [*_TEXTS, *(json.dumps(item).encode() for item in _OTHERS)]
    for path in sorted(FIXTURES.glob("*/*.log")):
        data = path.read_bytes()
        found += [data[:_MOST_BYTES], data[-_MOST_BYTES:]]
    return found


def inputs(count: int, seed: int) -> Iterator[bytes]:
    """So many inputs: one in eight is random, the others are mutated seeds."""
    rng = random.Random(seed)
    sources = seeds()
    for index in range(count):
        yield rng.randbytes(rng.randrange(200)) if index % 8 == 0 else _mutated(rng, sources)


def _mutated(rng: random.Random, sources: list[bytes]) -> bytes:
    data = bytearray(rng.choice(sources))
    start = rng.randrange(len(data))
    data = data[start : start + rng.randrange(_MOST_BYTES)] if rng.random() < 0.5 else data
    for _ in range(rng.randrange(6)):
        at = rng.randrange(len(data) + 1)
        match rng.randrange(5):
            case 0:
                data[at : at + 1] = bytes([rng.randrange(256)])
            case 1:
                del data[at : at + rng.randrange(40)]
            case 2:
                data[at:at] = rng.choice(_TOKENS)
            case 3:
                data[at:at] = data[at : at + rng.randrange(400)]
            case _:
                other = rng.choice(sources)
                data[at:at] = other[: rng.randrange(len(other) + 1)]
    return bytes(data)


def run(count: int, seed: int, folder: Path) -> tuple[int, int]:
    """Read so many inputs; how many gave a table and how many were refused in one line."""
    path = folder / "input.log"
    n_read = n_refused = 0
    for data in inputs(count, seed):
        path.write_bytes(data)
        try:
            read_log(path)
        except LossbisectError as error:
            if "\n" in str(error):
                raise
            n_refused += 1
        else:
            n_read += 1
    return n_read, n_refused


def main() -> None:
    """Run and print."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--inputs", type=int, default=100_000)
    parser.add_argument("--seed", type=int, default=1)
    options = parser.parse_args()
    folder = Path(tempfile.mkdtemp(prefix="lossbisect-fuzz-"))
    started = time.perf_counter()
    n_read, n_refused = run(options.inputs, options.seed, folder)  # a traceback leaves the input in the folder
    (folder / "input.log").unlink()
    folder.rmdir()
    text = f"seed {options.seed}: {options.inputs} inputs, {n_read} read, {n_refused} refused, no other exception"
    sys.stdout.write(f"{text}, {time.perf_counter() - started:.0f} s\n")


if __name__ == "__main__":
    main()
