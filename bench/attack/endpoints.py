"""A summarizer endpoint gets no key of another host, and its answers are bounded."""

from __future__ import annotations

import asyncio
import gzip
import json
import os
import socket
import ssl
import tempfile
import threading
import tracemalloc
import zlib
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta
from pathlib import Path
from random import Random
from typing import Any

from bench import Figure
from bench.attack import Attack, Trial
from compact import CompactConfig, CompactManager
from compact.messages import dialects
from compact.summaries import llm
from compact.summaries.request import SummaryRequest

LIMIT = 300_000
"""Bytes of an answer that are read in these attacks."""
MOST_MEMORY = 15_000_000
"""What reading one answer may take, by tracemalloc: parsed JSON takes up to 35 times its text, and the client has its own needs."""
FLOOD_BYTES = 12_000_000
TIMEOUT_S = 0.2
GOOD = "The login is being repaired as the user asked; src/auth/login.py still lacks the check."

Respond = Callable[[socket.socket], None]
Seen = list[tuple[str, bytes]]


@dataclass
class Server:
    """A server on 127.0.0.1 that answers each request as told, and notes what it received."""

    respond: Respond
    seen: Seen = field(default_factory=list)
    """The host that each request asked for, and its head."""
    context: ssl.SSLContext | None = None
    port: int = 0

    @property
    def url(self) -> str:
        """Its address."""
        return f"http://127.0.0.1:{self.port}/v1"

    def handle(self, connection: socket.socket) -> None:
        """Read a request, or a proxy's request to connect and the one behind it, and answer."""
        with connection, suppress(OSError):
            connection.settimeout(5)
            head = _read_head(connection)
            line = head.split(b"\r\n", 1)[0].decode("latin-1")
            if line.startswith("CONNECT ") and self.context is not None:
                connection.sendall(b"HTTP/1.1 200 OK\r\n\r\n")
                with self.context.wrap_socket(connection, server_side=True) as secure:
                    self.seen.append((line.split(" ")[1].rpartition(":")[0], head + _read_head(secure)))
                    self.respond(secure)
            elif head:
                self.seen.append((line, head))
                self.respond(connection)


@contextmanager
def serving(respond: Respond, context: ssl.SSLContext | None = None) -> Iterator[Server]:
    """Run a server until the end of the block."""
    server = Server(respond, context=context)
    listener = socket.create_server(("127.0.0.1", 0))
    server.port = listener.getsockname()[1]
    workers: list[threading.Thread] = []

    def accept() -> None:
        with suppress(OSError):
            while True:
                connection, _ = listener.accept()
                worker = threading.Thread(target=server.handle, args=(connection,), daemon=True)
                worker.start()
                workers.append(worker)

    thread = threading.Thread(target=accept, daemon=True)
    thread.start()
    try:
        yield server
    finally:
        with suppress(OSError):
            listener.shutdown(socket.SHUT_RDWR)
        listener.close()
        thread.join()
        for worker in workers:
            worker.join()


def _read_head(connection: socket.socket) -> bytes:
    """Read a request; return its head. The body is read and left."""
    data = b""
    while b"\r\n\r\n" not in data:
        piece = connection.recv(65_536)
        if not piece:
            return data
        data += piece
    head, _, body = data.partition(b"\r\n\r\n")
    lengths = [
        line.split(b":")[1] for line in head.lower().split(b"\r\n") if line.startswith(b"content-length")
    ]
    left = int(lengths[0]) - len(body) if lengths else 0
    while left > 0 and (piece := connection.recv(65_536)):
        left -= len(piece)
    return head


def completion(content: Any = GOOD) -> bytes:
    """A chat completion."""
    choice = {"index": 0, "message": {"role": "assistant", "content": content}, "finish_reason": "stop"}
    return json.dumps(
        {"id": "r", "object": "chat.completion", "created": 0, "model": "m", "choices": [choice]}
    ).encode()


@dataclass(frozen=True)
class Hostile:
    """One drawn answer."""

    what: str
    respond: Respond
    is_fine: bool = False
    """It is an ordinary answer, however oddly sent."""


def draw(seed: Random, elsewhere: str) -> Hostile:
    """Draw an answer: a status, a body, how it is packed, and how it is framed."""
    status = seed.choice(
        [200] * 8 + [201, 206, 400, 401, 404, 413, 429, 500, 503, 301, 302, 303, 307, 308, 300, 304]
    )
    name, body = _body(seed)
    packing, headers, packed = _pack(seed, body)
    framing, head, framed = _frame(seed, packed)
    headers += [head] if head else []
    headers.append(
        f"Content-Type: {seed.choice(['application/json', 'text/html; charset=idna', 'x/y', 'application/json; charset=utf-7'])}"
    )
    if 300 <= status < 400:
        place = seed.choice([elsewhere, elsewhere.removeprefix("http:"), f"{elsewhere}/chat/completions"])
        headers.append(f"Location: {place}")
    if seed.random() < 0.2:
        headers += [f"X-{n}: {'y' * seed.choice([1, 500])}" for n in range(seed.choice([1, 30, 300]))]
    start = f"HTTP/1.1 {status} Reason\r\n" + "".join(f"{each}\r\n" for each in headers) + "\r\n"

    def respond(connection: socket.socket) -> None:
        connection.sendall(start.encode("latin-1"))
        for piece in framed():
            connection.sendall(piece)

    is_fine = (status, name, packing, framing) in [
        (200, "completion", packing, framing)
        for packing in ("plain", "gzip", "deflate")
        for framing in ("exact", "chunked", "until closed")
    ]
    return Hostile(f"{status} {name}, {packing}, {framing}", respond, is_fine)


def _body(seed: Random) -> tuple[str, bytes]:
    size = seed.choice([LIMIT + 1, 10 * LIMIT, FLOOD_BYTES])
    deep = seed.choice([2_000, LIMIT // 4])
    wide = LIMIT // 4
    name = seed.choice(
        ["completion"] * 4
        + [
            "flood",
            "blanks",
            "deep list",
            "deep object",
            "wide",
            "wide choices",
            "junk",
            "empty",
            "types",
            "html",
        ]
    )
    body: dict[str, Callable[[], bytes]] = {
        "completion": completion,
        "flood": lambda: completion("a" * size),
        "blanks": lambda: b" " * size + completion(),
        "deep list": lambda: b"[" * deep + b"]" * deep,
        "deep object": lambda: b'{"choices":' * (deep // 6) + b"1" + b"}" * (deep // 6),
        "wide": lambda: b"[" + b"{}," * wide + b"{}]",
        "wide choices": lambda: b'{"choices":[' + b"{}," * wide + b"{}]}",
        "junk": lambda: seed.randbytes(seed.choice([10, 5_000])),
        "empty": bytes,
        "types": lambda: json.dumps(
            {"choices": seed.choice([[5], "abc", {"0": {}}, [{"message": []}], [None], [[]]])}
        ).encode(),
        "html": lambda: b"<html>" + b"<p>Sign in</p>" * seed.choice([1, 10, 100_000]),
    }
    return name, body[name]()


def _pack(seed: Random, body: bytes) -> tuple[str, list[str], bytes]:
    how = seed.choice(["plain"] * 3 + ["gzip", "deflate", "gzip twice", "a lie", "unknown"])
    if how == "plain":
        return how, [], body
    if how == "gzip":
        return how, ["Content-Encoding: gzip"], gzip.compress(body, 9 if len(body) < LIMIT else 1)
    if how == "deflate":
        return how, ["Content-Encoding: deflate"], zlib.compress(body, 1)
    if how == "gzip twice":
        return how, ["Content-Encoding: gzip, gzip"], gzip.compress(gzip.compress(body, 1), 1)
    if how == "a lie":
        return how, ["Content-Encoding: gzip"], body
    return how, [f"Content-Encoding: {seed.choice(['br', 'zstd', 'compress', 'x' * 500])}"], body


def _frame(seed: Random, body: bytes) -> tuple[str, str, Callable[[], Iterator[bytes]]]:
    how = seed.choice(
        ["exact"] * 3
        + ["chunked"] * 2
        + ["until closed", "too long", "too short", "no number", "endless", "drip"]
    )

    def chunked() -> Iterator[bytes]:
        for start in range(0, len(body), 50_000):
            piece = body[start : start + 50_000]
            yield b"%x\r\n%b\r\n" % (len(piece), piece)
        yield b"0\r\n\r\n"

    def endless() -> Iterator[bytes]:
        piece = (body or b" ")[:50_000]
        for _ in range(FLOOD_BYTES // len(piece) if len(piece) > 1_000 else 20_000):
            yield b"%x\r\n%b\r\n" % (len(piece), piece)

    def drip() -> Iterator[bytes]:
        for place in range(int(5 * TIMEOUT_S / 0.02)):
            yield body[place : place + 1] or b" "
            threading.Event().wait(0.02)

    frames: dict[str, tuple[str, Callable[[], Iterator[bytes]]]] = {
        "exact": (f"Content-Length: {len(body)}", lambda: iter([body])),
        "chunked": ("Transfer-Encoding: chunked", chunked),
        "until closed": ("Connection: close", lambda: iter([body])),
        "too long": (f"Content-Length: {len(body) + 10**9}", lambda: iter([body])),
        "too short": (f"Content-Length: {len(body) // 2}", lambda: iter([body])),
        "no number": (
            f"Content-Length: {seed.choice(['-5', 'many', '9' * 30, '1, 2'])}",
            lambda: iter([body]),
        ),
        "endless": ("Transfer-Encoding: chunked", endless),
        "drip": ("Connection: close", drip),
    }
    return how, *frames[how]


def _request() -> SummaryRequest:
    chat = dialects.get("chat")
    said = [
        {"role": "user", "content": "Repair the login."},
        {"role": "assistant", "content": "I read src/auth/login.py."},
    ]
    return SummaryRequest(
        messages=[chat.read(item) for item in said], dialect="chat", max_tokens=500, strategy="task_state"
    )


def ask(base_url: str, timeout_s: float = TIMEOUT_S) -> str:
    """Ask an endpoint for a summary. Returns its text, or the name of the error."""
    endpoint = llm.SummaryEndpoint(
        model="m", base_url=base_url, window=8_000, timeout_s=timeout_s, max_reply_bytes=LIMIT
    )
    try:
        reply = asyncio.run(llm.summarize(_request(), endpoint, lambda text: len(text) // 4))
    except (MemoryError, RecursionError) as error:
        return f"! {type(error).__name__}"
    except Exception as error:
        return f"({type(error).__name__})"
    return reply.text


def answers(seed: Random, size: int) -> Iterator[Trial | Figure]:
    """Hostile answers: bounded memory, no redirect followed, and an ordinary answer is still read."""
    highest = 0
    with _environment({}), serving(_says(completion())) as elsewhere, serving(_says(b"")) as server:
        for respond in (
            _says(completion()),
            _says(b"{}", "400 Bad"),
        ):  # imports are paid here, not by a trial
            server.respond = respond
            ask(server.url, 5)
        for _ in range(max(1, size // 2)):
            hostile = draw(seed, elsewhere.url)
            server.respond = hostile.respond
            tracemalloc.start()
            try:
                got = ask(server.url, 5 if hostile.is_fine else TIMEOUT_S)
                peak = tracemalloc.get_traced_memory()[1]
            finally:
                tracemalloc.stop()
            highest = max(highest, peak)
            held = peak < MOST_MEMORY and not got.startswith("!") and not elsewhere.seen
            if hostile.is_fine:
                held = held and got == GOOD
            yield Trial(f"{hostile.what}: {got[:60]}, {peak / 1e6:.0f} MB", held)
    if size >= 100:
        yield Figure("memory for the worst answer", highest / 1e6, "MB", MOST_MEMORY / 1e6)


def falls_back(seed: Random, size: int) -> Iterator[Trial]:
    """A whole pass against hostile answers: the session is compacted all the same."""
    talk = [
        {"role": role, "content": f"{n}: " + "some words about the login and its tests " * 20}
        for n in range(12)
        for role in ("user", "assistant")
    ]
    with _environment({}), serving(_says(completion())) as elsewhere, serving(_says(b"")) as server:
        settings: dict[str, Any] = {
            "model": "m",
            "base_url": server.url,
            "timeout_s": TIMEOUT_S,
            "max_reply_bytes": LIMIT,
        }
        for _ in range(max(1, size // 4)):
            hostile = draw(seed, elsewhere.url)
            server.respond = hostile.respond
            config = CompactConfig(max_context_tokens=8_000, summary=settings, archive={"adapter": "memory"})
            with CompactManager(config) as manager:
                after = manager.manual_compact("s", list(talk))
            held = len(after) < len(talk) and after[-1] is talk[-1] and not elsewhere.seen
            yield Trial(hostile.what, held)


def keys(seed: Random, size: int) -> Iterator[Trial]:
    """Random endpoints under random environments: what each host received holds no secret of another."""
    hosts = [_host(seed) for _ in range(12)]
    with tempfile.TemporaryDirectory() as folder, _proxy(Path(folder), hosts) as proxy:
        for number in range(size):
            secrets = {
                name: f"{name.lower()}-{seed.getrandbits(64):x}"
                for name in ("own", "openai", "org", "project", "custom", "admin")
            }
            scheme = seed.choice(["https", "https", "http"])
            host = seed.choice(hosts)
            address = f"{scheme}://{_userinfo(seed)}{_cased(seed, host)}{seed.choice(['', ':443', ':80', ':8443'])}{seed.choice(['', '/', '/v1', '/v1/'])}"
            environment = {
                "OPENAI_API_KEY": secrets["openai"],
                "OPENAI_ORG_ID": secrets["org"],
                "OPENAI_PROJECT_ID": secrets["project"],
                "OPENAI_ADMIN_KEY": secrets["admin"],
                "OPENAI_CUSTOM_HEADERS": f"X-Gateway-Key: {secrets['custom']}\nAuthorization: Bearer {secrets['custom']}",
                "HTTP_PROXY": f"http://127.0.0.1:{proxy.port}",
                "HTTPS_PROXY": f"http://127.0.0.1:{proxy.port}",
                "SSL_CERT_FILE": str(Path(folder) / "ca.pem"),
            }
            if seed.random() < 0.3:
                environment["COMPACT_SUMMARY_API_KEY"] = secrets["own"]
            home = seed.choice([None, f"https://{seed.choice(hosts)}/v1", f"{scheme}://{host}/v1"])
            if home is not None:
                environment["OPENAI_BASE_URL"] = home
            proxy.seen.clear()
            with _environment(environment):
                ask(address, 5)
            yield Trial(
                f"{number}: {address} with {sorted(environment)}, home {home}",
                _is_clean(proxy.seen, address, home, secrets, environment),
            )


def _is_clean(
    seen: Seen, address: str, home: str | None, secrets: Mapping[str, str], environment: Mapping[str, str]
) -> bool:
    """Whether what arrived holds only the keys that belong to where it arrived."""
    arrived = b"\n".join(head for _, head in seen).decode("latin-1")
    origin = _plain_origin(address)
    is_home = origin in (_plain_origin(home) if home else None, "https://api.openai.com:443")
    own = secrets["own"] if "COMPACT_SUMMARY_API_KEY" in environment else None
    if origin.startswith("http:") and (own or is_home):
        return not seen  # a key would travel in clear
    expected = own or (secrets["openai"] if is_home else None)
    foreign = [
        value
        for name, value in secrets.items()
        if value != expected and (name in ("own", "openai") or not is_home)
    ]
    return (
        bool(seen)
        and not any(value in arrived for value in foreign)
        and (expected is None or expected in arrived)
    )


def _plain_origin(address: str) -> str:
    """Scheme, host and port, read without any library: these addresses are our own."""
    scheme, _, rest = address.partition("://")
    place = rest.partition("/")[0].rpartition("@")[2].lower()
    host, _, port = place.partition(":")
    return f"{scheme}://{host}:{port or {'http': '80', 'https': '443'}[scheme]}"


def _host(seed: Random) -> str:
    """A host, often one that looks like OpenAI's."""
    word = "".join(seed.choices("abcdefghij", k=6))
    return seed.choice(
        [
            "api.openai.com",
            f"{word}.example",
            f"api.openai.com.{word}.example",
            f"{word}-api.openai.com.example",
            f"xapi.openai.{word}",
            f"openai.com.{word}",
            "apiXopenai.com".replace("X", word).lower(),
            f"{word}api.openai.com",
            "openai.com",
            f"10.{seed.randrange(256)}.0.7",
        ]
    )


def _userinfo(seed: Random) -> str:
    return seed.choice(["", "", "", "name:word@", "api.openai.com@", "api.openai.com:443@"])


def _cased(seed: Random, host: str) -> str:
    return "".join(seed.choice([sign, sign.upper()]) for sign in host) if seed.random() < 0.2 else host


def _says(body: bytes, status: str = "200 OK") -> Respond:
    head = f"HTTP/1.1 {status}\r\nContent-Type: application/json\r\nContent-Length: {len(body)}\r\nConnection: close\r\n\r\n"
    return lambda connection: connection.sendall(head.encode() + body)


@contextmanager
def _environment(settings: Mapping[str, str]) -> Iterator[None]:
    """Set these variables, and none of those that clients and proxies read."""
    before = dict(os.environ)
    words = ("OPENAI", "COMPACT", "PROXY", "SSL_CERT")
    for name in before:
        if any(word in name.upper() for word in words):
            del os.environ[name]
    os.environ.update(settings)
    try:
        yield
    finally:
        os.environ.clear()
        os.environ.update(before)


@contextmanager
def _proxy(folder: Path, hosts: list[str]) -> Iterator[Server]:
    """A proxy that answers for all hosts itself, with a certificate that clients trust in these attacks."""
    certificate, key = _certificate(hosts)
    (folder / "ca.pem").write_bytes(certificate)
    (folder / "all.pem").write_bytes(certificate + key)
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.load_cert_chain(folder / "all.pem")
    with serving(_says(completion()), context) as server:
        yield server


def _certificate(hosts: list[str]) -> tuple[bytes, bytes]:
    """A certificate for these hosts, signed by itself, and its key."""
    import ipaddress

    from cryptography import x509
    from cryptography.hazmat.primitives import hashes, serialization
    from cryptography.hazmat.primitives.asymmetric import ec

    key = ec.generate_private_key(ec.SECP256R1())
    name = x509.Name([x509.NameAttribute(x509.NameOID.COMMON_NAME, "attack")])
    names = [
        x509.IPAddress(ipaddress.ip_address(host)) if host[0].isdigit() else x509.DNSName(host)
        for host in sorted(set(hosts))
    ]
    now = datetime.now(UTC)
    made = (
        x509.CertificateBuilder()
        .subject_name(name)
        .issuer_name(name)
        .public_key(key.public_key())
        .serial_number(x509.random_serial_number())
        .not_valid_before(now - timedelta(days=1))
        .not_valid_after(now + timedelta(days=1))
        .add_extension(x509.SubjectAlternativeName(names), critical=False)
        .add_extension(x509.BasicConstraints(ca=True, path_length=None), critical=True)
        .sign(key, hashes.SHA256())
    )
    return made.public_bytes(serialization.Encoding.PEM), key.private_bytes(
        serialization.Encoding.PEM, serialization.PrivateFormat.PKCS8, serialization.NoEncryption()
    )


ATTACKS: tuple[Attack, ...] = (
    Attack("answers", "an endpoint's answer is read up to a limit, and never redirected", answers),
    Attack("falls_back", "a hostile answer never stops a pass", falls_back),
    Attack("keys", "a key reaches only the host that it belongs to, and nobody in clear", keys),
)
