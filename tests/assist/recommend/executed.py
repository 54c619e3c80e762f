"""Run inside a process that has torch: what Bridge's recipe functions really return, as JSON lines.

Models are stubbed, since their sizes come over the network; everything else is Bridge's own code.
"""

import importlib
import json
import sys
from pathlib import Path
from typing import Any


class Provider:
    """Stands for a model: takes every setting, and has none of its own but a vocabulary."""

    vocab_size = 32000

    def __getattr__(self, name: str) -> Any:
        if name.startswith("__"):
            raise AttributeError(name)
        return None


class Loaded:
    """Stands for a checkpoint on Hugging Face."""

    def to_megatron_provider(self, **_: Any) -> Provider:
        """A model without sizes."""
        return Provider()


def _say(**told: Any) -> None:
    sys.stdout.write(f"{json.dumps(told)}\n")


def main() -> None:
    """Read ``module name`` pairs from standard input; write one object for each that runs."""
    from lossbisect.train.cpu_lane import activate

    activate(Path(sys.argv[1]))
    from megatron.bridge import AutoBridge

    AutoBridge.from_hf_pretrained = staticmethod(lambda *_, **__: Loaded())
    for line in sys.stdin:
        module, name = line.split()
        try:
            cfg = getattr(importlib.import_module(module), name)()
        except Exception as error:  # a recipe that needs more of its model than a stub has
            _say(name=name, error=repr(error)[:200])
            continue
        model, train = cfg.model, cfg.train
        told = {
            "tensor": model.tensor_model_parallel_size,
            "pipeline": model.pipeline_model_parallel_size,
            "context": model.context_parallel_size,
            "expert": model.expert_model_parallel_size,
            "is_sequence_parallel": model.sequence_parallel,
            "micro_batch": train.micro_batch_size,
            "global_batch": train.global_batch_size,
            "sequence_length": getattr(cfg.dataset, "seq_length", None),
        }
        _say(name=name, error=None, **told)


if __name__ == "__main__":
    main()
