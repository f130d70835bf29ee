"""Where passwords stand: the formats that people and programs write them in, each with its own quoting."""

from __future__ import annotations

import json
import shlex
import string
from collections.abc import Callable
from random import Random
from typing import NamedTuple
from urllib.parse import quote

import yaml

Written = tuple[str, tuple[str, ...]]
"""A text, and the password as it is written in it."""
Write = Callable[[Random, str, str], Written]
"""Writes a password under a name."""

_OWNERS = [
    "db",
    "database",
    "postgres",
    "mysql",
    "redis",
    "smtp",
    "mail",
    "admin",
    "root",
    "user",
    "app",
    "jwt",
    "aws",
    "stripe",
    "github",
    "slack",
    "session",
    "ldap",
    "ftp",
    "kafka",
    "rabbitmq",
    "mongo",
    "minio",
    "grafana",
    "sentry",
    "backup",
    "keystore",
    "wifi",
    "proxy",
    "registry",
    "vault",
    "spring.datasource",
    "oauth",
]
_SECRETS = (
    "password", "passwd", "pass", "pwd", "passphrase", "secret", "token", "api key", "secret key", "access token",
    "auth token", "client secret", "access key", "signing key", "encryption key", "webhook secret", "refresh token",
    "private token", "master key", "api token", "api secret", "user password", "service key", "deploy token",
)  # fmt: skip
_ALONE = (
    "password",
    "passwd",
    "secret",
    "token",
    "api key",
    "client secret",
    "access token",
    "secret key",
    "passphrase",
)
_PEOPLE = ["alice", "bob", "carol", "dave", "erin", "frank", "grace", "heidi", "ivan", "judy"]
HOSTS = ["db.internal", "cache01", "10.0.3.7", "pg.example.net", "mq.prod.local", "localhost"]


class Place(NamedTuple):
    """One format."""

    name: str
    said: str
    """As it is named in a sentence."""
    write: Write


def name_of(seed: Random) -> str:
    """A name that people give to a password, in one of the usual spellings."""
    words = (
        seed.choice(_ALONE).split()
        if seed.random() < 0.3
        else [seed.choice(_OWNERS), *seed.choice(_SECRETS).split()]
    )
    flat = [word for part in words for word in part.split(".")]
    spelling = seed.randrange(5)
    if spelling == 0:
        return "_".join(flat).upper()
    if spelling == 1:
        return "_".join(flat)
    if spelling == 2:
        return flat[0] + "".join(word.title() for word in flat[1:])
    if spelling == 3:
        return "-".join(flat)
    return ".".join(flat)


def env_name(name: str) -> str:
    """The name as an environment variable."""
    return name.replace("-", "_").replace(".", "_").upper() if not name.isalpha() else name


def user_name(seed: Random) -> str:
    """A login."""
    return seed.choice(_PEOPLE) + seed.choice(("", "", "_rw", "2"))


def _noise(seed: Random) -> dict[str, object]:
    pool: dict[str, object] = {
        "host": seed.choice(HOSTS), "port": seed.choice((5432, 3306, 6379, 8080)), "user": user_name(seed), "region": "eu-central-1",
        "debug": seed.random() < 0.5, "name": f"service-{seed.randint(1, 99)}", "timeout": 30, "replicas": 3, "tier": "standard",
    }  # fmt: skip
    return {key: pool[key] for key in seed.sample(sorted(pool), seed.randint(1, 4))}


def _among(seed: Random, lines: list[str], extra: list[str]) -> str:
    at = seed.randint(0, len(extra))
    return "\n".join([*extra[:at], *lines, *extra[at:]]) + seed.choice(("", "\n"))


# --- where passwords are stored


def _env(seed: Random, name: str, password: str) -> Written:
    style = seed.randrange(4)
    special = set(password) & set("\"'`$#\\")
    if style == 0:
        written = password  # as docker reads it: everything up to the end of the line
    elif style == 1 and not special & set('"`$\\'):
        written = f'"{password}"'
    elif "'" not in password:
        written = f"'{password}'"
    else:
        written = shlex.quote(password)
    head = seed.choice(("", "", "export "))
    lines = [f"{env_name(key)}={value}" for key, value in _noise(seed).items()]
    return _among(seed, [f"{head}{env_name(name)}={written}"], lines), (password,)


def _json(seed: Random, name: str, password: str) -> Written:
    data: dict[str, object] = {**_noise(seed), name: password}
    keys = list(data)
    seed.shuffle(keys)
    data = {key: data[key] for key in keys}
    wrapped: object = seed.choice((data, {"config": data}, [data], {"items": [{"id": 1, "spec": data}]}))
    text = json.dumps(wrapped, indent=seed.choice((None, 2)))
    if seed.random() < 0.3:  # as a log line shows it
        text = f"2026-01-02 10:00:00 INFO loaded {text}"
    return text, (json.dumps(password)[1:-1],)


def _yaml(seed: Random, name: str, password: str) -> Written:
    data: dict[str, object] = {**_noise(seed), name: password}
    wrapped: object = seed.choice((data, {"config": data}, {"services": [data]}))
    style = seed.choice((None, None, '"', "'"))
    text = yaml.safe_dump(wrapped, sort_keys=False, default_style=style, width=200)
    written = yaml.safe_dump(password, default_style=style, width=200).removesuffix("...\n").strip()
    return text, (written.strip("'\""),)


def _url(seed: Random, _name: str, password: str) -> Written:
    scheme = seed.choice(
        ("postgres", "postgresql+psycopg", "mysql", "redis", "amqp", "mongodb+srv", "https", "ftp", "smtp")
    )
    odd = seed.random() < 0.3  # people do not encode
    written = quote(password, safe=string.punctuation if odd else "")
    user = "" if scheme == "redis" and seed.random() < 0.5 else user_name(seed)
    url = f"{scheme}://{user}:{written}@{seed.choice(HOSTS)}{seed.choice(('', ':5432', ':27017'))}/{seed.choice(('', 'app', 'main?ssl=true'))}"
    return seed.choice(
        ("{}", "DATABASE_URL={}", 'url = "{}"', "connecting to {} ...", '{{"url": "{}"}}')
    ).format(url), (written,)


def _connection(seed: Random, _name: str, password: str) -> Written:
    host, user = seed.choice(HOSTS), user_name(seed)
    style = seed.randrange(4)
    if style == 0:
        quoted = set(password) & set(";'\"{}= ")
        written = "'" + password.replace("'", "''") + "'" if quoted else password
        key = seed.choice(("Password", "Pwd", "password", "PWD"))
        text = f"Server={host};Database=app;User Id={user};{key}={written};Encrypt=true"
    elif style == 1:
        written = "{" + password.replace("}", "}}") + "}" if set(password) & set(";{}") else password
        text = f"Driver={{ODBC Driver 18}};Server={host};UID={user};PWD={written};"
    elif style == 2:
        quoted = set(password) & set(" '\\")
        written = "'" + password.replace("\\", "\\\\").replace("'", "\\'") + "'" if quoted else password
        text = f"host={host} port=5432 dbname=app user={user} password={written} sslmode=require"
    else:
        written = quote(password, safe="")
        text = f"jdbc:postgresql://{host}:5432/app?user={user}&password={written}&ssl=true"
    frame = seed.choice(
        ("{}", 'ConnectionString="{}"', '{{"ConnectionStrings": {{"Default": {}}}}}', "conn: {}")
    )
    if frame.startswith("{{"):
        return frame.format(json.dumps(text)), (json.dumps(written)[1:-1].strip("'"),)
    if '"' in frame:
        return frame.format(text.replace('"', '\\"')), (written.replace('"', '\\"').strip("'{"),)
    return frame.format(text), (written.strip("'{"),)


STORED = (
    Place("env", "an environment file", _env),
    Place("json", "JSON", _json),
    Place("yaml", "YAML", _yaml),
    Place("url", "a URL", _url),
    Place("connection", "a connection string", _connection),
)
