"""What ``pip install etalis-py`` leaves out, and the line that installs it.

A library of an extra is imported where it is first needed.  If it is missing, the error names the extra; the command
line prints it, without a traceback.

>>> extra_of("pyspark.sql"), extra_of("numpy")
('spark', '')
"""

from __future__ import annotations

_EXTRAS = {
    "pyspark": "spark",
    "py4j": "spark",
    "google": "spark",
    "pandas": "pandas",
    "numba": "columns",
    "starlette": "server",
    "uvicorn": "server",
    "h11": "server",
    "websockets": "server",
    "markdown_it": "server",
    "matplotlib": "plot",
}
_OLDEST = {"pyspark": "4.0"}
"""The oldest version that has all modules that are imported; older ones exist on many clusters."""


class MissingExtra(ModuleNotFoundError):
    """A library that an extra brings is not installed, or too old."""


def extra_of(module: str | None) -> str:
    """The extra that brings a module, or nothing."""
    return _EXTRAS.get((module or "").partition(".")[0], "")


def named(error: ModuleNotFoundError, what: str = "this", extra: str = "") -> ModuleNotFoundError:
    """The error with the line to install, if an extra brings what is missing; ``extra``: the one of the caller.

    A module that is missing in a library which is installed means that the library is too old.
    """
    brought = extra_of(error.name)
    if isinstance(error, MissingExtra) or not brought:
        return error
    line = f"pip install 'etalis-py[{extra or brought}]'"
    package, _, module = (error.name or "").partition(".")
    there = _installed(package) if module and package in _OLDEST else ""
    if there:
        why = f"{what} needs {package} {_OLDEST[package]} or newer: {there} is installed, without {error.name}"
        return MissingExtra(f"{why}: {line}", name=error.name)
    return MissingExtra(f"{what} needs the package {package}, which is not installed: {line}", name=error.name)


def _installed(package: str) -> str:
    """The version of a package; empty if it is not installed."""
    from importlib import metadata  # takes a while to import

    try:
        return metadata.version(package)
    except metadata.PackageNotFoundError:
        return ""


__all__ = ["MissingExtra", "extra_of", "named"]
