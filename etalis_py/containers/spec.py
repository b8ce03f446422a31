"""The specification of a container, read from the graph that describes it ([SC] §3.2, LDP 1.0 §5).

The user's graph is authoritative and is what is stored; a ``Spec`` is derived from it and never written back.
"""

from __future__ import annotations

from collections import Counter, defaultdict
from dataclasses import dataclass

from etalis_rules.calendar import DAY, civil_from_days, days_from_civil
from etalis_rules.durations import duration_text, parse_duration
from etalis_rules.terms import RDF_TYPE, XSD, iri_value, is_iri, is_literal, parts

from etalis_py.events import Triple

from . import vocabulary as v
from .limits import Limits
from .problems import Problem
from .row_mapping import check_mapping

_MAX_LENGTH = 10_000 * 366 * DAY


@dataclass(frozen=True, slots=True)
class Duration:
    """An ``xsd:duration`` above zero: months, counted by calendar, and microseconds."""

    months: int
    micros: int

    def before(self, time: int) -> int:
        """The time that lies this long before ``time`` (XSD 1.1 part 2, §E.3.3: the day is cut to the month's last)."""
        if self.months:
            days, rest = divmod(time, DAY)
            year, month, day = civil_from_days(days)
            year, month = divmod(year * 12 + month - 1 - self.months, 12)
            month += 1
            following = days_from_civil(year + month // 12, month % 12 + 1, 1)
            first = days_from_civil(year, month, 1)
            time = min(first + day - 1, following - 1) * DAY + rest
        return time - self.micros

    def __str__(self) -> str:
        return duration_text(self.months, self.micros)


@dataclass(frozen=True, slots=True)
class Window:
    """A window of a stream container: where its membership triples go, and how far it reaches back."""

    name: str
    resource: str
    member_relation: str
    relation: str
    logical: Duration | None = None
    physical: int | None = None


@dataclass(frozen=True, slots=True)
class Direct:
    """The membership pattern of an LDP Direct Container; ``inverse``: given by ldp:isMemberOfRelation."""

    resource: str
    relation: str
    inverse: bool


@dataclass(frozen=True, slots=True)
class Spec:
    """A container: whether it is a stream, its windows, the relation that orders it, how long it keeps members.

    ``mapping``: how rows that are posted to it become graphs, in TOML, if it says so.
    """

    stream: bool
    order: str
    windows: tuple[Window, ...] = ()
    direct: Direct | None = None
    retain_for: Duration | None = None
    retain_count: int | None = None
    mapping: str = ""

    @property
    def interaction_model(self) -> str:
        return v.DIRECT_CONTAINER if self.direct else v.BASIC_CONTAINER

    def window(self, name: str) -> Window:
        window = next((w for w in self.windows if w.name == name), None)
        if window is None:
            known = ", ".join(w.name for w in self.windows) or "none"
            raise Problem("not-found", f"this container has no window {name!r}; it has: {known}")
        return window


def read_spec(me: str, triples: tuple[Triple, ...], limits: Limits) -> Spec:
    """The ``Spec`` from a graph about ``me`` (an IRI in angle brackets); a ``Problem`` if it breaks a rule."""
    about: dict[str, list[tuple[str, str]]] = defaultdict(list)
    for s, p, o in triples:
        about[s].append((p, o))
    own = about[me]
    types = {o for p, o in own if p == RDF_TYPE}
    stream = v.STREAM_CONTAINER in types
    for refused in (v.INDIRECT_CONTAINER, v.NON_RDF_SOURCE):
        if refused in types:
            raise Problem("constraint", f"this server has no {refused}; use ldp:BasicContainer or ldp:DirectContainer")
    nodes = [o for p, o in own if p == v.WINDOW]
    if nodes and not stream:
        raise Problem(
            "constraint", "ldpsc:window stands on a container that is not typed ldpsc:StreamContainer; add the type"
        )
    if len(nodes) > limits.windows_per_container:
        raise Problem(
            "limit", f"{len(nodes)} windows are more than windows_per_container = {limits.windows_per_container}"
        )
    _known_terms(me, own, {v.WINDOW, v.CONTENT_TIMESTAMP_RELATION, v.RETAIN_FOR, v.RETAIN_COUNT, v.MAPPING})
    windows = _named([_window(node, about[node], limits) for node in nodes])
    retain_for, retain_count = _one(me, own, v.RETAIN_FOR), _one(me, own, v.RETAIN_COUNT)
    mapping = _one(me, own, v.MAPPING)
    return Spec(
        stream=stream,
        order=_order(me, own, windows),
        windows=windows,
        direct=_direct(me, own, v.DIRECT_CONTAINER in types),
        retain_for=None if retain_for is None else _duration(v.RETAIN_FOR, retain_for),
        retain_count=None if retain_count is None else _count(v.RETAIN_COUNT, retain_count, 2**62),
        mapping="" if mapping is None else _mapping(mapping),
    )


def _order(me: str, own: list[tuple[str, str]], windows: tuple[Window, ...]) -> str:
    """The relation that orders the stream: the container's own, else the one all its windows share ([SC] Figure 3)."""
    named = _one(me, own, v.CONTENT_TIMESTAMP_RELATION)
    if named is not None:
        return _iri(v.CONTENT_TIMESTAMP_RELATION, named)
    shared = {w.relation for w in windows}
    return shared.pop() if len(shared) == 1 else v.GENERATED_AT


def _direct(me: str, own: list[tuple[str, str]], typed: bool) -> Direct | None:
    resource = _one(me, own, v.MEMBERSHIP_RESOURCE)
    has, inverse = _one(me, own, v.HAS_MEMBER_RELATION), _one(me, own, v.IS_MEMBER_OF_RELATION)
    content = _one(me, own, v.INSERTED_CONTENT_RELATION)
    if content not in (None, v.MEMBER_SUBJECT):
        raise Problem(
            "constraint", "ldp:insertedContentRelation makes an indirect container, which this server has not"
        )
    if not typed:
        if resource or has or inverse:
            raise Problem("constraint", "membership properties on the container need the type ldp:DirectContainer")
        return None
    if resource is None or (has is None) == (inverse is None):
        raise Problem(
            "constraint",
            "a direct container has one ldp:membershipResource and either one ldp:hasMemberRelation or one "
            "ldp:isMemberOfRelation (LDP 1.0 §5.4.1)",
        )
    relation = _relation(v.HAS_MEMBER_RELATION, has or inverse or "")
    return Direct(_iri(v.MEMBERSHIP_RESOURCE, resource), relation, has is None)


def _window(node: str, triples: list[tuple[str, str]], limits: Limits) -> Window:
    def need(predicate: str) -> str:
        value = _one(node, triples, predicate)
        if value is None:
            raise Problem("constraint", f"the window {node} has no {predicate}; a window needs exactly one ([SC] §3.2)")
        return value

    allowed = {v.CONTENT_TIMESTAMP_RELATION, v.LOGICAL, v.PHYSICAL}
    _known_terms(node, triples, allowed)
    logical, physical = _one(node, triples, v.LOGICAL), _one(node, triples, v.PHYSICAL)
    if (logical is None) == (physical is None):
        raise Problem("constraint", f"the window {node} needs either one ldpsc:logical or one ldpsc:physical")
    resource = _iri(v.MEMBERSHIP_RESOURCE, need(v.MEMBERSHIP_RESOURCE))
    named = node if is_iri(node) else resource
    return Window(
        name=iri_value(named).rpartition("#")[2].rpartition("/")[2] or "window",
        resource=resource,
        member_relation=_relation(v.HAS_MEMBER_RELATION, need(v.HAS_MEMBER_RELATION)),
        relation=_iri(v.CONTENT_TIMESTAMP_RELATION, need(v.CONTENT_TIMESTAMP_RELATION)),
        logical=None if logical is None else _duration(v.LOGICAL, logical),
        physical=None if physical is None else _count(v.PHYSICAL, physical, limits.physical_triples),
    )


def _named(windows: list[Window]) -> tuple[Window, ...]:
    """The windows with distinct names: a repeated name gets a number, in canonical order."""
    seen: Counter[str] = Counter()
    taken = {w.name for w in windows}
    result = []
    for w in sorted(windows, key=lambda w: (w.name, w.resource, w.member_relation, str(w.logical), w.physical or 0)):
        seen[w.name] += 1
        name, number = w.name, seen[w.name]
        while number > 1 and (name in taken):
            name, number = f"{w.name}-{number}", number + 1
        taken.add(name)
        result.append(Window(name, w.resource, w.member_relation, w.relation, w.logical, w.physical))
    return tuple(result)


def _known_terms(node: str, triples: list[tuple[str, str]], allowed: set[str]) -> None:
    for p, _ in triples:
        if (p.startswith(f"<{v.LDPSC}") or p.startswith(f"<{v.EC}")) and p not in allowed:
            names = ", ".join(sorted(allowed))
            raise Problem("constraint", f"{p} has no meaning on {node}; expected one of {names}")


def _one(node: str, triples: list[tuple[str, str]], predicate: str) -> str | None:
    values = [o for p, o in triples if p == predicate]
    if len(values) > 1:
        raise Problem("constraint", f"{node} has {len(values)} values for {predicate}; expected one")
    return values[0] if values else None


def _iri(predicate: str, value: str) -> str:
    if not is_iri(value):
        raise Problem("constraint", f"{predicate} needs an IRI, found {value}")
    return value


def _relation(predicate: str, value: str) -> str:
    if _iri(predicate, value).startswith((f"<{v.LDP}", f"<{v.LDPSC}")) and value != f"<{v.LDP}member>":
        raise Problem(
            "constraint", f"{predicate} may not be {value}, which describes containers; use a relation of your own"
        )
    return value


def _duration(predicate: str, value: str) -> Duration:
    lexical, datatype, _ = parts(value) if is_literal(value) else ("", "", "")
    kinds = {XSD + "duration", XSD + "dayTimeDuration", XSD + "yearMonthDuration"}
    length = parse_duration(lexical) if datatype in kinds else None
    if length is None or min(length) < 0 or max(length) == 0:
        raise Problem(
            "constraint", f'{predicate} needs a duration above zero such as "PT2M"^^xsd:duration, found {value}'
        )
    if length[1] > _MAX_LENGTH or length[0] > 120_000:
        raise Problem("constraint", f"{predicate} is longer than 10,000 years: {value}")
    return Duration(*length)


def _mapping(value: str) -> str:
    if not is_literal(value):
        raise Problem("constraint", f"{v.MAPPING} needs a text of TOML, found {value}")
    text = parts(value)[0]
    check_mapping(text)
    return text


def _count(predicate: str, value: str, most: int) -> int:
    lexical, datatype, _ = parts(value) if is_literal(value) else ("", "", "")
    digits = lexical.removeprefix("+")
    kinds = {XSD + t for t in ("integer", "int", "long", "nonNegativeInteger", "positiveInteger")}
    whole = datatype in kinds and digits.isascii() and digits.isdigit() and len(digits) < 30
    if not whole or not 1 <= int(digits) <= most:
        raise Problem("constraint", f"{predicate} needs an xsd:integer from 1 to {most}, found {value}")
    return int(digits)
