"""What a wrong space file is answered with: the file, the line, the key, and what to write instead."""

from __future__ import annotations

from pathlib import Path

import pytest

from search_spaces import SpecificationError, YamlDocument, load_space
from search_spaces.yaml_document import MAX_BYTES

SOUND = """\
engine: synthetic
parameters:
  backend:
    meaning: how
    source: here
    values: [a, b]
    default: a
    flag: backend
  depth:
    meaning: how deep
    source: here
    range: {low: 0, high: 4}
    default: 2
    flag: depth
    active_when: {backend: [b]}
relations:
  - implies: {if: {backend: [b]}, then: {depth: [0, 1, 2]}}
    why: because
baseline: {depth: 0}
fallbacks:
  - {backend: b}
"""


def write(folder: Path, text: str) -> Path:
    """Write a space file."""
    path = folder / "space.yaml"
    path.write_text(text, encoding="utf-8")
    return path


def refused(folder: Path, text: str) -> SpecificationError:
    """Return the error that a file's text is answered with."""
    path = write(folder, text)
    with pytest.raises(SpecificationError) as caught:
        load_space(str(path))
    assert str(caught.value).startswith(str(path))
    assert "\n" not in str(caught.value)
    return caught.value


def line_of(text: str, fragment: str) -> int:
    """Return the number of the first line that holds the fragment."""
    return next(number for number, line in enumerate(text.splitlines(), start=1) if fragment in line)


def test_a_sound_file_is_loaded(tmp_path: Path) -> None:
    """The text that the other tests break is not broken itself."""
    assert list(load_space(str(write(tmp_path, SOUND))).parameters) == ["backend", "depth"]


@pytest.mark.parametrize(
    ("old", "new", "key"),
    [
        ("engine: synthetic", "engine: [synthetic]", "engine"),
        ("    meaning: how\n", "", "parameters.backend.meaning"),
        ("flag: backend", "flagg: backend", "parameters.backend.flagg"),
        ("flag: backend", "flag: backend\n    env: BACKEND", "parameters.backend"),
        ("    flag: backend\n", "", "parameters.backend"),
        ("flag: backend", "switches: {a: {}}", "parameters.backend"),
        ("flag: backend", "switches: {a: {}, b: {}}", "parameters.backend"),
        ("flag: backend", "switches: {a: {}, b: {flags: {x: true}}, c: {}}", "parameters.backend"),
        ("flag: backend", "switches: {a: {}, b: {flags: {x: false}}}", "parameters.backend.switches.b.flags"),
        ("flag: backend", "switches: {a: {}, b: {flags: {--x: true}}}", "parameters.backend.switches.b.flags"),
        ("flag: backend", "switches: {a: {}, b: {env: {X: true}}}", "parameters.backend.switches.b.env.X"),
        ("flag: backend", "switches: {a: {}, b: {env: {X: 1}}, a: {}}", "a"),
        ("flag: backend", "flag: depth", "parameters.depth"),
        ("flag: backend", "switches: {a: {}, b: {flags: {depth: 3}}}", "parameters.depth"),
        ("flag: backend", "unset: a\n    switches: {b: {}}", "parameters.backend"),
        ("flag: backend", "unset: a\n    switches: {a: {}, b: {flags: {x: true}}}", "parameters.backend"),
        ("values: [a, b]", "values: [a, {b: 1}]", "parameters.backend.values.1"),
        ("values: [a, b]", "values: [a, null]", "parameters.backend.values.1"),
        ("values: [a, b]", "values: [a, .nan]", "parameters.backend.values.1"),
        ("values: [a, b]", "values: [a, a]", "parameters.backend"),
        ("values: [a, b]", "values: [a, A]", "parameters.backend"),
        ("values: [a, b]", "values: [a, 1, true]", "parameters.backend"),
        ("values: [a, b]", "values: []", "parameters.backend"),
        ("values: [a, b]", "values: [a, b]\n    monotone: true", "parameters.backend"),
        ("default: a", "default: c", "parameters.backend"),
        ("default: 2", "default: true", "parameters.depth"),
        ("default: 2", "default: 2.0", "parameters.depth"),
        ("range: {low: 0, high: 4}", "range: {low: 4, high: 0}", "parameters.depth.range"),
        ("range: {low: 0, high: 4}", "range: {low: 0, high: 1000000000000}", "parameters.depth.range"),
        ("range: {low: 0, high: 4}", "range: {low: 0, high: 4, step: 0}", "parameters.depth.range.step"),
        ("range: {low: 0, high: 4}", "range: {low: 0, high: 4}\n    values: [0]", "parameters.depth"),
        ("active_when: {backend: [b]}", "active_when: {bakend: [b]}", "parameters.depth.active_when.bakend"),
        ("active_when: {backend: [b]}", "active_when: {backend: [c]}", "parameters.depth.active_when.backend"),
        ("active_when: {backend: [b]}", "active_when: {depth: [1]}", "parameters.depth.active_when.depth"),
        ("then: {depth: [0, 1, 2]}", "then: {deph: [0]}", "relations.0"),
        ("then: {depth: [0, 1, 2]}", "then: {depth: [9]}", "relations.0.implies.then.depth"),
        ("if: {backend: [b]}, then: {depth: [0, 1, 2]}", "if: {}, then: {depth: []}", "relations.0"),
        ("why: because", "wy: because", "relations.0.wy"),
        ("baseline: {depth: 0}", "baseline: {deph: 0}", "baseline.deph"),
        ("baseline: {depth: 0}", "baseline: {depth: 9}", "baseline.depth"),
        ("baseline: {depth: 0}", 'baseline: {depth: "0"}', "baseline.depth"),
        ("- {backend: b}", "- {backend: z}", "fallbacks.0.backend"),
        ("then: {depth: [0, 1, 2]}", "then: {depth: [1, 2]}", ""),
    ],
)
def test_what_is_wrong_is_shown_with_its_line_and_key(tmp_path: Path, old: str, new: str, key: str) -> None:
    """Whoever wrote the file is led to the place."""
    text = SOUND.replace(old, new)
    assert text != SOUND
    if key == "":  # the default obeys the relation, the baseline does not
        text = text.replace("baseline: {depth: 0}", "baseline: {backend: b, depth: 0}")
        key = "baseline"
    error = refused(tmp_path, text)
    assert error.key == key
    assert error.line is not None
    last = key.split(".")[-1]
    shown = text.splitlines()[error.line - 1]
    parent = key.split(".")[-2] if "." in key else last
    assert last in shown or parent in shown or last.isdigit() or key.startswith("relations")


@pytest.mark.parametrize(
    ("old", "new", "hint"),
    [
        ("flag: backend", "flga: backend", "'flag'"),
        ("engine: synthetic", "engin: synthetic", "'engine'"),
        ("low: 0, high: 4", "low: 0, hihg: 4", "'high'"),
        ("implies: {if", "implis: {if", "'implies'"),
        ("active_when: {backend: [b]}", "active_when: {bakend: [b]}", "'backend'"),
        ("baseline: {depth: 0}", "baseline: {dept: 0}", "'depth'"),
        ("then: {depth: [0, 1, 2]}", "then: {dept: [0]}", "'depth'"),
    ],
)
def test_a_misspelt_name_is_answered_with_the_nearest_one(tmp_path: Path, old: str, new: str, hint: str) -> None:
    """Keys of the format and names of parameters alike."""
    text = SOUND.replace(old, new, 1)
    error = refused(tmp_path, text)
    assert hint in str(error)
    assert error.line == line_of(text, new.split(":")[0])


def test_a_key_that_stands_twice_is_an_error_at_the_second_one(tmp_path: Path) -> None:
    """YAML alone would silently keep the last one."""
    text = SOUND + "baseline: {depth: 1}\n"
    error = refused(tmp_path, text)
    assert (error.key, error.line) == ("baseline", len(text.splitlines()))


def test_a_parameter_must_stand_below_what_it_depends_on(tmp_path: Path) -> None:
    """One pass over the space then settles what is active, and no circle can be written."""
    head, depth = SOUND.split("  depth:\n")
    depth, tail = depth.split("relations:")
    start = head.index("  backend:")
    error = refused(tmp_path, head[:start] + "  depth:\n" + depth + head[start:] + "relations:" + tail)
    assert error.key == "parameters.depth.active_when.backend"


@pytest.mark.parametrize(
    "text",
    [
        "",
        "# only a comment\n",
        "just text",
        "- a\n- list\n",
        "a: &x 1\nb: *x\n",
        "a: [1, 2\n",
        "a: b: c\n",
        "a: 2026-02-30\n",
        "a: " + "9" * 5000 + "\n",
        "a: " + "[" * 5000 + "]" * 5000 + "\n",
        "? [a, b]\n: 1\n",
        "1: x\n",
        "a: !!python/object/apply:os.system [true]\n",
        "a: !!int x\n",
        "a: 1\n---\nb: 2\n",
        "a: \t\x01\n",
    ],
)
def test_text_that_is_no_space_is_one_clear_error(tmp_path: Path, text: str) -> None:
    """Never a traceback, and nothing in the file is executed or expanded."""
    refused(tmp_path, text)


def test_a_binary_file_is_refused(tmp_path: Path) -> None:
    """Not UTF-8 text."""
    path = tmp_path / "space.yaml"
    path.write_bytes(b"\xff\xfe\x00\x01" * 100)
    with pytest.raises(SpecificationError, match="UTF-8"):
        load_space(str(path))


def test_a_huge_file_is_refused_without_reading_it_whole(tmp_path: Path) -> None:
    """A device has no size to ask for, and no end."""
    path = write(tmp_path, "#" * (MAX_BYTES + 1))
    for huge in (path, Path("/dev/zero")):
        with pytest.raises(SpecificationError, match="larger"):
            YamlDocument(huge)


def test_a_missing_file_and_a_folder_are_refused(tmp_path: Path) -> None:
    """With the name that was given."""
    for path in (tmp_path / "none.yaml", tmp_path):
        with pytest.raises(SpecificationError) as caught:
            load_space(str(path))
        assert str(path) in str(caught.value)


@pytest.mark.parametrize("name", ["troch", "x" * 5000, "no/such/thing"])
def test_an_unknown_name_is_answered_with_the_catalogue(name: str) -> None:
    """Also one that is too long to be a file."""
    with pytest.raises(SpecificationError, match="torch"):
        load_space(name)


def test_two_parameters_may_set_one_option_where_only_one_of_them_has_a_meaning(tmp_path: Path) -> None:
    """`depth` means something beside `b` only, and `a` alone sets its option."""
    text = SOUND.replace("flag: backend", "switches: {a: {flags: {depth: 9}}, b: {}}")
    space = load_space(str(write(tmp_path, text)))
    assert space.options({"backend": "a", "depth": 2}) == {"depth": 9}
    assert space.options({"backend": "b", "depth": 2}) == {"depth": "2"}


@pytest.mark.parametrize(
    ("rule", "key"),
    [
        ("divides: {divisor: dept, of: {fact: num_ranks}}", "relations.1"),
        ("divides: {divisor: depth, of: {fcat: num_ranks}}", "relations.1.divides.of"),
        ("forced: {parameter: depth, to: {fact: num_ranks}}\n    where: {backend: [z]}", "relations.1.where.backend"),
        ("forced: {parameter: depth}", "relations.1.forced.to"),
        ("at_most: {left: depth, right: depth}\n    divides: {divisor: depth, of: depth}", "relations.1"),
    ],
)
def test_a_wrong_relation_is_shown_with_its_place(tmp_path: Path, rule: str, key: str) -> None:
    """The typed rules name parameters and facts."""
    text = SOUND.replace("baseline:", f"  - {rule}\n    why: because\nbaseline:")
    error = refused(tmp_path, text)
    assert error.key.startswith(key) and error.line is not None
