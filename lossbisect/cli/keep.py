"""Options that say how a command uses the run store."""

import functools
from collections.abc import Callable
from typing import Any

import click

__all__ = ["store_options"]


def store_options(function: Callable[..., Any]) -> Callable[..., Any]:
    """Give a command ``--no-store`` and ``--fresh``, as one argument ``store``."""

    @click.option(
        "--no-store", "is_off", is_flag=True, help="Take no run from the run store, and keep none.  [default: both]"
    )
    @click.option(
        "--fresh", "is_fresh", is_flag=True, help="Run everything anew, though the run store has it; keep the new runs."
    )
    @functools.wraps(function)
    def with_store(*arguments: Any, is_off: bool, is_fresh: bool, **others: Any) -> Any:
        from lossbisect.store.runner import StoreUse

        if is_off and is_fresh:
            raise click.UsageError("--fresh keeps its runs, and --no-store keeps none. Choose one.")
        store = StoreUse.OFF if is_off else StoreUse.FRESH if is_fresh else StoreUse.NORMAL
        return function(*arguments, store=store, **others)

    decorated: Callable[..., Any] = with_store
    return decorated
