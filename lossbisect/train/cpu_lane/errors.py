"""The one error of the lane."""

__all__ = ["UnsupportedOnCpuLaneError"]


class UnsupportedOnCpuLaneError(NotImplementedError):
    """Something that the CPU lane can't emulate; the message names it."""

    def __init__(self, name: str) -> None:
        super().__init__(
            f"lossbisect: the CPU lane can't emulate {name}. Choose a recipe without it, or run on the cuda lane."
        )
