"""Files that users name: whatever stands there is read within bounds, or refused with its line."""

from __future__ import annotations

import os
import threading
from pathlib import Path

import pytest

from search_spaces import SpecificationError, UnreadableFileError, YamlDocument, files, load_replayed, read_text
from tests.support.bad_input import valid


def refusal(path: Path, most: int = 1000) -> SpecificationError:
    """Return the error that reading a file ends with."""
    with pytest.raises(SpecificationError) as caught:
        read_text(path, most)
    return caught.value


def test_a_pipe_that_nobody_writes_to_is_given_up(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Opening it would wait for ever."""
    monkeypatch.setattr(files, "PIPE_S", 0.05)
    os.mkfifo(tmp_path / "pipe.yaml")
    assert isinstance(refusal(tmp_path / "pipe.yaml"), UnreadableFileError)


def test_a_pipe_of_a_shell_is_read(tmp_path: Path) -> None:
    """As `--spec <(make-a-study)`: both ends are there, and the text comes a little later."""
    reading, writing = os.pipe()
    writer = threading.Timer(0.05, lambda: (os.write(writing, b"budget: 3\n"), os.close(writing)))
    writer.start()
    assert read_text(Path(f"/dev/fd/{reading}"), 1000) == "budget: 3\n"
    writer.join()
    os.close(reading)


def test_an_endless_device_is_read_up_to_the_limit() -> None:
    """A megabyte is enough to know."""
    assert "larger than" in refusal(Path("/dev/zero")).problem


@pytest.mark.parametrize(
    ("content", "line"), [(b"a\n\xffb", 2), (b"a\nb\n" + b"x" * 1000, 3), ("ü".encode("utf-16"), 1)]
)
def test_what_is_no_text_or_too_much_has_a_line(tmp_path: Path, content: bytes, line: int) -> None:
    """Where the first such byte stands."""
    (tmp_path / "x.yaml").write_bytes(content)
    assert refusal(tmp_path / "x.yaml").line == line


@pytest.mark.parametrize(
    ("text", "fragment", "line"),
    [
        ("a: 1\nb: &x [1]\n", "anchors", 2),
        ("a: 1\nb: *x\n", "aliases", 2),
        ("a: 1\nb: !!binary aGk=\n", "tags", 2),
        ("a: 1\nb: " + "[" * 200, "nested", 2),
        ("a: 1\n" + "- " * 200_000, "", 2),
        ("a: 1\nb: " + "9" * 5000, "cannot be read", 2),
        ('a: 1\nb: "\\ud800"\n', "no text has", 2),
        ('a: 1\nb: "\\UFFFFFFFF"\n', "not valid YAML", 2),
        ("a: 1\nb: \x07\n", "not valid YAML", 2),
        ("a: 1\n? [b]\n: c\n", "one word", 2),
    ],
)
def test_yaml_that_nobody_needs_is_refused_with_its_line(tmp_path: Path, text: str, fragment: str, line: int) -> None:
    """Before anything is built from it."""
    (tmp_path / "x.yaml").write_text(text, encoding="utf-8")
    with pytest.raises(SpecificationError) as caught:
        YamlDocument(tmp_path / "x.yaml")
    assert fragment in caught.value.problem
    assert caught.value.line == line


@pytest.mark.parametrize(
    ("old", "new", "place"),
    [
        ("12,,\na,2", "12\na,2", ":2: 8 cells"),
        ("backend,draft", "backend,backend", ":1: the column 'backend'"),
        ("100.5", "fast", ":2: tok_per_s@1: 'fast'"),
        ("100.5", "nan", ":2: tok_per_s@1: 'nan'"),
        ("tok_per_s@8", "tok_per_s@²", ":2: tok_per_s@²"),
        ("gpu_oom,serve", "gpu_oom,served", ":4: failure.phase"),
    ],
)
def test_a_wrong_cell_is_named_with_line_and_column(tmp_path: Path, old: str, new: str, place: str) -> None:
    """A row too short would otherwise be taken for one without values."""
    path = tmp_path / "table.csv"
    path.write_text(valid.CSV.replace(old, new), encoding="utf-8")
    with pytest.raises(SpecificationError) as caught:
        load_replayed(path)
    assert f"table.csv{place}" in str(caught.value)
