"""A key goes to the host that it belongs to. What else goes wrong with endpoints is drawn in bench/attack/endpoints.py."""

from __future__ import annotations

import logging
import os
from typing import Any

import pytest
from support.engine import events, summary_of
from support.llm import Answer, good_summary, llm_manager, serving, work

from compact.summaries.endpoint_client import say_if_withheld, why_no_key

SECRETS = {
    "OPENAI_API_KEY": "the-openai-key",
    "OPENAI_ORG_ID": "the-organization",
    "OPENAI_PROJECT_ID": "the-project",
    "OPENAI_CUSTOM_HEADERS": "X-Gateway: the-gateway-key",
}


@pytest.fixture(autouse=True)
def _keys(monkeypatch: pytest.MonkeyPatch) -> None:
    for name in os.environ:
        if "proxy" in name.lower():
            monkeypatch.delenv(name)
    for name in ("COMPACT_SUMMARY_API_KEY", "OPENAI_BASE_URL"):
        monkeypatch.delenv(name, raising=False)
    for name, value in SECRETS.items():
        monkeypatch.setenv(name, value)


def received(base_url: str | None, endpoint: Any) -> str:
    with llm_manager(base_url) as made:
        after = made.manual_compact("s", work())
        assert [event["properties"] for event in events(made, name="error")] == []
        assert "Add an expiry check" in summary_of(after)
    return str(endpoint.headers)


def test_openais_key_does_not_go_to_another_endpoint() -> None:
    with serving(good_summary) as endpoint:
        headers = received(endpoint.base_url, endpoint)
    assert not any(secret.rpartition(" ")[2] in headers for secret in SECRETS.values())
    assert "authorization" not in headers


def test_that_is_said_once_for_each_host(caplog: pytest.LogCaptureFixture) -> None:
    with caplog.at_level(logging.WARNING, "compact"):
        for address in ("https://one.example/v1", "https://one.example/v2", "https://two.example", None):
            say_if_withheld(address, os.environ)
    assert [said.partition(",")[0] for said in caplog.messages] == [
        "OPENAI_API_KEY is not sent to one.example",
        "OPENAI_API_KEY is not sent to two.example",
    ]
    assert all("COMPACT_SUMMARY_API_KEY" in said for said in caplog.messages)


def test_it_goes_to_the_endpoint_that_the_environment_names(monkeypatch: pytest.MonkeyPatch) -> None:
    with serving(good_summary) as endpoint:
        monkeypatch.setenv("OPENAI_BASE_URL", endpoint.base_url)
        for base_url in (None, endpoint.base_url):
            assert "Bearer the-openai-key" in received(base_url, endpoint)
        with serving(good_summary) as other:
            assert "the-openai-key" not in received(other.base_url, other), "another port is another server"


def test_the_summarizers_own_key_goes_to_its_endpoint(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("COMPACT_SUMMARY_API_KEY", "the-summary-key")
    with serving(good_summary) as endpoint:
        headers = received(endpoint.base_url, endpoint)
    assert "Bearer the-summary-key" in headers
    assert not any(secret.rpartition(" ")[2] in headers for secret in SECRETS.values())


def test_a_name_and_password_in_the_address_are_its_own() -> None:
    with serving(good_summary) as endpoint:
        headers = received(endpoint.base_url.replace("http://", "http://name:word@"), endpoint)
    assert "Basic bmFtZTp3b3Jk" in headers


def test_a_proxy_of_the_environment_does_not_see_this_machines_traffic(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    with serving(good_summary) as endpoint, serving(Answer(status=500)) as proxy:
        for name in ("HTTP_PROXY", "http_proxy", "ALL_PROXY"):
            monkeypatch.setenv(name, proxy.base_url.removesuffix("/v1"))
        received(endpoint.base_url, endpoint)
        assert proxy.requests == []


@pytest.mark.parametrize(
    ("base_url", "environment", "problem"),
    [
        (None, {}, "there is no summary.base_url and no key"),
        (None, {"OPENAI_API_KEY": "k"}, ""),
        ("https://llm.example/v1", {"OPENAI_API_KEY": "k"}, ""),
        ("http://llm.example/v1", {"OPENAI_API_KEY": "k"}, ""),
        (
            "http://llm.example/v1",
            {"COMPACT_SUMMARY_API_KEY": "k"},
            "COMPACT_SUMMARY_API_KEY would go to llm.example",
        ),
        ("http://127.0.0.1:1/v1", {"COMPACT_SUMMARY_API_KEY": "k"}, ""),
        ("http://localhost:1/v1", {"COMPACT_SUMMARY_API_KEY": "k"}, ""),
        ("https://llm.example/v1", {"COMPACT_SUMMARY_API_KEY": "k"}, ""),
        (
            None,
            {"OPENAI_API_KEY": "k", "OPENAI_BASE_URL": "http://gateway.example"},
            "OPENAI_API_KEY would go to gateway",
        ),
        (None, {"OPENAI_BASE_URL": "http://gateway.example"}, ""),
    ],
)
def test_no_key_travels_in_clear(base_url: str | None, environment: dict[str, str], problem: str) -> None:
    found = why_no_key(base_url, environment)
    assert found.startswith(problem)
    assert bool(found) is bool(problem)


def test_an_exposed_key_is_a_warning_and_a_summary_without_the_model(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("COMPACT_SUMMARY_API_KEY", "the-summary-key")
    with llm_manager("http://llm.example/v1") as made:
        after = made.manual_compact("s", work())
        (warning,) = events(made, name="warning")
        assert "unencrypted" in warning["properties"]["message"]
        assert "check_" in summary_of(after)


def test_a_large_answer_names_the_setting_that_allows_it() -> None:
    with (
        serving(Answer("word " * 2_000)) as endpoint,
        llm_manager(endpoint.base_url, max_reply_bytes=5_000) as made,
    ):
        made.manual_compact("s", work())
        (failure,) = (event["properties"] for event in events(made, name="error"))
        assert failure["error_type"] == "CompactError"
        assert failure["fallback"] == "extractive"
        assert "more than 5,000 bytes" in failure["message"]
        assert "summary.max_reply_bytes" in failure["message"]
