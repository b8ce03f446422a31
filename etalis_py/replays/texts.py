"""Text files, packed or not."""

from __future__ import annotations

import gzip
import zlib
from pathlib import Path

from etalis_py.streams import StreamError


def read_text(path: Path) -> str:
    """The whole text of a file; gzip is unpacked."""
    try:
        content = path.read_bytes()
        return (gzip.decompress(content) if path.suffix == ".gz" else content).decode("utf-8-sig")
    except (EOFError, UnicodeDecodeError, gzip.BadGzipFile, zlib.error) as error:
        raise StreamError(f"the file is damaged: {error}", source=str(path)) from None
    except OSError as error:
        raise StreamError(f"the file cannot be read: {error.strerror}", source=str(path)) from None
