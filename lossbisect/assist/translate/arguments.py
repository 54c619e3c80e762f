"""The arguments that a Megatron-LM's parser has, read from its source."""

import ast
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

from lossbisect.assist.translate.source import Field, Module, Sources, Value

__all__ = ["Argument", "read_arguments"]

_PARSER = "megatron.training.arguments"


@dataclass(frozen=True, kw_only=True, slots=True)
class Argument:
    """One destination of the parser, with every option that writes it.

    Attributes:
        dest: Name in the ``arguments`` block of a log.
        options: Option strings and what each does: ``store`` takes words, ``true`` and ``false`` set a switch,
            ``switch`` is one that has a ``--no-`` form, and anything else is the constant it stores.
        default: What the parser leaves if nothing is said, before it validates anything.
        type: Name of what a word is converted with: ``int``, ``float``, ``bool`` or ``str``.
        takes_many: Whether it takes a list of words.
        choices: Words it takes; empty: any.
        path: File that declares it.
        line_no: Line in it.
    """

    dest: str
    options: dict[str, Value]
    default: Value
    type: str
    takes_many: bool
    choices: tuple[str, ...]
    path: Path
    line_no: int


def read_arguments(sources: Sources) -> dict[str, Argument]:
    """Every argument by destination, in the parser's order; empty if the tree has no ``megatron.training``."""
    module = sources.module(_PARSER)
    start = module.names.get("add_megatron_arguments") if module else None
    if module is None or not isinstance(start, ast.FunctionDef):
        return {}
    found: dict[str, Argument] = {}
    for call in _calls(start):
        adder = sources.find(module, ast.unparse(call.func))
        if adder and isinstance(adder[1], ast.FunctionDef):
            for argument in _added(adder[1], adder[0], sources):
                found[argument.dest] = _joined(found.get(argument.dest), argument)
    return found


def _joined(earlier: Argument | None, argument: Argument) -> Argument:
    if earlier is None:
        return argument
    return Argument(
        dest=earlier.dest,
        options=earlier.options | argument.options,
        default=earlier.default,  # argparse fills in the default of the action that was added first
        type=earlier.type,
        takes_many=earlier.takes_many,
        choices=earlier.choices,
        path=earlier.path,
        line_no=earlier.line_no,
    )


def _calls(function: ast.FunctionDef) -> Iterator[ast.Call]:
    """Calls in a function, in the order of the text."""
    calls = [node for node in ast.walk(function) if isinstance(node, ast.Call)]
    yield from sorted(calls, key=lambda call: (call.lineno, call.col_offset))


def _added(function: ast.FunctionDef, module: Module, sources: Sources) -> Iterator[Argument]:
    """What one ``_add_..._args`` adds, by itself or from the fields of a dataclass."""
    scope: dict[str, Value] = {
        statement.targets[0].id: sources.value(statement.value, module)
        for statement in function.body
        if isinstance(statement, ast.Assign) and isinstance(statement.targets[0], ast.Name)
    }
    for call in _calls(function):
        name = ast.unparse(call.func).rpartition(".")[2]
        if name == "add_argument":
            if argument := _declared(call, module, sources, scope):
                yield argument
        elif name.endswith("ArgumentGroupFactory") and call.args:
            excluded = next((sources.value(w.value, module, scope) for w in call.keywords if w.arg == "exclude"), [])
            found = sources.find(module, ast.unparse(call.args[0]))
            if found and isinstance(found[1], ast.ClassDef):
                for field in sources.fields(found[0].name, found[1].name).values():
                    if field.is_argument and not (isinstance(excluded, list) and field.name in excluded):
                        yield _from_field(field, sources)


def _declared(call: ast.Call, module: Module, sources: Sources, scope: dict[str, Value]) -> Argument | None:
    flags = [str(sources.value(word, module)) for word in call.args]
    if not flags:
        return None
    words = {word.arg: word.value for word in call.keywords if word.arg}
    long = next((flag for flag in flags if flag.startswith("--")), flags[0])
    dest = sources.value(words["dest"], module) if "dest" in words else long.lstrip("-").replace("-", "_")
    action = ast.unparse(words["action"]).strip("'\"").rpartition(".")[2] if "action" in words else "store"
    default = sources.value(words["default"], module, scope) if "default" in words else _ABSENT.get(action)
    kind: Value = _ACTIONS.get(action, "store")
    if action == "store_const":
        kind = sources.value(words["const"], module)
    return Argument(
        dest=str(dest),
        options=_options(flags, kind),
        default=default,
        type="bool" if kind in ("true", "false", "switch") else _type(words.get("type")),
        takes_many="nargs" in words and sources.value(words["nargs"], module) not in ("?", 1),
        choices=_choices(words.get("choices"), module, sources, scope),
        path=module.path,
        line_no=call.lineno,
    )


def _options(flags: list[str], kind: Value) -> dict[str, Value]:
    options: dict[str, Value] = {}
    for flag in flags:
        options[flag] = "true" if kind == "switch" else kind
        if kind == "switch":
            options[flag.replace("--", "--no-", 1)] = "false"
    return options


def _from_field(field: Field, sources: Sources) -> Argument:
    """What ``ArgumentGroupFactory`` makes of a field."""
    flag = "--" + field.name.replace("_", "-")
    told = _metadata(field, sources)
    type_name, takes_many, choices = _of_annotation(field.annotation)
    kind: Value = "store"
    flags = [flag]
    if type_name == "bool" and "type" not in told:
        is_on = field.default is not False
        kind = "false" if is_on else "true"
        flags = [f"--no-{flag[2:]}", f"--disable-{flag[2:]}"] if is_on else [flag]
    if isinstance(names := told.get("arg_names"), list):
        flags = [str(name) for name in names]
    if isinstance(action := told.get("action"), str):
        kind = _ACTIONS.get(action, "store")
    if isinstance(own := told.get("choices"), list):
        choices = tuple(map(str, own))
    return Argument(
        dest=str(told.get("dest", field.name)),
        options=_options(flags, kind if told.get("action") != "store_const" else told.get("const")),
        default=told.get("default", field.default),
        type=str(told.get("type", type_name)),
        takes_many="nargs" in told or takes_many,
        choices=choices,
        path=field.path,
        line_no=field.line_no,
    )


def _metadata(field: Field, sources: Sources) -> dict[str, Value]:
    module = sources.module(_module_name(field.path, sources))
    if not isinstance(field.metadata, ast.Dict) or module is None:
        return {}
    for key, inner in zip(field.metadata.keys, field.metadata.values, strict=True):
        if isinstance(key, ast.Constant) and key.value == "argparse_meta" and isinstance(inner, ast.Dict):
            pairs = zip(inner.keys, inner.values, strict=True)
            return {
                str(sources.value(name, module)): _type(value)
                if ast.unparse(name) == "'type'"
                else sources.value(value, module)
                for name, value in pairs
                if name is not None
            }
    return {}


def _module_name(path: Path, sources: Sources) -> str:
    root = next(root for root in sources.roots if path.is_relative_to(root))
    parts = path.relative_to(root).with_suffix("").parts
    return ".".join(parts[:-1] if parts[-1] == "__init__" else parts)


_ACTIONS: dict[str, str] = {"store_true": "true", "store_false": "false", "BooleanOptionalAction": "switch"}
_ABSENT: dict[str, Value] = {"store_true": False, "store_false": True}


def _type(node: ast.expr | None) -> str:
    name = ast.unparse(node) if node is not None else "str"
    return name if name in ("int", "float", "bool") else "str"


def _choices(node: ast.expr | None, module: Module, sources: Sources, scope: dict[str, Value]) -> tuple[str, ...]:
    value = sources.value(node, module, scope) if node is not None else []
    return tuple(map(str, value)) if isinstance(value, list) else ()


def _of_annotation(annotation: str) -> tuple[str, bool, tuple[str, ...]]:
    """Type, whether it is a list, and the choices of a ``Literal``."""
    node = ast.parse(annotation, mode="eval").body
    while True:
        match node:
            case ast.BinOp(left=left):
                node = left
            case ast.Subscript(value=ast.Name(id="Optional" | "Union"), slice=inner):
                node = inner.elts[0] if isinstance(inner, ast.Tuple) else inner
            case ast.Subscript(value=ast.Name(id="list" | "List"), slice=inner):
                name, _, choices = _of_annotation(ast.unparse(inner))
                return name, True, choices
            case ast.Subscript(value=ast.Name(id="Literal"), slice=inner):
                items = inner.elts if isinstance(inner, ast.Tuple) else [inner]
                values = [item.value for item in items if isinstance(item, ast.Constant)]
                return type(values[0]).__name__ if values else "str", False, tuple(map(str, values))
            case _:
                return _type(node), False, ()
