"""GROUP_CONCAT over the members of groups in a sliding window: the texts of a stretch of each group, one after another.

Each term is written once, as it stands in a literal, so that texts are only joined.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import pyarrow as pa
from etalis_rules.terms import is_blank, literal

from etalis_py.executors.columns.arguments import Unfit
from etalis_py.executors.columns.kernels.windows import arrange
from etalis_py.executors.columns.terms import Terms
from etalis_py.values.bounds import BOUNDS
from etalis_py.values.functions.terms import str_


@dataclass(frozen=True, slots=True)
class Members:
    """The solutions by their groups, and for each answer which of them it is about: ``places[first : last]``."""

    places: np.ndarray
    firsts: np.ndarray
    lasts: np.ndarray

    @classmethod
    def of(
        cls, numbers: np.ndarray, groups: int, ends: np.ndarray, at: np.ndarray, group: np.ndarray, held: np.ndarray
    ) -> Members:
        """The last ``held`` members of the ``group`` of each answer by the instant ``at``; members have numbers."""
        bounds, places = np.zeros(groups + 2, np.int64), np.empty(len(numbers), np.int64)
        arrange(numbers, bounds, places)
        size = len(numbers) + 1
        lasts = np.searchsorted(numbers[places] * size + places, group * size + np.searchsorted(ends, at, "right"))
        return cls(places, lasts - held, lasts)


def joined_texts(terms: Terms, ids: np.ndarray, members: Members, separator: str) -> np.ndarray:
    """The terms of the joined texts of each answer; raises ``Unfit`` if one is too long."""
    distinct, which = np.unique(ids[members.places], return_inverse=True)
    spelled = [
        literal("" if term == 0 or is_blank(text) else str_(text))[1:-1]
        for term, text in zip(distinct.tolist(), terms.spellings(distinct), strict=True)
    ]
    sizes = np.append(0, np.cumsum(np.array([len(text) for text in spelled], np.int64)[which]))
    between = literal(separator)[1:-1]
    longest = sizes[members.lasts] - sizes[members.firsts] + len(between) * (members.lasts - members.firsts)
    if longest.max(initial=0) > BOUNDS.characters:
        raise Unfit
    texts = [spelled[i] for i in which.reshape(-1).tolist()]
    join = between.join
    answers = [f'"{join(texts[i:j])}"' for i, j in zip(members.firsts.tolist(), members.lasts.tolist(), strict=True)]
    return terms.append(pa.array(answers, pa.large_string()))
