"""Summaries by a model behind any OpenAI-compatible endpoint.

The conversation is sent as data in one user message: there is no chat to continue and no tool to call. A conversation
that is longer than the model's window is sent in pieces, and each reply updates the summary of the pieces before.
"""

from __future__ import annotations

import asyncio
import json
import os
import re
from collections.abc import Callable, Mapping, Set
from dataclasses import dataclass
from importlib.util import find_spec
from typing import Any

from compact.errors import CompactError, MissingExtra, says_overflow
from compact.messages.excerpts import fitting_head
from compact.summaries import strategies, templates
from compact.summaries.checking.verification import without_reasoning
from compact.summaries.chunks import chunks, quote_previous
from compact.summaries.endpoint_client import open_client, say_if_withheld, why_no_key
from compact.summaries.request import Reply, SummaryRequest
from compact.summaries.templates import Prompt

_ASKED_SHARE = 7 / 8
"""The model is asked for a little less than there is room for; code adds the facts that it left out."""
_WINDOW_MARGIN = 0.85
"""Share of the window that is used, because the model's tokenizer may count differently."""
_THINKING_TOKENS = 256
_LEAST_CHUNK = 200
_MOST_PIECES = 16
"""The most pieces that one summary is made from. A longer conversation is sent shortened."""
_OVERFLOWS = 3
_LIMIT = re.compile(
    r"(?:n_ctx\D{1,6}|context (?:length|window|size)\D{1,24}|maximum\D{1,40}|limit\D{1,16})(\d{3,8})"
)
_OPTIONAL = ("seed", "temperature", "max_tokens")


@dataclass(frozen=True, slots=True, kw_only=True)
class SummaryEndpoint:
    """A model that writes summaries, and how to ask it."""

    model: str
    base_url: str | None
    window: int
    prompt: Prompt | None = None
    """The host's own prompt; None for that of the strategy."""
    summary_tag: str = "summary"
    seed: int | None = 42
    temperature: float = 0
    timeout_s: float = 60
    max_reply_bytes: int = 2_000_000
    """A larger answer, after decompression, is a failure."""


def why_unavailable(base_url: str | None) -> str:
    """Why no model can be asked: the extra is missing, there is neither an endpoint nor a key, or the key would be exposed.

    Empty if one can be asked.
    """
    if find_spec("openai") is None:
        return str(MissingExtra.named("llm", "a summary by a model"))
    return why_no_key(base_url, os.environ)


async def summarize(request: SummaryRequest, endpoint: SummaryEndpoint, count: Callable[[str], int]) -> Reply:
    """Ask the model for a summary. Only a request that is too long is retried; all other errors of the client are raised.

    Raises:
        CompactError: the endpoint redirects, or its answer is too large or no reply.
    """
    import openai

    window = endpoint.window
    say_if_withheld(endpoint.base_url, os.environ)
    async with open_client(endpoint.base_url, endpoint.timeout_s, endpoint.max_reply_bytes) as client:
        model = _Model(client, endpoint)
        for left in reversed(range(_OVERFLOWS)):
            try:
                return await _roll(request, endpoint, count, window, model)
            except openai.APIConnectionError as problem:
                if isinstance(problem.__cause__, CompactError):  # ours, which the client takes for its own
                    raise problem.__cause__ from None
                raise
            except openai.BadRequestError as problem:
                if not left or not says_overflow(str(problem)):
                    raise
                named = _LIMIT.search(str(problem))
                window = min(window // 2, int(named.group(1)) if named else window)
    raise AssertionError("unreachable")


async def _roll(
    request: SummaryRequest,
    endpoint: SummaryEndpoint,
    count: Callable[[str], int],
    window: int,
    model: _Model,
) -> Reply:
    """Send the pieces one by one, each with the summary so far, and return the last reply."""
    asked = max(16, int(request.max_tokens * _ASKED_SHARE))
    output = min(_output_tokens(request.max_tokens), max(64, window // 3))
    system = _system_prompt(request, endpoint, asked, updating=True)
    taken = output + count(system) + max(count(request.previous), request.max_tokens)
    room = max(_LEAST_CHUNK, int(window * _WINDOW_MARGIN) - taken)
    previous = request.previous
    pieces = chunks(request.messages, request.dialect, room, count, request.numbered, _MOST_PIECES)
    for place, piece in enumerate(pieces):
        system = _system_prompt(request, endpoint, asked, updating=bool(previous))
        reply = await model.ask(system, _data(piece, previous), output)
        text = without_reasoning(reply.text)
        if place == len(pieces) - 1 or reply.refused or reply.cut_off or not text:
            return reply
        previous = fitting_head(text, request.max_tokens, count)
    raise AssertionError("unreachable")


class _Model:
    """The model behind an endpoint. A setting that it refused once is not sent again."""

    def __init__(self, client: Any, endpoint: SummaryEndpoint) -> None:
        self._client = client
        self._endpoint = endpoint
        self._refused: set[str] = set()

    async def ask(self, system: str, data: str, output: int) -> Reply:
        """Ask for at most `output` tokens, thinking included."""
        async with asyncio.timeout(self._endpoint.timeout_s):
            messages = [{"role": "system", "content": system}, {"role": "user", "content": data}]
            answer = await self._create({"model": self._endpoint.model, "messages": messages}, output)
        return _read_reply(answer, self._endpoint.summary_tag)

    async def _create(self, wanted: Mapping[str, Any], output: int) -> str:
        """Create the completion, as text: the client's own objects take a thousand times the room. A setting that the model refuses is left out, or sent under its other name."""
        import openai

        for left in reversed(range(len(_OPTIONAL) + 1)):
            try:
                create = self._client.chat.completions.with_raw_response.create
                answer = await create(**wanted, **self._settings(output))
                return bytes(answer.content).decode("utf-8", "replace")
            except openai.BadRequestError as problem:
                refused = _refused_setting(str(problem), set(_OPTIONAL) - self._refused)
                if refused is None or not left:
                    raise
                self._refused.add(refused)
        raise AssertionError("unreachable")

    def _settings(self, output: int) -> dict[str, Any]:
        settings = {
            "seed": self._endpoint.seed,
            "temperature": self._endpoint.temperature,
            "max_tokens": output,
        }
        found = {name: value for name, value in settings.items() if name not in self._refused}
        if "max_tokens" in self._refused:
            found["max_completion_tokens"] = output
        return {name: value for name, value in found.items() if value is not None}


def _refused_setting(problem: str, sent: Set[str]) -> str | None:
    if not re.search(
        r"unsupported|not support|unknown|unrecognized|not permitted|does not allow", problem, re.IGNORECASE
    ):
        return None
    return next((name for name in _OPTIONAL if name in sent and f"'{name}'" in problem), None)


def _read_reply(answer: str, tag: str) -> Reply:
    """Read the reply from a completion. A proxy's page is no JSON; an error with status 200 has no choices.

    Raises:
        CompactError: the completion has no reply.
    """
    try:
        completion = json.loads(answer)
    except RecursionError:
        raise CompactError("the summarizer's answer is nested too deeply") from None
    except ValueError:
        return Reply(answer, by_model=True)
    choices = _inside(completion, "choices")
    if not isinstance(choices, list) or not choices:
        detail = _inside(completion, "error") or "no choices"
        raise CompactError(f"the summarizer's endpoint gave no reply: {str(detail)[:300]}")
    choice = choices[0]
    message, ended = _inside(choice, "message"), _inside(choice, "finish_reason")
    refusal = _text_of(_inside(message, "refusal"))
    content = _text_of(_inside(message, "content"))
    if _inside(message, "tool_calls") and not content:
        raise CompactError("the summarizer called a tool instead of writing; it was given none")
    thought = _text_of(_inside(message, "reasoning_content"))
    text = content or refusal or (f"<think>{thought}</think>" if thought else "")
    return Reply(
        inside_tag(text, tag),
        by_model=True,
        cut_off=ended == "length",
        refused=bool(refusal) or ended == "content_filter",
    )


def _inside(value: Any, name: str) -> Any:
    return value.get(name) if isinstance(value, Mapping) else None


def _text_of(content: Any) -> str:
    """The text of a reply. Some servers answer in parts; parts that are not text, such as thinking, are left out."""
    if isinstance(content, str):
        return content
    parts = content if isinstance(content, list) else ()
    texts = (part.get("text") for part in parts if isinstance(part, Mapping) and part.get("type") == "text")
    return "".join(text for text in texts if isinstance(text, str))


def inside_tag(text: str, tag: str) -> str:
    """The text between the tags, or the whole text if there are none."""
    answer = without_reasoning(text)
    found = re.findall(rf"<{re.escape(tag)}>(.*?)(?:</{re.escape(tag)}>|\Z)", answer, re.DOTALL)
    return str(found[-1]).strip() if found else text  # anything before the last one is a draft


def _system_prompt(
    request: SummaryRequest, endpoint: SummaryEndpoint, max_tokens: int, *, updating: bool
) -> str:
    prompt = endpoint.prompt or templates.load(templates.UPDATE if updating else templates.SUMMARIZE)
    return prompt.fill(
        templates.values_for(strategies.get(request.strategy), max_tokens, endpoint.summary_tag)
    )


def _data(piece: str, previous: str) -> str:
    before = f"{quote_previous(previous)}\n" if previous else ""
    return f"{before}<conversation>\n{piece}\n</conversation>\n\nWrite the summary now."


def _output_tokens(max_tokens: int) -> int:
    """The tokens that the model may write in all: thinking and tags come on top, and tokenizers differ."""
    return 2 * max_tokens + _THINKING_TOKENS
