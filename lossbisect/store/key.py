"""The key of a run, known before it runs: or why the store has nothing to do with it."""

import os
from collections.abc import Mapping
from dataclasses import fields
from pathlib import Path

from lossbisect.redact import redact, redact_variables
from lossbisect.store.environment import environment_of, interpreter_of
from lossbisect.store.types import NotStored, RunKey, digest_of
from lossbisect.train.inside.fingerprint import EDITABLE
from lossbisect.train.recipes import Recipe, load_recipe
from lossbisect.train.trainers import set_up_of
from lossbisect.train.types import RunSpec, TrainerName

__all__ = ["key_of"]

_ELSEWHERE = frozenset({"sources", "recipe", "trainer", "lane", "python", "timeout_s"})
"""Fields of a spec that the key has under another name, or that can't change a finished run's numbers."""
_BRIDGE = "megatron-bridge"
_WORDS = frozenset({"name", "description", "documentation", "trainers"})
"""Fields of a recipe that say something to people, and nothing to a trainer."""


def key_of(spec: RunSpec, cache: Path) -> RunKey | NotStored:
    """The key under which the spec's run is stored.

    Args:
        spec: The run. Its trees need not be there yet.
        cache: Where interpreters are remembered.

    Raises:
        RecipeError: There is no such recipe.
        TrainerError: The interpreter can't be started.
    """
    sources = spec.sources
    if sources.mcore_commit is None or not sources.is_ours:
        return NotStored(reason="only a commit in a tree of lossbisect's own is sure to be the commit and nothing else")
    recipe = load_recipe(spec.recipe)
    variables = {**os.environ, **set_up_of(spec.lane, recipe.ranks), **spec.env}
    environment = environment_of(interpreter_of(spec.python, cache), spec.lane, variables)
    is_bridge_installed = sources.bridge_commit is None and spec.trainer is TrainerName.BRIDGE
    relevant = {
        name: version for name, version in environment.packages.items() if is_bridge_installed or name != _BRIDGE
    }
    for name, version in relevant.items():
        if version.startswith(EDITABLE):
            where = version.removeprefix(EDITABLE) or "a working folder"
            return NotStored(reason=f"{name} is installed from {where}, whose files may change without a trace")
    settings = {field.name: _plain(getattr(spec, field.name)) for field in fields(spec) if field.name not in _ELSEWHERE}
    return RunKey(
        mcore_commit=sources.mcore_commit,
        bridge_commit=sources.bridge_commit,
        recipe=_content(recipe),
        trainer=spec.trainer,
        lane=spec.lane,
        settings={**{name: _redacted(value) for name, value in settings.items()}, "env": redact_variables(spec.env)},
        settings_digest=digest_of(settings),
        environment=environment,
    )


def _redacted(value: object) -> object:
    return redact(value) if isinstance(value, str) else value


def _content(recipe: Recipe) -> dict[str, object]:
    values = {field.name: _plain(getattr(recipe, field.name)) for field in fields(recipe)}
    return {name: value for name, value in values.items() if name not in _WORDS}


def _plain(value: object) -> object:
    """A value of a spec or recipe as JSON has it."""
    if isinstance(value, Mapping):
        return {str(name): _plain(item) for name, item in value.items()}
    if isinstance(value, tuple | list):
        return [_plain(item) for item in value]
    return value if isinstance(value, str | int | float | bool | None) else str(value)
