"""The tests' S3 server: moto, one request at a time. Run as a program: python tests/support/moto_server.py PORT [SWITCH_S]

moto looks whether a key is free and puts the object later, without a lock between the two. When its threads are switched
at the wrong moment, which a busy machine does, two puts with `If-None-Match: *` both succeed; S3 promises that one fails.
With SWITCH_S Python switches its threads that often, so that a missing lock is found at once and not once a month.
"""

from __future__ import annotations

import sys
import threading
from collections.abc import Iterable
from typing import Any

from moto.moto_server.werkzeug_app import DomainDispatcherApplication, MotoRequestHandler, create_backend_app
from werkzeug.serving import run_simple


class OneAtATime:
    """An application that answers a request when the one before is answered."""

    def __init__(self, application: Any) -> None:
        self._application = application
        self._lock = threading.Lock()

    def __call__(self, environ: dict[str, Any], start_response: Any) -> Iterable[bytes]:
        with self._lock:
            answer: Iterable[bytes] = self._application(environ, start_response)
            return answer


def serve(port: int) -> None:
    application = OneAtATime(DomainDispatcherApplication(create_backend_app))
    run_simple("127.0.0.1", port, application, threaded=True, request_handler=MotoRequestHandler)


if __name__ == "__main__":
    if len(sys.argv) > 2:
        sys.setswitchinterval(float(sys.argv[2]))
    serve(int(sys.argv[1]))
