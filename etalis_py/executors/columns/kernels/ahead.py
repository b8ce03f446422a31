"""Prefetching memory some rows ahead, so that look-ups in large tables need not wait for it one after another."""

from __future__ import annotations

from typing import Any

from numba import types
from numba.core.cgutils import int32_t, ir, voidptr_t  # type: ignore[attr-defined]  # llvmlite comes with Numba
from numba.extending import intrinsic

AHEAD = 8
"""How many rows ahead memory is fetched."""

_KIND = ir.FunctionType(ir.VoidType(), [voidptr_t, int32_t, int32_t, int32_t])
# The arguments of LLVM's prefetch: for reading, kept close to the processor, and data instead of instructions.
_READ, _NEAR, _DATA = (ir.Constant(int32_t, number) for number in (0, 3, 1))


def _fetch(typing: Any, array: Any, index: Any) -> Any:
    """Tell Numba how to compile a call of ``fetch``: by this signature, and this code."""

    def generate(context: Any, builder: Any, signature: Any, arguments: Any) -> Any:
        there = context.make_array(signature.args[0])(context, builder, arguments[0])
        stride = builder.extract_value(there.strides, 0)
        place = builder.gep(builder.bitcast(there.data, voidptr_t), [builder.mul(stride, arguments[1])])
        asked = builder.module.declare_intrinsic("llvm.prefetch", [voidptr_t], _KIND)
        builder.call(asked, [place, _READ, _NEAR, _DATA])
        return context.get_dummy_value()

    return types.void(array, types.uint64), generate


fetch: Any = intrinsic(_fetch)
"""``fetch(array, index)`` brings an element, or the beginning of a matrix's row, into the cache.

It changes nothing, and an index out of range does no harm.
"""
