"""Background knowledge: RDF graphs that queries join with streams, what they entail, and how they change.

This package turns files and rdflib objects into indexes over the original spellings, closes them under RDFS or OWL 2 RL
with clingo (the logic programs are in ``rules/``), keeps the closure through updates and on disk, and says what follows
from a single streamed triple.  It knows triples, schemas and logic programs; it knows nothing of queries, of the engine
or of Spark.
"""

from typing import TYPE_CHECKING

from etalis_py.lazy_imports import lazily

if TYPE_CHECKING:
    from etalis_py.knowledge.asp import LiveProgram, Outcome, static_answers
    from etalis_py.knowledge.asp_interface import AspProgram, parse_program
    from etalis_py.knowledge.errors import KnowledgeError, KnowledgeWarning
    from etalis_py.knowledge.graph import Graph
    from etalis_py.knowledge.knowledge import Change, Knowledge, load
    from etalis_py.knowledge.schema import Schema, TypeTests
    from etalis_py.knowledge.summary import Summary, summarize
else:
    __getattr__, __dir__ = lazily(
        __name__,
        {
            "etalis_py.knowledge.asp": ("LiveProgram", "Outcome", "static_answers"),
            "etalis_py.knowledge.asp_interface": ("AspProgram", "parse_program"),
            "etalis_py.knowledge.errors": ("KnowledgeError", "KnowledgeWarning"),
            "etalis_py.knowledge.graph": ("Graph",),
            "etalis_py.knowledge.knowledge": ("Change", "Knowledge", "load"),
            "etalis_py.knowledge.schema": ("Schema", "TypeTests"),
            "etalis_py.knowledge.summary": ("Summary", "summarize"),
        },
    )

__all__ = [
    "AspProgram",
    "Change",
    "Graph",
    "Knowledge",
    "KnowledgeError",
    "KnowledgeWarning",
    "LiveProgram",
    "Outcome",
    "Schema",
    "Summary",
    "TypeTests",
    "load",
    "parse_program",
    "static_answers",
    "summarize",
]
