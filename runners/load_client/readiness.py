"""Ready means one completion served: a health page answers 200 in front of an engine that serves nothing."""

from __future__ import annotations

import asyncio

from runners.load_client.answer import AnswerError
from runners.load_client.job import Api, RequestRecord
from runners.load_client.prompts import Prompt

_PROMPT = Prompt(output_tokens=4, input_ids=tuple(range(5, 13)))
"""Low ids, which every vocabulary has."""


class NotServedError(Exception):
    """No completion was served; the text is what the server answered, or why nothing came."""

    def __init__(self, answer: str, status: int | None) -> None:
        """Keep the answer and, where there was one, its HTTP status."""
        super().__init__(answer)
        self.status = status


def serve_one_completion(base_url: str, api: Api, model: str, timeout_s: float) -> RequestRecord:
    """Have the server complete a short prompt, and return the record of it.

    Args:
        base_url: Scheme, host and port.
        api: Which endpoint to ask.
        model: The name under which the server serves the model.
        timeout_s: Longest wait for the whole answer; a server that refuses connections raises at once.

    Raises:
        NotServedError: with the server's answer. Whether to ask again is the caller's business.
    """
    return asyncio.run(_serve_one(base_url, api, model, timeout_s))


async def _serve_one(base_url: str, api: Api, model: str, timeout_s: float) -> RequestRecord:
    from runners.load_client.endpoints import endpoint_of
    from runners.load_client.exchange import HttpError, clock, exchange, open_session

    endpoint = endpoint_of(api, model)
    async with open_session() as session:
        answer, error = await exchange(session, base_url, endpoint, _PROMPT, ignore_eos=True, timeout_s=timeout_s)
    if isinstance(error, AnswerError):
        status = error.status if isinstance(error, HttpError) else None
        raise NotServedError(str(error), status) from error
    return answer.record(1, 0, answer.sent_at, clock(), None)
