"""Where the shipped rule programs and data of the replays are: inside the rules room."""

from __future__ import annotations

from importlib.resources import files
from pathlib import Path


def program(name: str) -> Path:
    """The file of a shipped rule program, such as ``stock/downrated``."""
    return _existing("programs", name + ".rq")


def reasoning(name: str) -> Path:
    """The file of a shipped answer-set program, such as ``delivery/routes``."""
    return _existing("programs", name + ".lp")


def data(name: str) -> Path:
    """A shipped data file, such as ``tsunami/stations.ttl``."""
    return _existing("data", name)


def _existing(folder: str, name: str) -> Path:
    path = Path(str(files("etalis_rules").joinpath(folder, name)))
    if not path.is_file():
        raise FileNotFoundError(f"{name} is not among the shipped {folder}: {path} does not exist; reinstall etalis-py")
    return path
