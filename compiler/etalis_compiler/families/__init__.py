"""Families: queries that are equal up to constants, compiled once.

``wording`` splits a text into the part that a family shares and its constants, without parsing it.  ``template``
compiles one text of a family with a marker in place of each constant and finds out which of these are parameters.
``parameters`` rewrites its rules so that the constants become columns, bound by a relation of parameters.
"""

from .parameters import NAME, parameterized
from .template import FamilyTemplate, template_of_text
from .wording import Wording, wording_of

__all__ = ["NAME", "FamilyTemplate", "Wording", "parameterized", "template_of_text", "wording_of"]
