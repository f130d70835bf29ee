"""Secrets by the shape of what surrounds them: key blocks, web tokens, headers, addresses, commands, statements."""

from __future__ import annotations

from compact.redaction.rules.rule import Rule


def shape_rules() -> list[Rule]:
    """The rules of this file."""
    return [*_keys_and_tokens(), *_web(), *_commands()]


def _keys_and_tokens() -> list[Rule]:
    return [
        Rule(
            "private-key",
            r"-----BEGIN[A-Z0-9 ]{0,40}PRIVATE KEY(?: BLOCK)?-----",
            ("PRIVATE KEY",),
            "private_key",
        ),
        Rule(
            "putty-key",
            r"(?i)Private-Lines: \d+\s+(?P<secret>(?:[A-Za-z0-9+/=]{16,}\s+)+)",
            ("Private-Lines",),
        ),
        Rule(
            "jwt",
            r"\b(?P<secret>eyJ[\w-]{10,}\.(?:eyJ)?[\w-]{10,}(?:\.[\w-]*){0,3})",
            ("eyJ",),
            "jwt",
        ),
        Rule("jwt-encoded", r"\bZXlK[A-Za-z0-9+/_-]{60,}={0,2}", ("ZXlK",), "encoded_jwt"),
        Rule(
            "azure-client-secret",
            r"(?:^|[\s\"'`>=:(,])(?P<secret>[\w.~-]{3}\dQ~[\w.~-]{31,34})(?:$|[\s\"'`<,;)\\])",
            ("Q~",),
            "token",
        ),
        Rule("azure-storage-key", r"(?i)AccountKey=(?P<secret>[A-Za-z0-9+/]{80,}={0,2})", ("AccountKey=",)),
        Rule(
            "signed-url",
            r"(?i)[?&;](?:sig|signature|x-amz-signature|x-amz-security-token|x-amz-credential|x-goog-signature)="
            r"(?P<secret>[\w%+/=~.-]{16,})",
            ("sig", "x-amz", "x-goog"),
            "random",
        ),
        Rule(
            "password-hash",
            r"\$(?:1|5|6|y|2[abxy]|apr1|argon2id?|argon2i|scrypt|pbkdf2-sha\d+)\$(?P<secret>[\w./$=,+-]{20,})",
            ("$1$", "$5$", "$6$", "$y$", "$2", "$apr1$", "$argon2", "$scrypt$", "$pbkdf2"),
            "token",
        ),
        Rule(
            "wireguard",
            r"(?i)\b(?:PrivateKey|PresharedKey)\s*=\s*(?P<secret>[A-Za-z0-9+/]{42,43}=)",
            ("PrivateKey", "PresharedKey"),
        ),
    ]


def _web() -> list[Rule]:
    return [
        Rule(
            "url-login",
            r"[A-Za-z][A-Za-z0-9+.-]*://(?P<secret>[^\s:/@\"'`<>]*:[^\s/\"'`<>]*)@[^\s@\"'`<>]",
            ("://",),
            "url_login",
        ),
        Rule(
            "authorization",
            r"(?i)\b(?:proxy-)?authorization[\"'`]?\s*[:=,]\s*[\"'`]?(?:(?:bearer|basic|digest|token|bot|api-?key|"
            r"api-?token|key|negotiate|ssws|apikey|aws4-hmac-sha256)[ =:]+)?(?P<secret>[^\s\"'`<>,;]+)",
            ("authorization",),
            "header_value",
        ),
        Rule(
            "bearer",
            r"(?i)\bbearer[ \t]+(?P<secret>[\w.~+/-]{16,}=*)",
            ("bearer",),
            "random",
        ),
        Rule(
            "cookie",
            r"(?i)\b(?:set-)?cookie[\"']?\s*:\s*[\"']?(?P<secret>[^\r\n\"']{16,})",
            ("cookie",),
            "cookies",
        ),
        Rule(
            "basic-auth-encoded",
            r"(?i)\bbasic[ \t]+(?P<secret>[A-Za-z0-9+/]{20,}={0,2})",
            ("basic",),
            "random",
        ),
        Rule(
            "npm-auth",
            r"(?i):_(?:authToken|auth|password)\s*=\s*(?P<secret>[^\s\"'$]+)",
            (":_auth", ":_password"),
            "not_placeholder",
        ),
    ]


def _commands() -> list[Rule]:
    return [
        Rule(
            "command-login",
            r"(?:^|\s)(?:-u|-U|--user|--proxy-user)[ =]*(?P<secret>\"[^\"\n]+\"(?::[^\s]+)?|'[^'\n]+'|[^\s:\"']+:(?:'[^'\n]+'|\"[^\"\n]+\"|[^\s\"']*))",
            ("-u", "-U", "--user", "--proxy-user"),
            "user_and_password",
        ),
        Rule(
            "mysql-password",
            r"\b(?:mysql|mysqldump|mysqladmin|mysqlimport|mariadb)\b[^\n|;]*\s-p(?P<secret>[^\s\"'-][^\s\"']{2,})",
            ("mysql", "mariadb"),
            "command_password",
        ),
        Rule(
            "command-password",
            r"\b(?:sshpass\s+-p|redis-cli\b[^\n|;]*\s-a|docker\s+login\b[^\n|;]*\s-p|-pass(?:in|out)?\s+pass:)"
            r"[ =]?(?P<secret>[^\s]{3,})",
            ("sshpass", "redis-cli", "docker", "pass:"),
            "command_password",
        ),
        Rule(
            "sql-password",
            r"(?i)\b(?:identified\s+by(?:\s+password)?|password)\s+(?:'(?P<secret>[^'\n]+)'|\"[^\"\n]+\")",
            ("identified", "password"),
            "not_placeholder",
        ),
        Rule(
            "netrc",
            r"(?i)\blogin[ \t]+[^\s/]+\s+password[ \t]+(?P<secret>\S+)",
            ("login",),
            "not_placeholder",
        ),
    ]
