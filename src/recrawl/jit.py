"""The one place that decides how kernels are compiled, and where the compiled code is kept.

Importing this module loads numba, which takes most of a second: modules that hold kernels are imported by the
functions that compute, never by `import recrawl` or by a command's `--help`.

Compiled code is kept on disk beside the package. numba recompiles a kernel when its own file changes, but not when a
kernel that it calls, in another file, does; so each module keeps its kernels in a folder whose name is a digest of
the module and of everything in recrawl that it imports.

numba would make machine code of every function that a kernel calls, and of all that it calls in turn, again and again
on the way up. That is most of the time that compiling takes, and none of it is ever run: a kernel gets its own copy.
So a function that is called from a kernel is kept as a part, which is optimised and made machine code where it is
used; only what Python calls becomes machine code by itself.
"""

# numba's classes, of which some are extended below, have no types.
# mypy: disallow-untyped-calls=False

from __future__ import annotations

import hashlib
import re
import shutil
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from functools import cache
from pathlib import Path
from typing import Any, TypeVar, cast

import numba
from llvmlite import binding  # type: ignore[import-untyped]
from numba.core import types
from numba.core.caching import CompileResultCacheImpl, FunctionCache
from numba.core.codegen import JITCodeLibrary
from numba.core.compiler import Compiler, compile_result
from numba.core.registry import CPUDispatcher

Function = TypeVar("Function", bound=Callable[..., Any])

# Sums may be reordered, so that they vectorise; NaN and infinity keep their meaning.
_REORDERED = {"reassoc", "nsz", "contract", "arcp"}
_TRIED = "0.68."  # versions of numba that parts were tried with; under others all is compiled as numba does
_PARTS = "parts"  # the folder for those below the folder of a module
_FOLDERS_KEPT = 2  # of earlier versions of a module, for whoever goes back and forth
_ROOT = Path(__file__).parent.parent
_IMPORT = re.compile(r"^from (recrawl[\w.]*) import ([^(\n]+|\([^)]*\))", re.MULTILINE)


def kernel(function: Function) -> Function:
    """Compile a loop over arrays: sums may be reordered, the result is cached on disk."""
    return _compiled(function, fastmath=_REORDERED)


def exact(function: Function) -> Function:
    """Compile scalar mathematics exactly as written: nothing is reordered, so series stay accurate."""
    return _compiled(function)


def inlined(function: Function) -> Function:
    """Compile scalar mathematics as written and copy it into every loop that calls it, so that the loop vectorises.

    A product and a sum may become one instruction: that halves the work and rounds once instead of twice.
    """
    return _compiled(function, fastmath={"contract"}, forceinline=True)


def borrowing(function: Function) -> Function:
    """Compile a small step over arrays that the caller holds on to: references to them are not counted.

    Counting is what most of the time goes into where steps hand a dozen arrays to each other. Such a step must not
    make arrays, and is called from kernels only.
    """
    return _compiled(function, fastmath={"contract"}, _nrt=False)


def elementwise(function: Function) -> Function:
    """Compile a scalar function into a NumPy ufunc that broadcasts over arrays."""
    return _kept_on_disk(numba.vectorize, function)


def _compiled(function: Function, **options: Any) -> Function:
    # What a step calls would else be compiled as the step is, without room for arrays of its own.
    options = {"error_model": "numpy", "nogil": True, "_nrt": True, **options}
    whole: Any = _kept_on_disk(numba.njit, function, **options)
    if not numba.__version__.startswith(_TRIED):
        return cast(Function, whole)

    @cache
    def part() -> Any:
        with _own_folder(function, _PARTS):
            return _Part(function, options)

    # This is how numba asks for what a compiled function calls.
    whole.get_call_template = lambda args, kws: part().get_call_template(args, kws)
    whole.get_overload = lambda signature: part().get_overload(signature)
    return cast(Function, whole)


def _kept_on_disk(compiler: Any, function: Function, **options: Any) -> Function:
    with _own_folder(function):
        return cast(Function, compiler(cache=True, **options)(function))


@contextmanager
def _own_folder(function: Callable[..., Any], below: str = "") -> Iterator[None]:
    """Have numba use our cache folder: it chooses one when it is handed the function."""
    settings: Any = numba.config
    theirs = settings.CACHE_DIR
    settings.CACHE_DIR = str(cache_folder(function.__module__, theirs) / below)
    try:
        yield
    finally:
        settings.CACHE_DIR = theirs


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


class _PartsOnDisk(FunctionCache):
    """Keeps parts on disk."""

    class _impl_class(CompileResultCacheImpl):  # noqa: N801 - numba's name for it
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


@cache
def cache_folder(module: str, parent: str = "") -> Path:
    """The folder for a module's compiled kernels, below the one numba was told to use or else beside the package."""
    folder = Path(parent) if parent else _ROOT / "recrawl" / "__pycache__"
    folder /= f"{module}-{_digest(module)}"
    with suppress(OSError):  # a package that cannot be written to: numba finds a folder of the user's
        folder.mkdir(parents=True, exist_ok=True)
        _forget_old_folders(folder, module)
    return folder


def versions_on_disk(function: Callable[..., Any]) -> int:
    """For how many kinds of arguments a kernel was compiled before, here or in another process."""
    settings: Any = numba.config
    folder = cache_folder(function.__module__, settings.CACHE_DIR)
    found = folder.rglob(f"*.{function.__name__}-*.nbc")
    return sum(1 for path in found if _PARTS not in path.relative_to(folder).parts)


def _digest(module: str) -> str:
    digest = hashlib.sha256()
    for path in sorted(_sources(module)):
        digest.update(path.read_bytes())
    return digest.hexdigest()[:16]


def _sources(module: str) -> set[Path]:
    """The file of a module and those of all recrawl modules that it imports, directly or not."""
    found: set[Path] = set()
    waiting = [module]
    while waiting:
        path = _ROOT.joinpath(*waiting.pop().split(".")).with_suffix(".py")
        if path in found or not path.is_file():  # a kernel outside the package answers for itself
            continue
        found.add(path)
        for package, names in _IMPORT.findall(path.read_text(encoding="utf-8")):
            waiting += [package, *(f"{package}.{name}" for name in re.findall(r"\w+", names))]
    return found


def _forget_old_folders(current: Path, module: str) -> None:
    others = [folder for folder in current.parent.glob(f"{module}-*") if folder != current]
    for folder in sorted(others, key=lambda each: each.stat().st_mtime)[:-_FOLDERS_KEPT]:
        shutil.rmtree(folder, ignore_errors=True)
