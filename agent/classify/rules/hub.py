"""Hubs, proxies, tokens; and the load client, which fails against the engine's own address."""

from agent.classify.rule import Priority, Rule
from agent.reasons import Reason

_LOCAL = r"(?i:127\.0\.0\.1|localhost|0\.0\.0\.0|\[?::1\]?)"
_RENDEZVOUS = r"c10d|gloo|TCPStore|socket\.cpp|NCCL"

RULES = (
    Rule(
        code="H001",
        name="hub-refuses",
        reason=Reason.NETWORK_OR_AUTH,
        any_of=(
            r"\b(?:401|403|404|407|429|50[0234]) (?:Client|Server) Error",
            r"\b(?:GatedRepo|RepositoryNotFound|RevisionNotFound|DisabledRepo|RemoteEntryNotFound|HfHubHTTP)Error\b",
            r"Cannot access gated repo|You are trying to access a gated repo|Access to model .* is restricted",
            r"(?i:invalid (?:user )?token|token is (?:required|expired|invalid)|LocalTokenNotFoundError)",
            r"(?:NoCredentialsError|AccessDenied\b|Unable to locate credentials)",
            r"(?i:rate limit(?:ed)? .{0,60}(?:hub|hugging|429)|429 Too Many Requests)",
        ),
        none_of=(_LOCAL, r"HTTP/1\.[01]\" \d{3}"),
        cure="Check the name and revision, log in with a token that may read it (HF_TOKEN), or fetch the model "
        "beforehand.",
        source="huggingface_hub 0.20 to 1.5 utils/_http.py and errors.py; transformers 5.24 utils/hub.py; botocore "
        "1.34",
    ),
    Rule(
        code="H002",
        name="hub-unreachable",
        reason=Reason.NETWORK_OR_AUTH,
        any_of=(
            r"\b(?:MaxRetryError|NewConnectionError|NameResolutionError|ProxyError|ConnectTimeoutError)\b",
            r"(?:SSLError|CERTIFICATE_VERIFY_FAILED|SSLEOFError|SSLCertVerificationError)",
            r"(?:Temporary failure in name resolution|Name or service not known|getaddrinfo failed|"
            r"nodename nor servname)",
            r"(?:Tunnel connection failed|Cannot connect to proxy|Unable to connect to proxy)",
            r"[Cc]ouldn't connect to ['\"]?https?://",
            r"\b(?:requests\.exceptions|httpx|httpcore)\.(?:Connect|Read|Proxy|HTTP|Chunked|Timeout|Remote)\w*",
            r"(?:OfflineModeIsEnabled|outgoing traffic has been disabled|offline mode is enabled)",
            r"(?:Consistency check failed|Connection error, and we cannot find the requested files)",
        ),
        none_of=(_LOCAL, _RENDEZVOUS, r"Cannot find an appropriate cached snapshot|LocalEntryNotFound"),
        cure="The network, a proxy or a certificate is in the way: fetch the model beforehand and set "
        "HF_HUB_OFFLINE=1.",
        source="urllib3 2.5, requests 2.32, httpx 0.28; huggingface_hub 0.20 to 1.5; transformers 5.24 utils/hub.py",
    ),
    Rule(
        code="H003",
        name="proxy-answers-for-engine",
        reason=Reason.NETWORK_OR_AUTH,
        any_of=(r"res=<Response \[(?:403|407|502|503|504)\]>",),
        cure="A proxy took the request that the engine sent to itself: put 127.0.0.1 and localhost into NO_PROXY.",
        source="SGLang 0.4 to 0.5.23 entrypoints/http_server.py, _wait_and_warmup",
    ),
    Rule(
        code="B001",
        name="load-client-cannot-reach-engine",
        reason=Reason.BENCHMARK_ERROR,
        any_of=(
            r"\b(?:ClientConnectorError|ServerDisconnectedError|ClientOSError|ClientPayloadError)\b",
            r"Cannot connect to host \S+:\d+",
            r"(?:MaxRetryError|NewConnectionError|ConnectionError|ConnectError|ReadTimeout).*" + _LOCAL,
            r"ConnectionRefusedError: .*Connection refused",
        ),
        none_of=(_RENDEZVOUS,),
        cure="The client could not talk to the engine: read the engine's own log; client and server need one address.",
        source="aiohttp 3.9 to 3.13 client_exceptions.py; sglang 0.5.23 benchmark/serving.py; vLLM 0.33 benchmarks/",
        priority=Priority.SYMPTOM,
    ),
    Rule(
        code="B002",
        name="load-client-has-no-result",
        reason=Reason.BENCHMARK_ERROR,
        any_of=(
            r"Initial test run failed",
            r"Warmup failed - Please make sure benchmark arguments are correctly specified",
            r"All requests failed",
            r"Successful requests:\s+0\s*$",
            r"(?:bench_serving|benchmark_serving)\S*: error:",
        ),
        cure="Look at the first request's answer: model name, endpoint, token limits or the dataset are not what it "
        "expects.",
        source="sglang 0.5.23 benchmark/serving.py; vLLM 0.33 benchmarks/serve.py",
        priority=Priority.GENERAL,
    ),
    Rule(
        code="B003",
        name="exception-in-load-client",
        reason=Reason.BENCHMARK_ERROR,
        any_of=(r"\b[A-Z]\w*(?:Error|Exception)(?:: |:?$)",),
        frame=(
            r"bench_serving|benchmark_serving|(?:sglang/benchmark|vllm/benchmarks|guidellm)/|bench_one_batch_server",
        ),
        none_of=(r"(?i:CUDA|NCCL|memory)",),
        cure="The load client failed by itself: its dataset, tokenizer or arguments; the engine is not to blame.",
        source="sglang 0.5.23 benchmark/; vLLM 0.33 benchmarks/; guidellm 0.8.1",
        priority=Priority.SYMPTOM,
    ),
    Rule(
        code="B004",
        name="load-client-was-refused",
        reason=Reason.BENCHMARK_ERROR,
        any_of=(r"\[load_client\] benchmark error: .*\bHTTP 4\d\d: ",),
        cure="The server refused a request: its answer says why (the served model's name, prompt and output longer "
        "than the model's context, token ids outside its vocabulary).",
        source="this project's runners/load_client 0.1",
        priority=Priority.GENERAL,
    ),
    Rule(
        code="B005",
        name="load-client-has-a-failed-request",
        reason=Reason.BENCHMARK_ERROR,
        any_of=(r"\[load_client\] benchmark error: ",),
        cure="A request failed while the server lived: read its answer in the line, and the engine's log at that time; "
        "the request's record is in the trial's folder.",
        source="this project's runners/load_client 0.1",
        # A failed request is what the client noticed. Any line of the engine that tells of a failure explains it.
        priority=Priority.FOLLOW_UP,
    ),
)
