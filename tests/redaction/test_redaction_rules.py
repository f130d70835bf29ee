"""Every built-in rule masks its secret and leaves a near miss alone; wrong rules are refused."""

from __future__ import annotations

from base64 import b64encode
from typing import Any

import pytest
from support.redaction import letters, matching

from compact.config import CompactConfig
from compact.errors import RedactionError
from compact.redaction import MASK, Redactor, Rule, rules_from_config
from compact.redaction.rules.sets import named_sets

HEX = "0123456789abcdef"
PEM = f"-----BEGIN RSA PRIVATE KEY-----\n{letters('pem', 64)}\n{letters('pem2', 40)}==\n-----END RSA PRIVATE KEY-----"
JWT = f"eyJhbGciOiJIUzI1NiIsInR5cCI6IkpXVCJ9.eyJzdWIiOiI{letters('jwt', 12)}.{letters('sig', 43)}"

EXAMPLES: dict[str, tuple[str, str]] = {
    # rule: (what it masks, what it must leave alone)
    "private-key": (PEM, "-----BEGIN RSA PRIVATE KEY-----\n...\n-----END RSA PRIVATE KEY-----"),
    "private-key-end": (f"{letters('pem3', 64)}\n-----END PRIVATE KEY-----", "-----END PRIVATE KEY-----"),
    "private-key-start": (f"MIIEowIBAAKCAQEA{letters('der', 48)}", "MIIEowIBAAKC..."),
    "private-key-lines": (f"{letters('ln', 64)}\n{letters('ln2', 64)}\n", f"{letters('ln', 64, HEX)}\n" * 2),
    "putty-key": (f"Private-Lines: 2\n{letters('ppk', 64)}\n{letters('ppk2', 40)}\n", "Private-Lines: 2"),
    "jwt": (JWT, f"eyJub3QganNvbg.{letters('x', 20)}.{letters('y', 20)}"),
    "jwt-encoded": (b64encode(JWT.encode()).decode(), f"ZXlK{letters('no', 80)}"),
    "azure-client-secret": (
        f"x={letters('a', 3)}8Q~{letters('az', 34)}",
        f"x={letters('a', 3)}8Q~{letters('az', 20)}",
    ),
    "signed-url": (f"https://x/y?sig={letters('sas', 43)}%3D", "https://x/y?sig=signature-value-here"),
    "password-hash": (f"root:$6$salt1234${letters('hash', 86)}:19000", "price: $6$ each"),
    "url-login": ("postgres://bob:S3cr3t99@db/x", "postgres://bob:${PASSWORD}@db/x"),
    "authorization": (f"Authorization: Token {letters('t', 40, HEX)}", "Authorization: Token <token>"),
    "bearer": (f"bearer {letters('b', 40)}", "bearer authentication-is-required"),
    "cookie": (f"Cookie: theme=dark; sid={letters('c', 32)}", "Cookie: theme=dark; lang=english"),
    "basic-auth-encoded": (f"basic {letters('basic', 40)}==", "basic understanding of arithmetic"),
    "npm-auth": (f"//npm.example/:_authToken={letters('npm', 36)}", "//npm.example/:_authToken=${NPM_TOKEN}"),
    "command-login": ("curl -u bob:S3cr3t99 http://x", "curl -u $USER:$PASS http://x"),
    "mysql-password": ("mysql -uroot -pS3cr3t99 db", "mysql -uroot -p db"),
    "command-password": ("sshpass -p S3cr3t99 ssh x", "sshpass -p $PASS ssh x"),
    "url-login-odd": (f"redis://u:{letters('o', 12)}/{letters('p', 9)}@h", "http://x:8080/a/b@c"),
    "command-login-pieces": ("curl -u 'bob:S3cr3t'\"'\"'99' x", "curl -u '$USER'\"'\"'x' x"),
    "chpasswd": ("echo 'bob:S3cr3t99' | chpasswd", 'echo "$USER:$PASS" | chpasswd'),
    "htpasswd": ("htpasswd -cb users bob S3cr3t99", "htpasswd -cb users bob $PASS"),
    "mysql-quoted-password": ("mysql -uroot -p'S3cr3t99 x' db", 'mysql -uroot -p"$PASS" db'),
    "word-password": ("ldapsearch -x -w S3cr3t99 -b dc=x", "ldapsearch -x -w $PASS -b dc=x"),
    "login-of-windows": ("net use Z: \\\\nas\\s /user:bob S3cr3t99", "net use Z: \\\\nas\\s"),
    "secure-string": (
        "ConvertTo-SecureString 'S3cr3t99' -AsPlainText",
        "ConvertTo-SecureString $x -AsPlainText",
    ),
    "piped-password": ("echo S3cr3t99 | sudo -S ls", "echo hello | sudo tee x"),
    "password-as-input": ("sudo -S ls <<< S3cr3t99", "sudo -S ls <<< $PASS"),
    "user-of-windows": ("net user bob S3cr3t99 /add", "net user growth was modest"),
    "archive-password": ("7z a -pS3cr3t99 x.7z y", "7z a x.7z y"),
    "snmp-community": ("snmpwalk -v2c -c S3cr3t99 host", "snmpwalk -v2c -c public host"),
    "stored-values": ("vault kv put a/b user=bob value=S3cr3t99", "vault kv put a/b value=@x.txt"),
    "literal-of-manifest": ("--from-literal=first=S3cr3t99", "--from-literal=level=debug"),
    "typed-by-expect": ('send "S3cr3t99\\r"', 'send "yes\\r"'),
    "address-of-sentry": (f"https://{letters('s', 32, HEX)}@o1.sentry.io/45", "https://bob@sentry.io/45"),
    "pgpass": ("db.example:5432:app:bob:S3cr3t99", "db.example:5432:app:bob:*"),
    "sql-password": ("CREATE USER x IDENTIFIED BY 'S3cr3t99'", "CREATE USER x IDENTIFIED BY '<password>'"),
    "netrc": ("machine x login bob password S3cr3t99", "machine x login bob password <password>"),
    "zapier-webhook": ("hooks.zapier.com/hooks/catch/123456/abc9def", "hooks.zapier.com/hooks/catch/"),
    "mailchimp": (f"{letters('mc', 32, HEX)}-us12", f"{letters('mc', 30, HEX)}-us12"),
    "maxmind": (f"{letters('m', 6)}_{letters('mm', 29)}_mmk", f"{letters('m', 6)}_{letters('mm', 20)}_mmk"),
    "discord-bot": (
        f"MTk4NjIyNDgzNDcxOTI1MjQ4.Cl2FMQ.{letters('d', 27)}",
        "MTk4NjIyNDgzNDcxOTI1MjQ4.Cl2FMQ",
    ),
    "plain-password": ("password=changeme", "password_length=8"),
    "plain-api-key": ("api-key: null", "api_key_name: null"),
    # names of fields
    "password": ("db_password = hunter2", "password_length = hunter2"),
    "api-key": ("apiKey: 'abc9'", "api_key_name: 'abc9'"),
    "secret": ("client_secret=S3cr3t99", "secret_name=db-credentials"),
    "passphrase": ("DB_PASS=S3cr3t99", "compass=S3cr3t99"),
    "password-abroad": ("密码: hunter2", "密码学: hunter2"),
    "named-key": (f"signing_key: {letters('k', 24)}", "public_key: hunter2Aa!"),
    "slogan": ("heslo=S3cr3t99", "heslo: vpřed"),
    "slogan-abroad": ("hasło=S3cr3t99", "hasło: naprzód"),
    "pin": ("pin=4821", "pin=3"),
    "pre-shared-key": ("psk=S3cr3t99", "psk=auto"),
    "named-token": ("access_token=S3cr3t99", "access_token_type=S3cr3t99"),
    "token": (f"GH_TOKEN={letters('tok', 24)}", f"next_page_token={letters('tok', 24)}"),
    "telling-part": (f"my_password_secure='{letters('p', 20)}'", f"password_url='{letters('p', 20)}'"),
    "key": (f"ACME_KEY={letters('kk', 32)}", f"cache_key={letters('kk', 32)}"),
    "credential": (f"credentials: {letters('cr', 32)}", "credentials: include"),
    # personal data
    "email": ("write to ann.b@example.org now", "user@localhost and @decorator"),
    "payment-card": ("card 4111 1111 1111 1111", "card 4111 1111 1111 1112"),
    "us-ssn": ("ssn 123-45-6789", "part 123-45-67890"),
    "us-ssn-spelled": ("social security number 123456789", "order number 123456789"),
    "iban": ("GB82 WEST 1234 5698 7654 32", "GB83 WEST 1234 5698 7654 32"),
    "phone": ("call +1 (555) 123-4567", "on 2024-05-15 at 10:30"),
    "cn-resident-id": ("11010519491231002X", "110105194912310021"),
    "es-dni": ("12345678Z", "12345678A"),
    "br-cpf": ("529.982.247-25", "529.982.247-24"),
    "in-aadhaar": ("2341 2341 2346", "2341 2341 2341"),
    "fr-nir": ("2 55 08 14 168 025 38", "2 55 08 14 168 025 39"),
    "uk-nino": ("AB 12 34 56 C", "AB 12 34 56 X"),
    "it-codice-fiscale": ("RSSMRA85T10A562S", "RSSMRA85T10A5622"),
    "kr-rrn": ("900101-1234567", "901301-12345"),
    "identity-document": ("passport no X12345678", "order no X12345678"),
    "digits": ("no. 123-45-6789!", "12 of 34"),
}
ALL_RULES = {rule.id: rule for rules in named_sets().values() for rule in rules}


def _example(rule: Rule) -> tuple[str, str]:
    if rule.id in EXAMPLES:
        return EXAMPLES[rule.id]
    positive = matching(rule.pattern, rule.id)
    start = next((word for word in rule.keywords if word in positive), positive[:3])
    cut = positive[: positive.index(start) + len(start) + 2]
    return f"see {positive} there", f"see {cut} there"


@pytest.mark.parametrize("rule", ALL_RULES.values(), ids=ALL_RULES)
def test_rule_masks_its_secret_and_spares_the_near_miss(rule: Rule) -> None:
    alone = Redactor([rule])
    positive, near_miss = _example(rule)
    masked = alone.redact(positive)
    assert MASK in masked
    assert len(masked) < len(positive) + len(MASK)
    assert alone.redact(near_miss) == near_miss


@pytest.mark.parametrize("rule", named_sets()["default"], ids=lambda rule: rule.id)
def test_rule_works_together_with_the_others(rule: Rule) -> None:
    """The whole set masks whatever one of its rules masks alone."""
    positive, _ = _example(rule)
    alone = Redactor([rule]).redact(positive)
    together = Redactor().redact(positive)
    kept = alone.split(MASK)
    assert MASK in together
    assert all(piece in alone for piece in together.split(MASK)), (kept, together)


def test_every_example_belongs_to_a_rule() -> None:
    assert set(EXAMPLES) <= set(ALL_RULES)


@pytest.mark.parametrize("prefix", ["ghp_", "glpat-", "hf_", "sk-proj-", "npm_", "dop_v1_"])
def test_filler_in_a_known_format_is_not_masked(prefix: str) -> None:
    text = f"token is {prefix}{'x' * 64}"
    assert Redactor().redact(text) == text


def test_truncated_key_block_is_masked_to_the_end_of_its_lines() -> None:
    lines = "\n".join(letters(f"line{n}", 64) for n in range(5))
    text = f"before\n-----BEGIN OPENSSH PRIVATE KEY-----\n{lines}\nThe file ends here, sorry."
    assert Redactor().redact(text) == f"before\n{MASK}\nThe file ends here, sorry."


@pytest.mark.parametrize(
    ("entry", "reason"),
    [
        ({"id": "x", "pattern": "("}, "missing )"),
        ({"id": "x", "pattern": "(?=a)b"}, "(?="),
        ({"id": "x", "pattern": r"(a)\1"}, "invalid escape sequence"),
        ({"id": "x", "pattern": "a*"}, "matches the empty text"),
        ({"id": "x", "pattern": r"\b"}, "matches the empty text"),
        ({"id": "x", "pattern": r"\B"}, "matches the empty text"),
        ({"id": "x", "pattern": "ab|$"}, "matches the empty text"),
        ({"id": "x", "pattern": "(?P<secret>)abc"}, "can only be empty"),
        ({"id": "x", "pattern": r"abc(?P<secret>(?:^|\b))"}, "can only be empty"),
        ({"id": "x", "pattern": "a" * 5_000}, "5000 characters"),
        ({"id": "x", "pattern": "(((a{100}){100}){100})"}, "RE2 does not accept"),
        ({"id": "x", "pattern": r"\p{L}{150}"}, "steps, more than 60000"),
        ({"id": "x", "pattern": "\ud800"}, "lone surrogate"),
        ({"id": "x", "pattern": ""}, "non-empty"),
        ({"id": "x"}, "no pattern"),
        ({"id": "X Y", "pattern": "a"}, "id must be"),
        ({"id": "x", "pattern": "a", "colour": "red"}, "unknown keys colour"),
        ({"id": "x", "pattern": "a", "validator": "nope"}, "no validator 'nope'"),
        ({"id": "x", "pattern": "a", "scope": "page"}, "scope must be one of text, key"),
        ({"id": "x", "pattern": "a", "keywords": [""]}, "keywords"),
        ({"id": "x", "pattern": "a", "keywords": 5}, "keywords"),
        ({"id": "x", "pattern": "a", "replacement": 5}, "replacement must be a string"),
    ],
)
def test_bad_rule_is_refused_at_load_with_its_name_and_the_reason(
    entry: dict[str, object], reason: str
) -> None:
    with pytest.raises(RedactionError) as refused:
        rules_from_config("default", [entry])
    assert refused.value.rule == entry["id"]
    assert reason in str(refused.value)


def test_unknown_name_is_refused_and_the_sets_are_listed() -> None:
    with pytest.raises(RedactionError, match="Sets: default, pii, digits") as refused:
        Redactor("defualt")
    assert refused.value.rule == "defualt"


def test_rule_of_another_type_is_refused() -> None:
    with pytest.raises(RedactionError, match="got int"):
        Redactor([5])  # type: ignore[list-item]


def test_extra_rule_from_settings_is_added_and_replaces_its_namesake() -> None:
    extra: list[dict[str, Any]] = [
        {"id": "ticket", "pattern": r"TICKET-\d+", "keywords": ["TICKET-"], "replacement": "<TICKET>"},
        {"id": "digits", "pattern": r"\d{6,}"},
    ]
    redactor = Redactor(rules_from_config("default", extra))
    assert redactor.redact("TICKET-42, password=hunter2, 1234567") == f"<TICKET>, password={MASK}, {MASK}"
    again = Redactor(rules_from_config(["digits"], extra))
    assert again.redact("12345 and 1234567") == f"12345 and {MASK}"


@pytest.mark.parametrize(
    ("extra", "text", "masked"),
    [
        ([r"\d{3,4}"], "room 123", f"room {MASK}"),
        ([r"ACME-[a-z]{2}", r"\d{3,4}"], "ACME-xy 1234", f"{MASK} {MASK}"),
        (["Project Falcon"], "about Project Falcon", f"about {MASK}"),
        ([{"name": "ticket", "pattern": r"T-\d+"}], "T-42", MASK),
        ([{"id": "ticket", "pattern": r"T-(?P<secret>\d+)"}], "T-42", f"T-{MASK}"),
        (["pii", "digits"], "ann@example.org 555", f"{MASK} {MASK}"),
        (["email"], "ann@example.org 555", f"{MASK} 555"),
    ],
)
def test_extra_entries_are_names_patterns_or_mappings(extra: list[Any], text: str, masked: str) -> None:
    settings = CompactConfig(redaction={"extra": extra}).redaction
    redactor = Redactor(rules_from_config(settings.rules, settings.extra))
    assert redactor.redact(text) == masked
    assert redactor.redact("password=hunter2") == f"password={MASK}"


def test_a_pattern_is_reported_under_a_stable_id() -> None:
    one, other = Redactor([r"\d{3}"]), Redactor(["[a-z]{9}", r"\d{3}", r"\d{3}"])
    assert one.scan("123").by_rule == other.scan("123").by_rule
    assert len(other.rules) == 2


def test_rules_can_be_named_singly_and_mixed_with_sets() -> None:
    redactor = Redactor(["github", "pii", Rule("beta", "beta-[0-9]+")])
    text = f"{matching(r'ghp_[A-Za-z0-9]{36}', 'g')} ann@example.org beta-7 password=hunter2"
    assert redactor.redact(text) == f"{MASK} {MASK} {MASK} password=hunter2"


def test_validator_can_be_a_function_and_one_that_fails_masks() -> None:
    def even(text: str) -> bool:
        return int(text) % 2 == 0

    redactor = Redactor([Rule("even", r"\b\w+\b", validator=even)])
    assert redactor.redact("2 3") == f"{MASK} 3"
    assert redactor.redact("three 4") == f"{MASK} {MASK}"


@pytest.mark.parametrize(
    ("validator", "masked"),
    [(None, "ab"), ("luhn", "4111111111111111"), (str.isupper, "AB")],
    ids=["any", "check", "function"],
)
def test_key_rule_takes_validators_too(validator: Any, masked: str) -> None:
    redactor = Redactor([Rule("code", "^code$", scope="key", validator=validator)])
    assert redactor.redact(f"code: '{masked}'") == f"code: '{MASK}'"
    if validator is not None:
        assert redactor.redact("code: 'xy'") == "code: 'xy'"


def test_key_rule_masks_the_value_of_the_field_in_text_and_in_data() -> None:
    redactor = Redactor([Rule("staff", "employee_id", ("employee",), scope="key")])
    assert redactor.redact("employeeId: ab, other: ab") == f"employeeId: {MASK}, other: ab"
    assert redactor.redact('{"employee-id": 7, "n": 7}') == f'{{"employee-id": "{MASK}", "n": 7}}'
    assert redactor.redact_value({"EmployeeID": "ab"}) == {"EmployeeID": MASK}


@pytest.mark.parametrize("pattern", ["^colour$", "colou?r", "(?:colour|shape)$", "colour|shape"])
def test_key_rule_without_keywords_finds_every_name_it_matches(pattern: str) -> None:
    redactor = Redactor([Rule("any", pattern, scope="key", validator="literal")])
    assert redactor.redact("colour=blue9 shade=dark9") == f"colour={MASK} shade=dark9"


def test_rule_that_matches_the_mask_itself_leaves_masks_alone() -> None:
    redactor = Redactor([Rule("capitals", "[A-Z]{3,}"), Rule("beta", "beta.*")])
    once = redactor.redact("ABC and beta ABC")
    assert once == f"{MASK} and {MASK}"
    assert redactor.redact(once) == once
    assert redactor.redact(f"ABC{MASK}") == f"{MASK}{MASK}"
    assert Redactor([Rule("marks", "!{3}")]).redact(f"{MASK} !!!") == f"{MASK} {MASK}"


def test_non_ascii_pattern_is_matched_on_the_real_characters() -> None:
    redactor = Redactor([Rule("umlaut", r"Grüße-\d+"), Rule("script", r"\p{Han}{2}号")])
    assert redactor.redact("é Grüße-12 ok 我们号 é") == f"é {MASK} ok {MASK} é"
    assert redactor.redact("a\ud800b Grüße-12") == f"a\ud800b {MASK}"


def test_keywords_keep_their_case_unless_the_pattern_ignores_it() -> None:
    exact = Redactor([Rule("a", "KEY[0-9]", ("KEY",))])
    loose = Redactor([Rule("a", "(?i)KEY[0-9]", ("KEY",))])
    assert exact.redact("key1 KEY1") == f"key1 {MASK}"
    assert loose.redact("key1 KEY1") == f"{MASK} {MASK}"
