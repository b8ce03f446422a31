"""Packages that import what they offer on first use.

``import etalis_py`` and ``etalis --help`` should be fast, and a query without background knowledge has no use for
rdflib and clingo.  Type checkers read the imports under ``TYPE_CHECKING``; at run time this table is read instead.
"""

from __future__ import annotations

import sys
from collections.abc import Callable, Mapping
from importlib import import_module
from typing import Any

from etalis_py.extras import named


def lazily(
    package: str, offers: Mapping[str, tuple[str, ...]], extra: str = ""
) -> tuple[Callable[[str], Any], Callable[[], list[str]]]:
    """``__getattr__`` and ``__dir__`` of a package (PEP 562); ``offers`` are the names that come from each module.

    ``extra`` brings what the package needs.
    """
    homes = {name: module for module, names in offers.items() for name in names}

    def get(name: str) -> Any:
        if name not in homes:
            raise AttributeError(f"module {package!r} has no attribute {name!r}")
        try:
            value = getattr(import_module(homes[name], package), name)
        except ModuleNotFoundError as error:
            raise named(error, f"{package}.{name}", extra) from None
        setattr(sys.modules[package], name, value)
        return value

    def names() -> list[str]:
        return sorted({*vars(sys.modules[package]), *homes})

    return get, names
