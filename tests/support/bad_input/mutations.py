"""Seeded ways to spoil a document: its data, its text, or the file that it lies in."""

from __future__ import annotations

import copy
import os
import random
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

Data = Any
Place = tuple[list[Any] | dict[str, Any], Any]
"""A container and the key or index of one thing in it."""

NASTY: tuple[Data, ...] = (
    *(None, True, False, 0, -1, 1, 1.5, -0.0, 10**9, -(10**18), 10**40, 2**63, 1e308, -1e308, 5e-324),
    *(float("nan"), float("inf"), -float("inf"), "", " ", "x" * 300, "a" * 20_000, "../x", "/", "~nobody-here/x"),
    *("\n", "line\nbreak", "\t", "\x00", "a\x00b", "\x1b[31mred\x1b[0m", "\ud800", "\u202eevil", "ѕtudy", "🦀", "ﬁ"),
    *("true", "null", "1e999", "1_000", "0x10", "12:30:45", "2026-02-30", "NaN", "{{x}}", "%s", "{0}", "$(id)", "`id`"),
    *([], {}, [[]], [{}], {"": ""}, [None], {"a": {"b": {"c": []}}}, list(range(50)), {"x": 1}, ["x"], [1, "1", True]),
    *("(", "*", "(?P<option", "[a-", "(a+)+$", "(?:a{1,30}){1,30}", "(?=x)", "\\1", ".*", "", "draft", "backend"),
)
"""Values that somebody may write by mistake or on purpose."""
MISSPELT: tuple[Callable[[str, random.Random], str], ...] = (
    lambda name, rng: name[:-1],
    lambda name, rng: name + rng.choice("sxz_- "),
    lambda name, rng: name.replace("_", "-", 1),
    lambda name, rng: name.upper(),
    lambda name, rng: name[1:] + name[:1],
    lambda name, rng: rng.choice(["", "<<", "no_such_key", "x" * 5000, "\x1b[2J", "a.b.c", "*", "1", "🦀"]),
)


def places(data: Data) -> Iterator[Place]:
    """Yield every place in the data, outermost first."""
    items = data.items() if isinstance(data, dict) else enumerate(data) if isinstance(data, list) else ()
    for key, value in list(items):
        yield data, key
        yield from places(value)


def _place(data: Data, rng: random.Random) -> Place | None:
    found = list(places(data))
    return rng.choice(found) if found else None


def replaced(data: Data, rng: random.Random) -> Data:
    """One value becomes a nasty one."""
    if (place := _place(data, rng)) is None:
        return rng.choice(NASTY)
    place[0][place[1]] = copy.deepcopy(rng.choice(NASTY))
    return data


def misspelt(data: Data, rng: random.Random) -> Data:
    """One key is written wrongly."""
    named = [(where, key) for where, key in places(data) if isinstance(where, dict)]
    if named:
        where, key = rng.choice(named)
        renamed = {(rng.choice(MISSPELT)(str(k), rng) if k == key else k): value for k, value in where.items()}
        where.clear()
        where.update(renamed)
    return data


def dropped(data: Data, rng: random.Random) -> Data:
    """One thing is missing."""
    if (place := _place(data, rng)) is not None:
        del place[0][place[1]]
    return data


def added(data: Data, rng: random.Random) -> Data:
    """One thing too many."""
    holders = [data, *(where[key] for where, key in places(data))]
    where = rng.choice([holder for holder in holders if isinstance(holder, dict | list)] or [[]])
    if isinstance(where, dict):
        where[rng.choice(["extra", "why", "values", "env", "flag", "like", "space", ""])] = rng.choice(NASTY)
    else:
        where.insert(rng.randint(0, len(where)), copy.deepcopy(rng.choice([*NASTY, *where])))
    return data


def moved(data: Data, rng: random.Random) -> Data:
    """What stands at one place stands at another one too: names of other things, circles of conditions, doubles."""
    found = list(places(data))
    if len(found) > 1:
        (source, key), (target, place) = rng.sample(found, 2)
        target[place] = copy.deepcopy(source[key]) if key in _keys(source) else None
    return data


def renamed_reference(data: Data, rng: random.Random) -> Data:
    """A text becomes the name of another thing of the document."""
    texts = [(where, key) for where, key in places(data) if isinstance(where[key], str)]
    names = [key for _, key in places(data) if isinstance(key, str)]
    if texts and names:
        where, key = rng.choice(texts)
        where[key] = rng.choice(names)
    return data


def nested(data: Data, rng: random.Random) -> Data:
    """Something stands deep inside brackets."""
    deep: Data = "x"
    for _ in range(rng.choice([3, 20, 60, 110])):
        deep = [deep] if rng.random() < 0.5 else {"k": deep}
    if (place := _place(data, rng)) is not None:
        place[0][place[1]] = deep
    return data


def widened(data: Data, rng: random.Random) -> Data:
    """A list or a mapping of very many entries."""
    many = [[str(number) for number in range(3000)], {f"k{number}": number for number in range(3000)}, [0] * 5000]
    if (place := _place(data, rng)) is not None:
        place[0][place[1]] = rng.choice(many)
    return data


DATA: tuple[Callable[[Data, random.Random], Data], ...] = (
    *(replaced, replaced, replaced, misspelt, misspelt, dropped, dropped, added, moved, renamed_reference, nested),
    widened,
)


def _keys(container: list[Any] | dict[str, Any]) -> range | Any:
    return container.keys() if isinstance(container, dict) else range(len(container))


def twice(text: str, rng: random.Random) -> str:
    """A line stands there twice."""
    lines = text.splitlines(keepends=True)
    if lines:
        at = rng.randrange(len(lines))
        lines.insert(at, lines[at])
    return "".join(lines)


def cut(text: str, rng: random.Random) -> str:
    """The file ends too early."""
    return text[: rng.randint(0, max(len(text) - 1, 0))]


def sprinkled(text: str, rng: random.Random) -> str:
    """A few signs with a meaning in YAML, JSON or CSV stand where they do not belong."""
    for _ in range(rng.randint(1, 4)):
        at = rng.randint(0, len(text))
        sign = rng.choice([*"{}[]:,&*!|>'\"%@`#?-\t\r\n\0\x07\x85\u2028\x0c", ": ", "- ", "--- \n", "...\n", "? ", "é"])
        text = text[:at] + sign + text[at:]
    return text


def indented(text: str, rng: random.Random) -> str:
    """A line stands a little too far right or left."""
    lines = text.splitlines(keepends=True)
    if lines:
        at = rng.randrange(len(lines))
        lines[at] = rng.choice([" ", "  ", "\t", "   "]) + lines[at] if rng.random() < 0.5 else lines[at].lstrip()
    return "".join(lines)


def bomb(text: str, rng: random.Random) -> str:
    """Anchors and aliases, of which a few lines may stand for gigabytes; merges, tags and circles."""
    laughs = "a0: &a0 [x, x]\n" + "".join(f"a{n + 1}: &a{n + 1} [*a{n}, *a{n}, *a{n}]\n" for n in range(30))
    more = [
        *("x: &x [*x]\n", "<<: {budget: 3}\n", "x: !!python/object/apply:os.system [id]\n", "x: !!binary aGk=\n"),
        *("? [a, b]\n: c\n", "? {a: b}\n: c\n", "%YAML 9.9\n---\n", "x: !!set {a, b}\n", "x: 2026-02-30\n"),
        "x: !!timestamp 2026-01-01\n",
    ]
    return rng.choice([laughs, *more]) + text if rng.random() < 0.7 else text + rng.choice([laughs, *more])


def endless(text: str, rng: random.Random) -> str:
    """Something very long or very deep."""
    deep = rng.choice(["[", "{", "{a: ", "- ", "[[", '{"a":'])
    number = rng.choice(["9" * 5000, "9" * 400 + ".5", "1" + "_0" * 3000, "0." + "0" * 6000 + "1"])
    return rng.choice(
        [
            deep * rng.choice([200, 20_000, 200_000]) + text,
            text + f"\nbudget: {number}\n",
            f"budget: {number}\n" + text,
            text + "#" + "x" * 2_000_000,
            "x" * 1_100_000,
            text + "\n" * 500_000,
            "k: " + "x" * 900_000 + "\n" + text,
            "a" * 900_000 + ": 1\n" + text,
            "".join(f"k{number}: 1\n" for number in range(30_000)) + text,
        ]
    )


TEXT: tuple[Callable[[str, random.Random], str], ...] = (twice, twice, cut, sprinkled, sprinkled, indented, bomb)
RARE_TEXT = (endless,)


def encoded(text: str, path: Path, rng: random.Random) -> None:
    """Write the text in another encoding, with other line ends, a byte order mark, or bytes of no encoding."""
    ways: list[Callable[[], bytes]] = [
        *(lambda: text.encode("utf-16"), lambda: text.encode("utf-32"), lambda: b"\xef\xbb\xbf" + text.encode()),
        *(lambda: text.replace("\n", "\r\n").encode(), lambda: text.replace("\n", "\r").encode(), lambda: b""),
        *(lambda: text.encode() + b"\xff\xfe", lambda: b"\x00" * 100 + text.encode(), lambda: b"\n" * 3, lambda: b" "),
        *(lambda: rng.randbytes(300), lambda: b"\x1f\x8b" + rng.randbytes(50), lambda: ("é" + text).encode("latin-1")),
        lambda: b"\x7fELF" + rng.randbytes(400),
    ]
    path.write_bytes(rng.choice(ways)())


def misplaced(path: Path, rng: random.Random) -> None:
    """Something else than a file that can be read stands at the path."""
    way = rng.choice(["missing", "folder", "dangling", "circle", "pipe", "device", "through a file"])
    if way == "folder":
        path.mkdir()
    elif way == "dangling":
        path.symlink_to(path.with_name("nowhere"))
    elif way == "circle":
        path.symlink_to(path)
    elif way == "pipe":
        os.mkfifo(path)
    elif way == "device":
        path.symlink_to(rng.choice(["/dev/zero", "/dev/null", "/proc/self/mem"]))
