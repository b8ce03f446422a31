"""``etalis serve``: stream containers on the web, and programs that run inside the server."""

from __future__ import annotations

import argparse
import os
import sys
from argparse import Namespace

from etalis_py.cli import options as shared
from etalis_py.cli.errors import Failure, UsageError

EXAMPLES = """\
examples:
  etalis serve
  ETALIS_TOKEN=$(openssl rand -hex 16) etalis serve --host 0.0.0.0 --store /var/lib/etalis/streams.db
"""


def add(commands: argparse._SubParsersAction[argparse.ArgumentParser]) -> None:
    parser = commands.add_parser(
        "serve",
        help="serve stream containers",
        description="Serve stream containers over HTTP, with programs that read them.  Writing asks for the token in "
        "the environment variable ETALIS_TOKEN, where it is set.",
        epilog=EXAMPLES,
        formatter_class=shared.Help,
        usage="etalis serve [options]",
    )
    parser.add_argument("--host", default="127.0.0.1", help="the address to listen on (default: 127.0.0.1)")
    parser.add_argument("--port", type=_port, default=8080, help="the port to listen on; 0 takes a free one (8080)")
    parser.add_argument("--store", default="streams.db", metavar="FILE", help="where streams are kept (streams.db)")
    parser.add_argument("--memory", action="store_true", help="keep nothing on disk")
    parser.add_argument("--base-url", metavar="URL", help="the public address, behind a proxy")
    parser.add_argument(
        "--allow-origin", action="append", default=[], metavar="URL", help="web pages from there may use the server"
    )
    shared.add_background(parser)
    shared.add_policy(parser)
    parser.add_argument(
        "--revise",
        type=shared.duration,
        default=0,
        metavar="D",
        help="how long a member may be withdrawn, or come late; matches are then taken back",
    )
    parser.set_defaults(command=serve)


def _port(text: str) -> int:
    if not text.isdigit() or int(text) > 65535:
        raise argparse.ArgumentTypeError(f"a port is a number from 0 to 65535, found {text!r}")
    return int(text)


def serve(options: Namespace) -> int:
    import logging

    from etalis_py.cli.outputs import TOKEN
    from etalis_py.containers import ServeError
    from etalis_py.containers import serve as run_server

    logging.basicConfig(level=logging.WARNING, format="etalis: %(message)s", stream=sys.stderr)

    token = os.environ.get(TOKEN)
    if options.host not in ("127.0.0.1", "localhost", "::1") and token is None:
        raise UsageError(
            f"{options.host} can be reached from other machines: set {TOKEN} to what writers must know, "
            "for example: export ETALIS_TOKEN=$(openssl rand -hex 16)"
        )
    if options.background:
        from etalis_py.knowledge import load

        load(options.background, entailment=options.entailment)  # report unreadable files now
    try:
        run_server(
            host=options.host,
            port=options.port,
            store=None if options.memory else options.store,
            token=token,
            base_url=options.base_url,
            allow_origins=options.allow_origin,
            runner_factory="etalis_py.cli.runner:runner_factory",
            runner_options={
                "background": [str(source) for source in options.background or ()],
                "entailment": options.entailment,
                "policy": options.policy,
                "revise": options.revise,
            },
            ready=lambda url: print(f"serving {url} (Ctrl-C stops)", flush=True),
        )
    except ServeError as error:
        raise Failure(str(error)) from None
    print("stopped", file=sys.stderr)
    return 0
