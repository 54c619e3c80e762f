"""A made-up history of real Megatron-Core, for the demo and for tests: `make_history` lays it out."""

from lossbisect.demo.history import DemoHistory, make_history

__all__ = ["DemoHistory", "make_history"]
