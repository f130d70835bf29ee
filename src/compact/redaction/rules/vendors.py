"""Tokens that say themselves whose they are. One row each: id, what it starts with, what follows, and its check.

The formats are the vendors' own, from their documentation and from the tokens they issue. Bodies are open-ended
upwards: vendors lengthen their tokens, and half a secret left standing is a secret.
"""

from __future__ import annotations

from compact.redaction.rules.rule import Rule

Row = tuple[str, str, str] | tuple[str, str, str, str | None]

_MODELS: tuple[Row, ...] = (
    ("openai", "sk-proj- sk-svcacct- sk-admin- sk-None-", r"[\w-]{20,}"),
    ("openai-legacy", "sk-", r"[A-Za-z0-9]{20,}", "random_body"),
    ("anthropic", "sk-ant-", r"[\w-]{20,}"),
    ("openrouter", "sk-or-", r"v\d-[0-9a-f]{32,}"),
    ("langfuse", "sk-lf-", r"[0-9a-f-]{30,}"),
    ("google-api-key", "AIza", r"[\w-]{35,}"),
    ("huggingface", "hf_ api_org_", r"[A-Za-z0-9]{30,}"),
    ("groq", "gsk_", r"[A-Za-z0-9]{40,}"),
    ("perplexity", "pplx-", r"[A-Za-z0-9]{40,}"),
    ("xai", "xai-", r"[A-Za-z0-9]{60,}"),
    ("replicate", "r8_", r"[A-Za-z0-9]{35,}"),
    ("fireworks", "fw_", r"[A-Za-z0-9]{20,}", "random_body"),
    ("cerebras", "csk-", r"[a-z0-9]{40,}"),
    ("nvidia", "nvapi-", r"[\w-]{50,}"),
    ("langsmith", "lsv2_pt_ lsv2_sk_", r"[0-9a-f]{32}_[0-9a-f]{10}"),
    ("together", "tgp_v1_", r"[\w-]{30,}"),
    ("pinecone", "pcsk_", r"\w{40,}"),
    ("tavily", "tvly-", r"[A-Za-z0-9-]{20,}", "random_body"),
    ("firecrawl", "fc-", r"[0-9a-f]{32}"),
    ("jina", "jina_", r"[\w-]{40,}"),
    ("elevenlabs", "sk_", r"[0-9a-f]{48}"),
    ("e2b", "e2b_", r"[0-9a-f]{36,}"),
    ("voyage", "pa-", r"[\w-]{40,}", "random_body"),
    ("ollama", "ollama-", r"[\w-]{30,}", "random_body"),
    ("aws-bedrock", "ABSK", r"[A-Za-z0-9+/]{100,280}={0,2}", None),
)

_CLOUDS: tuple[Row, ...] = (
    ("aws-access-key-id", "AKIA ASIA ABIA ACCA A3T", r"[A-Z0-9]{16,17}\b", None),
    ("google-oauth-secret", "GOCSPX-", r"[\w-]{24,}"),
    ("google-access-token", "ya29.", r"[\w-]{20,}"),
    ("google-refresh-token", "1//0", r"[\w-]{30,}"),
    ("digitalocean", "dop_v1_ doo_v1_ dor_v1_", r"[0-9a-f]{64}"),
    ("heroku", "HRKU-", r"[\w-]{30,}"),
    ("alibaba", "LTAI", r"[A-Za-z0-9]{16,24}\b"),
    ("tencent", "AKID", r"[A-Za-z0-9]{32,}"),
    ("fly", "fo1_ fm1a_ fm1r_ fm2_", r"[A-Za-z0-9+/_-]{32,}={0,3}"),
    ("vercel", "vcp_ vci_ vca_ vcr_ vck_", r"[A-Za-z0-9]{24,}"),
    ("netlify", "nfp_ nfc_ nfo_ nfu_ nfb_", r"[A-Za-z0-9]{36,}"),
    ("render", "rnd_", r"[A-Za-z0-9]{24,}"),
    ("supabase", "sbp_ sb_secret_", r"[\w-]{20,}", "random_body"),
    ("planetscale", "pscale_tkn_ pscale_pw_ pscale_oauth_", r"[\w=.-]{32,}"),
    ("neon", "napi_", r"[a-z0-9]{50,}"),
    ("scaleway", "SCW", r"[A-Z0-9]{17}\b"),
    ("linode", "lin_", r"[0-9a-f]{64}"),
    ("databricks", "dapi", r"[0-9a-z]{32}(?:-\d)?\b"),
    ("terraform", "", r"[A-Za-z0-9]{14}\.atlasv1\.[\w-]{60,}"),
    ("vault", "hvs. hvb. hvr.", r"[\w-]{24,}"),
    ("vault-legacy", "s.", r"[A-Za-z0-9]{24}\b", "random_body"),
    ("pulumi", "pul-", r"[0-9a-f]{40}"),
    ("doppler", "dp.pt. dp.st. dp.ct. dp.sa. dp.scim. dp.audit.", r"[\w.-]{40,}"),
    ("infisical", "st.", r"[0-9a-f-]{24,36}\.[0-9a-f]{30,}\.[0-9a-f]{30,}"),
    ("1password", "ops_eyJ", r"[A-Za-z0-9+/_-]{200,}={0,3}"),
    (
        "1password-secret-key",
        "A3-",
        r"[A-Z0-9]{6}-(?:[A-Z0-9]{11}|[A-Z0-9]{6}-[A-Z0-9]{5})-[A-Z0-9]{5}-[A-Z0-9]{5}-[A-Z0-9]{5}",
    ),
    ("age", "AGE-SECRET-KEY-1", r"[0-9A-Z]{58}", None),
    ("tailscale", "", r"(?:^|[^A-Za-z])(?P<secret>tskey-[a-z]+-\w+-\w{16,})", None),
    ("clickhouse", "4b1d", r"[A-Za-z0-9]{38}\b"),
    ("openshift", "sha256~", r"[\w-]{43}"),
    ("prefect", "pnu_ pnb_", r"[A-Za-z0-9]{36}"),
    ("confluent", "cflt", r"[\w/+]{50,}"),
    ("cloudflare-origin-ca", "v1.0-", r"[0-9a-f]{24}-[0-9a-f]{146}"),
    ("cloudflare", "cfut_ cfat_ cfk_", r"[A-Za-z0-9_-]{30,}"),
    ("yandex", "AQVN y0_", r"[\w-]{35,}"),
    ("yandex-iam", "t1.", r"[A-Za-z0-9_=-]{20,}\.[A-Za-z0-9_=-]{60,}"),
)

_CODE: tuple[Row, ...] = (
    ("github", "ghp_ gho_ ghu_ ghr_", r"[A-Za-z0-9]{36,}"),
    ("github-installation", "ghs_", r"[\w.-]{36,}"),
    ("github-fine-grained", "github_pat_", r"\w{60,}"),
    (
        "gitlab",
        "glpat- gldt- glrt- glft- glimt- glagent- gloas- glsoat- glptt- glffct- glcbt- glwt- glrtr-",
        r"[\w.-]{20,}",
    ),
    ("gitlab-runner", "GR1348941", r"[\w-]{20,}"),
    ("gitlab-session", "_gitlab_session=", r"[0-9a-z]{32}"),
    ("bitbucket", "ATBB ATCTT3xFf", r"[\w=-]{24,}"),
    ("atlassian", "ATATT3xFf ATOA", r"[\w=-]{60,}"),
    ("npm", "npm_", r"[A-Za-z0-9]{36,}"),
    ("pypi", "pypi-AgEIcHlwaS5vcmc pypi-AgENdGVzdC5weXBpLm9yZw", r"[\w-]{40,}"),
    ("rubygems", "rubygems_", r"[0-9a-f]{48}"),
    ("crates", "cio", r"[A-Za-z0-9]{32}\b", "random_body"),
    ("nuget", "oy2", r"[a-z0-9]{43}\b"),
    ("clojars", "CLOJARS_", r"[0-9a-zA-Z]{58,}"),
    ("docker", "dckr_pat_ dckr_oat_", r"[\w-]{27,}"),
    ("artifactory-reference", "cmVmd", r"[A-Za-z0-9]{55,}"),
    ("artifactory-api", "AKC", r"[A-Za-z0-9]{10,}", "random"),
    ("artifactory-password", "AP", r"[\dA-F][A-Za-z0-9]{8,}", "random"),
    ("circleci", "CCIPAT_ CCIPRJ_", r"\w{22,}_[0-9a-f]{40}"),
    ("buildkite", "bkua_ bkpt_ bkaj_", r"[0-9a-f]{40}"),
    ("sonar", "squ_ sqp_ sqa_", r"[0-9a-f]{40}"),
    ("sourcegraph", "sgp_ slk_", r"(?:(?:[0-9a-fA-F]{16}|local)_)?[0-9a-fA-F]{40}\b"),
    ("snyk", "snyk_", r"[\w.-]{30,}"),
    ("codecov", "codecov_", r"[\w-]{30,}", "random_body"),
    ("postman", "PMAK- PMAT-", r"[A-Za-z0-9]{24,}-?[0-9a-zA-Z]*"),
    ("readme", "rdme_", r"[a-z0-9]{60,}"),
    ("infracost", "ico-", r"[A-Za-z0-9]{32}\b", "random_body"),
    ("harness", "pat. sat.", r"[\w-]{22}\.[0-9a-zA-Z]{24}\.[0-9a-zA-Z]{20}"),
    ("octopus", "API-", r"[A-Z0-9]{26}\b"),
    ("launchdarkly", "sdk- mob-", r"[0-9a-f]{8}-[0-9a-f]{4}-4[0-9a-f]{3}-[0-9a-f]{4}-[0-9a-f]{12}"),
    ("settlemint", "sm_aat_ sm_pat_ sm_sat_", r"[A-Za-z0-9]{16,}"),
)

_TALK_AND_WORK: tuple[Row, ...] = (
    (
        "slack",
        "xoxa- xoxb- xoxc- xoxd- xoxe- xoxo- xoxp- xoxr- xoxs- xoxe.xoxb- xoxe.xoxp-",
        r"[A-Za-z0-9%/+-]{24,}",
    ),
    ("slack-app", "xapp-", r"\d-[A-Za-z0-9]+-\d+-[0-9a-z]+"),
    (
        "slack-webhook",
        "",
        r"hooks\.slack\.com/(?:services|workflows|triggers)/(?P<secret>[A-Za-z0-9+/]{20,})",
        None,
    ),
    ("discord-webhook", "", r"discord(?:app)?\.com/api/(?:v\d+/)?webhooks/(?P<secret>\d{16,}/[\w-]{30,})"),
    (
        "teams-webhook",
        "",
        r"webhook\.office\.com/webhookb2/(?P<secret>[\w@-]{30,}/IncomingWebhook/[\w/-]{30,})",
    ),
    ("zapier-webhook", "", r"hooks\.zapier\.com/hooks/catch/(?P<secret>\d{4,}/\w{5,})"),
    (
        "discord-bot",
        "",
        r"\b(?P<secret>[MNOA][A-Za-z0-9_-]{23,25}\.[A-Za-z0-9_-]{6}\.[A-Za-z0-9_-]{27,38})",
        "random",
    ),
    ("telegram", "", r"\b(?P<secret>\d{8,10}:AA[\w-]{33})"),
    ("linear", "lin_api_ lin_oauth_", r"[A-Za-z0-9]{32,}"),
    ("notion", "ntn_", r"[A-Za-z0-9]{40,}"),
    ("notion-legacy", "secret_", r"[A-Za-z0-9]{43}\b"),
    ("asana", "", r"\b(?P<secret>[12]/\d{16}(?:/\d{16})?:[0-9a-f]{32})"),
    ("figma", "figd_ figu_ figo_ figoh_", r"[\w-]{20,}", "random_body"),
    ("airtable", "", r"\b(?P<secret>pat[A-Za-z0-9]{14}\.[0-9a-f]{64})"),
    ("typeform", "tfp_", r"[\w.=-]{40,}"),
    ("contentful", "CFPAT-", r"[\w-]{40,}"),
    ("frameio", "fio-u-", r"[\w=-]{60,}"),
    ("dropbox", "sl.", r"[\w-]{120,}"),
    ("adafruit", "aio_", r"[A-Za-z0-9]{28}\b"),
    ("adobe", "p8e- p8-", r"[\w-]{32,}", "random_body"),
    ("mapbox-secret", "sk.eyJ", r"[\w-]{20,}\.[\w-]{20,}"),
    ("okta", "", r"\bSSWS\s+(?P<secret>00[\w-]{40})"),
    ("facebook", "EAA", r"[A-Za-z0-9]{90,}"),
    ("facebook-app", "", r"\b(?P<secret>\d{15,16}(?:\||%7C)[\w-]{27,40})"),
    ("intra42", "s-s4t2ud- s-s4t2af-", r"[0-9a-f]{64}"),
    ("twitter", "AAAAAAAAAAAAAAAAAAAAA", r"[A-Za-z0-9%]{60,}"),
    ("shopify", "shpat_ shpca_ shppa_ shpss_ shptka_", r"[A-Za-z0-9]{32,}"),
    ("sentry", "sntrys_ sntryu_ sntrya_", r"[A-Za-z0-9+/=_]{60,}"),
)

_MONEY_AND_MAIL: tuple[Row, ...] = (
    ("stripe", "sk_live_ sk_test_ sk_prod_ rk_live_ rk_test_ rk_prod_", r"[A-Za-z0-9]{10,}"),
    ("stripe-webhook", "whsec_", r"[A-Za-z0-9+/=]{24,}"),
    ("square", "sq0atp- sq0csp- sq0idp-", r"[\w-]{22,}"),
    ("square-access", "EAAA", r"[\w-]{60}\b"),
    ("paypal-braintree", "access_token$production$ access_token$sandbox$", r"[0-9a-z]{16}\$[0-9a-f]{32}"),
    ("plaid", "access-sandbox- access-development- access-production-", r"[0-9a-f-]{36}"),
    ("flutterwave", "FLWSECK_TEST- FLWSECK- FLWPUBK_TEST-", r"[0-9a-zA-Z-]{12,}"),
    ("razorpay", "rzp_live_ rzp_test_", r"[A-Za-z0-9]{14,}"),
    ("gocardless", "live_ sandbox_", r"[\w=-]{38,}", "random_body"),
    ("easypost", "EZAK EZTK", r"[A-Za-z0-9]{54,}"),
    ("shippo", "shippo_live_ shippo_test_", r"[0-9a-f]{40}"),
    ("duffel", "duffel_live_ duffel_test_", r"[\w=-]{40,}"),
    ("lob", "live_ test_", r"(?:pub_)?[0-9a-f]{31,35}\b"),
    ("twilio", "SK", r"[0-9a-f]{32}\b"),
    ("sendgrid", "", r"(?P<secret>SG\.[\w-]{16,32}\.[\w-]{40,})"),
    ("mailgun", "key-", r"[0-9a-f]{32}\b"),
    ("mailgun-signing", "", r"\b(?P<secret>[0-9a-f]{32}-[0-9a-f]{8}-[0-9a-f]{8})\b"),
    ("mailchimp", "", r"\b(?P<secret>[0-9a-f]{32}-us\d{1,2})\b"),
    ("brevo", "xkeysib- xsmtpsib-", r"[0-9a-f]{64}-[A-Za-z0-9]{16}"),
    ("resend", "re_", r"[A-Za-z0-9]{8,}_[A-Za-z0-9]{20,}", "random_body"),
    ("mandrill", "md-", r"[\w-]{22}\b", "random_body"),
    ("newrelic", "NRAK- NRJS- NRII- NRIQ- NRRA- NRSP-", r"[\w-]{19,}"),
    ("grafana", "glc_ glsa_", r"[A-Za-z0-9+/=_]{32,}"),
    ("grafana-legacy", "eyJrIjoi", r"[A-Za-z0-9+/=]{60,}"),
    ("dynatrace", "dt0c01. dt0s01. dt0s16.", r"[A-Za-z0-9]{24}\.[A-Za-z0-9]{64}"),
    ("honeycomb", "hcaik_ hcxik_ hcaic_", r"\w{50,}"),
    ("defined-networking", "dnkey-", r"[\w=-]{60,}"),
    ("maxmind", "", r"\b(?P<secret>[A-Za-z0-9]{6}_[A-Za-z0-9]{29}_mmk)\b"),
    ("scalingo", "tk-us-", r"[\w-]{48}"),
    ("nostr", "nsec1", r"[02-9ac-hj-np-z]{58}"),
    ("bip32", "xprv", r"[1-9A-HJ-NP-Za-km-z]{100,}"),
)


def vendor_rules() -> list[Rule]:
    """The rules of all rows."""
    return [_rule(*row) for row in (*_MODELS, *_CLOUDS, *_CODE, *_TALK_AND_WORK, *_MONEY_AND_MAIL)]


_KEYWORDS = {
    "terraform": (".atlasv1.",),
    "tailscale": ("tskey-",),
    "slack-webhook": ("hooks.slack.com",),
    "discord-webhook": ("/webhooks/",),
    "teams-webhook": ("webhook.office.com",),
    "zapier-webhook": ("hooks.zapier.com",),
    "facebook-app": ("|", "%7C"),
    "okta": ("SSWS",),
    "telegram": (":AA",),
    "sendgrid": ("SG.",),
    "mailchimp": ("-us",),
    "maxmind": ("_mmk",),
    "discord-bot": (".",),
    "asana": ("1/", "2/"),
    "mailgun-signing": ("-",),
    "airtable": ("pat",),
}
"""For the rows whose token does not start with a fixed word."""


def _rule(rule_id: str, starts: str, body: str, check: str | None = "token") -> Rule:
    heads = tuple(starts.split())
    if not heads:
        return Rule(rule_id, body, _KEYWORDS.get(rule_id, ()), check)
    head = "|".join(start.replace(".", r"\.").replace("$", r"\$") for start in heads)
    return Rule(rule_id, rf"\b(?:{head}){body}", heads, check)
