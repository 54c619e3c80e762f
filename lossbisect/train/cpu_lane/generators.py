"""Two random generators, as on a machine with a GPU: the emulated device's and the host's.

torch's default CPU generator becomes the *device's*: dropout and in-place initialisers draw from it without being told.
The *host's* is a generator of its own, handed to the draws that a GPU machine makes on the CPU. Kept apart, a trainer
that draws more often on the host (a data loader's base seed, say) doesn't shift the device's dropout masks.
"""

from typing import Any

import torch

__all__ = ["host", "install"]

host = torch.Generator(device="cpu")
"""The host's generator; ``torch.get_rng_state`` and ``torch.set_rng_state`` speak of this one."""

_device = torch.default_generator


def _manual_seed(seed: int) -> torch.Generator:
    _device.manual_seed(int(seed))
    return host.manual_seed(int(seed))


def _seed() -> int:
    seed: int = host.seed()
    _device.manual_seed(seed)
    return seed


def _set_device_state(new_state: torch.Tensor, device: Any = None) -> None:
    _device.set_state(new_state)


def _get_device_state(device: Any = None) -> torch.Tensor:
    return _device.get_state()


def install() -> None:
    """Give the emulated device torch's default generator, and the host one of its own."""
    host.manual_seed(torch.initial_seed())
    # Functions of our own, not the generators' bound methods: torch._dynamo refuses one object under two names.
    for module in (torch, torch.random):
        module.manual_seed = _manual_seed
        module.seed = _seed
        module.initial_seed = lambda: host.initial_seed()
        module.get_rng_state = lambda: host.get_state()
        module.set_rng_state = lambda new_state: host.set_state(new_state)
    for module in (torch.cuda, torch.cuda.random):
        module.manual_seed = lambda seed: _device.manual_seed(int(seed))
        module.manual_seed_all = lambda seed: _device.manual_seed(int(seed))
        module.seed = lambda: _device.seed()
        module.seed_all = lambda: _device.seed()
        module.initial_seed = lambda: _device.initial_seed()
        module.get_rng_state = _get_device_state
        module.set_rng_state = _set_device_state
        module.get_rng_state_all = lambda: [_device.get_state()]
        module.set_rng_state_all = lambda states: _device.set_state(states[0])
    torch.cuda.default_generators = (_device,) * 1024  # indexed by device number; every number is the one device
