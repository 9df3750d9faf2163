"""Files of the model or draft: weights, configuration, tokenizer, and what does not fit the architecture."""

from agent.classify.lines import EXCEPTION_LINE
from agent.classify.rule import NOT_OURS, ExitFacts, Priority, Rule
from agent.reasons import Reason

_MODEL = ("model", "draft_model")

RULES = (
    Rule(
        code="L001",
        name="weights-file-damaged",
        reason=Reason.MODEL_LOAD,
        any_of=(
            r"\bSafetensorError\b",
            r"Error while deserializing header",
            r"PytorchStreamReader failed|failed finding central directory|invalid magic number; corrupt file",
            r"(?:UnpicklingError|EOFError: Ran out of input)",
            r"(?i:(?:corrupt(?:ed)?|truncated|incomplete) (?:checkpoint|weights?|safetensors|model|file|header))",
        ),
        cure="Fetch the file again (a git-lfs pointer has a hundred bytes), and compare its size or hash with the "
        "hub's.",
        source="safetensors 0.3 to 0.6 src/tensor.rs; torch 2.13 caffe2/serialize/inline_container.cc",
    ),
    Rule(
        code="L002",
        name="weights-do-not-fit-model",
        reason=Reason.MODEL_LOAD,
        any_of=(
            r"Attempted to load weight .* into parameter",
            r"There is no module or parameter named",
            r"[Ff]ollowing weights were not (?:initialized|loaded)",
            r"Error\(s\) in loading state_dict",
            r"(?:Missing|Unexpected) key\(s\) in state_dict",
            r"size mismatch for [\w.]+: copying a param",
            r"KeyError: '[\w.]*(?:layers|embed|lm_head|experts|self_attn|mlp|norm|eagle|draft|fc|d2t|t2d)[\w.]*'",
            r"KeyError: '[\w.]+\.(?:weight\w*|bias|qweight|scales|\w+_scale(?:_inv)?)'",
            r"(?:weight|parameter|tensor) [\w.'\"]+ (?:is )?not found in (?:the )?(?:checkpoint|model|params|state)",
            r"(?i:some weights (?:are|were) (?:missing|not initialized))",
        ),
        blames=_MODEL,
        cure="Checkpoint and architecture differ (another draft, quantisation or number of ranks): use files made "
        "for it.",
        source="vLLM 0.4 to 0.33 model_loader/weight_utils.py, models/utils.py; SGLang 0.5.23 weight_utils.py",
    ),
    Rule(
        code="L003",
        name="model-files-missing",
        reason=Reason.MODEL_LOAD,
        any_of=(
            r"(?:OSError|EnvironmentError|ValueError|Value error).*does not appear to have a file named",
            r"No supported config format found|Error no file named",
            r"Cannot find any (?:model weights|safetensors|\S* ?weights)",
            r"(?i:no (?:model )?(?:weights|safetensors|checkpoint) (?:files? )?(?:were |was )?found)",
            r"Invalid repository ID or local directory",
            r"Cannot find an appropriate cached snapshot|LocalEntryNotFoundError",
            r"Repo id must (?:be|use)|\bHFValidationError\b",
            r"is not a local folder and is not a valid model identifier",
            r"Incorrect path_or_model_id",
            r"No such file or directory: '[^']*(?:\.safetensors|config\.json|tokenizer[^']*|\.bin|index\.json|"
            r"\.model|\.gguf)",
            r"(?i:model (?:path|directory|file) .{0,120}(?:does not exist|not found|is not a directory))",
        ),
        none_of=(r"generation_config", r"(?i:triton|inductor|flashinfer|\.tmp)"),
        blames=_MODEL,
        cure="The path or name has no complete model: check it, or fetch the missing files before the launch.",
        source="transformers 4.30 to 5.24 utils/hub.py; huggingface_hub 0.20 to 1.5; vLLM 0.33 "
        "transformers_utils/config.py",
    ),
    Rule(
        code="L004",
        name="configuration-not-understood",
        reason=Reason.MODEL_LOAD,
        any_of=(
            r"Unrecognized (?:model in|configuration class)|Should have a .model_type. key",
            r"(?i:can't load (?:the )?(?:config|configuration|model|image processor|feature extractor|processor))",
            r"(?i:(?:config|configuration).{0,40}(?:is not a valid JSON|has no attribute))",
            r"(?i:failed to (?:load|parse|read) (?:the )?(?:model|config\w*|hf config|weights|checkpoint)\b)",
        ),
        none_of=(r"generation.config", r"(?i:import error|proceeding)"),
        blames=_MODEL,
        cure="The model's config.json does not describe a model that this engine knows: compare it with the hub's.",
        source="transformers 4.30 to 5.24 models/auto/configuration_auto.py, configuration_utils.py",
        priority=Priority.GENERAL,
    ),
    Rule(
        code="L005",
        name="tokenizer-does-not-load",
        reason=Reason.MODEL_LOAD,
        any_of=(
            r"Couldn't instantiate the backend tokenizer",
            r"Tokenizer class \S+ does not exist",
            r"(?i:can't load tokenizer|failed to load (?:the )?tokenizer|unable to load (?:vocabulary|tokenizer))",
            r"(?i:\btokenizer\b.{0,60}(?:not found|is missing|does not exist))",
            r"data did not match any variant of untagged enum",
        ),
        cure="Put the tokenizer's files beside the model or name them with --tokenizer; install what they need.",
        source="transformers 4.30 to 5.24 tokenization_utils_base.py; tokenizers 0.13 to 0.22",
    ),
    Rule(
        code="L006",
        name="exception-while-weights-load",
        reason=Reason.MODEL_LOAD,
        any_of=(EXCEPTION_LINE,),
        none_of=(
            r"(?:Import|ModuleNotFound|Memory|OutOfMemory|NotImplemented|Connection|Timeout)Error",
            r"(?i:CUDA|NCCL|memory|not supported|quota|No space)",
        ),
        frame=(
            r"weight_utils\.py|/model_loader/|(?:base_)?loader\.py",
            r", in (?:load_weights?|weight_loader\w*|_?load_w\d+|default_weight_loader|load_col\w*|load_row\w*|"
            r"load_\w+_weight)$",
            r"transformers/(?:tokenization|configuration|modeling_utils|models/auto)",
        ),
        exit_facts=ExitFacts(causes=NOT_OURS),
        blames=_MODEL,
        cure="A tensor or file of the checkpoint is not what the model's code expects: the frames above name it.",
        source="vLLM 0.4 to 0.33 and SGLang 0.3 to 0.5.23 model_loader/; transformers 4.30 to 5.24",
        priority=Priority.SYMPTOM,
    ),
    Rule(
        code="D001",
        name="draft-of-another-vocabulary",
        reason=Reason.DRAFT_MISMATCH,
        any_of=(
            r"(?i:(?:target and draft|draft and target) models?.{0,60}(?:same|match|differ|mismatch))",
            r"(?i:draft(?: model)?(?:'s)?.{0,30}(?:vocab\w*|hidden.?size|tokenizer).{0,60}(?:match|differ|same|"
            r"mismatch|equal))",
            r"(?i:vocab\w*.{0,40}(?:target|draft).{0,60}(?:match|differ|same|mismatch|equal))",
        ),
        none_of=(r"(?i:\b(?:INFO|WARNING)\b)",),
        blames=("draft_model", "speculative_algorithm", "speculative_method"),
        cure="Use a draft made for this target: same vocabulary and, for EAGLE heads, same hidden size.",
        source="vLLM 0.5 to 0.33 config/speculative.py; SGLang 0.5.23 speculative/",
    ),
)
