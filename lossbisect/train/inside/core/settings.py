"""Settings of the `core` trainer, ``GROUP.KEY=VALUE``, and whether a commit knows them.

A group goes to the callable of Megatron-Core that it's named after: ``model`` to ``TransformerConfig``, ``gpt`` to
``GPTModel``, ``ddp``, ``optimizer`` and ``parallel`` likewise. ``train`` and ``data`` are our own.
"""

import inspect
import json
from collections.abc import Callable, Mapping
from typing import Any

__all__ = ["MissingFeatureError", "Settings", "accepts", "fitted", "parse"]

type Settings = Mapping[str, Mapping[str, Any]]

_GROUPS = ("model", "gpt", "spec", "ddp", "optimizer", "scheduler", "parallel", "train", "data")


class MissingFeatureError(RuntimeError):
    """The commit doesn't know a setting that the recipe needs."""

    __module__ = "lossbisect"  # as a run's reason it's read by people


def parse(words: list[str]) -> Settings:
    """Settings by group and key; a value is JSON where it can be, else text.

    Raises:
        ValueError: A word isn't ``GROUP.KEY=VALUE`` with a known group.
    """
    groups: dict[str, dict[str, Any]] = {name: {} for name in _GROUPS}
    for word in words:
        name, equals, text = word.partition("=")
        group, dot, key = name.partition(".")
        if not (equals and dot and group in groups):
            raise ValueError(f"{word!r}: not GROUP.KEY=VALUE with a group of {', '.join(_GROUPS)}")
        groups[group][key] = _value(text)
    return groups


def _value(text: str) -> Any:
    try:
        return json.loads(text)
    except ValueError:
        return text


def accepts(target: Callable[..., Any], name: str) -> bool:
    """Whether a function or class can be called with an argument of that name."""
    parameters = inspect.signature(target).parameters
    return name in parameters or any(each.kind is each.VAR_KEYWORD for each in parameters.values())


def fitted(target: Callable[..., Any], given: Mapping[str, Any]) -> dict[str, Any]:
    """The arguments, once it's sure that the commit's own function or class takes each of them.

    Raises:
        MissingFeatureError: It doesn't, and ignoring that would train something else.
    """
    missing = [name for name in given if not accepts(target, name)]
    if missing:
        raise MissingFeatureError(f"this commit's {target.__name__} has no {', '.join(missing)}")
    return dict(given)
