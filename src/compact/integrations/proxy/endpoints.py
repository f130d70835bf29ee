"""Which provider a request is for, where it goes, and where its conversation stands."""

from __future__ import annotations

import json
import re
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Literal, TypeAlias
from urllib.parse import unquote

from compact.integrations.requests import ANTHROPIC, CHAT, GEMINI, RESPONSES, RequestShape

ProviderName: TypeAlias = Literal["anthropic", "openai", "gemini"]
PROVIDERS: tuple[ProviderName, ...] = ("anthropic", "openai", "gemini")
Headers: TypeAlias = Mapping[str, str]
"""A request's headers, by their names in lower case."""


@dataclass(frozen=True, slots=True)
class Endpoint:
    """One way to send a conversation."""

    name: str
    provider: ProviderName
    shape: RequestShape
    prompts: tuple[str, ...] = ()
    """Fields with a system prompt outside the list."""
    counts: bool = False
    """Whether the provider only counts the list."""


MESSAGES = Endpoint("messages", "anthropic", ANTHROPIC, ("system",))
COUNT_TOKENS = Endpoint("count_tokens", "anthropic", ANTHROPIC, ("system",), counts=True)
CHAT_COMPLETIONS = Endpoint("chat_completions", "openai", CHAT)
RESPONSES_CREATE = Endpoint("responses", "openai", RESPONSES, ("instructions",))
_PROMPTS = ("systemInstruction", "system_instruction")
GENERATE = Endpoint("generate_content", "gemini", GEMINI, _PROMPTS)

_POSTED = {
    "messages": MESSAGES,
    "messages/count_tokens": COUNT_TOKENS,
    "chat/completions": CHAT_COMPLETIONS,
    "responses": RESPONSES_CREATE,
}
_GEMINI = re.compile(r"models/(?P<model>[^/:]+):(?:generateContent|streamGenerateContent)$")
_VERSION = re.compile(r"^/(?P<version>v\d+(?:alpha|beta)?\d*)(?=/|$)")
_SHARED_VERSION = "v1"


@dataclass(frozen=True, slots=True)
class Route:
    """Where a request goes."""

    provider: ProviderName
    path: str
    """Its path at the provider, without the part that chose the provider."""
    endpoint: Endpoint | None = None
    """None: it is passed through."""
    model: str | None = None
    """The model that the path names."""


def find_route(method: str, path: str, headers: Headers) -> Route:
    """Find where a request goes: by the first part of its path if that names a provider, by what it asks for, by its headers."""
    named = next((name for name in PROVIDERS if path == f"/{name}" or path.startswith(f"/{name}/")), None)
    if named is not None:
        path = path[len(named) + 1 :] or "/"
    rest = _VERSION.sub("", path).strip("/")
    gemini = _GEMINI.search(rest)
    endpoint = GENERATE if gemini is not None else _POSTED.get(rest)
    if endpoint is not None:
        named = named or endpoint.provider
    if method != "POST" or (endpoint is not None and endpoint.provider != named):
        endpoint = None
    model = unquote(gemini["model"]) if gemini is not None else None
    return Route(named or _by_headers(path, headers), path, endpoint, model)


def _by_headers(path: str, headers: Headers) -> ProviderName:
    """The provider of a path that several share."""
    if "anthropic-version" in headers or "x-api-key" in headers:
        return "anthropic"
    version = _VERSION.match(path)
    is_google = version is not None and version["version"] != _SHARED_VERSION
    return "gemini" if is_google or "x-goog-api-key" in headers else "openai"


def join_url(upstream: str, route: Route, query: str) -> str:
    """The address of a request. Upstream and path may both name the version, or neither: it stands in the address once."""
    base, path = upstream.rstrip("/"), route.path
    last = f"/{base.rpartition('/')[2]}"
    has_version = _VERSION.match(last) is not None
    if has_version and _VERSION.match(path) is not None:
        path = _VERSION.sub("", path)
    elif not has_version and _VERSION.match(path) is None and route.endpoint is not None:
        path = f"/{'v1beta' if route.provider == 'gemini' else 'v1'}{path}"
    return f"{base}{path}?{query}" if query else f"{base}{path}"


_ANTHROPIC_KINDS = {401: "authentication_error", 413: "request_too_large", 503: "api_error"}
_OPENAI_KINDS = {401: "invalid_api_key", 413: "request_too_large", 503: "server_error"}
_GOOGLE_KINDS = {401: "UNAUTHENTICATED", 503: "UNAVAILABLE"}


def write_error(provider: ProviderName, status: int, message: str) -> bytes:
    """The body of a refusal of ours, in the provider's shape."""
    text = f"compact proxy: {message}"
    if provider == "anthropic":
        kind = _ANTHROPIC_KINDS.get(status, "invalid_request_error")
        return json.dumps({"type": "error", "error": {"type": kind, "message": text}}).encode()
    if provider == "gemini":
        google = _GOOGLE_KINDS.get(status, "INVALID_ARGUMENT")
        return json.dumps({"error": {"code": status, "message": text, "status": google}}).encode()
    code = _OPENAI_KINDS.get(status, "invalid_request_error")
    kind = "server_error" if status >= 500 else "invalid_request_error"
    return json.dumps({"error": {"message": text, "type": kind, "param": None, "code": code}}).encode()
