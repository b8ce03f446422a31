"""Spark's Python daemon with the engine loaded: its workers are forked from it and need not load the engine again.

Libraries that start threads (numpy, pyarrow and pandas) must not be loaded before a fork, so each worker loads those.
"""

from __future__ import annotations

import gc
import socket

from pyspark import daemon

import etalis_py.engine.engine
import etalis_py.spark.plan.spec  # noqa: F401

_work = daemon.worker


def work(sock: socket.socket, authenticated: bool) -> int:
    """Run a worker to its end; any result but 0 means that it takes no more tasks.

    It is no error if Spark has closed the connection: it does so with idle workers.
    """
    try:
        return _work(sock, authenticated)
    except BrokenPipeError:
        return 1


if __name__ == "__main__":
    daemon.worker = work
    gc.freeze()  # so that the memory pages of loaded modules stay shared
    daemon.manager()
