"""Which study `agent resume` goes on with, and what stops it before anything is launched."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest
from click.testing import Result

from agent.environment import file_facts
from agent.home import Home
from agent.store.opening import open_storage
from agent.store.study_store import BUDGET, StudyStore
from search_spaces import load_node, node_path
from tests.support.lives import PASSED
from tests.support.simulated_study import LEASE
from tests.support.stores import manifest, work

NODE = "pcie8-blackwell-cuda128"


@pytest.fixture
def home(tmp_path: Path) -> Home:
    """A home with a node model of its own."""
    home = Home(tmp_path / "home")
    home.create()
    (home.path / "node.yaml").write_text(Path(node_path(NODE)).read_text(encoding="utf-8"), encoding="utf-8")
    return home


def study(home: Home, name: str, *, budget: int = 3, launches: int = 1) -> StudyStore:
    """Store a study of the home's node model; it becomes the last one."""
    path, small = home.path / "node.yaml", manifest(name)
    engine = small.settings.engine.model_copy(update={"engine": "replay", "node_model": str(path)})
    facts = {**load_node(str(path)).facts, **file_facts(engine.model_dump())}
    whole = small.model_copy(update={"settings": small.settings.model_copy(update={"engine": engine}), "facts": facts})
    store = StudyStore.create(open_storage(home.storage_url), home.storage_url, whole)
    store.set_attribute(BUDGET, budget)
    for number in range(launches):
        store.close(store.open_trial(work(draft=number), "c", LEASE, ""), PASSED, None)
    home.remember(name, home.storage_url, "")
    return store


def test_a_last_study_that_is_done_is_not_guessed_around(home: Home, invoke: Callable[..., Result]) -> None:
    """The open ones are listed, each with how far it is and how to say which."""
    study(home, "first")
    study(home, "second", launches=2)
    study(home, "done", launches=3)
    result = invoke("resume", "--home", str(home.path))
    assert result.exit_code == 2
    for words in ("done", "first (1 of 3 launches)", "second (2 of 3 launches)", "agent resume NAME", "--budget N"):
        assert words in result.output


def test_a_changed_model_file_stops_the_resume_before_anything_is_launched(
    home: Home, invoke: Callable[..., Result]
) -> None:
    """With the difference and both ways on; nothing is written."""
    store = study(home, "modelled")
    path = home.path / "node.yaml"
    path.write_text(path.read_text(encoding="utf-8") + "\n# another\n", encoding="utf-8")
    before = store.attributes()
    result = invoke("resume", "--home", str(home.path))
    assert result.exit_code == 2
    lines = result.stderr.splitlines()
    assert lines[0] == "Error: the environment of study modelled changed:"
    assert lines[1].startswith("  node_file: ")
    assert f"  agent resume modelled --home {home.path} --accept-environment" in lines
    assert "`agent search`" in lines[-1]
    assert StudyStore(open_storage(store.url), store.url, "modelled").attributes() == before


def test_a_node_model_that_is_gone_is_said(home: Home, invoke: Callable[..., Result]) -> None:
    study(home, "modelled")
    (home.path / "node.yaml").unlink()
    result = invoke("resume", "--home", str(home.path))
    assert result.exit_code == 2 and "node.yaml" in result.output
