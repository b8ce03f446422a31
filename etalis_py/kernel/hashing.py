"""BLAKE2b (RFC 7693) of many short texts: what ``hashlib`` gives for each, without an object for any.

Cost: 0.3 µs for a text of up to 128 bytes, and as much for each further 128.
"""

from __future__ import annotations

from typing import Any

import numpy as np
import pyarrow as pa

from etalis_py.compiled import kernel, part

SIZE = 16  # bytes of a digest
_BLOCK = 128

_START = np.array(
    [
        0x6A09E667F3BCC908, 0xBB67AE8584CAA73B, 0x3C6EF372FE94F82B, 0xA54FF53A5F1D36F1,
        0x510E527FADE682D1, 0x9B05688C2B3E6C1F, 0x1F83D9ABFB41BD6B, 0x5BE0CD19137E2179,
    ],
    np.uint64,
)  # fmt: skip
_FIRST = np.uint64(0x01010000 ^ SIZE)  # no key, one tree
_ALL = np.uint64(0xFFFFFFFFFFFFFFFF)
_ORDER = np.array(
    [
        [0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15],
        [14, 10, 4, 8, 9, 15, 13, 6, 1, 12, 0, 2, 11, 7, 5, 3],
        [11, 8, 12, 0, 5, 2, 15, 13, 10, 14, 3, 6, 7, 1, 9, 4],
        [7, 9, 3, 1, 13, 12, 11, 14, 2, 6, 5, 10, 4, 0, 15, 8],
        [9, 0, 5, 7, 2, 4, 10, 15, 14, 1, 11, 12, 6, 8, 3, 13],
        [2, 12, 6, 10, 0, 11, 8, 3, 4, 13, 7, 5, 15, 14, 1, 9],
        [12, 5, 1, 15, 14, 13, 4, 10, 0, 7, 6, 3, 9, 2, 8, 11],
        [13, 11, 7, 14, 12, 1, 3, 9, 5, 0, 15, 4, 8, 6, 2, 10],
        [6, 15, 14, 9, 11, 3, 0, 8, 12, 2, 13, 7, 1, 4, 10, 5],
        [10, 2, 8, 4, 7, 6, 1, 5, 15, 11, 9, 14, 3, 12, 13, 0],
        [0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15],
        [14, 10, 4, 8, 9, 15, 13, 6, 1, 12, 0, 2, 11, 7, 5, 3],
    ],
    np.uint8,
)


def hexadecimal_digests(begun: bytes, texts: pa.LargeStringArray) -> pa.StringArray:
    """The digest of ``begun`` and then each text, as ``blake2b(…, digest_size=16).hexdigest()`` has it."""
    size = len(texts)
    _, ends, data = texts.buffers()
    offsets = _fixed(np.frombuffer(ends, np.int64)[texts.offset : texts.offset + size + 1])
    written = np.empty(2 * SIZE * size, np.uint8)
    words, state = np.empty(16, np.uint64), np.empty(8, np.uint64)
    block, digest = words.view(np.uint8), state.view(np.uint8)  # little-endian, as Numba's machines are
    prefix, bytes_ = _fixed(np.frombuffer(begun, np.uint8)), _fixed(np.frombuffer(data, np.uint8))
    _hash_all(prefix, bytes_, offsets, words, block, state, digest, written)
    places = np.arange(0, 2 * SIZE * size + 1, 2 * SIZE, dtype=np.int32)
    return pa.StringArray.from_buffers(size, pa.py_buffer(places), pa.py_buffer(written))


def _fixed(array: np.ndarray[Any, Any]) -> np.ndarray[Any, Any]:
    """The same array as one that is not written to: kernels are compiled once more for those that may be."""
    array = array.view()
    array.flags.writeable = False
    return array


@kernel
def _hash_all(begun, data, offsets, words, block, state, digest, written):
    """The digest of each text in hexadecimal; ``block`` are the bytes of ``words``, ``digest`` those of ``state``."""
    prefix = len(begun)
    for n in range(len(offsets) - 1):
        first = offsets[n]
        length = prefix + offsets[n + 1] - first
        for i in range(8):
            state[i] = _START[i]
        state[0] ^= _FIRST
        done = 0
        while True:
            many = min(length - done, _BLOCK)
            for i in range(16):
                words[i] = np.uint64(0)
            own = max(min(prefix - done, many), 0)
            for i in range(own):
                block[i] = begun[done + i]
            start = first + done - prefix
            for i in range(own, many):
                block[i] = data[start + i]
            done += many
            _compress(state, words, np.uint64(done), done == length)
            if done == length:
                break
        place = n * 2 * SIZE
        for i in range(SIZE):
            written[place + 2 * i] = _digit(digest[i] >> 4)
            written[place + 2 * i + 1] = _digit(digest[i] & 15)


@part
def _digit(value):
    return value + (48 if value < 10 else 87)


@kernel
def _compress(h, m, count, is_last):
    """Take a block of 16 words into the state; ``count`` bytes have been taken with it."""
    v0, v1, v2, v3, v4, v5, v6, v7 = h[0], h[1], h[2], h[3], h[4], h[5], h[6], h[7]
    v8, v9, v10, v11 = _START[0], _START[1], _START[2], _START[3]
    v12, v13, v14, v15 = _START[4] ^ count, _START[5], _START[6], _START[7]
    if is_last:
        v14 ^= _ALL
    for n in range(12):
        s = _ORDER[n]
        v0, v4, v8, v12 = _mix(v0, v4, v8, v12, m[s[0]], m[s[1]])
        v1, v5, v9, v13 = _mix(v1, v5, v9, v13, m[s[2]], m[s[3]])
        v2, v6, v10, v14 = _mix(v2, v6, v10, v14, m[s[4]], m[s[5]])
        v3, v7, v11, v15 = _mix(v3, v7, v11, v15, m[s[6]], m[s[7]])
        v0, v5, v10, v15 = _mix(v0, v5, v10, v15, m[s[8]], m[s[9]])
        v1, v6, v11, v12 = _mix(v1, v6, v11, v12, m[s[10]], m[s[11]])
        v2, v7, v8, v13 = _mix(v2, v7, v8, v13, m[s[12]], m[s[13]])
        v3, v4, v9, v14 = _mix(v3, v4, v9, v14, m[s[14]], m[s[15]])
    h[0] ^= v0 ^ v8
    h[1] ^= v1 ^ v9
    h[2] ^= v2 ^ v10
    h[3] ^= v3 ^ v11
    h[4] ^= v4 ^ v12
    h[5] ^= v5 ^ v13
    h[6] ^= v6 ^ v14
    h[7] ^= v7 ^ v15


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
    """The word with its bits turned to the right."""
    return word >> many | word << (np.uint64(64) - many)
