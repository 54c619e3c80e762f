"""What a recipe function would return, read from its syntax tree: nothing of Bridge is executed.

A small interpreter of what recipes are made of: assignments, calls of functions within Bridge's recipe packages,
conditions on values that are known. What can't be known without running, such as a model's own configuration, is an
empty `Bag`; a condition on one takes neither branch, and what the branches would set becomes unknown.
"""

import ast
import operator
from collections.abc import Callable, Mapping
from typing import Any

from lossbisect.assist.recommend.source import PACKAGE, BridgeSource

__all__ = ["Bag", "known", "read_recipe"]

_READ = (f"{PACKAGE}.recipes", f"{PACKAGE}.perf_recipes")
_DEPTH = 24
_LOOPS = 4096

_OPERATORS: Mapping[type[ast.AST], Callable[[Any, Any], Any]] = {
    ast.Add: operator.add, ast.Sub: operator.sub, ast.Mult: operator.mul, ast.FloorDiv: operator.floordiv,
    ast.Div: operator.truediv, ast.Mod: operator.mod, ast.Eq: operator.eq, ast.NotEq: operator.ne, ast.Lt: operator.lt,
    ast.LtE: operator.le, ast.Gt: operator.gt, ast.GtE: operator.ge, ast.Is: operator.eq, ast.IsNot: operator.ne,
    ast.In: lambda one, many: one in many, ast.NotIn: lambda one, many: one not in many, ast.BitOr: operator.or_,
}  # fmt: skip
_BUILTINS: Mapping[str, Callable[..., Any]] = {
    "len": len, "max": max, "min": min, "range": range, "list": list, "int": int, "str": str, "sum": sum,
    "sorted": sorted, "tuple": tuple, "dict": dict, "set": set, "bool": bool,
}  # fmt: skip


class Bag:
    """An object whose attributes are known as far as something was assigned to them.

    Attributes:
        attributes: What was assigned.
        model: Hugging Face id that it was made from, where it was made from one.
        kind: Name of the class or function that made it; empty where even that isn't known.
    """

    __slots__ = ("attributes", "kind", "model")

    def __init__(self, kind: str = "", attributes: dict[str, Any] | None = None, model: str | None = None) -> None:
        self.kind = kind
        self.attributes: dict[str, Any] = attributes or {}
        self.model = model

    def get(self, name: str) -> Any:
        """The attribute; one that nobody assigned is an empty bag, which then belongs to this one."""
        return self.attributes.setdefault(name, Bag())

    def at(self, path: str) -> Any:
        """The value at a dotted path; None where it isn't known."""
        value: Any = self
        for name in path.split("."):
            if not isinstance(value, Bag):
                return None
            value = value.attributes.get(name)
        return None if isinstance(value, Bag) and not value.attributes and not value.kind else value


def known(value: Any) -> bool:
    """Whether a value is known in full."""
    if isinstance(value, Bag):
        return False
    return all(map(known, value)) if isinstance(value, (list, tuple, set)) else True


class _Return(Exception):  # noqa: N818
    def __init__(self, value: Any) -> None:
        self.value = value


class _Jump(Exception):  # noqa: N818
    """``raise``, ``break`` or ``continue`` in the recipe."""


class _Function:
    def __init__(self, module: str, node: ast.FunctionDef) -> None:
        self.module, self.node = module, node


def read_recipe(source: BridgeSource, module: str, name: str) -> Bag | None:
    """The configuration that the recipe function of that name in that module returns, as far as it can be read.

    None where the module has no such function, or it returns nothing that can be read.
    """
    function = _Reader(source).lookup(module, name)
    if not isinstance(function, _Function):
        return None
    value = _Reader(source).call(function, [], {}, 0)
    return value if isinstance(value, Bag) else None


class _Reader:
    def __init__(self, source: BridgeSource) -> None:
        self.source = source
        self.globals: dict[tuple[str, str], Any] = {}

    def lookup(self, module: str, name: str, depth: int = 0) -> Any:
        """What a name means in a module: a function, a constant, or an empty bag."""
        if (module, name) not in self.globals:
            self.globals[module, name] = Bag(name)  # for a name that is defined by itself
            self.globals[module, name] = self._define(module, name, depth)
        return self.globals[module, name]

    def _define(self, module: str, name: str, depth: int) -> Any:
        tree = self.source.module(module) if module.startswith(_READ) and depth < _DEPTH else None
        for node in tree.body if tree else ():
            if isinstance(node, ast.FunctionDef) and node.name == name:
                return _Function(module, node)
            if isinstance(node, (ast.Assign, ast.AnnAssign)) and node.value is not None:
                targets = node.targets if isinstance(node, ast.Assign) else [node.target]
                if any(isinstance(target, ast.Name) and target.id == name for target in targets):
                    return self.value(node.value, _Scope(module, {}, depth + 1))
            if isinstance(node, ast.ImportFrom):
                for alias in node.names:
                    if (alias.asname or alias.name) == name:
                        return self.lookup(self.absolute(module, node), alias.name, depth + 1)
                    if alias.name == "*":
                        found = self.lookup(self.absolute(module, node), name, depth + 1)
                        if not isinstance(found, Bag):
                            return found
        return Bag(name)

    def absolute(self, module: str, node: ast.ImportFrom) -> str:
        """The module that an import names."""
        if not node.level:
            return node.module or ""
        parts = module.split(".")
        up = node.level - (1 if self.source.is_package(module) else 0)
        base = ".".join(parts[: len(parts) - up])
        return f"{base}.{node.module}" if node.module else base

    def call(self, function: _Function, args: list[Any], kwargs: dict[str, Any], depth: int) -> Any:
        """What a function returns, with its effects on the bags that it is handed."""
        if depth > _DEPTH:
            return Bag()
        scope = _Scope(function.module, {}, depth)
        signature = function.node.args
        names = [argument.arg for argument in (*signature.posonlyargs, *signature.args)]
        defaults = dict(zip(reversed(names), reversed(signature.defaults), strict=False))
        optional = dict(zip((item.arg for item in signature.kwonlyargs), signature.kw_defaults, strict=True))
        defaults |= {name: default for name, default in optional.items() if default is not None}
        for name in (*names, *optional):
            scope.names[name] = self.value(defaults[name], scope) if name in defaults else Bag()
        scope.names |= dict(zip(names, args, strict=False)) | kwargs
        try:
            self.run(function.node.body, scope)
        except _Return as done:
            return done.value
        except _Jump:
            return Bag()
        return None

    def run(self, body: list[ast.stmt], scope: "_Scope") -> None:
        for statement in body:
            self.statement(statement, scope)

    def statement(self, node: ast.stmt, scope: "_Scope") -> None:
        match node:
            case ast.Assign(targets=targets, value=value):
                result = self.value(value, scope)
                for target in targets:
                    self.assign(target, result, scope)
            case ast.AnnAssign(target=target, value=ast.expr() as value):
                self.assign(target, self.value(value, scope), scope)
            case ast.AugAssign(target=target, op=op, value=value):
                both = self.value(target, scope), self.value(value, scope)
                self.assign(target, _combine(type(op), *both), scope)
            case ast.Expr(value=value):
                self.value(value, scope)
            case ast.Return(value=value):
                raise _Return(self.value(value, scope) if value else None)
            case ast.Raise() | ast.Break() | ast.Continue():
                raise _Jump
            case ast.If(test=test, body=body, orelse=orelse):
                truth = _truth(self.value(test, scope))
                if truth is None:
                    self.forget([*body, *orelse], scope)
                else:
                    self.run(body if truth else orelse, scope)
            case ast.With(body=body) | ast.Try(body=body):
                self.run(body, scope)
            case ast.For(target=target, iter=iterable, body=body):
                items = self.value(iterable, scope)
                for item in list(items)[:_LOOPS] if isinstance(items, (list, tuple, range, set, dict)) else ():
                    self.assign(target, item, scope)
                    self.run(body, scope)
            case ast.ImportFrom():
                for alias in node.names:
                    module = self.absolute(scope.module, node)
                    scope.names[alias.asname or alias.name] = self.lookup(module, alias.name, scope.depth + 1)
            case ast.FunctionDef():
                scope.names[node.name] = _Function(scope.module, node)
            case _:
                pass

    def forget(self, body: list[ast.stmt], scope: "_Scope") -> None:
        """What either branch of an undecidable condition would set isn't known any more."""
        for node in (inner for statement in body for inner in ast.walk(statement)):
            targets = node.targets if isinstance(node, ast.Assign) else []
            for target in targets:
                self.assign(target, Bag(), scope)

    def assign(self, target: ast.expr, value: Any, scope: "_Scope") -> None:
        match target:
            case ast.Name(id=name):
                scope.names[name] = value
            case ast.Attribute(value=owner, attr=name):
                holder = self.value(owner, scope)
                if isinstance(holder, Bag):
                    holder.attributes[name] = value
            case ast.Subscript(value=owner, slice=key):
                holder, index = self.value(owner, scope), self.value(key, scope)
                if isinstance(holder, dict) and not isinstance(index, (Bag, list, dict)):
                    holder[index] = value
            case ast.Tuple(elts=targets) | ast.List(elts=targets):
                values = value if isinstance(value, (tuple, list)) and len(value) == len(targets) else None
                for index, inner in enumerate(targets):
                    self.assign(inner, values[index] if values else Bag(), scope)
            case _:
                pass

    def value(self, node: ast.expr, scope: "_Scope") -> Any:
        match node:
            case ast.Constant(value=value):
                return value
            case ast.Name(id=name):
                return scope.names[name] if name in scope.names else self.lookup(scope.module, name, scope.depth)
            case ast.Attribute(value=owner, attr=name):
                holder = self.value(owner, scope)
                if isinstance(holder, Bag):
                    return f"{holder.kind}.{name}" if holder.kind == "torch" else holder.get(name)
                return Bag(name)
            case ast.List(elts=elements) | ast.Tuple(elts=elements) | ast.Set(elts=elements):
                values = [self.value(element, scope) for element in elements]
                return tuple(values) if isinstance(node, ast.Tuple) else values
            case ast.Dict(keys=keys, values=values):
                return self.mapping(keys, values, scope)
            case ast.BinOp(left=left, op=op, right=right):
                return _combine(type(op), self.value(left, scope), self.value(right, scope))
            case ast.UnaryOp(op=ast.Not(), operand=operand):
                truth = _truth(self.value(operand, scope))
                return Bag() if truth is None else not truth
            case ast.UnaryOp(op=ast.USub(), operand=operand):
                return _combine(ast.Sub, 0, self.value(operand, scope))
            case ast.BoolOp(op=op, values=parts):
                return self.logic(isinstance(op, ast.Or), parts, scope)
            case ast.Compare(left=left, ops=[op], comparators=[right]):
                return _compare(type(op), self.value(left, scope), self.value(right, scope))
            case ast.IfExp(test=test, body=body, orelse=orelse):
                truth = _truth(self.value(test, scope))
                return Bag() if truth is None else self.value(body if truth else orelse, scope)
            case ast.Subscript(value=owner, slice=key):
                return _item(self.value(owner, scope), self.value(key, scope))
            case ast.Call():
                return self.called(node, scope)
            case ast.JoinedStr(values=parts):
                told = [self.value(part, scope) for part in parts]
                return "".join(map(str, told)) if all(map(known, told)) else Bag()
            case ast.FormattedValue(value=inner):
                return self.value(inner, scope)
            case _:
                return Bag()

    def mapping(self, keys: list[ast.expr | None], values: list[ast.expr], scope: "_Scope") -> dict[Any, Any]:
        result: dict[Any, Any] = {}
        for key, value in zip(keys, values, strict=True):
            told = self.value(value, scope)
            if key is None:
                result |= told if isinstance(told, dict) else {}
                continue
            name = self.value(key, scope)
            if known(name) and not isinstance(name, (list, dict)):
                result[name] = told
        return result

    def logic(self, is_or: bool, parts: list[ast.expr], scope: "_Scope") -> Any:
        value: Any = None
        for part in parts:
            value = self.value(part, scope)
            truth = _truth(value)
            if truth is None:
                return Bag()
            if truth is is_or:
                return value
        return value

    def called(self, node: ast.Call, scope: "_Scope") -> Any:
        args: list[Any] = []
        for item in node.args:
            if isinstance(item, ast.Starred):
                spread = self.value(item.value, scope)
                args += spread if isinstance(spread, (list, tuple)) else []
            else:
                args.append(self.value(item, scope))
        kwargs: dict[str, Any] = {}
        for keyword in node.keywords:
            told = self.value(keyword.value, scope)
            if keyword.arg is None:
                kwargs |= told if isinstance(told, dict) else {}
            else:
                kwargs[keyword.arg] = told
        if isinstance(node.func, ast.Attribute):
            return self.method(self.value(node.func.value, scope), node.func.attr, args, kwargs)
        name = node.func.id if isinstance(node.func, ast.Name) else ""
        function = self.value(node.func, scope)
        if isinstance(function, _Function):
            return self.call(function, args, kwargs, scope.depth + 1)
        return _built_in(name, args) if name in ("getattr", "hasattr", "isinstance", *_BUILTINS) else Bag(name, kwargs)

    def method(self, holder: Any, name: str, args: list[Any], kwargs: dict[str, Any]) -> Any:
        if name in ("from_hf_pretrained", "from_pretrained"):
            return Bag(name, model=args[0] if args and isinstance(args[0], str) else None)
        if isinstance(holder, Bag):
            return Bag(name, kwargs, holder.model)
        try:
            return getattr(holder, name)(*args, **kwargs)  # of a str, list or dict
        except (AttributeError, TypeError, ValueError, LookupError):
            return Bag()


class _Scope:
    def __init__(self, module: str, names: dict[str, Any], depth: int) -> None:
        self.module, self.names, self.depth = module, names, depth


def _truth(value: Any) -> bool | None:
    """Truth of a value; None where it isn't known."""
    return (True if value.attributes else None) if isinstance(value, Bag) else bool(value)


def _compare(op: type[ast.AST], left: Any, right: Any) -> Any:
    if op in (ast.Is, ast.IsNot) and right is None and isinstance(left, Bag) and (left.attributes or left.kind):
        return op is ast.IsNot
    return _combine(op, left, right)


def _combine(op: type[ast.AST], left: Any, right: Any) -> Any:
    if op not in _OPERATORS or not (known(left) and known(right)):
        return Bag()
    try:
        return _OPERATORS[op](left, right)
    except (TypeError, ValueError, ArithmeticError):
        return Bag()


def _item(holder: Any, key: Any) -> Any:
    try:
        return holder[key] if not isinstance(holder, Bag) and known(key) else Bag()
    except (TypeError, LookupError):
        return Bag()


def _built_in(name: str, args: list[Any]) -> Any:
    match name, args:
        case "getattr", [Bag() as holder, str() as attribute, *default]:
            assigned = holder.attributes.get(attribute)
            return assigned if assigned is not None or not default else default[0]
        case "hasattr", [Bag() as holder, str() as attribute]:
            return True if attribute in holder.attributes else Bag()
        case "isinstance", [value, Bag(kind="str")]:
            return isinstance(value, str) if not isinstance(value, Bag) or value.kind or value.attributes else Bag()
        case (("getattr" | "hasattr" | "isinstance"), _):
            return Bag()
    try:
        return _BUILTINS[name](*args) if all(map(known, args)) else Bag()
    except (TypeError, ValueError):
        return Bag()
