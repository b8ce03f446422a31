"""The rules of the papers' queries as files that can be read beside [EP] §5.

``python -m tests.compiler.golden`` writes them anew; what changed is then for the reader of the diff to judge.
"""

from __future__ import annotations

from pathlib import Path

from etalis_compiler.diagnostics import Source
from etalis_compiler.pipeline import compile_sources, rules_of
from etalis_rules.printing import print_rules
from etalis_rules.program import Rules

HERE = Path(__file__).parent
PAPERS = HERE.parent / "papers"
# name of the golden file → the query and the policy
CASES = {
    "ep-1": ("ep/1.rq", "unrestricted"),
    "ep-1-recent": ("ep/1.rq", "recent"),
    "ep-2": ("ep/2.rq", "unrestricted"),
    "ep-2-chronological": ("ep/2.rq", "chronological"),
    "ep-3-repaired": ("ep/3.repaired.rq", "unrestricted"),
    "ep-4": ("ep/4.rq", "unrestricted"),
    "ep-5-repaired": ("ep/5.repaired.rq", "unrestricted"),
    "ep-6-repaired": ("ep/6.repaired.rq", "unrestricted"),
    "req-sequence": ("req/sequence.ep-sparql.rq", "unrestricted"),
    "req-sequence-recent": ("req/sequence.ep-sparql.rq", "recent"),
    "req-equals": ("req/equals.ep-sparql.rq", "unrestricted"),
    "req-is-with": ("req/is-with.ep-sparql.rq", "unrestricted"),
}


def rules_for(path: str, policy: str) -> Rules:
    name = path.replace("/", "-").removesuffix(".rq").replace(".", "-")
    text = (PAPERS / path).read_text(encoding="utf-8")
    return rules_of(compile_sources([Source(text, f"{name}.rq")]), policy=policy)


def file(case: str) -> Path:
    return HERE / f"{case}.rules.txt"


def header(path: str) -> str:
    """The query, as comments above its rules."""
    text = (PAPERS / path).read_text(encoding="utf-8").rstrip()
    return "".join(f"% {line}".rstrip() + "\n" for line in text.splitlines()) + "\n"


def write_all() -> None:
    for case, (path, policy) in CASES.items():
        file(case).write_text(header(path) + print_rules(rules_for(path, policy), ids=False), encoding="utf-8")
