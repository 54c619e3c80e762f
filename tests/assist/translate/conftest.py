"""What the installed trainers have, read once."""

from importlib.util import find_spec

import pytest

from lossbisect.assist.translate.facts import read_facts
from lossbisect.assist.translate.types import Facts


@pytest.fixture(scope="session")
def facts() -> Facts:
    """The arguments, settings and defaults of the installed Megatron-LM and Bridge."""
    if find_spec("megatron") is None:
        pytest.skip("no Megatron is installed (requirements/train.txt)")
    return read_facts()
