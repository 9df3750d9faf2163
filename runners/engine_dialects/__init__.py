"""One name for each option in our spaces, and the words that each engine version has for it."""

from runners.engine_dialects.command import (
    CommandNotPossibleError,
    build_command,
    canonical,
    fixed_and_tuned,
    spellings,
    unavailable_values,
)
from runners.engine_dialects.engine_options import (
    AcceptedOption,
    EngineNotUsableError,
    EngineOptions,
    ask_engine,
)
from runners.engine_dialects.model_facts import draft_method, model_facts
from runners.engine_dialects.spelling import OptionNotInVersionError

__all__ = [
    "AcceptedOption",
    "CommandNotPossibleError",
    "EngineNotUsableError",
    "EngineOptions",
    "OptionNotInVersionError",
    "ask_engine",
    "build_command",
    "canonical",
    "draft_method",
    "fixed_and_tuned",
    "model_facts",
    "spellings",
    "unavailable_values",
]
