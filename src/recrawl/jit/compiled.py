"""Kernels compiled: what numba makes of a function, kept on disk.

Compiled code is kept beside the package, or in a folder of the user's where that cannot be written to. numba recompiles
a function when its own file changes, but not when a function that it calls, in another file, does; so each module keeps
its kernels in a folder whose name is a digest of the module and of everything that it imports (`sources.py`).

numba makes machine code of every function that a kernel calls, and of all that those call in turn, again and again on
the way up. That is most of the time that compiling takes, and none of it is ever run: a kernel gets its own copy. So a
function that is called from a kernel is kept as a part, which is optimised and made machine code where it is used; only
what Python calls becomes machine code by itself. Parts extend private classes of numba: under versions that they were
not tried with, everything is compiled as numba does. They halve the time that compiling takes.
"""

# numba's classes, of which some are extended below, have no types.
# mypy: disallow-untyped-calls=False
# ruff: noqa: SLF001

from __future__ import annotations

from collections.abc import Callable
from contextlib import suppress
from functools import cache
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numba
from llvmlite import binding, ir  # type: ignore[import-untyped]
from numba.core import types
from numba.core.caching import CompileResultCacheImpl, FunctionCache, _CacheLocator
from numba.core.codegen import JITCodeLibrary
from numba.core.compiler import Compiler, compile_result
from numba.core.dispatcher import OmittedArg
from numba.core.registry import CPUDispatcher
from numba.extending import intrinsic

from recrawl.jit import shared_kernels
from recrawl.jit.folders import locked, module_folder

if TYPE_CHECKING:
    from recrawl.jit import Kernel

TRIED = "0.68."  # versions of numba that parts were tried with
_PARTS = "parts"  # the folder for those below the folder of a module
_UFUNCS = "ufuncs"  # the same: a ufunc and its scalar kernel are made of one function
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
    whole = make(function, **options)
    whole._cache = _OnDisk(function)
    whole._compile_for_args = _compile_or_interpret(kernel, whole)
    if numba.__version__.startswith(TRIED):

        @cache
        def part() -> Any:
            return _Part(function, options)

        # This is how numba asks for what a compiled function calls.
        whole.get_call_template = lambda args, kws: part().get_call_template(args, kws)
        whole.get_overload = lambda signature: part().get_overload(signature)
    return whole


def _compile_or_interpret(kernel: Kernel, whole: Any) -> Callable[..., Any]:
    """What numba is to do for arguments of new types: return what to call with them."""
    compile_now = whole._compile_for_args

    def find(*args: Any, **named: Any) -> Any:
        if not whole._cache.has([_type_of(whole, each) for each in args], whole.targetctx):
            if not kernel.may_compile(*args):
                return kernel.interpret
            kernel.announce()
        return compile_now(*args, **named)

    return find


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


class _Locator(_CacheLocator):
    """Keeps the code of a function in the folder of its module."""

    def __init__(self, function: Callable[..., Any], source: str) -> None:
        self._line = function.__code__.co_firstlineno
        self._folder = module_folder(function.__module__, Path(source).absolute())

    @classmethod
    def from_function(cls, function: Callable[..., Any], source: str) -> _Locator:
        return cls(function, source)  # also where nothing can be written: then nothing is kept

    def get_cache_path(self) -> str:
        return str(self._folder)

    def get_source_stamp(self) -> str:
        return self._folder.name  # has a digest of contents: times of files would make a fresh clone compile again

    def get_disambiguator(self) -> str:
        return str(self._line)


class _PartLocator(_Locator):
    def get_cache_path(self) -> str:
        return str(self._folder / _PARTS)


class _UfuncLocator(_Locator):
    def get_cache_path(self) -> str:
        return str(self._folder / _UFUNCS)


class _OnDisk(FunctionCache):
    """Keeps code on disk; several processes may write at once, and none has to."""

    class _impl_class(CompileResultCacheImpl):  # noqa: N801 - numba's name for it
        _locator_classes = [_Locator]  # noqa: RUF012 - as numba has it

    def has(self, arguments: list[Any], target: Any) -> bool:
        """Whether code for arguments of these types is on disk."""
        with suppress(OSError):
            return self._index_key(tuple(arguments), target.codegen()) in self._cache_file._load_index()
        return False

    def load_overload(self, signature: Any, target: Any) -> Any:
        with suppress(OSError):
            return super().load_overload(signature, target)
        return None

    def save_overload(self, signature: Any, code: Any) -> None:
        # The index of a function is read and written again for each signature: one process at a time.
        with suppress(OSError), locked(Path(self.cache_path, "lock")):
            super().save_overload(signature, code)


class _UfuncsOnDisk(_OnDisk):
    """Keeps ufuncs on disk."""

    class _impl_class(CompileResultCacheImpl):  # noqa: N801 - numba's name for it
        _locator_classes = [_UfuncLocator]  # noqa: RUF012 - as numba has it


class _PartCode(JITCodeLibrary):
    """Code that becomes machine code in whatever it is linked into."""

    def _optimize_final_module(self) -> None:
        """Left to whatever calls the part."""

    def _finalize_final_module(self) -> None:
        self._finalize_dynamic_globals()
        self._verify_declare_only_symbols()
        self._finalized = True

    def restore(self, bitcode: bytes) -> None:
        """Take over code that was kept on disk."""
        self._final_module = binding.parse_bitcode(bitcode)
        self._finalize_final_module()


class _PartCompiler(Compiler):
    """Compiles as numba does, but leaves out the machine code."""

    def compile_extra(self, function: Callable[..., Any]) -> Any:
        self.state.library = _PartCode(self.state.targetctx.codegen(), function.__qualname__)
        self.state.flags.no_compile = True
        return super().compile_extra(function)


class _PartsOnDisk(_OnDisk):
    """Keeps parts on disk."""

    class _impl_class(CompileResultCacheImpl):  # noqa: N801 - numba's name for it
        _locator_classes = [_PartLocator]  # noqa: RUF012 - as numba has it

        def reduce(self, part: Any) -> Any:
            part.fndesc.typemap = part.fndesc.calltypes = None
            _, _, bitcode = part.library.serialize_using_bitcode()
            return part.library.name, bitcode, part.fndesc, part.signature, part.reload_init

        def rebuild(self, target: Any, kept: Any) -> Any:
            name, bitcode, description, signature, reload_init = kept
            for start in reload_init:
                start()
            code = _PartCode(target.codegen(), name)
            code.restore(bitcode)
            return compile_result(
                target_context=target,
                entry_point=object(),
                library=code,
                fndesc=description,
                signature=signature,
                objectmode=False,
                reload_init=reload_init,
            )


class _Part(CPUDispatcher):
    """A function as other compiled functions call it. Python cannot: there is nothing to run."""

    def __init__(self, function: Callable[..., Any], options: dict[str, Any]) -> None:
        options = {"nopython": True, "boundscheck": None, **options}
        options |= {"no_cpython_wrapper": True, "no_cfunc_wrapper": True}
        super().__init__(function, targetoptions=options, pipeline_class=_PartCompiler)
        self._cache = _PartsOnDisk(function)

    def get_call_template(self, args: Any, kws: Any) -> Any:
        """The part for arguments of these types."""
        return super().get_call_template([_wide(each) for each in args], {name: _wide(kws[name]) for name in kws})

    def add_overload(self, part: Any) -> None:
        """Note a part that was compiled or read from disk."""
        if part.entry_point is None:  # numba finds functions by this, whatever it is
            part = part._replace(entry_point=object())
            part.target_context.insert_user_function(part.entry_point, part.fndesc, [part.library])
        self.overloads[tuple(part.signature.args)] = part


def _wide(given: Any) -> Any:
    """The type to compile a part for: one is enough for numbers of pages in 32 bits, in 64 and in the source."""
    return types.int64 if given == types.int32 or isinstance(given, types.IntegerLiteral) else given
