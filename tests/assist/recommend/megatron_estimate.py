"""Run inside a process that has torch: Megatron-LM's own estimate of memory, one JSON line in, one out."""

import importlib.util
import json
import sys
import types
from argparse import Namespace
from pathlib import Path


def main() -> None:
    """Read objects of arguments from standard input; write bytes of weights with optimizer, and of activations."""
    found = importlib.util.find_spec("megatron")
    assert found is not None
    places = [Path(place) for place in found.submodule_search_locations or ()]
    folder = next(place for place in places if (place / "training").is_dir())
    # the file alone: its package needs more than a formula does
    package, utilities = types.ModuleType("estimate"), types.ModuleType("estimate.utils")
    package.__path__ = []
    vars(utilities).update(is_hybrid_model=lambda _: False, print_rank_0=print)
    sys.modules |= {"estimate": package, "estimate.utils": utilities}
    file = folder / "training" / "theoretical_memory_usage.py"
    spec = importlib.util.spec_from_file_location("estimate.theory", file)
    assert spec is not None
    assert spec.loader is not None
    theory = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(theory)
    for line in sys.stdin:
        fields = json.loads(line)
        microbatches = fields.pop("num_microbatches")
        args = Namespace(**fields)
        name = "compute_activation_memory" if args.sequence_parallel else "compute_activation_memory_without_sp"
        activations = getattr(theory, name)(args, microbatches)
        sys.stdout.write(f"{json.dumps([theory.compute_weight_and_optimizer_memory(args), activations])}\n")


if __name__ == "__main__":
    main()
