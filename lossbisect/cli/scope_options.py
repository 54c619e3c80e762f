"""Which commits are candidates: options that several commands share."""

import functools
from collections.abc import Callable
from typing import Any

import click

from lossbisect.bisect.scope import Scope, Searched

__all__ = ["scope_options"]

_OPTIONS = (
    click.option(
        "--search",
        "searched",
        type=click.Choice([each.value for each in Searched]),
        help="Whose commits are searched: 'mcore' Megatron-LM's, with Bridge where it is; 'bridge' Bridge's own, each "
        "with the Megatron-LM that it pins, and then inside the pin that the found one moved. Ends are named there.  "
        "[default: mcore]",
    ),
    click.option(
        "--oldest",
        metavar="COMMIT",
        help="With no --good: how far back to look for a commit with another curve than the bad end's.  [default: the "
        "first commit of the history]",
    ),
    click.option(
        "--paths",
        multiple=True,
        metavar="PATH",
        help="Only commits that touch this path of the searched repository are candidates, once for each path. That "
        "the others change nothing is assumed, and checked at the commit before the answer.",
    ),
    click.option(
        "--all-parents",
        is_flag=True,
        default=None,
        help="If a merge is found, look among the commits that it brought in too.",
    ),
)


def scope_options(function: Callable[..., Any]) -> Callable[..., Any]:
    """Give a command all options of this module, as one argument ``scope``; None if none was given."""

    @functools.wraps(function)
    def with_scope(*arguments: Any, **others: Any) -> Any:
        given = {name: others.pop(name) for name in ("oldest", "paths", "all_parents", "searched")}
        given = {name: value for name, value in given.items() if value}
        if "searched" in given:
            given["searched"] = Searched(given["searched"])
        return function(*arguments, scope=Scope(**given) if given else None, **others)

    decorated: Callable[..., Any] = with_scope
    for option in reversed(_OPTIONS):
        decorated = option(decorated)
    return decorated
