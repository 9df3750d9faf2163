"""Settings that an engine refuses before it does any work."""

from agent.classify.rule import ExitFacts, Priority, Rule
from agent.reasons import Reason
from runners import Phase

RULES = (
    Rule(
        code="C001",
        name="argument-refused",
        reason=Reason.CONFIG_INVALID,
        any_of=(
            r"error: argument (?P<option>--[a-z][a-z0-9-]*)",
            r"error: unrecognized arguments: (?P<option>--[a-z][a-z0-9-]*)",
            r"error: ambiguous option: (?P<option>--[a-z][a-z0-9-]*)",
            r"error: (?:argument|unrecognized arguments|the following arguments are required)\b",
        ),
        cure="See the engine's --help for what this version accepts.",
        source="CPython 3.11 Lib/argparse.py, ArgumentParser.error",
        is_decisive=True,
    ),
    Rule(
        code="C002",
        name="command-line-refused",
        reason=Reason.CONFIG_INVALID,
        any_of=(r"^(?:[\w. -]+: )?error: (?:(?P<option>[a-z_]+)=)?",),
        exit_facts=ExitFacts(codes=(2,)),
        cure="The command line was refused: see the engine's --help for what this version accepts.",
        source="this project's torch engine 0.1, __main__.py: code 2 and the message of a ConfigError",
        priority=Priority.GENERAL,
    ),
    Rule(
        code="C003",
        name="sizes-do-not-divide",
        reason=Reason.CONFIG_INVALID,
        any_of=(
            r"(?P<option>expert_parallel)=on: tp=\d+ does not divide",
            r"\b(?:is not|are not|must be|should be) (?:evenly )?divisible by\b",
            r"\bnot evenly divisible\b",
            r"\bdoes not divide [a-z_]+=\d+",
        ),
        cure="Choose numbers that divide: heads, experts and hidden sizes by the number of ranks.",
        source="this project's torch engine; vLLM 0.32 config/model.py verify_with_parallel_config",
    ),
    Rule(
        code="C004",
        name="settings-do-not-validate",
        reason=Reason.CONFIG_INVALID,
        any_of=(r"\d+ validation errors? for \w+",),
        cure="Change the setting that the following lines name.",
        source="pydantic 2.12 ValidationError.__str__",
        priority=Priority.SYMPTOM,
    ),
    Rule(
        code="C005",
        name="value-refused-at-start",
        reason=Reason.CONFIG_INVALID,
        any_of=(r"\bValueError: ",),
        phases=(Phase.RESOLVE, Phase.SPAWN),
        cure="Change the setting that the line names; nothing but settings has been looked at in this phase.",
        source="CPython 3.11 ValueError; this project's torch engine checks its settings before it starts ranks",
        priority=Priority.SYMPTOM,
    ),
    Rule(
        code="C006",
        name="torch-engine-refuses-settings",
        reason=Reason.CONFIG_INVALID,
        any_of=(r"\bConfigError: (?:(?P<option>[a-z_]+)=)?",),
        cure="The line names the setting, what was found, and what can be chosen.",
        source="this project's torch engine 0.1, config.py and cli.py",
        priority=Priority.GENERAL,
    ),
)
