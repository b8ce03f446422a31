"""Spark's Python daemon with the engine loaded: its workers are forks of it, and need not load the engine again.

What starts threads (numpy, pyarrow and pandas) must not be loaded before a fork, so a worker still does that itself.
"""

from __future__ import annotations

import gc
import socket

from pyspark import daemon

import etalis_py.engine
import etalis_py.spark.spec  # noqa: F401

_work = daemon.worker


def work(sock: socket.socket, authenticated: bool) -> int:
    """A worker, to its end; any number but 0 says that it takes no more tasks.

    Where Spark has closed the connection, which it does with idle workers, nothing is wrong.
    """
    try:
        return _work(sock, authenticated)
    except BrokenPipeError:
        return 1


if __name__ == "__main__":
    daemon.worker = work
    gc.freeze()  # so that the pages of what is loaded stay shared
    daemon.manager()
