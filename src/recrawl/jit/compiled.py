"""Kernels compiled: what numba makes of a function, kept on disk.

Compiled code is kept beside the package, or in a folder of the user's where that cannot be written to. numba recompiles
a function when its own file changes, but not when a function that it calls, in another file, does; so each layer keeps
its kernels in a folder whose name has a digest of all files that they may be made from (`sources.py`).

Functions that kernels call are kept as parts (`parts.py`) under versions of numba that parts were tried with. Under
other versions everything is compiled as numba does, with the same answers in twice the time.
"""

# numba's classes have no types.
# mypy: disallow-untyped-calls=False
# ruff: noqa: SLF001

from __future__ import annotations

import gc
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numba
from llvmlite import binding, ir  # type: ignore[import-untyped]
from numba.core import types
from numba.core.caching import CompileResultCacheImpl, FunctionCache, _CacheLocator
from numba.core.dispatcher import OmittedArg
from numba.extending import intrinsic

from recrawl.jit import shared_kernels
from recrawl.jit.folders import locked, module_folder

if TYPE_CHECKING:
    from recrawl.jit import Kernel

TRIED = "0.68."  # versions of numba that parts were tried with
_arrays: list[Any] = []  # what compiled code refers to, so that it stays in memory


def compiled(kernel: Kernel) -> Any:
    """What numba makes of a kernel: something that Python calls."""
    function: Any = kernel.function
    if kernel.options is not None and "shared" in kernel.options:
        return _shared(function)
    for each in shared_kernels():
        each.compiled  # noqa: B018 - code that is on disk may refer to the array
    if kernel.options is None:
        ufunc = numba.vectorize(function)
        ufunc._dispatcher.cache = _UfuncsOnDisk(function)
        return ufunc
    if "bitcast" in kernel.options:
        bits = _BITCASTS[kernel.options["bitcast"]]

        def call(value: Any) -> Any:
            return bits(value)

        whole: Any = numba.njit(call)
        whole.by_hand = bits
        return whole
    options = {name: set(given) if name == "fastmath" else given for name, given in kernel.options.items()}
    make: Any = numba.njit
    whole = make(function, no_cfunc_wrapper=True, **options)
    whole._cache = OnDisk(function)
    whole._compile_for_args = _compile_or_interpret(kernel, whole)
    if has_parts():
        from recrawl.jit.parts import call_as_part

        call_as_part(whole, function, options)
    return whole


def has_parts() -> bool:
    """Whether parts were tried with this version of numba."""
    return str(numba.__version__).startswith(TRIED)


def _compile_or_interpret(kernel: Kernel, whole: Any) -> Callable[..., Any]:
    """What numba is to do for arguments of new types: return what to call with them."""
    compile_now = whole._compile_for_args

    def find(*args: Any, **named: Any) -> Any:
        if not whole._cache.has([_type_of(whole, each) for each in args], whole.targetctx):
            if not kernel.may_compile(*args):
                return kernel.interpret
            kernel.announce()
        with _without_collecting():
            return compile_now(*args, **named)

    return find


@contextmanager
def _without_collecting() -> Iterator[None]:
    """Stop the garbage collector, which takes a tenth of the time of the compiler."""
    collects = gc.isenabled()
    gc.disable()
    try:
        yield
    finally:
        if collects:
            gc.enable()


def _type_of(whole: Any, given: Any) -> Any:
    return types.Omitted(given.value) if isinstance(given, OmittedArg) else whole.typeof_pyval(given)


def numba_type(kernel: Kernel) -> Any:
    """The type of a kernel as other compiled functions see it."""
    found = kernel.compiled
    if kernel.is_made_by_hand:
        found = found.by_hand
    return numba.core.registry.cpu_target.typing_context.resolve_value_type(found)


def _bitcast(to: str) -> Any:
    given, wanted = (types.int64, types.float64) if to == "float64" else (types.float64, types.int64)

    def bits(_context: Any, _value: Any) -> Any:
        def generate(context: Any, builder: Any, _signature: Any, arguments: Any) -> Any:
            return builder.bitcast(arguments[0], context.get_value_type(wanted))

        return wanted(given), generate

    return intrinsic(bits)


# Made before anything is compiled: numba looks for new ones when it begins.
_BITCASTS = {to: _bitcast(to) for to in ("int64", "float64")}


def _shared(read: Callable[[], Any]) -> Any:
    """Code that refers to an array by a name, which is bound to its address in this process."""
    array = read()
    array.flags.writeable = False
    _arrays.append(array)
    name = f"{read.__module__}.{read.__qualname__}"
    binding.add_symbol(name, array.ctypes.data)
    kind = numba.typeof(array)

    def find(_context: Any) -> Any:
        def generate(context: Any, builder: Any, _signature: Any, _arguments: Any) -> Any:
            bytes_of_it = ir.ArrayType(ir.IntType(8), array.nbytes)
            data = builder.module.globals.get(name) or ir.GlobalVariable(builder.module, bytes_of_it, name)
            made = context.make_array(kind)(context, builder)
            context.populate_array(
                made,
                data=builder.bitcast(data, made.data.type),
                shape=[context.get_constant(types.intp, size) for size in array.shape],
                strides=[context.get_constant(types.intp, size) for size in array.strides],
                itemsize=context.get_constant(types.intp, array.itemsize),
                meminfo=None,
            )
            return made._getvalue()

        return kind(), generate

    def call() -> Any:
        return array

    call.by_hand = intrinsic(find)  # type: ignore[attr-defined]
    return call


class Locator(_CacheLocator):
    """Keeps the code of a function in the folder of its module."""

    kind = ""  # the folder below that, where several things are made of one function

    def __init__(self, function: Callable[..., Any], source: str) -> None:
        self._line = function.__code__.co_firstlineno
        self._folder = module_folder(function.__module__, Path(source).absolute())

    @classmethod
    def from_function(cls, function: Callable[..., Any], source: str) -> Locator:
        """Return a locator for every function, also where nothing can be written: then nothing is kept."""
        return cls(function, source)

    def get_cache_path(self) -> str:
        """Return the folder for the code."""
        return str(self._folder / self.kind)

    def get_source_stamp(self) -> str:
        """Return what changes with the sources: contents, not times of files, so that a fresh clone finds its code."""
        return self._folder.parent.name

    def get_disambiguator(self) -> str:
        """Return what tells functions of one name apart."""
        return str(self._line)


class OnDisk(FunctionCache):
    """Keeps code on disk; several processes may write at once, and none has to."""

    class _impl_class(CompileResultCacheImpl):  # noqa: N801 - numba's name for it
        _locator_classes = [Locator]  # noqa: RUF012 - as numba has it

    def has(self, arguments: list[Any], target: Any) -> bool:
        """Whether code for arguments of these types is on disk."""
        with suppress(OSError):
            return self._index_key(tuple(arguments), target.codegen()) in self._cache_file._load_index()
        return False

    def load_overload(self, signature: Any, target: Any) -> Any:
        """Return the code for arguments of these types, None if there is none."""
        with suppress(OSError):
            return super().load_overload(signature, target)
        return None

    def save_overload(self, signature: Any, code: Any) -> None:
        """Keep code; nothing happens where nothing can be written."""
        # The index of a function is read and written again for each signature: one process at a time.
        with suppress(OSError), locked(Path(self.cache_path, "lock")):
            super().save_overload(signature, code)


class _UfuncLocator(Locator):
    kind = "ufuncs"


class _UfuncsOnDisk(OnDisk):
    """Keeps ufuncs on disk, apart from their scalar kernels."""

    class _impl_class(CompileResultCacheImpl):  # noqa: N801 - numba's name for it
        _locator_classes = [_UfuncLocator]  # noqa: RUF012 - as numba has it
