"""What the `core` trainer says: rows as Megatron-LM prints them, with every digit, and the recorder's scalars."""

import hashlib
from datetime import datetime
from typing import Any

from lossbisect.train.inside.core.settings import Settings

__all__ = ["checksum", "print_settings", "row"]


def print_settings(settings: Settings) -> None:
    """Print the settings in the shape of Megatron-LM's dump of its arguments: a name has one value in all groups."""
    _print("------------------------ arguments ------------------------")
    flat = {key: value for values in settings.values() for key, value in values.items()}
    for key, value in sorted(flat.items()):
        _print(f"  {key} {'.' * max(3, 48 - len(key))} {value}")
    _print("-------------------- end of arguments ---------------------")


def checksum(model: Any) -> float:
    """The sum of all parameters' absolute values, each parameter weighted by its place; prints their SHA-256 too."""
    digest, total = hashlib.sha256(), 0.0
    for place, (name, parameter) in enumerate(model.named_parameters(), start=1):
        value = parameter.detach().double().cpu()
        digest.update(name.encode())
        digest.update(value.numpy().tobytes())
        total += place * float(value.abs().sum())
    _print(f"parameters at iteration 0: sha256 {digest.hexdigest()}, weighted sum {total!r}")
    return total


def row(iteration: int, iterations: int, samples: int, batch: int, elapsed_ms: float, values: dict[str, float]) -> None:
    """Print one iteration's row."""
    cells = [
        f" [{datetime.now():%Y-%m-%d %H:%M:%S.%f}] iteration {iteration:8d}/{iterations:8d}",  # as MLM
        f" consumed samples: {samples:12d}",
        f" elapsed time per iteration (ms): {elapsed_ms:.1f}",
        f" global batch size: {batch:5d}",
        *(f" {name}: {value:.16E}" for name, value in values.items()),
        " number of skipped iterations:   0",
        " number of nan iterations:   0",
    ]
    _print(" |".join(cells) + " |")


def _print(text: str) -> None:
    print(text, flush=True)  # noqa: T201  # the console log is the channel
