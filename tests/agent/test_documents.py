"""The map for readers: whatever a log says, a page stays a page and a table a table."""

from __future__ import annotations

import json
from html.parser import HTMLParser

from agent.deadends.dead_end import DeadEnd, DeadEndState
from agent.deadends.documents import as_html, as_json, as_markdown
from agent.reasons import REASONS, Reason
from runners import Rung
from search_spaces.condition import Condition

EVIL = '<script>alert("x")</script> | a\nb'
FOUND = DeadEnd(
    id="D1234567",
    conditions=(Condition(parameter="allreduce", value="nccl"),),
    reason=Reason.MISSING_DEPENDENCY,
    policy=REASONS[Reason.MISSING_DEPENDENCY].policy,
    state=DeadEndState.CONFIRMED,
    rung=Rung.PROBE,
    suspects=("allreduce",),
    observed={"allreduce": "nccl"},
    scope={"device": "cpu", "packages": {"torch": "2.13"}},
    support=("p1", "#4"),
    decisive=EVIL,
    cure=EVIL,
)


class Tags(HTMLParser):
    """Collects the names of the tags of a page."""

    def __init__(self, page: str) -> None:
        super().__init__()
        self.names: list[str] = []
        self.feed(page)

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        """Note a tag."""
        self.names.append(tag)


def test_json_gives_the_dead_end_back() -> None:
    """Nothing is lost on the way to a program."""
    assert DeadEnd.model_validate(json.loads(as_json([FOUND]))[0]) == FOUND


def test_log_text_cannot_become_html() -> None:
    """The page is served by the tracking server: what an engine printed must not run in a browser."""
    page = as_html([FOUND], EVIL)
    assert "script" not in Tags(page).names
    assert "&lt;script&gt;" in page


def test_log_text_cannot_leave_its_line_of_the_markdown() -> None:
    """What an engine printed is one span of code, even with backticks and line breaks in it."""
    lines = as_markdown([FOUND.model_copy(update={"decisive": "``` # x\n## y `z`"})]).splitlines()
    assert [line for line in lines if "##" in line and not line.startswith("###")] == [
        "- the line that tells: ```` ``` # x ## y `z` ````"
    ]


def test_every_document_says_what_why_where_and_cure() -> None:
    """A reader of any form can act on it."""
    for text in (as_markdown([FOUND]), as_html([FOUND], "map")):
        assert not [
            word
            for word in ("D1234567", "nccl", "missing_dependency", "p1 #4", "device=cpu", "cure")
            if word not in text
        ]


def test_an_empty_map_says_so() -> None:
    """An empty page would look like a fault."""
    assert as_markdown([]) == "No dead ends.\n"
    assert "No dead ends." in as_html([], "map")
    assert json.loads(as_json([])) == []
