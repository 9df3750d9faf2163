"""Take secrets out of everything that leaves the process: logs, MLflow, reports, exports.

A secret is known by the *name* it goes under (an environment variable, a flag, a JSON key) and by its place in a URL.
Masking errs on the side of hiding, with one exception: a plural count such as `num_draft_tokens = 4` is no secret.
"""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence

MASK = "***"

_SECRET_WORDS = "TOKEN|KEY|SECRET|PASSWORD|PASSWD|CREDENTIAL"  # noqa: S105 (names, not a password)
_SECRET_NAME = re.compile(_SECRET_WORDS, re.IGNORECASE)
_NOT_SECRET = re.compile(r"TOKENI[SZ]|TOKEN_?-?MAP|TOKENS_PER_BATCH|KEYWORD|MONKEY", re.IGNORECASE)
_STRONG_NAME = re.compile(r"KEY|SECRET|PASSWORD|PASSWD|CREDENTIAL|TOKEN(?!S)", re.IGNORECASE)
_COUNT = re.compile(r"[-+]?[\d.,_]+(e[-+]?\d+)?[kKmMgG]?|auto|none|null|true|false|", re.IGNORECASE)
_URL_PASSWORD = re.compile(r"([A-Za-z][A-Za-z0-9+.\-]*://[^\s/:@'\"]*):(?P<password>[^\s/@'\"]+)@")
_BEARER = re.compile(r"(\bBearer\s+)[^\s'\",]+", re.IGNORECASE)
_UNNAMED = re.compile(r"hf_|bearer ", re.IGNORECASE)
_HUB_TOKEN = re.compile(r"\bhf_[A-Za-z0-9]{16,}")

_NAME = rf"(?<![A-Za-z0-9_.])[A-Za-z0-9_.\-]{{0,60}}(?:{_SECRET_WORDS})[A-Za-z0-9_.\-]{{0,60}}"
_VALUE = r"\"[^\"\n]*\"|'[^'\n]*'|[^\s,;&)\]}\"']+"
_IN_TEXT = re.compile(
    # `NAME=value` and `--flag=value`; `"name": "value"`; `--flag value`; `API_KEY: value`. A bare `key: value` stays:
    # "KeyError: 12" and "unexpected key: x" are evidence, not secrets.
    rf"(?P<head>(?P<name>{_NAME})(?:=|[\"']\s*:\s*|(?<=[A-Za-z0-9])\s*:\s+)|(?<![\w-])--?(?P<flag>{_NAME})\s+(?!-))"
    rf"(?P<value>{_VALUE})",
    re.IGNORECASE,
)
_SHORTEST_LITERAL = 6
"""A secret shorter than this is not searched for in free text: it would hit innocent words."""
_SHORTEST_INHERITED = 12
"""The same for the variables of the user's own environment, which were not given to the engine on purpose."""


def is_secret_name(name: str) -> bool:
    """Return whether a variable, flag or key of this name may hold a secret."""
    return _SECRET_NAME.search(_NOT_SECRET.sub("", name)) is not None


def is_secret(name: str, value: object) -> bool:
    """Return whether `value` has to be masked when it goes under `name`."""
    bare = _NOT_SECRET.sub("", name)
    if _STRONG_NAME.search(bare):
        return True
    return is_secret_name(bare) and not _COUNT.fullmatch(str(value))


def redact_text(text: str, secrets: Iterable[str] = ()) -> str:
    """Return the text without secrets: named ones, URL passwords, bearer tokens, and the literal values given."""
    for secret in sorted(secrets, key=len, reverse=True):
        if len(secret) >= _SHORTEST_LITERAL:
            text = text.replace(secret, MASK)
    if "\n" in text:  # line by line: nearly all lines of a log pass the cheap tests below
        return "".join(map(_redact_line, text.splitlines(keepends=True)))
    return _redact_line(text)


def redact_url(text: str) -> str:
    """Return the text with the password of every URL in it masked."""
    return _URL_PASSWORD.sub(rf"\g<1>:{MASK}@", text) if "://" in text else text


def redact_mapping(values: Mapping[str, str]) -> dict[str, str]:
    """Return the variables with the values of secret ones masked."""
    return {name: MASK if is_secret(name, value) else redact_text(value) for name, value in values.items()}


def redact_argv(argv: Sequence[str]) -> tuple[str, ...]:
    """Return the argument list with the values of secret flags and assignments masked."""
    return tuple(_walk_argv(argv, lambda _: None))


def redact_json(value: object, name: str = "") -> object:
    """Return a JSON value with what stands under secret keys masked, at any depth."""
    if isinstance(value, Mapping):
        return {str(key): redact_json(item, str(key)) for key, item in value.items()}
    if isinstance(value, list | tuple):
        return [redact_json(item, name) for item in value]
    if value is not None and not isinstance(value, bool) and is_secret(name, value):
        return MASK
    return redact_text(value) if isinstance(value, str) else value


def secrets_of(argv: Sequence[str] = (), env: Mapping[str, str] | None = None) -> frozenset[str]:
    """Return the secret values of a command, to be masked wherever else they turn up (a log repeats its flags).

    The passwords of its URLs, and what stands under secret keys of its JSON texts, are among them.
    """
    variables = env or {}
    found = [value for name, value in variables.items() if is_secret(name, value)]
    _walk_argv(argv, found.append)
    for text in (*argv, *variables.values()):
        found += [match["password"] for match in _URL_PASSWORD.finditer(text)]
        found += _json_secrets(text)
    return frozenset(found)


def environment_secrets(environment: Mapping[str, str]) -> frozenset[str]:
    """Return the secret values of a user's environment, which an engine inherits and may print.

    A word or a path that stands under such a name by chance is left out: it would be masked in every log.
    """
    found = secrets_of((), environment)
    return frozenset(text for text in found if len(text) >= _SHORTEST_INHERITED and not text.startswith("/"))


def _json_secrets(text: str) -> list[str]:
    if not text.lstrip().startswith("{"):
        return []
    try:
        return list(_secret_items(json.loads(text), ""))
    except ValueError:
        return []


def _secret_items(value: object, name: str) -> Iterator[str]:
    if isinstance(value, Mapping):
        for key, item in value.items():
            yield from _secret_items(item, str(key))
    elif isinstance(value, list):
        for item in value:
            yield from _secret_items(item, name)
    elif isinstance(value, str) and is_secret(name, value):
        yield value


def _redact_line(line: str) -> str:
    line = redact_url(line)
    if _UNNAMED.search(line):
        line = _HUB_TOKEN.sub(MASK, _BEARER.sub(rf"\g<1>{MASK}", line))
    return _IN_TEXT.sub(_mask_match, line) if _SECRET_NAME.search(line) else line


def _walk_argv(argv: Sequence[str], on_secret: Callable[[str], object]) -> list[str]:
    clean: list[str] = []
    flag, has_value = "", False
    for item in argv:
        name, equals, value = item.partition("=")
        is_value = bool(flag) and not item.startswith("-" if has_value else "--")  # some options take several
        if is_value and is_secret(flag, item):
            on_secret(item)
            clean.append(MASK)
        elif equals and " " not in name and is_secret(name, value):
            on_secret(value)
            clean.append(f"{name}={MASK}")
        else:
            clean.append(redact_text(item))
        has_value = is_value
        if not is_value:
            flag = "" if equals or not item.startswith("-") else item
    return clean


def _mask_match(match: re.Match[str]) -> str:
    name = match["name"] or match["flag"]
    value = match["value"].strip("'\"")
    if not is_secret(name, value) or (":" in match["head"] and not _is_labelled(name, match["head"])):
        return match[0]
    quote = match["value"][0] if match["value"][0] in "'\"" else ""
    return f"{match['head']}{quote}{MASK}{quote}"


def _is_labelled(name: str, head: str) -> bool:
    """True for `"api_key": …` and `HF_TOKEN: …`, false for `KeyError: …` and a bare `key: …`."""
    quoted = head.rstrip().rstrip(":").rstrip().endswith(("'", '"'))
    ends_secret = re.search(rf"(?:[_\-](?:{_SECRET_WORDS})S?|SECRET|PASSWORD|PASSWD)$", name, re.IGNORECASE)
    return quoted or ends_secret is not None
