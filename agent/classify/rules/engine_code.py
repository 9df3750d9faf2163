"""Checks and slips of the engine's own code: no message names a cause, but where it came from says what kind it is."""

from agent.classify.lines import EXCEPTION_LINE
from agent.classify.rule import NOT_OURS, ExitFacts, Priority, Rule
from agent.reasons import Reason

_NOT_OURS = ExitFacts(causes=NOT_OURS)
_CURE = (
    "The engine's code does not expect this combination: report it with the command, and try the setting's neighbours."
)

RULES = (
    Rule(
        code="A010",
        name="tensors-disagree",
        reason=Reason.ASSERTION,
        any_of=(
            r"size of tensor a \(\d+\) must match the size of tensor b",
            r"shapes cannot be multiplied|Sizes of tensors must match",
            r"shape '.*' is invalid for input of size",
            r"could not broadcast input array",
            r"(?:not enough|too many) values to unpack",
            r"(?i:dtype of \w+ .{0,60}does not match|expected (?:scalar type|dtype|tensor|m1|.{0,40}same (?:device|"
            r"dtype)))",
            r"Expected (?:all tensors|size|result|.{0,40}to (?:be|have|equal|match))\b",
            r"(?:index|indices) .{0,30}(?:is|are) out of (?:bounds|range)|index out of range",
            r"(?:positional arguments? but|unexpected keyword argument|missing \d+ required positional)",
        ),
        none_of=(r"\[type=",),
        cure=_CURE,
        source="torch 2.13 ATen shape checks; NumPy 2.0; CPython 3.11 call and unpack errors",
        priority=Priority.SYMPTOM,
    ),
    Rule(
        code="A011",
        name="kernel-refuses-its-arguments",
        reason=Reason.ASSERTION,
        any_of=(
            r"Runtime check failed at |\bTORCH_CHECK\b|\bCheck failed\b|CHECK failed",
            r"Error in function '\w+' at |Internal Error: Invalid configuration|\bNUM_MMA_\w+=",
            r"(?i:unsupported (?:head_?(?:dim|size)|num_?heads|page_?size|topk|block_?size|dtype|hidden|group|tile|"
            r"max_mma)\w*)",
            r"(?i:(?:head[_ ]?(?:dim|size)|num[_ ]?heads|page[_ ]?size|hidden[_ ]?size|"
            r"block[_ ]?size)\b.{0,40}not supported)",
        ),
        none_of=(r"(?i:\[type=|compute capability)",),
        cure="This kernel is not made for these shapes: another attention or MoE backend, or another number of ranks.",
        source="FlashInfer 0.1 to 0.6 include/flashinfer/exception.h; sgl-kernel 0.4; TVM FFI 0.1; torch 2.13",
        priority=Priority.SYMPTOM,
    ),
    Rule(
        code="A012",
        name="program-error",
        reason=Reason.ASSERTION,
        any_of=(
            r"\b(?:Key|Index|Type|Attribute|UnboundLocal|Name|ZeroDivision|NotImplemented|Recursion|"
            r"Unicode\w*)Error(?:: |:?$)",
        ),
        none_of=(r"\bKeyError: 'cmpl-",),
        exit_facts=_NOT_OURS,
        cure=_CURE,
        source="CPython 3.11 built-in exceptions that only a programming error raises",
        priority=Priority.BARE,
        is_catch_all=True,
    ),
    Rule(
        code="A013",
        name="exception-in-engine-code",
        reason=Reason.ASSERTION,
        any_of=(EXCEPTION_LINE,),
        none_of=(r"(?:KeyboardInterrupt|SystemExit|CancelledError|BrokenPipeError|EOFError)",),
        frame=(r"(?:site|dist)-packages/|/(?:sglang|vllm|flashinfer|torch|deep_gemm|deep_ep|transformers)/",),
        exit_facts=_NOT_OURS,
        cure=_CURE,
        source="SGLang 0.3 to 0.5.23, vLLM 0.4 to 0.33: exceptions without a family of their own",
        priority=Priority.BARE,
        is_catch_all=True,
    ),
)
