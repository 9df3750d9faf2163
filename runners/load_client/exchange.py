"""One request over HTTP: sent, and its answer read as it streams in."""

from __future__ import annotations

import asyncio
import json
import os
import time

import aiohttp

from runners.load_client.answer import Answer, AnswerError
from runners.load_client.endpoints import SHOWN, Endpoint, read_events
from runners.load_client.prompts import Prompt

clock = time.perf_counter
_READ_BUFFER_BYTES = 2**20
_KEEP_ALIVE_S = 2.0
"""Shorter than the 5 s of the engines' servers (uvicorn), so that none closes a connection that we are about to use."""
_EVENT_END = b"\n\n"


class Traffic:
    """What came from servers in this process, so that a watcher can tell a slow server from a silent one."""

    chunks: int = 0


TRAFFIC = Traffic()


class HttpError(AnswerError):
    """The server refused the request; `status` is what it answered."""

    def __init__(self, status: int, body: str) -> None:
        """Keep the status and the server's words."""
        super().__init__(f"HTTP {status}: {body}")
        self.status = status


def open_session() -> aiohttp.ClientSession:
    """Return a session without limits of its own: neither on connections nor on time, and past every proxy."""
    return aiohttp.ClientSession(
        connector=aiohttp.TCPConnector(limit=0, keepalive_timeout=_KEEP_ALIVE_S),
        timeout=aiohttp.ClientTimeout(total=None),
        read_bufsize=_READ_BUFFER_BYTES,
        trust_env=False,
    )


async def exchange(
    session: aiohttp.ClientSession,
    url: str,
    endpoint: Endpoint,
    prompt: Prompt,
    *,
    ignore_eos: bool,
    timeout_s: float,
    due_at: float | None = None,
) -> tuple[Answer, AnswerError | None]:
    """Send a prompt and return its answer, whole or as far as it came, and what went wrong if anything did.

    Its times count from `due_at`, when it was to be sent, if that is given.
    """
    payload = json.dumps(endpoint.body(prompt, ignore_eos=ignore_eos)).encode()
    answer = Answer(sent_at=clock() if due_at is None else due_at)
    try:
        async with asyncio.timeout(timeout_s):
            await _stream(session, url.rstrip("/") + endpoint.path, endpoint, payload, answer)
        answer.check(prompt.output_tokens if ignore_eos else None)
    except AnswerError as error:
        return answer, error
    except TimeoutError:
        return answer, AnswerError(f"no end within {timeout_s:g} s ({_so_far(answer)})")
    except (aiohttp.ClientError, OSError) as error:
        return answer, AnswerError(_broken(error, answer))
    return answer, None


async def _stream(session: aiohttp.ClientSession, url: str, endpoint: Endpoint, payload: bytes, answer: Answer) -> None:
    async with session.post(url, data=payload, headers={"content-type": "application/json"}) as response:
        if response.status != 200:
            raise HttpError(response.status, (await response.text(errors="replace"))[:SHOWN].strip())
        rest = b""
        async for chunk in response.content.iter_any():
            now = clock()
            TRAFFIC.chunks += 1
            *events, rest = (rest + chunk).split(_EVENT_END)
            read_events(endpoint, events, answer, now)
        read_events(endpoint, [rest], answer, clock())


def _broken(error: aiohttp.ClientError | OSError, answer: Answer) -> str:
    """Return what became of the connection, in words of ours.

    The library's would blame a transfer encoding, and an exception's name in the log looks like a root.
    """
    if isinstance(error, aiohttp.ClientPayloadError):
        return f"the connection closed within the answer ({_so_far(answer)})"
    if isinstance(error, aiohttp.ServerDisconnectedError):
        return "the connection closed before an answer"
    if isinstance(error, OSError):  # aiohttp's connection errors are among these
        return f"the connection failed: {os.strerror(error.errno) if error.errno else error}"
    return f"the answer cannot be read: {error}"


def _so_far(answer: Answer) -> str:
    return f"{sum(answer.tokens_per_event)} tokens so far"
