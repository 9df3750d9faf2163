"""mlflow/schema.yaml names exactly what is logged, and everything in it has a meaning."""

from __future__ import annotations

import importlib.util
import re
from pathlib import Path
from typing import Any

import yaml

from tests.agent.mirror.samples import BASE, dump, rich

FOLDER = Path(__file__).parents[3] / "mlflow"
SCHEMA = yaml.safe_load((FOLDER / "schema.yaml").read_text())


def _entry(kind: str, on: str, name: str) -> str | None:
    """Name of the entry for a logged name: an exact one first, then a prefix, then the bare placeholder."""
    entries = [entry["name"] for entry in SCHEMA[kind] if on in entry["run"]]
    if name in entries:
        return name
    prefixed = [entry for entry in entries if "<" in entry and not entry.startswith("<")]
    for entry in prefixed:
        if re.fullmatch(re.escape(entry.partition("<")[0]) + ".+", name):
            return entry
    known = (kind, name) in {("params", parameter) for parameter in BASE} or kind == "artifacts"
    return next((entry for entry in entries if entry.startswith("<") and known), None)


def test_the_names_logged_are_exactly_those_of_the_schema(store: Any, tmp_path: Path) -> None:
    store.mirror().sync(rich("schema", tmp_path))
    seen: dict[str, set[tuple[str, str | None]]] = {kind: set() for kind in SCHEMA}
    for key, run in dump(store.client, "schema").items():
        on = "study" if key == "study" else "trial"
        run["tags"] |= {"agent.mirrored": "", "mlflow.parentRunId": ""} if on == "trial" else {"agent.mirrored": ""}
        for kind in SCHEMA:
            for name in run[kind]:
                entry = _entry(kind, on, name)
                assert entry is not None, f"{kind} of a {on}: {name} is not in schema.yaml"
                seen[kind].add((on, entry))
    for kind, entries in SCHEMA.items():
        assert seen[kind] == {(on, entry["name"]) for entry in entries for on in entry["run"]}, kind


def test_steps_mean_what_the_schema_says(store: Any, tmp_path: Path) -> None:
    store.mirror().sync(rich("steps", tmp_path))
    metrics = dump(store.client, "steps")["0"]["metrics"]
    by_concurrency = {entry["name"] for entry in SCHEMA["metrics"] if entry["step"] == "concurrency"}
    for name in by_concurrency:
        assert [step for step, _, _ in metrics[name]] == [1, 8], name
    assert [(step, value) for step, value, _ in metrics["acceptance_at_position"]] == [(1, 0.9), (2, 0.5)]


def test_every_entry_is_described() -> None:
    for kind, entries in SCHEMA.items():
        for entry in entries:
            assert entry["meaning"].endswith("."), entry
            if kind == "metrics":
                assert entry["unit"]
                assert entry["better"] in ("higher", "lower", "none")


def test_the_folder_does_not_shadow_the_library() -> None:
    assert not list(FOLDER.rglob("*.py"))
    spec = importlib.util.find_spec("mlflow")
    assert spec is not None
    assert spec.origin is not None
    assert Path(spec.origin).parent != FOLDER


def test_the_compose_file_binds_to_loopback_and_keeps_its_data() -> None:
    text = (FOLDER / "compose.yaml").read_text()
    (service,) = yaml.safe_load(text)["services"].values()
    assert all(port.startswith("127.0.0.1:") for port in service["ports"])
    assert service["volumes"]
    assert "/" not in service["image"]
