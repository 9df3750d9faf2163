"""Kinds of lines that need no rule to be recognised: harmless ones, and ones worth showing."""

EXCEPTION_LINE = r"(?:^|[\s\]|])(?:[A-Za-z_]\w*\.)*[A-Z]\w*(?:Error|Exception|Interrupt)(?:: |:?$)"
"""The last line of a Python traceback, with or without a logger's prefix."""

BENIGN = (
    r"\b(?:0|no|zero) (?:\w+ )?(?:errors?|failures?)\b",
    r"\b(?:errors?|failures?)['\"]?\s*[:=]\s*0\b",
    r"^\s*(?:export |set )?[A-Z][A-Z0-9_]+=\S*$",
    r"\b(?:Future|User|Deprecation|Runtime)Warning\b",
    r"^\s*(?:except|raise) \w",
)
"""Lines of a healthy launch, or of quoted source, that only look like failures: never evidence for any rule."""

TELLING = (
    EXCEPTION_LINE,
    r"(?i)\b(?:fatal|panic|abort(?:ed|ing)?|core dumped|segmentation fault|terminate called)\b",
    r"(?i)\b(?:error|failed|failure|cannot|unable to)\b",
)
"""Lines worth showing when no rule knows them, most telling first."""
