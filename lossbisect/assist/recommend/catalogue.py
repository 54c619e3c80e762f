"""Every recipe that a Bridge exports: from its names, and for one recipe from its body."""

import ast
import re
from collections.abc import Iterator
from dataclasses import dataclass, replace

from lossbisect.assist.recommend.reading import Bag, read_recipe
from lossbisect.assist.recommend.source import PACKAGE, BridgeSource
from lossbisect.assist.recommend.types import BridgeRecipe, Kind, Layout, Task

__all__ = ["Reading", "list_recipes", "read_settings"]

_ROOTS = {Kind.LIBRARY: f"{PACKAGE}.recipes", Kind.PERFORMANCE: f"{PACKAGE}.perf_recipes"}
_TASK = re.compile(r"_(pretrain|sft|peft)(?=_|$)")
_FLAT = re.compile(r"_(\d+)gpu_([a-z]+\d+)_(bf16|fp8[a-z]+|nvfp4|fp16)")
_HARDWARE = re.compile(r"_(h100|h200|b200|b300|gb200|gb300|r100|vr200)(?=_)")


def list_recipes(source: BridgeSource) -> tuple[BridgeRecipe, ...]:
    """Every exported recipe function, sorted by kind and name. Aliases are gathered under the function they stand for.

    Only ``__init__`` files and modules of aliases are read.
    """
    found: dict[tuple[Kind, str, str], BridgeRecipe] = {}
    for kind, root in _ROOTS.items():
        for package in _packages(source, root):
            for name, (module, function) in _exported(source, package).items():
                key = (kind, module, function)
                recipe = found.get(key) or _named(kind, module, function)
                if recipe is not None:
                    aliases = {*recipe.aliases, name} - {function}
                    found[key] = replace(recipe, aliases=tuple(sorted(aliases)))
    return tuple(sorted(found.values(), key=lambda recipe: (recipe.kind, recipe.name)))


def _packages(source: BridgeSource, root: str) -> Iterator[str]:
    folder = source.root / root.rpartition(".")[2]
    for file in sorted(folder.rglob("__init__.py")) if folder.is_dir() else ():
        inner = ".".join(file.parent.relative_to(folder).parts)
        if not inner.startswith("utils"):
            yield f"{root}.{inner}" if inner else root


def _exported(source: BridgeSource, module: str, depth: int = 0) -> dict[str, tuple[str, str]]:
    """Recipe functions by exported name: the module that defines each, and its name there."""
    tree, found = source.module(module), {}
    if tree is None or depth > 8:
        return {}
    for node in tree.body:
        if isinstance(node, ast.FunctionDef) and _is_recipe(node.name):
            found[node.name] = (module, node.name)
        elif isinstance(node, ast.ImportFrom):
            origin = _absolute(source, module, node)
            if not origin.startswith(tuple(_ROOTS.values())):
                continue
            for alias in node.names:
                if alias.name == "*":
                    found |= _exported(source, origin, depth + 1)
                elif _is_recipe(alias.name):
                    found[alias.asname or alias.name] = _origin(source, origin, alias.name, depth + 1)
    listed = _all(tree)
    return {name: at for name, at in found.items() if listed is None or name in listed}


def _origin(source: BridgeSource, module: str, name: str, depth: int) -> tuple[str, str]:
    """Where a name that a module imports is defined; a module that doesn't import it defines it."""
    if depth > 8 or source.defines(module, name):
        return module, name
    tree = source.module(module)
    for node in tree.body if tree else ():
        if isinstance(node, ast.ImportFrom):
            origin = _absolute(source, module, node)
            for alias in node.names:
                if (alias.asname or alias.name) == name:
                    return _origin(source, origin, alias.name, depth + 1)
                if alias.name == "*" and source.is_package(module):
                    found = _exported(source, origin, depth + 1).get(name)
                    if found:
                        return found
    return module, name


def _absolute(source: BridgeSource, module: str, node: ast.ImportFrom) -> str:
    if not node.level:
        return node.module or ""
    parts = module.split(".")
    base = ".".join(parts[: len(parts) - node.level + (1 if source.is_package(module) else 0)])
    return f"{base}.{node.module}" if node.module else base


def _all(tree: ast.Module) -> set[str] | None:
    """The names in ``__all__`` where it is a plain list; None otherwise."""
    for node in tree.body:
        if (
            isinstance(node, ast.Assign)
            and isinstance(node.targets[0], ast.Name)
            and node.targets[0].id == "__all__"
            and isinstance(node.value, ast.List)
        ):
            values = [item.value for item in node.value.elts if isinstance(item, ast.Constant)]
            return {str(value) for value in values} if len(values) == len(node.value.elts) else None
    return None


def _is_recipe(name: str) -> bool:
    return not name.startswith("_") and name.endswith("_config") and bool(_TASK.search(name))


def _named(kind: Kind, module: str, name: str) -> BridgeRecipe | None:
    """What a recipe's name says."""
    task = _TASK.search(name)
    if task is None:
        return None
    rest, flat = name[task.end() :], _FLAT.search(name)
    hardware = _HARDWARE.search(name)
    model = name[: task.start()]
    if hardware and hardware.end() <= task.start():
        model = model.replace(hardware[0], "")
    variant = rest.removesuffix("_config").strip("_")
    if flat:
        variant = name[flat.end() :].removesuffix("_config").strip("_")
    return BridgeRecipe(
        kind=kind,
        name=name,
        module=module,
        model=model,
        task=Task(task[1]),
        gpus=int(flat[1]) if flat else None,
        hardware=flat[2] if flat else (hardware[1] if hardware else None),
        precision=flat[3] if flat else None,
        variant=variant,
    )


@dataclass(frozen=True, kw_only=True, slots=True)
class Reading:
    """What a recipe's body says.

    Attributes:
        layout: Its parallel sizes and batch.
        sequence_length: Tokens per sequence; None where it can't be read.
        model_id: Hugging Face id of its model; None where it isn't made from one.
        mock: It trains on made-up data unless told otherwise; None where that can't be read.
        stated: Sizes of the model that the recipe itself sets, by Megatron-Core's names.
        extra_layers: What it counts as layers beside those when it fills pipeline stages; None: it places them by hand.
        recompute: ``full``, ``selective`` or None.
        is_fsdp: Weights and gradients are sharded over data-parallel ranks.
        is_sharded: The optimizer is distributed.
        is_offloaded: Activations wait in the CPU's memory.
        unread: Sizes that the recipe sets to what can't be known without running it; taken as 1.
    """

    layout: Layout
    sequence_length: int | None
    model_id: str | None
    mock: bool | None
    stated: dict[str, int]
    extra_layers: int | None
    recompute: str | None
    is_fsdp: bool
    is_sharded: bool
    is_offloaded: bool
    unread: tuple[str, ...]


_SIZES = (
    "num_layers", "hidden_size", "ffn_hidden_size", "num_attention_heads", "num_query_groups", "kv_channels",
    "num_moe_experts",
)  # fmt: skip
_BY_HAND = ("pipeline_model_parallel_layout", "num_layers_in_first_pipeline_stage", "num_layers_in_last_pipeline_stage")
_OFFLOADING = ("fine_grained_activation_offloading", "cpu_offloading")
_COUNTED = ("account_for_embedding_in_pipeline_split", "account_for_loss_in_pipeline_split")


def read_settings(source: BridgeSource, recipe: BridgeRecipe) -> Reading | None:
    """What the recipe's body says; None where it can't be read."""
    cfg = read_recipe(source, recipe.module, recipe.name)
    if cfg is None or "model" not in cfg.attributes:  # one that only says that it isn't there yet
        return None

    unread: list[str] = []

    def number(path: str, default: int) -> int:
        value = cfg.at(path)
        owner, _, name = path.partition(".")
        if value is None and isinstance(getattr(cfg.attributes.get(owner), "attributes", {}).get(name), Bag):
            unread.append(path)
        return value if isinstance(value, int) and not isinstance(value, bool) and value > 0 else default

    tensor = number("model.tensor_model_parallel_size", 1)
    length = number("dataset.seq_length", 0) or number("model.seq_length", 0)
    model = cfg.attributes.get("model")
    virtual, sequence = cfg.at("model.virtual_pipeline_model_parallel_size"), cfg.at("model.sequence_parallel")
    recompute = cfg.at("model.recompute_granularity")
    kind = getattr(cfg.attributes.get("dataset"), "kind", "")
    by_hand = any(getattr(model, "attributes", {}).get(name) is not None for name in _BY_HAND)
    return Reading(
        layout=Layout(
            tensor=tensor,
            pipeline=number("model.pipeline_model_parallel_size", 1),
            virtual=virtual if isinstance(virtual, int) and virtual > 1 else None,
            context=number("model.context_parallel_size", 1),
            expert=number("model.expert_model_parallel_size", 1),
            expert_tensor=number("model.expert_tensor_parallel_size", tensor),
            is_sequence_parallel=sequence is True,
            micro_batch=number("train.micro_batch_size", 1),
            global_batch=number("train.global_batch_size", 1),
        ),
        sequence_length=length or None,
        model_id=getattr(model, "model", None),
        mock=cfg.at("dataset.blend") is None if kind.startswith(("GPT", "Mock")) else None,
        stated={name: value for name in _SIZES if isinstance(value := cfg.at(f"model.{name}"), int)},
        extra_layers=None if by_hand else sum(cfg.at(f"model.{name}") is True for name in _COUNTED),
        recompute=recompute if isinstance(recompute, str) else None,
        is_fsdp=cfg.at("ddp.use_megatron_fsdp") is True,
        is_sharded=cfg.at("ddp.use_distributed_optimizer") is not False,
        unread=tuple(path for path in unread if "seq_length" not in path),
        is_offloaded=any(cfg.at(f"model.{name}") is True for name in _OFFLOADING),
    )
