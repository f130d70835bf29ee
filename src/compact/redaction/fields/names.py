"""Names of fields: which of them say that a secret follows.

A name is compared in one form: `dbPassword`, `DB-PASSWORD` and `db.password` are all `db_password`.
"""

from __future__ import annotations

import re
from functools import lru_cache

from compact.redaction.rules.rule import Rule

_HUMP = re.compile(r"(?<=[a-z0-9])(?=[A-Z])|(?<=[A-Z])(?=[A-Z][a-z])")
_SEPARATORS = re.compile(r"[^0-9A-Za-z\u0080-\U0010ffff]+")
_LONGEST_NAME = 200

_TAIL = (
    r"(?:_(?:value|val|string|str|text|plain|plaintext|raw|prod|production|dev|live|test|staging|stage|old|new|"
    r"current|primary|secondary|main|base|base64|b64|hex|env|v?\d+|[ab]))*\d*$"
)
"""What may follow the telling word: `password_prod`, `API_KEY_2`. With another word it is about the secret, not it:
`password_length`, `token_type`."""

_KEY_OWNERS = (
    "access|secret|private|priv|client|auth|account|encryption|encrypt|encoded|decryption|signing|signature|master|"
    "shared|shared_access|subscription|service|consumer|app|application|deploy|ssh|rsa|pgp|gpg|hmac|crypto|admin|root|"
    "db|database|session|jwt|cookie|webhook|license|vault|storage|server|bot|write|read|ingest|integration|sdk"
)
_TOKEN_OWNERS = (
    "access|auth|refresh|bearer|api|session|id|oauth2?|bot|user|security|personal|private|secret|admin"
)


def key_rules() -> list[Rule]:
    """The names that tell, the surest first."""
    return [
        Rule(
            "password",
            r"(?:passw(?:or[dt]|d)|contrasena|senha|kennwort|mot_de_passe)s?" + _TAIL,
            ("passw", "contrasena", "senha", "kennwort", "mot_de_passe"),
            "literal",
            scope="key",
        ),
        Rule(
            "api-key",
            r"(?:api|app)_?keys?" + _TAIL,
            ("apikey", "api_key", "api-key", "api.key"),
            "literal",
            scope="key",
        ),
        Rule("secret", r"secrets?" + _TAIL, ("secret",), "mixed", scope="key"),
        Rule(
            "passphrase",
            r"(?:pass_?phrase|pass_?code|(?:^|_)pwd|[a-z0-9]_pass|(?:^|_)pw|(?:card|atm|sim|account|security)_?pin|"
            r"(?:db|database|key|user|root|admin|my|mysql|pg|ssh|smtp|mail|ftp|redis)pass)" + _TAIL,
            ("pass", "pwd", "pw", "pin"),
            "mixed",
            scope="key",
        ),
        Rule(
            "password-abroad",
            r"(?:密码|口令|пароль|contraseña|비밀번호|パスワード)s?$",
            ("密码", "口令", "пароль", "contraseña", "비밀번호", "パスワード"),
            "literal",
            scope="key",
        ),
        Rule("named-key", rf"(?:^|_|[a-z])(?:{_KEY_OWNERS})_?keys?" + _TAIL, ("key",), "mixed", scope="key"),
        Rule(
            "named-token", rf"(?:^|_)(?:{_TOKEN_OWNERS})_?tokens?" + _TAIL, ("token",), "mixed", scope="key"
        ),
        Rule(
            "token",
            r"(?:token|(?:^|_)pat|(?:^|_)jwt)" + _TAIL,
            ("token", "pat", "jwt"),
            "random",
            scope="key",
        ),
        Rule(
            "telling-part",
            rf"(?:passw(?:or[dt]|d)|passphrase|secret|api_?key|(?:{_KEY_OWNERS})_?key|(?:{_TOKEN_OWNERS})_?token|"
            r"(?:^|_)db_?(?:pass|key))",
            ("passw", "passphrase", "secret", "key", "token", "pass"),
            "random",
            scope="key",
        ),
        Rule("key", r"(?:^|_)key" + _TAIL, ("key",), "long_random", scope="key"),
        Rule(
            "credential",
            r"(?:credentials?|creds?|(?:^|_)auth|authorization|authtoken|(?:^|_)cookie|"
            r"connection_?string|(?:^|_)dsn|webhook(?:_url)?|(?:^|_)sas)" + _TAIL,
            ("cred", "auth", "cookie", "connection", "dsn", "webhook", "sas"),
            "long_random",
            scope="key",
        ),
    ]


_INNOCENT = re.compile(
    r"(?:^|_)(?:public|primary|foreign|cache|sort|partition|row|object|s3|idempotency|lookup|map|dict|group|index|"
    r"hot|parent|composite|natural|unique|translation|i18n|config|metric|field|issue|project|dedup\w*|hash|range|"
    r"next|page|nextpage|continuation|sync|cursor|eos|bos|pad|unk|sep|cls|mask|special|start|end|first|last|stop|"
    r"max|min|num|csrf|xsrf|forgery)_?(?:key|token)s?\d*$|"
    r"(?:passw(?:or[dt]|d)|secret|key|token)s?_(?:name|names|url|uri|path|file|dir|type|types|length|len|count|regex|"
    r"pattern|format|version|policy|ttl|expir\w*|ref|arn|env|var|header|field|label|hint|error|usage|limit|size|index|"
    r"pos|position|budget|estimate|cost|price|rate|window)s?$|"
    r"(?:^|_)(?:no|bypass|first|second|two|multi|single)_pass$|public_?key"
)


@lru_cache(maxsize=8192)
def normal_name(name: str) -> str:
    """The one form in which names are compared: lower case, words joined by underscores."""
    parted = _HUMP.sub("_", name[-_LONGEST_NAME:])
    return _SEPARATORS.sub("_", parted).strip("_").lower()


def is_innocent(name: str) -> bool:
    """Whether a normal name looks telling but is not: `primary_key`, `next_page_token`, `eos_token`."""
    return _INNOCENT.search(name) is not None
