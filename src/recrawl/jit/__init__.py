"""How kernels run: interpreted until they are compiled, compiled from then on.

A kernel is a plain Python function over numbers and arrays. The decorators of this module turn it into a `Kernel`,
which runs either way:

- **interpreted**, at once, on any machine (`twins.py`): slow, but quick enough for thousands of pages;
- **compiled** by numba, which takes a minute of CPU once on a machine (`compiled.py`).

Both give the same answers up to the order of sums. Modules with kernels are cheap to import: numba is loaded when
compiled code exists on disk or has to be made.

A kernel of the packages in `_BESIDE` is not compiled by the call that needs it. It runs interpreted while a process
beside this one compiles all of them (`warming.py`); as soon as its code is on disk, calls use it. A call compiles at
once if its input is large, or if interpreting has taken a second already and nothing better is to come. Kernels of
other packages are always compiled at once. `RECRAWL_KERNELS` forces one way for all: `compiled` or `interpreted`.
"""

from __future__ import annotations

import math
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from functools import cache, cached_property, update_wrapper
from typing import Any, Literal, TypeVar, cast

from recrawl.jit import beside
from recrawl.jit.folders import complete_parts
from recrawl.jit.way import Way, forced_way

Function = TypeVar("Function", bound=Callable[..., Any])

# Sums may be reordered, so that they vectorise; NaN and infinity keep their meaning.
_REORDERED = frozenset({"reassoc", "nsz", "contract", "arcp"})
_CONTRACTED = frozenset({"contract"})
# Packages whose kernels are compiled beside, with the input from which on a call compiles at once: rows, or bytes.
_BESIDE = {
    "learning": 100_000, "planning": 100_000, "scheduling": 100_000, "values": 100_000,
    "web": 64 * 1024,
}  # fmt: skip
# What the process beside compiles, part by part, with the packages whose kernels are of use when a part is complete.
BESIDE_PARTS = {
    "web": ("web",),
    "market": ("learning", "scheduling", "values"),
    "service": ("planning",),
    "signals": (),
    "plain": (),
}
_LOOPS = ("scheduling", "web")  # called again and again, by programs that must not stand still
_TRIED_S = 1.0  # of CPU in an interpreted kernel: then compiling is cheaper
_ANNOUNCE_S = 5.0
_LOOK_S = 0.25  # between two looks for compiled code on disk


def kernel(function: Function) -> Function:
    """Make a kernel of a loop over arrays: compiled sums may be reordered."""
    return _kernel(function, fastmath=_REORDERED)


def exact(function: Function) -> Function:
    """Make a kernel of scalar mathematics, compiled exactly as written: nothing is reordered, series stay accurate."""
    return _kernel(function)


def inlined(function: Function) -> Function:
    """Make a kernel of scalar mathematics that is copied into every loop that calls it, so that the loop vectorises.

    A product and a sum may become one instruction: that halves the work and rounds once instead of twice.
    """
    return _kernel(function, fastmath=_CONTRACTED, forceinline=True)


def borrowing(function: Function) -> Function:
    """Make a kernel of a small step over arrays that the caller holds on to: references to them are not counted.

    Counting is what most of the time goes into where steps hand a dozen arrays to each other. Such a step must not
    make arrays, and is called from kernels only.
    """
    return _kernel(function, fastmath=_CONTRACTED, _nrt=False)


def elementwise(scalar: Callable[..., float]) -> Callable[..., Any]:
    """Make a NumPy ufunc of a scalar kernel: it broadcasts over arrays."""
    kernel = cast(Kernel, scalar)
    return Kernel(kernel.function, None, kernel)


def bitcast(function: Function, to: Literal["int64", "float64"]) -> Function:
    """Make a kernel that reads the 64 bits of its argument as another type; `function` does it interpreted."""
    return cast(Function, Kernel(function, {"bitcast": to}))


def shared(read: Function) -> Function:
    """Make a kernel that returns one constant array; `read` makes the array when it is needed first.

    A global array becomes a part of every compiled kernel that reads it, and of the file of each. Kernels that call
    this one hold the name of the array instead, and all of them read the same memory.
    """
    made = Kernel(cache(read), {"shared": True})
    _shared.append(made)
    return cast(Function, made)


def interpreted_as(twin: Callable[..., Any]) -> Callable[[Function], Function]:
    """Name a plain function that computes the same quicker without a compiler; put it above another decorator."""

    def name(function: Function) -> Function:
        function.__dict__["twin"] = twin
        return function

    return name


class Kernel:
    """A function that runs interpreted until it is compiled.

    Args:
        function: the plain Python function.
        options: for numba; None for a ufunc.
        scalar: the kernel that a ufunc applies to every element.
    """

    def __init__(
        self, function: Callable[..., Any], options: dict[str, Any] | None, scalar: Kernel | None = None
    ) -> None:
        update_wrapper(self, function)
        self.function = function
        self.options = options
        self.scalar = scalar
        self.package = _package_of(function.__module__)
        self.interpreted_s = 0.0  # CPU spent in interpreted calls from Python
        self.run: Callable[..., Any] = self._begin
        _kernels.append(self)

    def __call__(self, *args: Any, **named: Any) -> Any:
        """Run, whichever way."""
        return self.run(*args, **named)

    def __reduce__(self) -> str:
        return self.function.__qualname__

    @property
    def is_made_by_hand(self) -> bool:
        """Whether the compiled code is not made of the function, which is then the twin as it is."""
        return self.options is not None and not self.options.keys().isdisjoint(("bitcast", "shared"))

    @cached_property
    def compiled(self) -> Any:
        """What numba makes of it. The first use imports numba; each signature is compiled or loaded when called."""
        from recrawl.jit.compiled import compiled

        return compiled(self)

    @cached_property
    def twin(self) -> Callable[..., Any]:
        """The function with the arithmetic of compiled code: dividing by 0 gives infinity, not an error."""
        from recrawl.jit.twins import twin

        return twin(self)

    @cached_property
    def _entry(self) -> Callable[..., Any]:
        from recrawl.jit.twins import entry

        return entry(self)

    @property
    def _numba_type_(self) -> Any:
        # numba asks for this where a compiled function calls the kernel.
        from recrawl.jit.compiled import numba_type

        return numba_type(self)

    def interpret(self, *args: Any, **named: Any) -> Any:
        """Run without the compiler."""
        if _here.inside:  # called by a kernel that could not call the twin directly
            return self._entry(*args, **named)
        _here.inside = True
        began = time.thread_time()
        try:
            return self._entry(*args, **named)
        finally:
            _here.inside = False
            spent = time.thread_time() - began
            self.interpreted_s += spent
            if self.package in _LOOPS:
                beside.note(spent, tuple(BESIDE_PARTS))

    def announce(self) -> None:
        """Say that a call compiles now, so that nobody waits in silence."""
        global _announced_at  # noqa: PLW0603 - one sentence every some seconds, however many kernels are compiled
        if time.monotonic() - _announced_at >= _ANNOUNCE_S:
            _announced_at = time.monotonic()
            for say in _listeners:
                say(f"compiling {self.__module__.removeprefix('recrawl.')} for this machine, which is done once")

    def start_over(self) -> None:
        """Choose how to run at the next call."""
        self.run = self._begin

    def may_compile(self, *args: Any) -> bool:
        """Whether a call with these arguments may compile, which takes seconds, instead of being interpreted."""
        if _forced == "compiled" or _here.compiling or self.package not in _BESIDE:
            return True
        if self.interpreted_s > _TRIED_S and (not self._is_in_a_loop() or _is_all_ready()):
            return True
        # A loop that reads pages goes on, slowly, while their kernels are compiled beside.
        return _largest(args) > _BESIDE[self.package] and not (self.package == "web" and beside.is_compiling())

    def _is_in_a_loop(self) -> bool:
        """Whether the program must not stand still while the kernel is compiled."""
        return self.package in _LOOPS or bool(_listeners)

    def _begin(self, *args: Any, **named: Any) -> Any:
        """Choose how to run; a kernel that is interpreted for now asks again."""
        if _forced == "interpreted":
            self.run = self.interpret
        elif _is_ready(self.package):
            self.run = self.compiled
        elif self.may_compile(*args):
            return self.compiled(*args, **named)  # large this time; a small input may be next
        else:
            return self.interpret(*args, **named)
        return self.run(*args, **named)


class _Here(threading.local):
    """What holds in this thread: whether calls may compile, and whether an interpreted kernel is running."""

    compiling = False
    inside = False


_here = _Here()
_kernels: list[Kernel] = []
_shared: list[Kernel] = []
_ready: set[str] = set()
_listeners: list[Callable[[str], None]] = []  # who is told that a call compiles, so that nobody waits in silence
_complete: set[str] = set()  # parts, when the disk was last looked at
_looked_at = -math.inf
_announced_at = -math.inf


def kernels() -> tuple[Kernel, ...]:
    """All kernels of the modules that were imported so far."""
    return tuple(_kernels)


def shared_kernels() -> tuple[Kernel, ...]:
    """The kernels among them that return an array which compiled code refers to."""
    return tuple(_shared)


def compile_beside(say: Callable[[str], None]) -> None:
    """Compile in a process beside this one what is not compiled yet, for a program that will run for long.

    Args:
        say: takes sentences for people, also while a call with a large input compiles at once.
    """

    def ended(whole: bool) -> None:
        say(
            "compiled: decisions are fast from now on"
            if whole
            else "could not compile: `recrawl doctor --warm` says why"
        )

    _listeners[:] = [say]
    if beside.start(tuple(BESIDE_PARTS), ended):
        say("compiling for this machine, which is done once; until then, about a minute, decisions take longer")


def has_to_wait(package: str, size: int) -> bool:
    """Whether an input is too large to be interpreted, and the kernels of its package are being compiled beside."""
    return size > _BESIDE[package] and not _is_ready(package) and beside.is_compiling()


@contextmanager
def running(way: Way) -> Iterator[None]:
    """Run all kernels one way inside a `with` block, in all threads."""
    before = _forced
    try:
        force(way)
        yield
    finally:
        force(before)


def force(way: Way | None) -> None:
    """Run all kernels one way from now on, in all threads; None lets each change over when it is compiled."""
    global _forced  # noqa: PLW0603 - one switch for the process
    _forced = way
    for each in _kernels:
        each.start_over()


@contextmanager
def compiling() -> Iterator[None]:
    """Let calls of this thread compile what they need, whatever their input."""
    before, _here.compiling = _here.compiling, True
    try:
        yield
    finally:
        _here.compiling = before


def _is_ready(package: str) -> bool:
    """Whether numba is worth loading for a package: compiled kernels of it are on disk."""
    if _forced == "compiled" or package in _ready or package not in _BESIDE:
        return True
    for part in _parts_on_disk():
        _ready.update(BESIDE_PARTS.get(part, ()))
    return package in _ready


def _is_all_ready() -> bool:
    """Whether the process beside has nothing left to compile: what is still missing, it does not know."""
    return _parts_on_disk() >= set(BESIDE_PARTS)


def _parts_on_disk() -> set[str]:
    """The parts that are complete; as many kernels ask, the disk is looked at some times a second only."""
    global _complete, _looked_at
    if time.monotonic() - _looked_at >= _LOOK_S:
        _looked_at, _complete = time.monotonic(), complete_parts()
    return _complete


def _largest(given: Any) -> int:
    """The length of the longest array among arguments, also inside tuples."""
    if isinstance(given, tuple):
        return max(map(_largest, given), default=0)
    return int(getattr(given, "size", 0))


def _kernel(function: Function, **options: Any) -> Function:
    # What a step calls would else be compiled as the step is, without room for arrays of its own.
    return cast(Function, Kernel(function, {"error_model": "numpy", "nogil": True, "_nrt": True, **options}))


def _package_of(module: str) -> str:
    package, _, rest = module.partition(".")
    return rest.partition(".")[0] if package == "recrawl" else ""


_forced: Way | None = forced_way()
