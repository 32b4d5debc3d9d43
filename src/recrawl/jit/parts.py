"""Functions that kernels call, compiled as far as all callers have in common.

numba makes machine code of every function that a kernel calls, and of all that those call in turn, again and again on
the way up. That is most of the time that compiling takes, and none of it is ever run: a kernel gets its own copy. So a
function that is called from a kernel is kept as a part, which becomes machine code where it is used; only what Python
calls becomes machine code by itself. Parts halve the time that compiling takes.

Parts extend private classes of numba, so this module is imported only under versions that it was tried with
(`compiled.TRIED`).
"""

# numba's classes, which are extended below, have no types.
# mypy: disallow-untyped-calls=False
# ruff: noqa: SLF001

from __future__ import annotations

from collections.abc import Callable
from functools import cache
from typing import Any

from llvmlite import binding  # type: ignore[import-untyped]
from numba.core import types
from numba.core.caching import CompileResultCacheImpl
from numba.core.codegen import JITCodeLibrary
from numba.core.compiler import Compiler, Flags, compile_result
from numba.core.registry import CPUDispatcher

from recrawl.jit.compiled import Locator, OnDisk

_NARROW = frozenset({types.int8, types.int16, types.int32, types.uint8, types.uint16, types.uint32})


def call_as_part(whole: Any, function: Callable[..., Any], options: dict[str, Any]) -> None:
    """Let compiled functions call a part of this function instead of its machine code.

    Args:
        whole: what Python calls.
        function: of which it is made.
        options: for numba.
    """

    @cache
    def part() -> Any:
        return _Part(function, options)

    # This is how numba asks for what a compiled function calls.
    whole.get_call_template = lambda args, kws: part().get_call_template(args, kws)
    whole.get_overload = lambda signature: part().get_overload(signature)
    whole._compiler.pipeline_class = _Compiler


class _Flags(Flags):
    """Options of one compilation. numba compares them 80,000 times for a scheduler, one option after the other."""

    _HASH = hash(tuple(sorted(Flags.options)))  # as numba computes it

    def __hash__(self) -> int:
        return self._HASH

    def __eq__(self, other: object) -> bool:
        return (type(other) is _Flags and self._values == other._values) or super().__eq__(other)


class _Code(JITCodeLibrary):
    """Optimises the functions of a module. numba prepares to do so for functions that are only declared, too."""

    def _optimize_functions(self, module: Any) -> None:
        module.data_layout = self._codegen._data_layout
        passes, builder = self._codegen._function_pass_manager()
        for function in module.functions:
            if not function.is_declaration:
                passes.run(function, builder)


class _PartCode(_Code):
    """Code that becomes machine code in each kernel that it is linked into."""

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


class _Compiler(Compiler):
    """Compiles as numba does, in less time."""

    def __init__(self, typing: Any, target: Any, library: Any, args: Any, result: Any, flags: Any, names: Any) -> None:
        super().__init__(typing, target, library, args, result, _Flags(flags), names)

    def compile_extra(self, function: Callable[..., Any]) -> Any:
        self.state.library = self.make_library(self.state.targetctx.codegen(), function.__qualname__)
        return super().compile_extra(function)

    def make_library(self, codegen: Any, name: str) -> Any:
        """Return the place for the code."""
        library = _Code(codegen, name)
        library.enable_object_caching()
        return library


class _PartCompiler(_Compiler):
    """Leaves out the machine code."""

    def make_library(self, codegen: Any, name: str) -> Any:
        self.state.flags.no_compile = True
        return _PartCode(codegen, name)


class _PartLocator(Locator):
    kind = "parts"


class _PartsOnDisk(OnDisk):
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
        if part.entry_point is None:  # numba finds functions by the identity of this object
            part = part._replace(entry_point=object())
            part.target_context.insert_user_function(part.entry_point, part.fndesc, [part.library])
        self.overloads[tuple(part.signature.args)] = part


def _wide(given: Any) -> Any:
    """The type to compile a part for: one is enough for numbers of any width, and for those in the source."""
    if given in _NARROW or isinstance(given, types.IntegerLiteral):
        return types.int64
    if isinstance(given, types.BooleanLiteral):
        return types.boolean
    return types.float64 if given == types.float32 else given
