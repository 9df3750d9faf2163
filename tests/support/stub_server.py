"""A stand-in for an engine's server: real HTTP in a process of its own, tokens that depend on the prompt alone.

    python tests/support/stub_server.py --port 0 --draft-tokens 3 --acceptance 0.6 --fault die --fault-at 5

It speaks the streams of vLLM 0.32 (POST /v1/completions with token ids) and of SGLang 0.5.23 (POST /generate); its
/metrics page counts as the engine that `--metrics` names. It prints `listening on http://127.0.0.1:PORT`. A fault
strikes the generation request of number `--fault-at` and every later one; what strikes within a stream does so at half
of its tokens.
"""

from __future__ import annotations

import argparse
import asyncio
import json
import os
import random
import signal
import sys
import zlib
from collections.abc import Callable
from typing import Any

FAULTS = ("none", "error_500", "error_event", "stall", "garbage", "early_close", "die", "silent", "short")
"""`silent` accepts and never answers; `short` ends at half of the tokens as if that were all; `die` is SIGKILL."""
MODEL = "stub"
DONE = b"data: [DONE]\n\n"


class Stream:
    """One request being generated: which tokens, and how many a verify pass accepts."""

    def __init__(self, body: dict[str, Any], options: argparse.Namespace, is_faulty: bool) -> None:
        """Read a request's body.

        Raises:
            KeyError, TypeError: it is no request of either API.
        """
        self.is_native = "sampling_params" in body
        prompt = (body.get("input_ids") or body["text"]) if self.is_native else body["prompt"]
        wanted = body["sampling_params"]["max_new_tokens"] if self.is_native else body["max_tokens"]
        self.hash = zlib.crc32(json.dumps(prompt).encode())
        self.prompt_tokens = len(prompt)
        self.fault = options.fault if is_faulty else "none"
        self.wanted = wanted // 2 if self.fault == "short" else wanted
        self.options, self.body = options, body
        self.random = random.Random(self.hash)
        self.sent: list[int] = []
        self.histogram = [0] * (options.draft_tokens + 1)

    def step(self) -> tuple[list[int], int | None]:
        """Return the next tokens, and how many drafts were accepted, None where nothing was verified."""
        accepted: int | None = None
        if self.sent and self.options.draft_tokens:
            accepted = 0
            while accepted < self.options.draft_tokens and self.random.random() < self.options.acceptance:
                accepted += 1
            self.histogram[accepted] += 1
        start = len(self.sent)
        end = min(start + 1 + (accepted or 0), self.wanted)
        tokens = [(self.hash + 7919 * place) % self.options.vocabulary for place in range(start, end)]
        self.sent += tokens
        return tokens, accepted

    def event(self, tokens: list[int]) -> bytes:
        """Return the server-sent event for tokens just generated, last event of the answer included."""
        finish = '"length"' if len(self.sent) >= self.wanted else "null"
        if self.is_native:
            return self._native_event(tokens, '{"type":"length"}' if finish != "null" else "null")
        ids = f',"token_ids":{json.dumps(tokens)}' if self.body.get("return_token_ids") else ""
        text = "".join(f" t{token}" for token in tokens)
        event = (
            f'data: {{"id":"cmpl-{self.hash}","object":"text_completion","created":0,"model":"{MODEL}","choices":'
            f'[{{"index":0,"text":"{text}","logprobs":null,"finish_reason":{finish},"stop_reason":null{ids}}}]}}\n\n'
        )
        if finish != "null" and self.body.get("stream_options", {}).get("include_usage"):
            event += f'data: {{"id":"cmpl-{self.hash}","choices":[],"usage":{json.dumps(self.usage)}}}\n\n'
        return event.encode()

    @property
    def usage(self) -> dict[str, int]:
        """The counts of the answer so far."""
        return {
            "prompt_tokens": self.prompt_tokens,
            "completion_tokens": len(self.sent),
            "total_tokens": self.prompt_tokens + len(self.sent),
        }

    def _native_event(self, tokens: list[int], finish: str) -> bytes:
        passes = sum(self.histogram)
        meta: dict[str, Any] = {"id": str(self.hash), "prompt_tokens": self.prompt_tokens}
        meta["completion_tokens"] = len(self.sent)
        if passes:
            meta |= {"spec_verify_ct": passes, "spec_accept_length": len(self.sent) / passes}
            meta["spec_correct_drafts_histogram"] = self.histogram
        ids = tokens if self.options.incremental else self.sent
        head = json.dumps(meta)[:-1]
        return f'data: {{"output_ids":{json.dumps(ids)},"meta_info":{head},"finish_reason":{finish}}}}}\n\n'.encode()


class Engine:
    """The batch: every step gives each running stream its next tokens, and counts."""

    def __init__(self, options: argparse.Namespace) -> None:
        """Start with no request and all counters at zero."""
        self.options = options
        self.running: dict[Connection, Stream] = {}
        self.num_requests = 0
        self.generated = self.drafts = self.drafted = self.accepted = 0
        self.per_position = [0] * options.draft_tokens
        self.has_work = asyncio.Event()

    def admit(self, connection: Connection, body: dict[str, Any]) -> None:
        """Take a request into the batch, or answer it at once when that is its fault."""
        is_faulty = self.num_requests >= self.options.fault_at
        self.num_requests += 1
        stream = Stream(body, self.options, is_faulty)
        if stream.fault == "error_500":
            connection.answer(500, b'{"error":{"message":"EngineDeadError: api_key=sk-verysecret","code":500}}')
        elif stream.fault != "silent":
            connection.begin_events()
            self.running[connection] = stream
            self.has_work.set()

    async def run(self) -> None:
        """Step for ever; without a step time, as fast as the clients take the events."""
        while True:
            if not self.running:
                self.has_work.clear()
                await self.has_work.wait()
            for connection, stream in list(self.running.items()):
                if connection.can_write:
                    self._step(connection, stream)
            await asyncio.sleep(self.options.step_ms / 1000)

    def _step(self, connection: Connection, stream: Stream) -> None:
        if stream.fault not in ("none", "short") and len(stream.sent) * 2 >= stream.wanted:
            self._strike(connection, stream)
            return
        tokens, accepted = stream.step()
        self.generated += len(tokens)
        if accepted is not None:
            self.drafts += 1
            self.drafted += self.options.draft_tokens
            self.accepted += accepted
            for position in range(accepted):
                self.per_position[position] += 1
        connection.event(stream.event(tokens))
        if len(stream.sent) >= stream.wanted:
            del self.running[connection]
            connection.end_events()

    def _strike(self, connection: Connection, stream: Stream) -> None:
        del self.running[connection]
        if stream.fault == "die":
            os.kill(os.getpid(), signal.SIGKILL)
        elif stream.fault == "early_close":
            connection.transport.close()
        elif stream.fault == "garbage":
            connection.event(b'data: {"choices": [{"te\n\n')
        elif stream.fault == "error_event":
            connection.event(b'data: {"error": {"message": "Internal server error", "code": 500}}\n\n')
            connection.end_events()

    def metrics(self) -> bytes:
        """Return the counters in Prometheus' text format, under an engine's names."""
        labels = f'engine="0",model_name="{MODEL}"'
        if self.options.metrics == "none":
            return b""
        if self.options.metrics == "sglang":
            rows = [f'sglang:generation_tokens_total{{model_name="{MODEL}"}} {float(self.generated)}']
            return "\n".join(rows).encode()
        rows = [f"vllm:generation_tokens_total{{{labels}}} {float(self.generated)}"]
        if self.options.draft_tokens:
            names = ("drafts", "draft_tokens", "accepted_tokens")
            for name, value in zip(names, (self.drafts, self.drafted, self.accepted), strict=True):
                rows.append(f"vllm:spec_decode_num_{name}_total{{{labels}}} {float(value)}")
                rows.append(f"vllm:spec_decode_num_{name}_created{{{labels}}} 1.7e+09")
            for place, value in enumerate(self.per_position):
                name = "vllm:spec_decode_num_accepted_tokens_per_pos_total"
                rows.append(f'{name}{{{labels},position="{place}"}} {float(value)}')
        return ("# HELP and # TYPE lines are comments\n" + "\n".join(rows) + "\n").encode()


class Connection(asyncio.Protocol):
    """HTTP/1.1 with keep-alive, as much of it as a client of an engine uses."""

    transport: asyncio.Transport

    def __init__(self, engine: Engine) -> None:
        """Serve one client of `engine`."""
        self.engine = engine
        self.buffer = b""
        self.can_write = True
        self.routes: dict[str, Callable[[], bytes]] = {
            "GET /health": lambda: b"",
            "GET /v1/models": lambda: json.dumps({"object": "list", "data": [{"id": MODEL}]}).encode(),
            "GET /get_model_info": lambda: json.dumps({"model_path": MODEL}).encode(),
            "GET /server_info": lambda: json.dumps(
                {"version": "0", "api_key": "sesame", "ep_size": None, "tp_size": 1, "cuda_graph_bs": [1]}
            ).encode(),
            "GET /metrics": engine.metrics,
        }

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        """Keep the transport."""
        assert isinstance(transport, asyncio.Transport)
        self.transport = transport

    def connection_lost(self, exc: Exception | None) -> None:
        """Abort what the client no longer waits for."""
        self.engine.running.pop(self, None)

    def pause_writing(self) -> None:
        """Wait for a client that is slower than the batch."""
        self.can_write = False

    def resume_writing(self) -> None:
        """Go on."""
        self.can_write = True

    def data_received(self, data: bytes) -> None:
        """Answer a request once it is complete."""
        self.buffer += data
        head, separator, rest = self.buffer.partition(b"\r\n\r\n")
        lines = head.decode("latin-1").split("\r\n")
        headers = {name.lower(): value.strip() for name, _, value in (line.partition(":") for line in lines[1:])}
        length = int(headers.get("content-length", "0"))
        if separator and len(rest) >= length:
            self.buffer = rest[length:]
            self._route(lines[0].rsplit(" ", 1)[0], rest[:length])

    def _route(self, route: str, body: bytes) -> None:
        if route in self.routes:
            self.answer(200, self.routes[route]())
        elif route in ("POST /v1/completions", "POST /generate"):
            try:
                self.engine.admit(self, json.loads(body))
            except (KeyError, TypeError, ValueError) as error:
                self.answer(400, json.dumps({"error": {"message": repr(error), "code": 400}}).encode())
        else:
            self.answer(404, b'{"detail":"Not Found"}')

    def answer(self, status: int, body: bytes) -> None:
        """Send a whole answer."""
        head = f"HTTP/1.1 {status} X\r\ncontent-type: application/json\r\ncontent-length: {len(body)}\r\n\r\n"
        self.transport.write(head.encode() + body)

    def begin_events(self) -> None:
        """Send the head of a stream of events."""
        head = b"HTTP/1.1 200 OK\r\ncontent-type: text/event-stream\r\ntransfer-encoding: chunked\r\n\r\n"
        self.transport.write(head)

    def event(self, data: bytes) -> None:
        """Send one or more events as a chunk."""
        self.transport.write(b"%x\r\n%b\r\n" % (len(data), data))

    def end_events(self) -> None:
        """Send the end of the stream."""
        self.event(DONE)
        self.transport.write(b"0\r\n\r\n")


async def serve(options: argparse.Namespace) -> None:
    """Serve until SIGTERM or SIGINT."""
    loop, stop = asyncio.get_running_loop(), asyncio.Event()
    for number in (signal.SIGTERM, signal.SIGINT):
        loop.add_signal_handler(number, stop.set)
    engine = Engine(options)
    server = await loop.create_server(lambda: Connection(engine), "127.0.0.1", options.port)
    stepping = asyncio.create_task(engine.run())
    for line in options.log_line:
        print(line, flush=True)
    print(f"listening on http://127.0.0.1:{server.sockets[0].getsockname()[1]}", flush=True)
    await stop.wait()
    stepping.cancel()
    server.close()


def parse(argv: list[str]) -> argparse.Namespace:
    """Return the options of the command line."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--port", type=int, default=0, help="0: a free one")
    parser.add_argument("--vocabulary", type=int, default=1000)
    parser.add_argument("--step-ms", type=float, default=0.0, help="time of one step of the batch")
    parser.add_argument("--draft-tokens", type=int, default=0)
    parser.add_argument("--acceptance", type=float, default=0.5, help="chance of each draft token, in order")
    parser.add_argument("--metrics", choices=("vllm", "sglang", "none"), default="vllm", help="whose counters it shows")
    parser.add_argument("--incremental", action="store_true", help="/generate sends new ids only")
    parser.add_argument("--fault", choices=FAULTS, default="none")
    parser.add_argument("--fault-at", type=int, default=0, help="number of the first request that is struck")
    parser.add_argument("--log-line", action="append", default=[], help="printed before the server listens")
    return parser.parse_args(argv)


if __name__ == "__main__":
    asyncio.run(serve(parse(sys.argv[1:])))
