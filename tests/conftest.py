"""Slow tests are left out unless they are asked for, and have more time."""

import os

import pytest

SLOW_TIMEOUT_S = 3600


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Skip what is marked slow, with the way to run it; else let it run longer than the others."""
    for item in items:
        if item.get_closest_marker("slow"):
            if not os.environ.get("LOSSBISECT_SLOW"):
                item.add_marker(pytest.mark.skip(reason="slow; set LOSSBISECT_SLOW=1 to run it"))
            item.add_marker(pytest.mark.timeout(SLOW_TIMEOUT_S))
