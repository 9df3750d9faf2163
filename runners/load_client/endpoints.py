"""The two ways to ask an engine for tokens: what is sent, and how the events of the answer are read."""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Any, Protocol

from runners.load_client.answer import Answer, AnswerError
from runners.load_client.job import Api
from runners.load_client.prompts import Prompt

SHOWN = 2000
"""Characters of a server's answer that an error shows."""
_EXPLICIT_END = b"[DONE]"


class Endpoint(Protocol):
    """One API of an engine."""

    path: str

    def body(self, prompt: Prompt, *, ignore_eos: bool) -> dict[str, Any]:
        """Return the JSON body of a greedy streaming request."""

    def read(self, event: Mapping[str, Any], answer: Answer, now: float) -> None:
        """Add an event, which arrived at `now`, to its answer.

        Raises:
            AnswerError: the server gives the request up, or contradicts itself.
            KeyError, TypeError, AttributeError: it is no event of this API.
        """


class OpenAiEndpoint:
    """POST /v1/completions.

    Token ids as prompt, and `return_token_ids`: vLLM 0.10.2 and later, SGLang 0.5.16 and later (0.5.23 read); a server
    that does not know the field ignores it, and then its texts are compared. One event may carry several tokens.
    """

    path = "/v1/completions"

    def __init__(self, model: str) -> None:
        """Ask for `model`."""
        self.model = model

    def body(self, prompt: Prompt, *, ignore_eos: bool) -> dict[str, Any]:
        """Return the JSON body of a greedy streaming request."""
        return {
            "model": self.model,
            "prompt": prompt.text if prompt.input_ids is None else list(prompt.input_ids),
            "max_tokens": prompt.output_tokens,
            "temperature": 0.0,
            "ignore_eos": ignore_eos,
            "stream": True,
            "stream_options": {"include_usage": True},
            "return_token_ids": True,
        }

    def read(self, event: Mapping[str, Any], answer: Answer, now: float) -> None:
        """Add an event to its answer; the counts come last, in an event without tokens."""
        for choice in event["choices"]:
            ids, text = choice.get("token_ids"), choice.get("text") or ""
            if ids:
                answer.ids += ids
            # Without ids nothing says how many tokens a text is: one is assumed, and the total comes with the usage.
            if count := len(ids) if ids is not None else int(bool(text)):
                answer.add_tokens(count, now)
            answer.text += text
            answer.finish_reason = choice.get("finish_reason") or answer.finish_reason
        if usage := event.get("usage"):
            answer.output_tokens = usage["completion_tokens"]
            answer.prompt_tokens = usage["prompt_tokens"]
            if answer.ids and len(answer.ids) != answer.output_tokens:
                raise AnswerError(f"the server sent {len(answer.ids)} token ids and counts {answer.output_tokens}")


class NativeEndpoint:
    """SGLang's POST /generate, which needs no tokenizer. Source: SGLang 0.5.16 and 0.5.23, tokenizer_manager.py.

    Each event holds all ids so far or, with `--incremental-streaming-output`, the new ones alone; `completion_tokens`
    is always the total.
    """

    path = "/generate"

    def body(self, prompt: Prompt, *, ignore_eos: bool) -> dict[str, Any]:
        """Return the JSON body of a greedy streaming request."""
        sampling = {"max_new_tokens": prompt.output_tokens, "temperature": 0.0, "ignore_eos": ignore_eos}
        asked = {"text": prompt.text} if prompt.input_ids is None else {"input_ids": list(prompt.input_ids)}
        return {**asked, "sampling_params": sampling, "stream": True}

    def read(self, event: Mapping[str, Any], answer: Answer, now: float) -> None:
        """Add an event to its answer."""
        meta = event["meta_info"]
        total, ids, text = meta["completion_tokens"], event.get("output_ids"), event.get("text") or ""
        if grown := total - (answer.output_tokens or 0):
            answer.add_tokens(grown, now)
        if ids is not None:
            answer.ids = answer.ids + ids if len(answer.ids) + len(ids) <= total else ids
        answer.text = text if text.startswith(answer.text) else answer.text + text
        answer.output_tokens, answer.prompt_tokens = total, meta.get("prompt_tokens")
        if finish := meta.get("finish_reason"):
            answer.finish_reason = finish["type"]
            if finish["type"] == "abort":
                raise AnswerError(f"the server gave the request up: {str(finish)[:SHOWN]}")
        answer.verify_passes = meta.get("spec_verify_ct", answer.verify_passes)
        # Named so since 0.5.16, which sends both; earlier `spec_accept_histogram` alone.
        histogram = meta.get("spec_correct_drafts_histogram") or meta.get("spec_accept_histogram")
        answer.accepted_histogram = tuple(histogram or answer.accepted_histogram)


def endpoint_of(api: Api, model: str) -> Endpoint:
    """Return the endpoint to ask."""
    return OpenAiEndpoint(model) if api == "openai" else NativeEndpoint()


def read_events(endpoint: Endpoint, events: list[bytes], answer: Answer, now: float) -> None:
    """Add server-sent events, each without its closing empty line, to their answer.

    Raises:
        AnswerError: one of them is an error, or none of this API's.
    """
    for raw in events:
        data = raw.removeprefix(b"data:").strip()
        if not data or data == _EXPLICIT_END or data.startswith(b":"):
            continue
        try:
            event = json.loads(data)
            # vLLM nests its error; older ones put `object: error` beside the message.
            if "error" in event or event.get("object") == "error":
                raise AnswerError(f"the server ended the stream: {_shown(data)}")
            endpoint.read(event, answer, now)
        except (ValueError, KeyError, TypeError, AttributeError) as error:
            raise AnswerError(f"the stream holds no event of this API: {_shown(data)}") from error


def _shown(data: bytes) -> str:
    return data[:SHOWN].decode("utf-8", "replace")
