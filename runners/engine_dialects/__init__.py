"""One name for each option in our spaces, and the words that each engine version has for it."""

from runners.engine_dialects.command import (
    CommandNotPossibleError,
    build_command,
    canonical,
    engine_words,
    fixed_and_tuned,
    own_key,
    spellings,
    unavailable_values,
    undeclared,
    unsayable,
)
from runners.engine_dialects.engine_options import (
    AcceptedOption,
    EngineNotUsableError,
    EngineOptions,
    InstalledPython,
    ask_engine,
    ask_python,
    is_installed,
)
from runners.engine_dialects.model_facts import draft_method, model_facts
from runners.engine_dialects.node import DRAFT_PARAMETERS
from runners.engine_dialects.spelling import OptionNotInVersionError

__all__ = [
    "DRAFT_PARAMETERS",
    "AcceptedOption",
    "CommandNotPossibleError",
    "EngineNotUsableError",
    "EngineOptions",
    "InstalledPython",
    "OptionNotInVersionError",
    "ask_engine",
    "ask_python",
    "build_command",
    "canonical",
    "draft_method",
    "engine_words",
    "fixed_and_tuned",
    "is_installed",
    "model_facts",
    "own_key",
    "spellings",
    "unavailable_values",
    "undeclared",
    "unsayable",
]
