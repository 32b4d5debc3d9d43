"""ln(1 − c) and e^{−x} written without a call or a branch, so that loops over pages vectorise.

A call into the C library keeps a compiler from working on several pages at once. These two are arithmetic on the
bits of a float and one polynomial each, about four times as fast over arrays and no slower alone. They must be
`inlined`: a special function is too long for the compiler to copy it into a loop unless told to.

The coefficients are interpolants through Chebyshev points, computed with 60 digits; highest power first.
"""

from __future__ import annotations

import math
import struct
from typing import cast

from recrawl.jit import bitcast, inlined, interpreted_as

# eʳ for |r| ≤ ln(2)/2.
_EXP = (
    2.5110049204818658e-08, 2.763265472252779e-07, 2.755724088722987e-06, 2.4801485441561313e-05,
    0.00019841269890076403, 0.0013888888952352863, 0.008333333333319589, 0.04166666666648795,
    0.1666666666666668, 0.5000000000000019, 1.0, 1.0,
)  # fmt: skip
# ln((1 + r)/(1 − r))/r in r², for mantissas between √½ and √2.
_LOG = (
    0.14809867572313062, 0.153125131147383, 0.18183632241617026, 0.22222197046404274, 0.2857142876073828,
    0.3999999999930191, 0.6666666666666765, 2.0,
)  # fmt: skip
_LOG2_E = 1.4426950408889634
_LN2_HIGH = 0.6931471805598903  # its last bits are 0, so that whole multiples are exact
_LN2_LOW = 5.497923018708371e-14
_ROUNDER = 6755399441055744.0  # 1.5·2⁵²: adding it leaves the nearest whole number in the last bits
_ROUNDER_BITS = 0x4338000000000000
_SQRT_HALF_BITS = 0x3FE6A09E667F3BCD
_FLOAT, _INT, _BITS = struct.Struct("<d"), struct.Struct("<q"), struct.Struct("<Q")
_ALL_BITS = 2**64 - 1
_LARGEST_EXPONENT = 709.0


def _bits_of(x: float) -> int:
    """The bits of a float as a signed integer."""
    return cast(int, _INT.unpack(_FLOAT.pack(x))[0])


def _float_of(bits: int) -> float:
    """The float that has these bits; bits beyond 64 are cut off."""
    return cast(float, _FLOAT.unpack(_BITS.pack(bits & _ALL_BITS))[0])


bits_of = bitcast(_bits_of, "int64")
float_of = bitcast(_float_of, "float64")


def _log_of_rest(c: float) -> float:
    return math.log1p(-c) if c < 1.0 else -math.inf


def _exp_of_minus(x: float) -> float:
    return math.exp(-x) if x > -_LARGEST_EXPONENT else math.inf


@inlined
def polynomial(x: float, coefficients: tuple[float, ...]) -> float:
    """A polynomial by Horner's rule, highest power first. O(degree); the loop unrolls when compiled."""
    total = 0.0
    for coefficient in coefficients:
        total = total * x + coefficient
    return total


@interpreted_as(_log_of_rest)
@inlined
def log_of_rest(c: float) -> float:
    """ln(1 − c) for 0 ≤ c < 1, accurate for small c too; anything outside gives a meaningless number. O(1)."""
    rest = 1.0 - c
    lost = (1.0 - rest) - c  # what rounding took from 1 − c, exactly
    bits = bits_of(rest)
    exponent = (bits - _SQRT_HALF_BITS) >> 52
    mantissa = float_of(bits - (exponent << 52))
    r = (mantissa - 1.0) / (mantissa + 1.0)
    fraction = r * polynomial(r * r, _LOG)
    return exponent * _LN2_HIGH + (exponent * _LN2_LOW + (fraction + lost / rest))


@interpreted_as(_exp_of_minus)
@inlined
def exp_of_minus(x: float) -> float:
    """e^{−x} for 0 ≤ x ≤ 708; anything outside gives a meaningless number. O(1)."""
    shifted = _ROUNDER - x * _LOG2_E
    doublings = shifted - _ROUNDER
    r = (-x - doublings * _LN2_HIGH) - doublings * _LN2_LOW
    return polynomial(r, _EXP) * float_of((bits_of(shifted) - _ROUNDER_BITS + 1023) << 52)
