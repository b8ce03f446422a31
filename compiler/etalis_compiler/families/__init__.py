"""Families: queries that are equal up to constants, compiled once.

``wording`` takes a text apart into what a family shares and its constants, without parsing it.  ``template`` compiles
one text of a family with a marker in the place of each constant and says which of them are parameters.  ``parameters``
rewrites its rules, so that the constants are columns that a relation of parameters binds.
"""

from .parameters import NAME, parameterized
from .template import Template, template_of_text
from .wording import Wording, wording_of

__all__ = ["NAME", "Template", "Wording", "parameterized", "template_of_text", "wording_of"]
