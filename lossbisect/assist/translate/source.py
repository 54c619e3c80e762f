"""Python source read without running it: classes, functions and constants by name, and what a call of them makes.

Reading is enough for what the translator asks of Megatron: dataclasses with plain defaults, and recipe functions that
build them. Whatever depends on the machine (a folder, an installed kernel) comes out as `Unread`, never as a guess.
"""

import ast
import operator
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from functools import cache
from pathlib import Path

__all__ = ["Field", "Made", "Module", "Sources", "Unread", "Value"]


@dataclass(frozen=True, slots=True)
class Unread:
    """A value that the source alone doesn't tell, as it is written there."""

    text: str


@dataclass(frozen=True, slots=True)
class Made:
    """An object that a piece of source builds.

    Attributes:
        name: Its class.
        values: Its fields.
    """

    name: str
    values: "dict[str, Value]"


type Value = bool | int | float | str | list[Value] | Unread | Made | None
"""What an expression is worth. A tuple counts as a list, a member of an enum and a dtype as their names."""


@dataclass(frozen=True, kw_only=True, slots=True)
class Module:
    """One parsed file."""

    name: str
    path: Path
    tree: ast.Module
    names: dict[str, ast.AST]
    """What the module defines at its top, and what it imports anywhere."""


@dataclass(frozen=True, kw_only=True, slots=True)
class Field:
    """One field of a dataclass.

    Attributes:
        name: Its name.
        owner: The class that declares it: of those in a line of inheritance, the last.
        path: File of that class.
        line_no: Line in it.
        annotation: The type, as written.
        default: What it holds if nothing is said; `Unread` also where it has no default.
        metadata: Expression of its metadata, if it has any.
        is_argument: The constructor takes it.
    """

    name: str
    owner: str
    path: Path
    line_no: int
    annotation: str
    default: Value
    metadata: ast.expr | None
    is_argument: bool


@dataclass(frozen=True, slots=True)
class _Reference:
    module: Module
    node: ast.ClassDef | ast.FunctionDef


class Sources:
    """The modules below some folders, of which the first that has a module counts."""

    def __init__(self, roots: Sequence[Path]) -> None:
        self.roots = tuple(roots)
        self.module = cache(self._module)
        self.fields = cache(self._fields)

    def _module(self, name: str) -> Module | None:
        relative = Path(*name.split("."))
        for root in self.roots:
            for path in (root / relative / "__init__.py", (root / relative).with_suffix(".py")):
                if path.is_file():
                    tree = ast.parse(path.read_bytes())
                    return Module(name=name, path=path, tree=tree, names=_names(tree))
        return None

    def find(self, module: Module, name: str) -> tuple[Module, ast.AST] | None:
        """The definition that a name stands for in a module, through any number of imports; None: not in the tree."""
        for _ in range(20):  # imports may run in a circle
            node = module.names.get(name)
            if not isinstance(node, ast.ImportFrom):
                return (module, node) if node is not None else None
            alias = next(alias for alias in node.names if (alias.asname or alias.name) == name)
            target = self.module(_absolute(module, node))
            if target is None:
                return None
            module, name = target, alias.name
        return None

    def find_class(self, module_name: str, name: str) -> tuple[Module, ast.ClassDef] | None:
        """A class by the module that defines or re-exports it."""
        module = self.module(module_name)
        found = self.find(module, name) if module else None
        return (found[0], found[1]) if found and isinstance(found[1], ast.ClassDef) else None

    def _fields(self, module_name: str, name: str) -> dict[str, Field]:
        """Every field of a dataclass, those of its bases included, in the constructor's order."""
        found = self.find_class(module_name, name)
        if found is None:
            return {}
        module, node = found
        fields: dict[str, Field] = {}
        for base in reversed(node.bases):
            inner = base.value if isinstance(base, ast.Subscript) else base
            if isinstance(inner, ast.Name) and (parent := self.find(module, inner.id)):
                fields |= self.fields(parent[0].name, getattr(parent[1], "name", ""))
        for statement in node.body:
            if isinstance(statement, ast.AnnAssign) and isinstance(statement.target, ast.Name):
                annotation = ast.unparse(statement.annotation)
                if "ClassVar" not in annotation:
                    fields[statement.target.id] = self._field(module, node, statement, annotation)
        return fields

    def _field(self, module: Module, owner: ast.ClassDef, statement: ast.AnnAssign, annotation: str) -> Field:
        options: dict[str, ast.expr] = {}
        default: Value = Unread("no default")
        value = statement.value
        if isinstance(value, ast.Call) and ast.unparse(value.func).rpartition(".")[2] == "field":
            options = {keyword.arg: keyword.value for keyword in value.keywords if keyword.arg}
            if "default" in options:
                default = self.value(options["default"], module)
            elif factory := options.get("default_factory"):
                default = self._made_by(factory, module)
        elif value is not None:
            default = self.value(value, module)
        is_argument = "init" not in options or self.value(options["init"], module) is not False
        return Field(
            name=ast.unparse(statement.target),
            owner=owner.name,
            path=module.path,
            line_no=statement.lineno,
            annotation=annotation,
            default=default,
            metadata=options.get("metadata"),
            is_argument=is_argument,
        )

    def _made_by(self, factory: ast.expr, module: Module) -> Value:
        if isinstance(factory, ast.Lambda):
            return self.value(factory.body, module)
        if isinstance(factory, ast.Name) and factory.id in ("list", "tuple"):
            return []
        return self.value(ast.Call(func=factory, args=[], keywords=[]), module)

    def call(self, module_name: str, function: str) -> Value:
        """What a function without arguments returns."""
        module = self.module(module_name)
        found = self.find(module, function) if module else None
        if found is None or not isinstance(found[1], ast.FunctionDef):
            return Unread(function)
        return self._run(_Reference(found[0], found[1]), [], {})

    def value(self, node: ast.expr, module: Module, scope: "dict[str, Value] | None" = None) -> Value:
        """What an expression is worth, given the local names; `Unread` if the source doesn't tell."""
        value = self._value(node, module, scope or {})
        return Unread(ast.unparse(node)) if value is _OPEN else value

    def _value(self, node: ast.expr, module: Module, scope: "dict[str, Value]") -> Value:
        def worth(inner: ast.expr) -> Value:
            return self._value(inner, module, scope)

        match node:
            case ast.Constant(value=None | bool() | int() | float() | str() as constant):
                return constant
            case ast.Name(id=name):
                return scope[name] if name in scope else self._global(name, module)
            case ast.List(elts=items) | ast.Tuple(elts=items):
                return [self.value(item, module, scope) for item in items]
            case ast.UnaryOp(op=op, operand=operand) if type(op) in _UNARY:
                return _apply(_UNARY[type(op)], worth(operand))
            case ast.BinOp(left=left, op=op, right=right) if type(op) in _BINARY:
                return _apply(_BINARY[type(op)], worth(left), worth(right))
            case ast.Compare(left=left, ops=[op], comparators=[right]) if type(op) in _COMPARE:
                return _apply(_COMPARE[type(op)], worth(left), worth(right))
            case ast.IfExp(test=test, body=body, orelse=orelse):
                chosen = worth(test)
                return _OPEN if isinstance(chosen, Unread) else worth(body if chosen else orelse)
            case ast.Attribute(value=inner, attr=name):
                return self._attribute(inner, name, module, scope)
            case ast.Call(func=ast.Name(id="float"), args=[ast.Constant(value=str() as text)]):
                return float(text)
            case ast.Call(func=ast.Name(id=name), args=arguments, keywords=keywords) if name not in scope:
                found = self.find(module, name)
                if found and isinstance(found[1], ast.ClassDef | ast.FunctionDef):
                    values = [self.value(argument, module, scope) for argument in arguments]
                    named = {word.arg: self.value(word.value, module, scope) for word in keywords if word.arg}
                    return self._run(_Reference(found[0], found[1]), values, named)
        return _OPEN

    def _global(self, name: str, module: Module) -> Value:
        found = self.find(module, name)
        return self._value(found[1], found[0], {}) if found and isinstance(found[1], ast.expr) else _OPEN

    def _attribute(self, node: ast.expr, name: str, module: Module, scope: "dict[str, Value]") -> Value:
        owner = self._value(node, module, scope)
        if isinstance(owner, Made):
            return owner.values.get(name, _OPEN)
        if isinstance(node, ast.Name) and (node.id == "torch" or self._is_enum(node.id, module)):
            return name
        return _OPEN

    def _is_enum(self, name: str, module: Module) -> bool:
        found = self.find(module, name)
        bases = found[1].bases if found and isinstance(found[1], ast.ClassDef) else []
        return any("Enum" in ast.unparse(base) for base in bases)

    def _run(self, target: _Reference, values: "list[Value]", named: "dict[str, Value]") -> Value:
        if isinstance(target.node, ast.ClassDef):
            fields = self.fields(target.module.name, target.node.name)
            told = dict(zip(fields, values, strict=False)) | named
            return Made(target.node.name, {name: item.default for name, item in fields.items()} | told)
        scope: dict[str, Value] = dict(zip((a.arg for a in target.node.args.args), values, strict=False)) | named
        for argument, default in _defaults(target.node.args):
            scope.setdefault(argument, self.value(default, target.module))
        returned = self._execute(target.node.body, target.module, scope)
        return _OPEN if returned is None else returned[0]

    def _execute(self, body: list[ast.stmt], module: Module, scope: "dict[str, Value]") -> "tuple[Value] | None":
        for statement in body:
            match statement:
                case ast.Return(value=node):
                    return (None if node is None else self.value(node, module, scope),)
                case ast.Assign(targets=[target], value=node):
                    _assign(target, self.value(node, module, scope), scope)
                case ast.AnnAssign(target=target, value=ast.expr() as node):
                    _assign(target, self.value(node, module, scope), scope)
                case ast.If(test=test, body=then, orelse=orelse):
                    chosen = self.value(test, module, scope)
                    if isinstance(chosen, Unread):
                        continue
                    if (returned := self._execute(then if chosen else orelse, module, scope)) is not None:
                        return returned
        return None


_OPEN = Unread("")
_UNARY: dict[type, Callable[..., Value]] = {ast.USub: operator.neg, ast.Not: operator.not_}
_BINARY: dict[type, Callable[..., Value]] = {
    ast.Add: operator.add,
    ast.Sub: operator.sub,
    ast.Mult: operator.mul,
    ast.Div: operator.truediv,
    ast.FloorDiv: operator.floordiv,
    ast.Pow: operator.pow,
}
_COMPARE: dict[type, Callable[..., Value]] = {
    ast.Eq: operator.eq,
    ast.NotEq: operator.ne,
    ast.Is: operator.is_,
    ast.IsNot: operator.is_not,
    ast.Gt: operator.gt,
    ast.Lt: operator.lt,
}


def _apply(function: Callable[..., Value], *values: Value) -> Value:
    if any(isinstance(value, Unread | Made) for value in values):
        return _OPEN
    try:
        return function(*values)
    except (TypeError, ArithmeticError):
        return _OPEN


def _assign(target: ast.expr, value: Value, scope: "dict[str, Value]") -> None:
    """Bind a name, several names, or a field of an object that was built before."""
    match target:
        case ast.Name(id=name):
            scope[name] = value
        case ast.Tuple(elts=targets):
            items = value if isinstance(value, list) else [_OPEN] * len(targets)
            for inner, item in zip(targets, items, strict=False):
                _assign(inner, item, scope)
        case ast.Attribute():
            *path, last = ast.unparse(target).split(".")
            owner: Value = scope.get(path[0], _OPEN)
            for name in path[1:]:
                owner = owner.values.get(name, _OPEN) if isinstance(owner, Made) else _OPEN
            if isinstance(owner, Made):
                owner.values[last] = value


def _defaults(arguments: ast.arguments) -> Iterator[tuple[str, ast.expr]]:
    positional = [argument.arg for argument in arguments.args]
    yield from zip(positional[len(positional) - len(arguments.defaults) :], arguments.defaults, strict=True)
    for argument, default in zip(arguments.kwonlyargs, arguments.kw_defaults, strict=True):
        if default is not None:
            yield argument.arg, default


def _names(tree: ast.Module) -> dict[str, ast.AST]:
    names: dict[str, ast.AST] = {}
    for node in ast.walk(tree):
        if isinstance(node, ast.ImportFrom):
            names |= {alias.asname or alias.name: node for alias in node.names}
    for statement in tree.body:
        match statement:
            case ast.ClassDef(name=name) | ast.FunctionDef(name=name):
                names[name] = statement
            case ast.Assign(targets=[ast.Name(id=name)], value=value):
                names[name] = value
            case ast.AnnAssign(target=ast.Name(id=name), value=ast.expr() as value):
                names[name] = value
    return names


def _absolute(module: Module, node: ast.ImportFrom) -> str:
    if not node.level:
        return node.module or ""
    package = module.name.split(".")
    keep = len(package) - node.level + (module.path.name == "__init__.py")
    return ".".join([*package[:keep], *([node.module] if node.module else [])])
