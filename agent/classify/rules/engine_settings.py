"""Settings that SGLang and vLLM refuse: values, combinations, quantisation, attention backends, ranks."""

from agent.classify.lines import EXCEPTION_LINE
from agent.classify.rule import NOT_OURS, ExitFacts, Priority, Rule
from agent.reasons import Policy, Reason

_REFUSAL = r"(?:\b(?:Value|NotImplemented|Assertion|Runtime|Argument|Type)Error: |(?:Value|Assertion) error, ).*"
_ABOUT_HARDWARE = r"(?i:capability|compute_?\d|\bsm_?\d{2,3}|\bGPUs? arch|current GPU|on this (?:device|GPU|platform))"
_HELP = "Change the setting that the line names, or leave it at its default; the engine's --help lists what it accepts."

RULES = (
    Rule(
        code="C010",
        name="combination-unsupported",
        reason=Reason.CONFIG_INVALID,
        any_of=(
            _REFUSAL
            + r"\b(?:is|are|was) (?:not (?:yet |currently )?supported|unsupported|not allowed|not implemented)\b",
            _REFUSAL + r"\b(?:does|do) not (?:yet |currently )?(?:support|work with|allow)\b",
            _REFUSAL + r"\b(?:only|currently) (?:supports?|works?|compatible|supported|available)\b",
            _REFUSAL
            + r"\b(?:cannot|can't|can not|must not|should not) be (?:used|enabled|combined|set|specified|both)\b",
            _REFUSAL + r"\b(?:is|are) (?:incompatible|not compatible|mutually exclusive)\b",
            r"\bmutually exclusive\b",
        ),
        none_of=(_ABOUT_HARDWARE, r"during CUDA graph capture|graph capture", r"Expected result"),
        cure="These settings exclude each other here: " + _HELP,
        source="vLLM 0.4 to 0.33 config/*.py and engine/arg_utils.py; SGLang 0.3 to 0.5.23 server_args.py, arg_groups/",
        priority=Priority.GENERAL,
    ),
    Rule(
        code="C011",
        name="value-out-of-range",
        reason=Reason.CONFIG_INVALID,
        any_of=(
            _REFUSAL + r"\b(?:must|should|has to|needs to|have to) (?:be|match|equal|contain|have|not exceed)\b",
            _REFUSAL + r"\b(?:is|are) (?:required|needed|necessary) (?:when|for|if|with|to)\b",
            _REFUSAL
            + r"(?i:\binvalid (?:value|choice|argument|option|config\w*|combination|type|\w+ backend|\w+ size)\b)",
            _REFUSAL + r"(?i:\b(?:unknown|unsupported|unrecognized|invalid) (?:quantization|attention|"
            r"load format|kv.?cache|dtype|moe|backend|scheduler|parser|method|device|executor|option|argument)\w*\b)",
            _REFUSAL + r"\b(?:(?:is|are) (?:larger|greater|smaller|less) than|exceeds?)\b",
            r"\bValueError: .*\brequires? |(?:Value|Assertion)Error: .*\bexpects? .*\bto be\b",
            _REFUSAL + r"(?i:\bplease (?:set|specify|use|provide|enable|disable|increase|decrease|reduce|add)\b)",
        ),
        none_of=(
            _ABOUT_HARDWARE,
            r"(?i:memory|at address|q_data_type|tensor|torch\.Size|CUDA|weights?\b.*load|scalar|failed with error)",
        ),
        cure=_HELP,
        source="vLLM 0.4 to 0.33 config/*.py; SGLang 0.3 to 0.5.23 server_args.py, configs/model_config.py",
        priority=Priority.GENERAL,
    ),
    Rule(
        code="C012",
        name="quantization-refused",
        reason=Reason.CONFIG_INVALID,
        any_of=(
            r"Quantization method specified in the model config",
            r"is not supported for quantization method",
            r"(?:Unknown|Unsupported|Invalid) quantization (?:method|type|config)",
            r"Cannot find the config file for \w+",
        ),
        blames=("quantization",),
        cure="Use the method and dtype that the checkpoint was quantised with, and a number of ranks its groups "
        "divide by.",
        source="vLLM 0.4 to 0.33 config/model.py _verify_quantization, quantization/utils/marlin_utils.py",
    ),
    Rule(
        code="C013",
        name="attention-backend-refused",
        reason=Reason.CONFIG_INVALID,
        any_of=(
            r"No valid attention backend found",
            r"Selected backend \S+ is not valid for this configuration",
            r"(?i:invalid attention backend|attention backend \S+ is not (?:valid|registered|supported))",
        ),
        none_of=(r"Reasons: \{[^}]*compute capability not supported[^}]*\}\.?$",),
        blames=("attention_backend",),
        cure="The line lists why each backend refuses: change that setting (often the KV cache's dtype or the head "
        "size).",
        source="vLLM 0.10 to 0.33 platforms/cuda.py get_attn_backend_cls",
    ),
    Rule(
        code="C014",
        name="fewer-devices-than-ranks",
        reason=Reason.CONFIG_INVALID,
        any_of=(
            r"number of required \w+ exceeds the total number of available",
            r"Ray does not allocate any GPUs on the driver node",
            r"Cannot provide a placement group",
            r"(?:invalid device ordinal|cudaErrorInvalidDevice)",
            r"(?i:world size \(?\d+\)? (?:is larger|exceeds|is greater) .{0,60}(?:GPU|device))",
            r"(?i:(?:tensor|pipeline|data).parallel.{0,20}size.{0,40}(?:larger|greater|exceeds?).{0,60}(?:GPU|device))",
            r"(?i:not enough (?:GPUs|devices|resources)|requires? (?:at least )?\d+ GPUs,? but)",
            r"DP adjusted local rank \d+ is out of bounds",
        ),
        blames=("tensor_parallel_size",),
        cure="As many visible GPUs as ranks on each node: lower the parallel sizes or correct CUDA_VISIBLE_DEVICES.",
        source="vLLM 0.4 to 0.33 executor/ray_utils.py, ray_distributed_executor.py; CUDA 12.8 code 101",
    ),
    Rule(
        code="C015",
        name="setting-does-not-validate",
        reason=Reason.CONFIG_INVALID,
        any_of=(
            r"^(?:\S.* )?  ?(?:Value|Assertion) error, .*\[type=",
            r"^\s+(?:Value|Assertion) error, ",
            r"(?:Input should be|Field required|Extra inputs are not permitted|Unexpected keyword argument).*\[type=",
        ),
        cure=_HELP,
        source="pydantic 2.14 ValidationError.__str__, as vLLM 0.9 to 0.33 raises it from its configuration classes",
        priority=Priority.GENERAL,
    ),
    Rule(
        code="C016",
        name="remote-code-not-trusted",
        reason=Reason.CONFIG_INVALID,
        any_of=(
            r"requires you to execute the (?:configuration|tokenizer|model\w*|image processor|code) file",
            r"contains custom code which must be executed",
            r"trust_remote_code=True",
        ),
        none_of=(r"(?i:trust_remote_code=True[,)])",),
        blames=("trust_remote_code",),
        cure="Read the model's code, then allow it with --trust-remote-code.",
        source="transformers 4.30 to 5.24 dynamic_module_utils.py resolve_trust_remote_code",
    ),
    Rule(
        code="C017",
        name="expert-parallel-refused",
        reason=Reason.CONFIG_INVALID,
        any_of=(
            r"Number of experts in the model must be greater than 0",
            r"(?i:\bep_?size\b.{0,60}(?:must|should|has to|divisible|only))",
            r"(?i:num_(?:physical_|logical_|redundant_)?experts.{0,60}(?:must|should|divisible|set to \d|greater|"
            r"less))",
            r"(?i:(?:EPLB|expert parallel\w*|moe.a2a.backend|all2all.backend|deepep.mode).{0,60}(?:requires?|only|"
            r"must))",
        ),
        none_of=(r"(?i:\bsm_?\d{2,3}|capability)", r"Auto-|is set to|adjusted"),
        blames=("expert_parallel", "ep_size", "moe_a2a_backend", "all2all_backend"),
        cure="The number of ranks must divide the experts (and the redundant ones), and the exchange must fit the "
        "layout.",
        source="vLLM 0.33 config/parallel.py and config/model.py; SGLang 0.5.23 arg_groups/moe hooks",
    ),
    Rule(
        code="C018",
        name="refused-while-settings-are-read",
        reason=Reason.CONFIG_INVALID,
        any_of=(EXCEPTION_LINE,),
        none_of=(
            r"(?:FileNotFound|ModuleNotFound|Import|Memory|Permission|Connection|Timeout)Error",
            r"Executor failed\.",
        ),
        frame=(
            r"server_args\.py|arg_utils\.py|/arg_groups/|(?:vllm|srt)/configs?/\w+\.py|(?:vllm|srt)/config\.py",
            r"(?:pydantic|argparse|model_config\.py)",
            r", in (?:__post_init__|_verify_\w+|verify_with_\w+|check_server_args|from_cli_args|_handle_\w+)$",
        ),
        exit_facts=ExitFacts(causes=NOT_OURS),
        cure="The engine gave up while it read its settings: the frame above the line shows which one it was "
        "looking at.",
        source="SGLang 0.5.1 to 0.5.23 server_args.py, arg_groups/; vLLM 0.4 to 0.33 config/, engine/arg_utils.py",
        priority=Priority.SYMPTOM,
    ),
    Rule(
        code="C023",
        name="dispatch-buffer-smaller-than-a-batch",
        reason=Reason.CONFIG_INVALID,
        any_of=(r"(?:DeepEP v2|FlashInfer MoE A2A) per-rank .{0,60}\bexceeds\b",),
        blames=("moe_a2a_backend", "chunked_prefill_size", "cuda_graph_max_bs"),
        cure="The all-to-all's buffer holds fewer tokens a rank than a prefill chunk or a decode graph brings: lower "
        "those, or raise the environment variable that the line names.",
        source="SGLang 0.5.23 srt/arg_groups/moe_hook.py, validate_deepep_v2_dispatch_token_budget",
        is_decisive=True,
    ),
    Rule(
        code="C019",
        name="architecture-not-in-engine",
        reason=Reason.CONFIG_INVALID,
        any_of=(
            r"Model architectures .* (?:are not supported|failed to be inspected)",
            r"does not support LoRA, but LoRA is enabled",
            r"(?:has no|does not have a?) (?:vLLM|SGLang) implementation",
        ),
        cure="This engine version cannot run this model: upgrade it, or use the model implementation of transformers.",
        source="vLLM 0.4 to 0.33 model_executor/models/registry.py; SGLang 0.3 to 0.5.23 models/registry.py",
    ),
    Rule(
        code="C021",
        name="value-refused",
        reason=Reason.CONFIG_INVALID,
        any_of=(r"\bValueError: ",),
        none_of=(r"(?i:\bnans?\b|memory|leak|pickle|buffer|tensor|array|corrupt)",),
        exit_facts=ExitFacts(causes=NOT_OURS),
        cure="The engines raise ValueError for a value they were given: look at the setting that the line is about.",
        source="vLLM 0.4 to 0.33 and SGLang 0.3 to 0.5.23: by convention, checks of values; CPython 3.11 ValueError",
        priority=Priority.BARE,
        is_catch_all=True,
        own_policy=Policy.CONFIRM_ONCE,  # the convention is not kept everywhere
    ),
    Rule(
        code="C020",
        name="length-beyond-model",
        reason=Reason.CONFIG_INVALID,
        any_of=(
            r"User-specified (?P<option>max_model_len|context_length) \(\d+\) is greater than the derived",
            r"\b(?P<option>max_num_batched_tokens) \(\d+\) (?:is smaller than|must be)",
            r"\b(?P<option>max_num_seqs) \(\d+\) (?:is|must)",
        ),
        cure="{option} does not fit the model or its neighbours: lower or raise it as the line says.",
        source="vLLM 0.4 to 0.33 config/model.py, config/scheduler.py; SGLang 0.3 to 0.5.23 configs/model_config.py",
    ),
    Rule(
        code="C022",
        name="speculative-method-refused",
        reason=Reason.CONFIG_INVALID,
        any_of=(
            r"(?i:\w{0,40}Error: .{0,80}\b(?:unsupported|unknown|invalid|unrecognized) speculative (?:decoding )?"
            r"(?:method|algorithm)\b)",
        ),
        none_of=(_ABOUT_HARDWARE,),
        blames=("speculative_method", "speculative_algorithm"),
        cure="This engine, or this build of it, has no such method of speculation: choose another one.",
        source="vLLM 0.32 config/speculative.py, v1/worker/gpu_model_runner.py; SGLang 0.3 to 0.5.23 server_args.py",
    ),
)
