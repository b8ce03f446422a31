"""Generated code for the leaves: which of them see an occurrence, and the solution that each makes from it.

The occurrence is in ``s p o start stream``, its end in ``t`` or, where a rule derived it of the past, in ``end``.  A
value is decoded once for all leaves that need it.
"""

from __future__ import annotations

from collections.abc import Mapping

from etalis_rules import algebra as alg
from etalis_rules import program as ir
from etalis_rules.leaf_tests import Among, OfStream, Same, Test, allows, predicates_of, tests_of

from etalis_py.executors.rows.generate.blocks import Code
from etalis_py.executors.rows.generate.frames import Frame
from etalis_py.executors.rows.generate.writer import Writer
from etalis_py.values import decode


def feed(
    w: Writer,
    code: Code,
    leaves: Mapping[str, ir.Leaf],
    because: str,
    predicate: str | None,
    later: Mapping[str, str],
    end: str = "t",
) -> None:
    """Write the code that gives the occurrence at hand to these leaves.

    ``because`` is the source of its provenance, ``predicate`` is its predicate where that is known.  Leaves inside a
    recursion put their solutions into the lists ``later``, for the next round.  ``end`` names the variable of its end.
    """
    decoded: dict[str, str] = {}
    for name, leaf in leaves.items():
        new = later.get(name, code.new(name))
        if leaf.entailed:
            _feed_entailed(w, code, name, leaf, because, new, end)
            continue
        tests = leaf_tests(leaf, predicate, code)
        if leaf.late:
            tests.append(code.is_new(name, ("s", "p", "o"), end, "start"))
        if tests:
            with w.block(f"if {' and '.join(tests)}:"):
                solution = _solution(w, code, name, leaf, because, {}, end)
                w(f"{new} = ({solution},)" if new in code.at_most_one else f"{new}.append({solution})")
            if new in code.at_most_one:
                with w.block("else:"):
                    w(f"{new} = ()")
        else:
            solution = _solution(w, code, name, leaf, because, decoded, end)
            w(f"{new} = ({solution},)" if new in code.single else f"{new}.append({solution})")


def _solution(w: Writer, code: Code, name: str, leaf: ir.Leaf, because: str, decoded: dict[str, str], end: str) -> str:
    """Source of the solution that a leaf makes of the occurrence; ``decoded``: the values that the code has by now."""
    places = alg.variable_places((leaf.object, leaf.predicate, leaf.subject))
    where = {name: "ops"[place] for name, place in places.items()}
    frame = Frame(code.names, dict(where), start="start", end=end)
    for column in code.layouts[name].values:
        letter = where[column]
        if letter not in decoded:
            w(f"d{letter} = {code.names.use('decode', decode)}({letter})")
            decoded[letter] = f"d{letter}"
        frame.values[column] = decoded[letter]
    frame.provenance = because if code.explain else ""
    items = frame.items(code.layouts[name])
    if code.new(name) in code.items:
        code.items[code.new(name)] = tuple(items)
    return f"({', '.join(items)})"


def _feed_entailed(w: Writer, code: Code, name: str, leaf: ir.Leaf, because: str, new: str, end: str) -> None:
    """Write the code of a leaf that also reads the consequences of the schema, each once per instant and interval."""
    known = code.of_instant("known", name, "set")
    occurrence = "(s, p, o, start)" if end == "t" else f"(s, p, o, start, {end})"
    w("said = (s, p, o)")
    with w.block(f"for s, p, o in {code.of_runtime('entailed')}(said):"):
        tests = [f"{occurrence} not in {known}", *leaf_tests(leaf, None, code)]
        if leaf.late:
            tests.append(code.is_new(name, ("s", "p", "o"), end, "start"))
        with w.block(f"if {' and '.join(tests)}:"):
            w(f"{known}.add({occurrence})")
            w(f"{new}.append({_solution(w, code, name, leaf, because, {}, end)})")
    w("s, p, o = said")


def may_see(leaf: ir.Leaf, predicate: str | None) -> bool:
    """Whether a leaf may see a triple with this predicate; None stands for one that no leaf names."""
    if predicate is None:
        return predicates_of(leaf) is None
    return leaf.entailed or allows(leaf.predicate, predicate)


_LETTERS = {"predicate": "p", "subject": "s", "object": "o"}


def leaf_tests(leaf: ir.Leaf, predicate: str | None, code: Code) -> list[str]:
    """Source of the constant tests of a leaf; the predicate is known unless it is None."""
    return [source for test in tests_of(leaf) if (source := _source(test, predicate, code))]


def _source(test: Test, predicate: str | None, code: Code) -> str:
    match test:
        case Among("predicate", negated=False) if predicate is not None:
            return ""
        case Among(place, (term,), False):
            return f"{_LETTERS[place]} == {term!r}"
        case Among(place, terms, False):
            return f"{_LETTERS[place]} in {code.names.constant(terms, frozenset(terms))}"
        case Among(place, terms):
            return f"{_LETTERS[place]} not in {code.names.constant(('not', terms), frozenset(terms))}"
        case Same(place, other):
            return f"{_LETTERS[place]} == {_LETTERS[other]}"
        case OfStream(name):
            return f"stream == {name!r}"
