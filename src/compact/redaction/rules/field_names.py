"""The built-in rules for names of fields that announce a secret: `password`, `apiKey`, `CLIENT_SECRET` and the like.

They are matched on normalized names: `dbPassword`, `DB-PASSWORD` and `db.password` are all `db_password`.
"""

from __future__ import annotations

from compact.redaction.rules.rule import Rule

_TAIL = (
    r"(?:_(?:value|val|string|str|text|plain|plaintext|raw|prod|production|dev|live|test|staging|stage|old|new|"
    r"current|primary|secondary|main|base|base64|b64|hex|env|v?\d+|[ab]))*\d*$"
)
"""What may follow the telling word: `password_prod`, `API_KEY_2`. With any other word, the field is about the secret
and does not hold it: `password_length`, `token_type`."""

_KEY_OWNERS = (
    "access|secret|private|priv|client|auth|account|encryption|encrypt|encoded|decryption|signing|signature|master|"
    "shared|shared_access|subscription|service|consumer|app|application|deploy|ssh|rsa|pgp|gpg|hmac|crypto|admin|root|"
    "db|database|session|jwt|cookie|webhook|license|vault|storage|server|bot|write|read|ingest|integration|sdk"
)
_TOKEN_OWNERS = (
    "access|auth|refresh|bearer|api|session|id|oauth2?|bot|user|security|personal|private|secret|admin"
)
_PASSWORD = r"passw(?:or[dt]|d)"

# id, pattern, keywords, kind of value (see `validators.KINDS`). The first rule that matches a name applies.
_ROWS = (
    (
        "password",
        rf"(?:{_PASSWORD}|contrasena|senha|kennwort|mot_de_passe)s?{_TAIL}",
        "passw contrasena senha kennwort mot_de_passe",
        "literal",
    ),
    ("api-key", rf"(?:api|app)_?keys?{_TAIL}", "apikey api_key api-key api.key", "literal"),
    ("secret", rf"secrets?{_TAIL}", "secret", "mixed"),
    (
        "passphrase",
        r"(?:pass_?phrase|pass_?code|(?:^|_)pwd|[a-z0-9]_pass|^pass|(?:^|_)pw|(?:card|atm|sim|account|security)_?pin|"
        rf"(?:db|database|key|user|root|admin|my|mysql|pg|ssh|smtp|mail|ftp|redis|store|trust)pass){_TAIL}",
        "pass pwd pw pin",
        "mixed",
    ),
    (
        "password-abroad",
        r"(?:密码|口令|пароль|contraseña|비밀번호|パスワード)s?$",
        "密码 口令 пароль contraseña 비밀번호 パスワード",
        "literal",
    ),
    ("named-key", rf"(?:^|_|[a-z])(?:{_KEY_OWNERS})_?keys?{_TAIL}", "key", "mixed"),
    ("named-token", rf"(?:^|_)(?:{_TOKEN_OWNERS})_?tokens?{_TAIL}", "token", "mixed"),
    ("token", rf"(?:token|(?:^|_)pat|(?:^|_)jwt){_TAIL}", "token pat jwt", "random"),
    (
        "telling-part",
        rf"(?:{_PASSWORD}|passphrase|secret|api_?key|(?:{_KEY_OWNERS})_?key|(?:{_TOKEN_OWNERS})_?token|"
        r"(?:^|_)db_?(?:pass|key))",
        "passw passphrase secret key token pass",
        "random",
    ),
    ("key", rf"(?:^|_)key{_TAIL}", "key", "opaque"),
    (
        "credential",
        r"(?:credentials?|creds?|(?:^|_)auth|authorization|authtoken|(?:^|_)cookie|"
        rf"connection_?string|(?:^|_)dsn|webhook(?:_url)?|(?:^|_)sas){_TAIL}",
        "cred auth cookie connection dsn webhook sas",
        "long_random",
    ),
)


def field_name_rules() -> tuple[Rule, ...]:
    """The rules, most specific first."""
    return tuple(
        Rule(rule_id, pattern, tuple(keywords.split()), kind, scope="key")
        for rule_id, pattern, keywords, kind in _ROWS
    )
