"""Kernels interpreted: the same Python source, with the arithmetic of compiled code.

Compiled code divides by 0, takes the logarithm of 0 and wraps integers without an error; Python raises. Compiled code
computes with narrow numbers of arrays in 64 bits; NumPy stays narrow. So the source of a module with kernels is parsed
once more: divisions and powers become calls that answer as compiled code does, numbers that are read from arrays become
Python's, and `math` and `int` are replaced by versions that do not raise. Lines keep their numbers, so that coverage
and tracebacks show the file. Kernels that call each other do so directly.
"""

from __future__ import annotations

import ast
import copy
import inspect
import math
from collections.abc import Callable
from functools import cache, update_wrapper
from pathlib import Path
from types import FunctionType, ModuleType, SimpleNamespace
from typing import TYPE_CHECKING, Any

import numpy as np

if TYPE_CHECKING:
    from recrawl.jit import Kernel

_DIVIDE, _FLOOR, _REST, _POWER = "_twin_divide", "_twin_floor", "_twin_rest", "_twin_power"
_NUMBER = "_twin_number"
_CALLS: dict[type[ast.operator], str] = {ast.Div: _DIVIDE, ast.FloorDiv: _FLOOR, ast.Mod: _REST, ast.Pow: _POWER}
_SMALLEST_INT = -(2**63)
# Numbers of 64 bits without a fraction stay NumPy's, which wrap as compiled ones do.
_PLAIN = frozenset({np.float32, np.int32, np.int16, np.int8, np.uint32, np.uint16, np.uint8, np.bool_})
_NARROW = frozenset({"float32", "int32", "int16", "int8", "uint32", "uint16", "uint8"})


def entry(kernel: Kernel) -> Callable[..., Any]:
    """What Python calls: the twin, with NumPy's warnings off; a ufunc broadcasts."""
    twin = kernel.twin
    call = twin if kernel.options is not None else np.vectorize(twin, otypes=[float])

    def run(*args: Any, **named: Any) -> Any:
        with np.errstate(all="ignore"):
            found = call(*map(_plain, args), **named)
        # A ufunc answers scalars with a scalar.
        return found[()] if kernel.options is None else _returned(found)

    return update_wrapper(run, twin)


def _plain(given: Any) -> Any:
    """A number as Python's; text as `bytes`, of which Python reads single ones three times as fast as of an array."""
    if isinstance(given, np.ndarray) and given.dtype == np.uint8 and given.ndim == 1 and not given.flags.writeable:
        return given.tobytes()
    return _number(given)


def _returned(found: Any) -> Any:
    """What compiled code hands back: numbers are Python's."""
    if isinstance(found, tuple):
        made = map(_returned, found)
        return type(found)(*made) if hasattr(found, "_fields") else tuple(made)
    return found.item() if isinstance(found, np.number | np.bool_) else found


def twin(kernel: Kernel) -> Callable[..., Any]:
    """The function of a kernel with the arithmetic of compiled code."""
    if kernel.scalar is not None:
        return kernel.scalar.twin
    function = kernel.function
    if kernel.is_made_by_hand:
        return function
    module = inspect.getmodule(function)
    if module is None or not isinstance(function, FunctionType) or vars(module).get(function.__name__) is not kernel:
        return function  # defined inside a function: runs as it is
    found = _twins_of(module).get(function.__name__)
    return function if found is None else found


@cache
def _twins_of(module: ModuleType) -> dict[str, Callable[..., Any]]:
    """The twins of all kernels of a module, by name."""
    from recrawl.jit import Kernel

    source = Path(inspect.getfile(module))
    names = {name for name, value in vars(module).items() if _is_made_in(value, module)}
    tree = ast.parse(source.read_text(encoding="utf-8"))
    tree.body = [
        _Lenient().visit(_bare(each)) for each in tree.body if isinstance(each, ast.FunctionDef) and each.name in names
    ]
    ast.fix_missing_locations(tree)
    space = {name: value for name, value in vars(module).items() if not isinstance(value, Kernel)}
    space |= {_DIVIDE: _divide, _FLOOR: _floor, _REST: _rest, _POWER: _power, _NUMBER: _number, "int": _int}
    space = {name: _LENIENT.get(id(value), value) for name, value in space.items()}
    exec(compile(tree, str(source), "exec"), space)
    twins = {name: space[name] for name in names}
    # The other kernels that these call; modules do not import in circles, so neither do twins.
    for name, value in vars(module).items():
        if isinstance(value, Kernel) and name not in twins:
            space[name] = value.twin
    return twins


def _is_made_in(value: object, module: ModuleType) -> bool:
    from recrawl.jit import Kernel

    if not isinstance(value, Kernel) or "twin" in vars(value) or value.is_made_by_hand:
        return False
    return value.function.__module__ == module.__name__


def _bare(function: ast.FunctionDef) -> ast.FunctionDef:
    """The function without decorators and types, which are not needed and take time."""
    function.decorator_list = []
    function.returns = None
    for argument in (*function.args.posonlyargs, *function.args.args, *function.args.kwonlyargs):
        argument.annotation = None
    return function


class _Lenient(ast.NodeTransformer):
    """Replaces divisions and powers by calls that do not raise, and reads numbers of arrays as Python's."""

    def visit_Subscript(self, node: ast.Subscript) -> ast.AST:
        self.generic_visit(node)
        if isinstance(node.value, ast.Call) and _is_number(node.value):
            node.value = node.value.args[0]  # what has elements is no number
        is_read = isinstance(node.ctx, ast.Load) and not isinstance(node.slice, ast.Slice)
        return ast.copy_location(_call(_NUMBER, node), node) if is_read else node

    def visit_Call(self, node: ast.Call) -> ast.AST:
        self.generic_visit(node)
        rounds = isinstance(node.func, ast.Attribute) and node.func.attr in _NARROW
        return ast.copy_location(_call(_NUMBER, node), node) if rounds else node

    def visit_BinOp(self, node: ast.BinOp) -> ast.AST:
        self.generic_visit(node)
        call = _CALLS.get(type(node.op))
        if call is None or _cannot_fail(node):
            return node
        return ast.copy_location(_call(call, node.left, node.right), node)

    def visit_AugAssign(self, node: ast.AugAssign) -> ast.AST:
        is_element = isinstance(node.target, ast.Subscript)
        if type(node.op) not in _CALLS and not is_element:
            self.generic_visit(node)
            return node
        # Indices have no effects, so they may be read twice.
        old = copy.deepcopy(node.target)
        old.ctx = ast.Load()
        new = ast.copy_location(ast.Assign([node.target], ast.BinOp(old, node.op, node.value)), node)
        self.generic_visit(new)
        return new


def _is_number(call: ast.Call) -> bool:
    return isinstance(call.func, ast.Name) and call.func.id == _NUMBER


def _cannot_fail(node: ast.BinOp) -> bool:
    """Whether the right side is a number for which the operation is always defined."""
    if not isinstance(node.right, ast.Constant):
        return False
    return node.right.value == 2 if isinstance(node.op, ast.Pow) else bool(node.right.value)


def _call(name: str, *args: ast.expr) -> ast.Call:
    return ast.Call(ast.Name(name, ast.Load()), list(args), [])


def _number(value: Any) -> Any:
    return value.item() if type(value) in _PLAIN else value


def _divide(a: Any, b: Any) -> Any:
    try:
        return a / b
    except ZeroDivisionError:
        return float(np.float64(a) / np.float64(b))


def _floor(a: Any, b: Any) -> Any:
    try:
        return a // b
    except ZeroDivisionError:
        return float(np.float64(a) // np.float64(b)) if isinstance(a, float) or isinstance(b, float) else 0


def _rest(a: Any, b: Any) -> Any:
    try:
        return a % b
    except ZeroDivisionError:
        return math.nan if isinstance(a, float) or isinstance(b, float) else 0


def _power(a: Any, b: Any) -> Any:
    try:
        found = a**b
    except (ZeroDivisionError, OverflowError):
        return float(np.float64(a) ** np.float64(b))
    return math.nan if isinstance(found, complex) else found


def _int(value: Any = 0) -> int:
    try:
        return int(value)
    except (ValueError, OverflowError):
        return _SMALLEST_INT


def _lenient(name: str) -> Callable[..., Any]:
    strict, numpy_s = getattr(math, name), getattr(np, {"pow": "power"}.get(name, name))

    def call(*args: float) -> float:
        try:
            return strict(*args)  # type: ignore[no-any-return]
        except (ValueError, OverflowError):
            return float(numpy_s(*args))

    return call


def _lenient_floor(name: str) -> Callable[[float], int]:
    strict = getattr(math, name)

    def call(value: float) -> int:
        return strict(value) if math.isfinite(value) else _SMALLEST_INT

    return call


def _lenient_lgamma(value: float) -> float:
    try:
        return math.lgamma(value)
    except (ValueError, OverflowError):
        return math.nan if math.isnan(value) else math.inf


_RAISING = (
    "exp", "exp2", "expm1", "log", "log1p", "log2", "log10", "sqrt", "pow", "sin", "cos", "tan", "sinh", "cosh", "fmod",
)  # fmt: skip
_FUNCTIONS = {
    **{name: _lenient(name) for name in _RAISING if hasattr(math, name)},
    **{name: _lenient_floor(name) for name in ("floor", "ceil", "trunc")},
    "lgamma": _lenient_lgamma,
}
_MATH = SimpleNamespace(**(vars(math) | _FUNCTIONS))
_LENIENT: dict[int, Any] = {id(math): _MATH} | {id(getattr(math, name)): call for name, call in _FUNCTIONS.items()}
