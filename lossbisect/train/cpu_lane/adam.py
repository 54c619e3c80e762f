"""torch's AdamW, with the step count where a GPU's fused Adam has it: in the parameter group.

The distributed optimizer saves a parameter's tensors and a group's numbers. torch keeps its count in a tensor of each
parameter, which it then misses when it loads. The arithmetic is torch's own, so no digit changes.
"""

from typing import Any

import torch

__all__ = ["count_by_group"]


class _GroupStepAdamW(torch.optim.AdamW):  # type: ignore[misc]  # torch is untyped here on purpose
    """Holds ``step`` in the parameter groups between its steps."""

    def __setstate__(self, state: dict[str, Any]) -> None:
        for tensors in state["state"].values():
            tensors.setdefault("step", torch.tensor(0.0))  # torch looks at it
        super().__setstate__(state)
        for tensors in self.state.values():
            del tensors["step"]

    def step(self, closure: Any = None) -> Any:
        for group in self.param_groups:
            for parameter in group["params"]:
                if self.state.get(parameter):
                    self.state[parameter]["step"] = torch.tensor(float(group.get("step", 0)), dtype=torch.float32)
        result = super().step(closure)
        for group in self.param_groups:
            counts = [self.state[each].pop("step") for each in group["params"] if "step" in self.state.get(each, {})]
            if counts:
                group["step"] = int(counts[0])
        return result


def count_by_group(optimizer: Any) -> None:
    """Make an AdamW count its steps by group; any other optimizer is left alone."""
    if type(optimizer) is torch.optim.AdamW:
        optimizer.__class__ = _GroupStepAdamW
