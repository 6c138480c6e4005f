#!/usr/bin/env python3
"""Pushes jobs from Python, with the plain command of the queue and no library.

    python3 examples/producer.py emails hello 'good bye'
    python3 examples/producer.py --stream --kind send-email emails '{"to":"anna"}'

The first line is for a queue on zset, processing-list or circular, and sends LPUSH. All
jobs are stored, or none. The second is for a queue on stream, and sends XADD for each job.
Only there a job can have a kind, whose handler the worker runs. On the other backends a
worker in Rust runs such a job with `Router::raw`.

REDIS_URL names the server, as redis://127.0.0.1:6379/0, which is the default. A server
that needs TLS or a password needs a client library: see docs/producers.md.
"""

import argparse
import os
import socket
import sys
from urllib.parse import urlsplit

TIMEOUT_SECONDS = 10


class Redis:
    """A connection to a server, which sends one command at a time."""

    def __init__(self, url):
        parts = urlsplit(url)
        address = (parts.hostname or "127.0.0.1", parts.port or 6379)
        self.socket = socket.create_connection(address, TIMEOUT_SECONDS)
        self.replies = self.socket.makefile("rb")
        self.command("SELECT", parts.path.strip("/") or "0")

    def command(self, *words):
        """Sends a command and returns its reply, which is a line or a short text."""
        self.socket.sendall(encoded(words))
        line = self.replies.readline()
        if not line.endswith(b"\r\n"):
            raise ConnectionError("the server closed the connection")
        kind, rest = line[:1], line[1:-2]
        if kind == b"-":
            raise RuntimeError(rest.decode())
        if kind == b"$":
            return self.replies.read(int(rest) + 2)[:-2].decode()
        return rest.decode()


def encoded(words):
    """A command in the protocol of Redis: the length of each word, then its bytes."""
    lines = [b"*%d" % len(words)]
    for word in words:
        # An argument that is not UTF-8 keeps its bytes.
        word = os.fsencode(word)
        lines += [b"$%d" % len(word), word]
    return b"\r\n".join(lines) + b"\r\n"


def push(redis, arguments):
    if not arguments.stream:
        return redis.command("LPUSH", arguments.queue, *arguments.payload)
    headers = ["kind", arguments.kind] if arguments.kind else []
    ids = []
    for payload in arguments.payload:
        ids.append(redis.command("XADD", arguments.queue, "*", "job", payload, *headers))
    return "\n".join(ids)


def main():
    parser = argparse.ArgumentParser(description="Pushes jobs to a queue on Redis.")
    parser.add_argument("queue")
    parser.add_argument("payload", nargs="+")
    parser.add_argument("--stream", action="store_true", help="the queue is on stream")
    parser.add_argument("--kind", help="the kind of the jobs, only with --stream")
    arguments = parser.parse_args()
    if arguments.kind and not arguments.stream:
        parser.error("--kind needs --stream: LPUSH has no place for a header")
    try:
        print(push(Redis(os.environ.get("REDIS_URL", "redis://127.0.0.1:6379/0")), arguments))
    except (OSError, RuntimeError) as error:
        sys.exit(f"the push may have failed: {error}")


if __name__ == "__main__":
    main()
