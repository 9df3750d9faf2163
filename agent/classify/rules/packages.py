"""Packages that do not fit each other, beyond a module that is not there."""

from agent.classify.rule import Priority, Rule
from agent.reasons import Reason

RULES = (
    Rule(
        code="E010",
        name="package-too-old",
        reason=Reason.MISSING_DEPENDENCY,
        any_of=(
            r"Transformers does not recognize this architecture",
            r"(?i:(?:please|you need to|try to) (?:upgrade|update|install|reinstall) .{0,60}(?:package|version|"
            r"transformers|"
            r"kernel|flashinfer|triton|torch|>=|pip))",
            r"(?i:(?:requires?|needs?) .{0,40}(?:>=|==|version \d).{0,80}(?:but|installed|found|got))",
            r"(?i:\b(?:version|package) .{0,40}(?:is too old|is not compatible|mismatch|conflict))",
            r"A module that was compiled using NumPy 1\.x cannot be run|Numpy is not available",
        ),
        none_of=(r"(?i:driver)", r"\bpip install\b.*already"),
        cure="Install the versions that the engine pins, all of one release; the line names the package.",
        source="transformers 4.30 to 5.24; SGLang 0.3 to 0.5.23 utils/common.py assert_pkg_version; numpy 2.0",
    ),
    Rule(
        code="E011",
        name="optional-package-missing",
        reason=Reason.MISSING_DEPENDENCY,
        any_of=(
            r"(?:Error|Exception): .*\b(?:is|are) not installed\b",
            r"(?:Error|Exception): .*(?:is required .{0,60}|to be |please |Please |\. )[Ii]nstall(?:ed)?\b",
            r"(?:Error|error):? .*\bpip install\b",
        ),
        none_of=(r"(?i:falling back|ninja|nvcc)",),
        cure="Install the package that the line names, in the version it names.",
        source="vLLM 0.33 config/speculative.py, utils/import_utils.py; SGLang 0.5.23 token_dispatcher/deepep.py",
    ),
    Rule(
        code="E012",
        name="operator-not-in-build",
        reason=Reason.MISSING_DEPENDENCY,
        any_of=(
            r"'_OpNamespace' '\w+' object has no attribute",
            r"operator \w+::\w+ does not exist",
            r"Could not (?:find schema for|run) '?(?:sgl_kernel|vllm|_C|_moe_C|flashinfer|torchvision)\w*::\w+",
            r"module '[\w.]+' has no attribute '\w+'",
        ),
        none_of=(r"'symm_mem'", r"torch\._C' has no attribute '_cuda_"),
        cure="The compiled kernels do not fit the Python code: reinstall engine and kernel package of one release.",
        source="torch 2.13 torch/_ops.py; SGLang sgl-kernel 0.1 to 0.4, vLLM 0.33 _custom_ops.py",
        priority=Priority.GENERAL,
    ),
    Rule(
        code="E013",
        name="port-taken",
        reason=Reason.PORT_OR_STALE_PROCESS,
        any_of=(
            r"(?i:port \d+ (?:is |was )?(?:already )?(?:in use|occupied|taken|used|unavailable|not available))",
            r"(?i:is used by a process already|(?:error while attempting to|failed to|cannot|could not) bind\b)",
            r"(?i:another (?:instance|process|server) is already (?:running|using))",
            r"(?i:(?:could not|failed to|unable to|cannot) acquire .{0,20}lock|filelock\S*Timeout)",
        ),
        cure="End the process that holds the port or lock, and launch again with another port.",
        none_of=(r"NVLS|NVLink",),
        source="SGLang 0.5.23 utils/network.py; uvicorn 0.30; asyncio of CPython 3.11; filelock 3.13",
    ),
)
