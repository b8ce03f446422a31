"""Memory is asked for some rows ahead, so that look-ups in large tables need not wait for it one after the other."""

from __future__ import annotations

from typing import Any

from llvmlite import ir
from numba import types
from numba.extending import intrinsic

AHEAD = 8
"""So many rows before it is needed."""

_BYTE, _INT = ir.IntType(8).as_pointer(), ir.IntType(32)
_READ, _NEAR, _DATA = (ir.Constant(_INT, number) for number in (0, 3, 1))


def _fetch(typing: Any, array: Any, index: Any) -> Any:
    """What Numba makes of a call of ``fetch``: its signature, and the code."""

    def generate(context: Any, builder: Any, signature: Any, arguments: Any) -> Any:
        there = context.make_array(signature.args[0])(context, builder, arguments[0])
        stride = builder.extract_value(there.strides, 0)
        place = builder.gep(builder.bitcast(there.data, _BYTE), [builder.mul(stride, arguments[1])])
        kind = ir.FunctionType(ir.VoidType(), [_BYTE, _INT, _INT, _INT])
        asked = builder.module.declare_intrinsic("llvm.prefetch", [_BYTE], kind)
        builder.call(asked, [place, _READ, _NEAR, _DATA])
        return context.get_dummy_value()

    return types.void(array, types.uint64), generate


fetch: Any = intrinsic(_fetch)
"""``fetch(array, index)`` has an element, or the beginning of a matrix's row, near the processor soon.

It changes nothing, and an element that is not there does no harm.
"""
