"""The special functions behind every crawl value, as scalar kernels that other kernels call.

    g(x) = 1 − (1 + x)e^{−x}        freshness, captures and content sources
    h(x) = x − 1 + e^{−x}           harmonic staleness
    Ein(x) = ∫₀ˣ (1 − e^{−t})/t dt  expected harmonic cost of a Poisson number of changes
    H(n) = 1 + 1/2 + … + 1/n

and the inverses of the first three, accurate to about 1e-15 relative. g, h and Ein cancel for small arguments and are
polynomials there. The inverses of g and h do not iterate: they are fits in s, where s²/2 is −ln(1 − c) for g and c for
h. Both belong to one function X with X − ln(1 + X) = s²/2, smooth at s = 0: g⁻¹ is its positive branch, and
h⁻¹ = −ln(1 + X) on the negative one (Corless et al. 1996, "On the Lambert W function").

g, h and their inverses have no branches and call no C library, so that loops over pages vectorise: ln(1 − c) and e^{−x}
are arithmetic on the bits of a float and one polynomial each, about four times as fast over arrays and no slower
alone. They must be `inlined`: the compiler copies such long functions into a loop only if told to.

The coefficients are interpolants through Chebyshev points, computed with 60 digits; highest power first. Long ones are
split into even and odd powers: short loops unroll, and the halves run side by side. The tests hold every function to
mpmath, so a fit may be replaced by a better one.
"""

from __future__ import annotations

import math
import struct
from typing import cast

from recrawl.jit import bitcast, exact, inlined, interpreted_as, kernel
from recrawl.pages import Floats

EULER_GAMMA = 0.5772156649015329

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
_G = (
    -1.2170535435828982e-09, 2.1248260564771274e-08, -2.480378174327535e-07, 2.477841081959835e-06,
    -2.2044414384975113e-05, 0.00017361051049207693, -0.001190476025167598, 0.0069444444155409065,
    -0.03333333333034701, 0.1249999999998404, -0.33333333333333, 0.5,
)  # fmt: skip
_H = (
    -1.0509453754979482e-10, 1.952715306431462e-09, -2.4856214837612005e-08, 2.753900275371731e-07,
    -2.7556179049708925e-06, 2.4801539739718985e-05, -0.0001984126853148021, 0.0013888888865978557,
    -0.008333333333096557, 0.04166666666665401, -0.1666666666666664, 0.5,
)  # fmt: skip
_INVERSE_G_ABOVE = (
    4.441242116101135e-09, 6.089024447258335e-07, 2.667677315058118e-05, 0.0005436193496008476,
    0.006221969012797628, 0.04466586612887178, 0.2121700714137107, 0.6758204327003634, 1.4063017995744853,
    1.7499119242434749, 0.9999999999999998,
)  # fmt: skip
_INVERSE_G_BELOW = (
    8.882736532762744e-09, 1.2176591366394902e-06, 5.3161262807650636e-05, 0.0010681936082632781,
    0.011804872329254514, 0.0793211967964784, 0.338064345044979, 0.9063311581603728, 1.416578590910119, 1.0,
)  # fmt: skip
_INVERSE_H_EVEN = (
    1.206002255694367e-09, 2.547362272729406e-08, 1.1406669045454488e-07, 2.2666046409985508e-07,
    -1.7734919875813275e-07, -2.5527901966782853e-05, 0.0002314817458802244, 0.0277777777788521, 1.0,
)  # fmt: skip
_INVERSE_H_ODD = (
    -8.559231579651845e-11, -7.20378405441228e-09, -6.432766744661467e-08, -1.3616939043515713e-07,
    7.070998334340082e-08, -4.926843498261895e-06, -5.87907919262103e-05, 0.0037037036805461394,
    0.1666666666666468,
)  # fmt: skip
_INVERSE_H_TAIL = (
    510.99772448703806, 90.7834752692685, 53.73450985239473, 23.280141822243934, 10.801406542155398,
    5.208314319877463, 2.666666813624237, 1.4999999994251094, 1.00000000000087, 0.9999999999999998,
)  # fmt: skip
_EIN_EVEN = (
    2.931596796404475e-17, 3.914245927933899e-14, 1.207247341667991e-11, 2.2753898633606906e-09,
    3.0618751326466793e-07, 2.8344667756363992e-05, 0.0016666666661078985, 0.055555555555543895, 1.0,
)  # fmt: skip
_EIN_ODD = (
    -1.4773041700848333e-15, -7.522483158666526e-13, -1.7309417372816817e-10, -2.755362682698032e-08,
    -3.100193565448703e-06, -0.0002314814797746189, -0.010416666666555482, -0.24999999999999953,
)  # fmt: skip
_E1_ABOVE = (
    5.035411287958351, 181.1234083925682, 530.6112603930609, 461.3817266184793, 156.1587492740287,
    21.533597208112138, 0.9999999999590267,
)  # fmt: skip
_E1_BELOW = (
    78.74230146971576, 509.8412067644597, 887.4367521064477, 599.0068348492999, 176.69234725851314,
    22.533597199687563, 1.0,
)  # fmt: skip
_INVERSE_EIN_ABOVE = (
    3.4766289954362094e-06, 0.0001137655276850521, -0.0024801119942969158, 0.02662034253432954,
    -0.15602431617541243, 0.5504673067222012, -1.0854697654752476, 0.999999999758598,
)  # fmt: skip
_INVERSE_EIN_BELOW = (
    -1.9867497881290108e-05, 0.0006148101219421007, -0.008236379766285254, 0.06207799085555274,
    -0.2861053407580741, 0.8148906804905716, -1.3354697895000622, 1.0,
)  # fmt: skip
# H(0) … H(15): the asymptotic series takes over from there.
_HARMONIC = (
    0.0, 1.0, 3 / 2, 11 / 6, 25 / 12, 137 / 60, 49 / 20, 363 / 140, 761 / 280, 7129 / 2520, 7381 / 2520,
    83711 / 27720, 86021 / 27720, 1145993 / 360360, 1171733 / 360360, 1195757 / 360360,
)  # fmt: skip
# ln(1 + x) = 2 artanh r: 2/(2k + 1) for the powers of r² from the third power of r on.
_ARTANH = (2 / 27, 2 / 25, 2 / 23, 2 / 21, 2 / 19, 2 / 17, 2 / 15, 2 / 13, 2 / 11, 2 / 9, 2 / 7, 2 / 5, 2 / 3)


def _bits_of(x: float) -> int:
    """Return the bits of a float as a signed integer."""
    return cast(int, _INT.unpack(_FLOAT.pack(x))[0])


def _float_of(bits: int) -> float:
    """Return the float that has these bits; bits beyond 64 are cut off."""
    return cast(float, _FLOAT.unpack(_BITS.pack(bits & _ALL_BITS))[0])


bits_of = bitcast(_bits_of, "int64")
float_of = bitcast(_float_of, "float64")


def _log_of_rest(c: float) -> float:
    return math.log1p(-c) if c < 1.0 else -math.inf


def _exp_of_minus(x: float) -> float:
    return math.exp(-x) if x > -_LARGEST_EXPONENT else math.inf


@inlined
def polynomial(x: float, coefficients: tuple[float, ...]) -> float:
    """Return a polynomial by Horner's rule, highest power first. O(degree); the loop unrolls when compiled."""
    total = 0.0
    for coefficient in coefficients:
        total = total * x + coefficient
    return total


@interpreted_as(_log_of_rest)
@inlined
def log_of_rest(c: float) -> float:
    """Return ln(1 − c) for 0 ≤ c < 1, accurate for small c too; anything outside gives a meaningless number. O(1)."""
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
    """Return e^{−x} for 0 ≤ x ≤ 708; anything outside gives a meaningless number. O(1)."""
    shifted = _ROUNDER - x * _LOG2_E
    doublings = shifted - _ROUNDER
    r = (-x - doublings * _LN2_HIGH) - doublings * _LN2_LOW
    return polynomial(r, _EXP) * float_of((bits_of(shifted) - _ROUNDER_BITS + 1023) << 52)


@inlined
def g(x: float) -> float:
    """Return 1 − (1 + x)e^{−x} for x ≥ 0, which rises from x²/2 to 1. O(1)."""
    low = x if x < 1.0 else 1.0
    high = x if x < 700.0 else 700.0
    near = low * low * polynomial(low, _G)
    far = 1.0 - (1.0 + high) * exp_of_minus(high)
    return near if x < 1.0 else far


@inlined
def h(x: float) -> float:
    """Return x − 1 + e^{−x} for x ≥ 0, which rises from x²/2 towards x − 1. O(1)."""
    low = x if x < 1.0 else 1.0
    high = x if x < 700.0 else 700.0
    near = low * low * polynomial(low, _H)
    far = (x - 1.0) + exp_of_minus(high)
    return near if x < 1.0 else far


@inlined
def inverse_g(c: float) -> float:
    """Return the x with g(x) = c for 0 ≤ c < 1, infinity from c = 1 on. O(1)."""
    inside = c if c < 1.0 else 0.5
    s = math.sqrt(abs(2.0 * log_of_rest(inside)))
    x = s * (polynomial(s, _INVERSE_G_ABOVE) / polynomial(s, _INVERSE_G_BELOW))
    return x if c < 1.0 else math.inf


@inlined
def inverse_h(c: float) -> float:
    """Return the x with h(x) = c for c ≥ 0. O(1)."""
    low = c if c < 2.0 else 2.0
    high = c if c < 700.0 else 700.0
    s = math.sqrt(abs(2.0 * low))
    near = s * (polynomial(2.0 * low, _INVERSE_H_EVEN) + s * polynomial(2.0 * low, _INVERSE_H_ODD))
    # x = 1 + c + W₀(−w) with w = e^{−(1+c)}, and W₀ is a quick series there.
    w = exp_of_minus(1.0 + high)
    far = (1.0 + c) - w * polynomial(w, _INVERSE_H_TAIL)
    return near if c < 2.0 else far


@exact
def ein(x: float) -> float:
    """Return the entire exponential integral ∫₀ˣ (1 − e^{−t})/t dt for x ≥ 0. O(1)."""
    if x < 4.0:
        series = polynomial(x * x, _EIN_EVEN) + x * polynomial(x * x, _EIN_ODD)
        return x * series
    if x > 45.0:
        return EULER_GAMMA + math.log(x)
    u = 1.0 / x
    tail = math.exp(-x) * u * (polynomial(u, _E1_ABOVE) / polynomial(u, _E1_BELOW))
    return (EULER_GAMMA + tail) + math.log(x)


@exact
def inverse_ein(c: float) -> float:
    """Return the x with Ein(x) = c for c ≥ 0, infinity where x passes the largest float. O(1)."""
    if c > 4.4:  # e^{−x} is below the last digit
        return math.exp(c - EULER_GAMMA)
    if c < 1e-17:
        return c
    # The fit has 7 digits and one step of Halley's method triples them.
    x = c * (polynomial(c, _INVERSE_EIN_ABOVE) / polynomial(c, _INVERSE_EIN_BELOW))
    growth = math.expm1(-x)
    slope = -growth / x
    bend = (1.0 + growth - slope) / x
    step = (ein(x) - c) / slope
    return x - step / (1.0 - 0.5 * step * bend / slope)


@exact
def harmonic_number(n: float) -> float:
    """Return H(n) = 1 + 1/2 + … + 1/n for a whole number n ≥ 0 held as a float. O(1)."""
    if n < 16.0:
        return _HARMONIC[int(n)]
    r = 1.0 / (n * n)
    series = 1.0 / 12 - r * (1.0 / 120 - r * (1.0 / 252 - r * (1.0 / 240 - r / 132)))
    return math.log(n) + EULER_GAMMA + (0.5 / n - r * series)


@exact
def excess(x: float) -> float:
    """Return x − ln(1 + x) for x ≥ −1, without the cancellation near 0. O(1)."""
    if -0.4 < x < 0.8:
        r = x / (2.0 + x)
        return r * (x - r * r * polynomial(r * r, _ARTANH))
    if x > 1e300:
        return x
    return x - math.log1p(x) if x > -1.0 else math.inf


@exact
def product(a: float, b: float, c: float) -> float:
    """Return a·b·c for numbers ≥ 0, without overflow or underflow of parts. O(1)."""
    low = min(a, b)
    high = max(a, b)
    # The smallest by the largest first: neither can push the other out of range.
    return low * max(high, c) * min(high, c) if low <= c else c * high * low


@exact
def quotient(a: float, b: float, c: float) -> float:
    """Return a·b/c for numbers ≥ 0 and c > 0, without overflow or underflow of parts. O(1)."""
    top = a * b
    if 1e-290 < top < 1e300:
        return top / c
    return max(a, b) / c * min(a, b) if top > 1.0 else min(a, b) / c * max(a, b)


@kernel
def fill_inverse_g(inputs: Floats, outputs: Floats) -> None:
    """Set each output to the inverse of g: several at a time, where a ufunc takes one after the other."""
    for i in range(inputs.size):
        outputs[i] = inverse_g(inputs[i])


@kernel
def fill_inverse_h(inputs: Floats, outputs: Floats) -> None:
    """Set each output to the inverse of h."""
    for i in range(inputs.size):
        outputs[i] = inverse_h(inputs[i])
