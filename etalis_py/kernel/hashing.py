"""BLAKE2b (RFC 7693) of many short texts: the digests that ``hashlib`` gives, with no object per text.

Sixteen texts are hashed side by side, so that a processor takes each step for several of them at once.  Cost: 0.1 µs
for a text of up to 128 bytes, and half as much for each further 128.
"""

from __future__ import annotations

from typing import Any

import numpy as np
import pyarrow as pa

from etalis_py.kernel.byte_words import copy_bytes
from etalis_py.numba_cache import kernel, part, section

SIZE = 16  # bytes of a digest
_BLOCK, _WORDS = 128, 16
_LANES = 16
"""The number of texts that are hashed side by side."""

_START = np.array(
    [
        0x6A09E667F3BCC908, 0xBB67AE8584CAA73B, 0x3C6EF372FE94F82B, 0xA54FF53A5F1D36F1,
        0x510E527FADE682D1, 0x9B05688C2B3E6C1F, 0x1F83D9ABFB41BD6B, 0x5BE0CD19137E2179,
    ],
    np.uint64,
)  # fmt: skip
_FIRST = np.uint64(0x01010000 ^ SIZE)  # no key, sequential (fanout and depth 1)
_ALL = np.uint64(0xFFFFFFFFFFFFFFFF)


def hexadecimal_digests(begun: bytes, texts: pa.LargeStringArray) -> pa.StringArray:
    """For each text the digest of ``begun`` followed by it, as ``blake2b(…, digest_size=16).hexdigest()`` gives it."""
    size = len(texts)
    _, ends, data = texts.buffers()
    offsets = fixed(np.frombuffer(ends, np.int64)[texts.offset : texts.offset + size + 1])
    written = np.empty(2 * SIZE * size, np.uint8)
    prefix, bytes_ = fixed(np.frombuffer(begun, np.uint8)), fixed(np.frombuffer(data, np.uint8))
    longest = len(begun) + int(np.diff(offsets).max(initial=0))
    room = max(-(-longest // _BLOCK), 1) * _BLOCK
    lanes = np.zeros(_LANES * room, np.uint8)  # the text of each lane, after the common beginning
    words = lanes.view(np.uint64)  # little-endian, as Numba's machines are
    block, state = np.empty(_WORDS * _LANES, np.uint64), np.empty(8 * _LANES, np.uint64)
    lengths, marks = np.zeros(_LANES, np.int64), np.empty(3 * _LANES, np.uint64)
    _hash_all(prefix, bytes_, offsets, lanes, words, lengths, block, state, marks, written)
    places = np.arange(0, 2 * SIZE * size + 1, 2 * SIZE, dtype=np.int32)
    return pa.StringArray.from_buffers(size, pa.py_buffer(places), pa.py_buffer(written))


def fixed(array: np.ndarray[Any, Any]) -> np.ndarray[Any, Any]:
    """A read-only view of the array: kernels would be compiled once more for writable ones."""
    array = array.view()
    array.flags.writeable = False
    return array


@kernel
def _hash_all(begun, data, offsets, texts, words, lengths, block, state, marks, written):
    """The digest of each text in hexadecimal.

    ``texts`` has room for a whole number of blocks of each lane; ``words`` are its bytes.  Each word of a block or
    state is next to the same word of the other lanes.
    """
    prefix, rows, room = np.uint64(len(begun)), len(offsets) - 1, np.uint64(len(texts) // _LANES)
    for lane in range(_LANES):
        copy_bytes(begun, np.uint64(0), texts, room * np.uint64(lane), prefix)
    for first in range(0, rows, _LANES):
        lanes = min(rows - first, _LANES)
        longest = np.uint64(1)
        for lane in range(_LANES):
            at = room * np.uint64(lane)
            length, before = prefix, np.uint64(lengths[lane])
            if lane < lanes:
                begin = np.uint64(offsets[first + lane])
                size = np.uint64(offsets[first + lane + 1]) - begin
                copy_bytes(data, begin, texts, at + prefix, size)
                length += size
            for i in range(length, before):
                texts[at + i] = 0
            lengths[lane] = length
            longest = max(longest, length)
            for i in range(8):
                state[i * _LANES + lane] = _START[i]
            state[lane] ^= _FIRST
        for number in range((np.int64(longest) + _BLOCK - 1) // _BLOCK):
            done = number * _BLOCK
            for lane in range(_LANES):
                left = lengths[lane] - done
                is_open, is_last = left > 0 or number == 0, left <= _BLOCK
                marks[lane] = np.uint64(done + min(left, _BLOCK))
                marks[_LANES + lane] = _ALL if is_last else np.uint64(0)
                marks[2 * _LANES + lane] = _ALL if is_open else np.uint64(0)
                start = (np.uint64(lane) * room + np.uint64(done)) >> np.uint64(3)
                for i in range(_WORDS):
                    block[i * _LANES + lane] = words[start + np.uint64(i)]
            _compress(state, block, marks)
        for lane in range(lanes):
            place = (first + lane) * 2 * SIZE
            for i in range(SIZE // 8):
                word = state[i * _LANES + lane]
                for k in range(8):
                    value = np.int64(word >> np.uint64(8 * k)) & 255
                    written[place + 16 * i + 2 * k] = _digit(value >> 4)
                    written[place + 16 * i + 2 * k + 1] = _digit(value & 15)


@part
def _digit(value):
    return value + (48 if value < 10 else 87)


@section
def _compress(h, m, marks):
    """Take a block of 16 words of each lane into its state.

    ``marks`` has three parts, with an entry for each lane: how many bytes have been taken including this block, whether
    it is the last block, and whether it counts.  The loop has no branch, so that the compiler vectorizes it.
    """
    for lane in range(_LANES):
        v = (
            h[0 * _LANES + lane],
            h[1 * _LANES + lane],
            h[2 * _LANES + lane],
            h[3 * _LANES + lane],
            h[4 * _LANES + lane],
            h[5 * _LANES + lane],
            h[6 * _LANES + lane],
            h[7 * _LANES + lane],
            _START[0],
            _START[1],
            _START[2],
            _START[3],
            _START[4] ^ marks[lane],
            _START[5],
            _START[6] ^ marks[_LANES + lane],
            _START[7],
        )
        m0 = m[0 * _LANES + lane]
        m1 = m[1 * _LANES + lane]
        m2 = m[2 * _LANES + lane]
        m3 = m[3 * _LANES + lane]
        m4 = m[4 * _LANES + lane]
        m5 = m[5 * _LANES + lane]
        m6 = m[6 * _LANES + lane]
        m7 = m[7 * _LANES + lane]
        m8 = m[8 * _LANES + lane]
        m9 = m[9 * _LANES + lane]
        m10 = m[10 * _LANES + lane]
        m11 = m[11 * _LANES + lane]
        m12 = m[12 * _LANES + lane]
        m13 = m[13 * _LANES + lane]
        m14 = m[14 * _LANES + lane]
        m15 = m[15 * _LANES + lane]
        v = _mixed(v, m0, m1, m2, m3, m4, m5, m6, m7, m8, m9, m10, m11, m12, m13, m14, m15)
        v = _mixed(v, m14, m10, m4, m8, m9, m15, m13, m6, m1, m12, m0, m2, m11, m7, m5, m3)
        v = _mixed(v, m11, m8, m12, m0, m5, m2, m15, m13, m10, m14, m3, m6, m7, m1, m9, m4)
        v = _mixed(v, m7, m9, m3, m1, m13, m12, m11, m14, m2, m6, m5, m10, m4, m0, m15, m8)
        v = _mixed(v, m9, m0, m5, m7, m2, m4, m10, m15, m14, m1, m11, m12, m6, m8, m3, m13)
        v = _mixed(v, m2, m12, m6, m10, m0, m11, m8, m3, m4, m13, m7, m5, m15, m14, m1, m9)
        v = _mixed(v, m12, m5, m1, m15, m14, m13, m4, m10, m0, m7, m6, m3, m9, m2, m8, m11)
        v = _mixed(v, m13, m11, m7, m14, m12, m1, m3, m9, m5, m0, m15, m4, m8, m6, m2, m10)
        v = _mixed(v, m6, m15, m14, m9, m11, m3, m0, m8, m12, m2, m13, m7, m1, m4, m10, m5)
        v = _mixed(v, m10, m2, m8, m4, m7, m6, m1, m5, m15, m11, m9, m14, m3, m12, m13, m0)
        v = _mixed(v, m0, m1, m2, m3, m4, m5, m6, m7, m8, m9, m10, m11, m12, m13, m14, m15)
        v = _mixed(v, m14, m10, m4, m8, m9, m15, m13, m6, m1, m12, m0, m2, m11, m7, m5, m3)
        counts = marks[2 * _LANES + lane]
        h[0 * _LANES + lane] ^= (v[0] ^ v[8]) & counts
        h[1 * _LANES + lane] ^= (v[1] ^ v[9]) & counts
        h[2 * _LANES + lane] ^= (v[2] ^ v[10]) & counts
        h[3 * _LANES + lane] ^= (v[3] ^ v[11]) & counts
        h[4 * _LANES + lane] ^= (v[4] ^ v[12]) & counts
        h[5 * _LANES + lane] ^= (v[5] ^ v[13]) & counts
        h[6 * _LANES + lane] ^= (v[6] ^ v[14]) & counts
        h[7 * _LANES + lane] ^= (v[7] ^ v[15]) & counts


@part
def _mixed(v, a, b, c, d, e, f, g, h, i, j, k, l, m, n, o, p):  # noqa: E741 - the words in their order in this round
    """One round: the columns of the state, then its diagonals."""
    v0, v1, v2, v3, v4, v5, v6, v7, v8, v9, v10, v11, v12, v13, v14, v15 = v
    v0, v4, v8, v12 = _mix(v0, v4, v8, v12, a, b)
    v1, v5, v9, v13 = _mix(v1, v5, v9, v13, c, d)
    v2, v6, v10, v14 = _mix(v2, v6, v10, v14, e, f)
    v3, v7, v11, v15 = _mix(v3, v7, v11, v15, g, h)
    v0, v5, v10, v15 = _mix(v0, v5, v10, v15, i, j)
    v1, v6, v11, v12 = _mix(v1, v6, v11, v12, k, l)
    v2, v7, v8, v13 = _mix(v2, v7, v8, v13, m, n)
    v3, v4, v9, v14 = _mix(v3, v4, v9, v14, o, p)
    return v0, v1, v2, v3, v4, v5, v6, v7, v8, v9, v10, v11, v12, v13, v14, v15


@part
def _mix(a, b, c, d, x, y):
    a = a + b + x
    d = _turned(d ^ a, np.uint64(32))
    c = c + d
    b = _turned(b ^ c, np.uint64(24))
    a = a + b + y
    d = _turned(d ^ a, np.uint64(16))
    c = c + d
    b = _turned(b ^ c, np.uint64(63))
    return a, b, c, d


@part
def _turned(word, many):
    """The word with its bits rotated to the right."""
    return word >> many | word << (np.uint64(64) - many)
