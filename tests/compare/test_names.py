"""The public names of the package, which are loaded when they are first used."""

import lossbisect
import lossbisect.compare
import lossbisect.compare.align


def test_every_public_name_is_there() -> None:
    """Also where a module of the package has the same name as a function in it."""
    for package in (lossbisect, lossbisect.compare):
        assert [name for name in package.__all__ if not hasattr(package, name)] == []
    assert callable(lossbisect.compare.align)
