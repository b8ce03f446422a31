"""The digests of many texts are those of ``hashlib``, whatever their lengths."""

from __future__ import annotations

from hashlib import blake2b
from random import Random

import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from etalis_py.kernel.hashing import hexadecimal_digests

EDGES = (0, 1, 127, 128, 129, 255, 256, 257, 1_000)  # a block has 128 bytes


def wanted(begun: bytes, texts: list[str]) -> list[str]:
    return [blake2b(begun + text.encode(), digest_size=16).hexdigest() for text in texts]


@pytest.mark.parametrize("length", EDGES)
def test_lengths_about_those_of_blocks(length: int) -> None:
    texts = ["x" * other for other in EDGES]
    assert hexadecimal_digests(b"y" * length, pa.array(texts, pa.large_string())).to_pylist() == wanted(
        b"y" * length, texts
    )


@given(st.binary(max_size=300), st.lists(st.text(max_size=80)), st.integers(0, 3))
def test_any_texts(begun: bytes, texts: list[str], first: int) -> None:
    array = pa.array(texts, pa.large_string()).slice(first)
    assert hexadecimal_digests(begun, array).to_pylist() == wanted(begun, texts[first:])


@given(st.integers(0, 70), st.randoms(use_true_random=False))
def test_any_number_of_texts(size: int, draw: Random) -> None:
    """They are hashed some at a time, and the long ones among them take longer."""
    texts = ["z" * draw.choice([*EDGES, draw.randrange(300)]) for _ in range(size)]
    assert hexadecimal_digests(b"begun", pa.array(texts, pa.large_string())).to_pylist() == wanted(b"begun", texts)
