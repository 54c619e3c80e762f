"""Slow tests are left out unless they are asked for."""

import os

import pytest


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Skip what is marked slow, with the way to run it."""
    if os.environ.get("LOSSBISECT_SLOW"):
        return
    for item in items:
        if item.get_closest_marker("slow"):
            item.add_marker(pytest.mark.skip(reason="slow; set LOSSBISECT_SLOW=1 to run it"))
