"""MLflow equals the storage: from any state, without duplicates, and a second sync changes nothing."""

from __future__ import annotations

from dataclasses import replace
from datetime import timedelta
from pathlib import Path
from typing import Any, ClassVar

import pytest

from agent.mirror.client import log_batch
from agent.mirror.values import milliseconds
from agent.outcome import Outcome, OutcomeKind
from tests.agent.mirror.samples import SECRET, START, dump, failed, in_flight, rich, run_ids, snapshot, trial


@pytest.fixture(params=["file", "server"])
def any_store(request: pytest.FixtureRequest) -> Any:
    """An SQLite file that is opened directly, or a tracking server: for what MLflow itself may do differently there."""
    return request.getfixturevalue("store" if request.param == "file" else "served_store")


def test_a_second_sync_changes_nothing(any_store: Any, tmp_path: Path) -> None:
    study = rich("twice", tmp_path)
    first = any_store.mirror().sync(study)
    before = dump(any_store.client, "twice")
    second = any_store.mirror().sync(study)
    assert (first.created, first.updated, first.unchanged, first.removed) == (6, 0, 0, 0)
    assert (second.created, second.updated, second.unchanged, second.removed) == (0, 0, 6, 0)
    assert dump(any_store.client, "twice") == before


def test_a_second_sync_writes_nothing(store: Any, tmp_path: Path, dying: Any) -> None:
    study = rich("no-writes", tmp_path)
    store.mirror().sync(study)
    client = dying(store.client, 1000, after=True)
    store.mirror(client).sync(study)
    assert set(client.names) == {"get_experiment_by_name", "search_runs"}


def test_statuses_and_times_are_those_of_the_storage(any_store: Any, tmp_path: Path) -> None:
    study = rich("statuses", tmp_path)
    any_store.mirror().sync(study)
    shown = dump(any_store.client, "statuses")
    assert [shown[str(n)]["info"][0] for n in range(5)] == ["FINISHED", "FAILED", "FINISHED", "KILLED", "KILLED"]
    for item in study.trials:
        times = (int(item.started_at.timestamp() * 1000), int(item.closed_at.timestamp() * 1000))
        assert shown[str(item.number)]["info"][1:3] == times
    assert shown["study"]["info"][0] == "FINISHED"


def test_an_unfinished_trial_is_running_and_is_killed_once_nobody_runs_it(any_store: Any) -> None:
    running = snapshot("in-flight", (in_flight(0, study="in-flight"),), status="running", ended_at=None)
    any_store.mirror().sync(running)
    assert {run["info"][0] for run in dump(any_store.client, "in-flight").values()} == {"RUNNING"}
    assert any_store.mirror().sync(running).unchanged == 2
    any_store.mirror().sync(replace(running, status="interrupted", ended_at=running.started_at))
    assert {run["info"][0] for run in dump(any_store.client, "in-flight").values()} == {"KILLED"}


def test_live_mirroring_and_a_rebuild_from_nothing_give_the_same(store: Any, other_store: Any, tmp_path: Path) -> None:
    study = rich("live", tmp_path)
    mirror = store.mirror()
    mirror.open_study(replace(study, trials=(), probes=(), status="running", best=None, gain=None, documents={}))
    mirror.mirror_trial(in_flight(0, study="live"))
    for item in study.trials:
        mirror.mirror_trial(item)
    mirror.sync(study)
    other_store.mirror().sync(study)
    assert dump(store.client, "live") == dump(other_store.client, "live")


@pytest.mark.parametrize("after", [False, True], ids=["before-a-call", "after-a-call"])
def test_a_mirror_killed_at_any_call_is_repaired_by_a_sync(
    store: Any, tmp_path: Path, dying: Any, killed: Any, after: bool
) -> None:
    def study_named(name: str) -> Any:
        few = rich(name, tmp_path)
        return replace(few, trials=few.trials[:2], best=0)

    reference = f"killed-{after}"
    client = dying(store.client, 1000, after=after)
    store.mirror(client).sync(study_named(reference))
    expected = dump(store.client, reference)
    for calls in range(len(client.names)):
        name = f"{reference}-{calls}"
        with pytest.raises(killed):
            store.mirror(dying(store.client, calls, after=after)).sync(study_named(name))
        store.mirror().sync(study_named(name))
        assert dump(store.client, name) == expected, client.names[calls]


def test_a_correction_killed_at_any_call_is_repaired_by_a_sync(store: Any, dying: Any, killed: Any) -> None:
    def before(name: str) -> Any:
        return snapshot(name, (trial(0, study=name), failed(1, study=name)))

    def later(name: str) -> Any:
        slower = trial(1, study=name, outcome=Outcome(kind=OutcomeKind.SLOWER))
        return replace(before(name), trials=(failed(0, study=name), slower), spec={"engine": "vllm"})

    store.mirror().sync(before("fix"))
    client = dying(store.client, 1000, after=True)
    report = store.mirror(client).sync(later("fix"))
    assert (report.created, report.updated) == (0, 3)
    expected = dump(store.client, "fix")
    assert expected["1"]["tags"].keys().isdisjoint({"reason", "rule", "blames"})
    for calls in range(len(client.names)):
        name = f"fix-{calls}"
        store.mirror().sync(before(name))
        with pytest.raises(killed):
            store.mirror(dying(store.client, calls, after=True)).sync(later(name))
        store.mirror().sync(later(name))
        assert dump(store.client, name) == expected, client.names[calls]


def test_what_somebody_changed_or_deleted_is_put_right(any_store: Any) -> None:
    study = snapshot("touched", tuple(trial(n, study="touched") for n in range(4)))
    report = any_store.mirror().sync(study)
    expected = dump(any_store.client, "touched")
    runs = {r.data.tags.get("agent.trial"): r.info for r in any_store.client.search_runs([report.experiment_id])}
    any_store.client.set_tag(runs["0"].run_id, "outcome", "failed")
    any_store.client.update_run(runs["1"].run_id, status="RUNNING")
    any_store.client.delete_run(runs["2"].run_id)
    any_store.client.log_param(runs["3"].run_id, "stray", "1")
    repaired = any_store.mirror().sync(study)
    assert (repaired.created, repaired.updated, repaired.unchanged) == (1, 3, 1)
    assert dump(any_store.client, "touched") == expected


def test_a_trial_that_is_judged_anew_keeps_its_run_and_loses_the_old_tags(store: Any, dying: Any) -> None:
    item = failed(0, study="anew")
    study = snapshot("anew", (item,))
    store.mirror().sync(study)
    slower = item.model_copy(update={"outcome": Outcome(kind=OutcomeKind.SLOWER)})
    client = dying(store.client, 1000, after=True)
    store.mirror(client).sync(replace(study, trials=(slower,)))
    shown = dump(store.client, "anew")["0"]
    assert shown["info"][0] == "KILLED"
    assert shown["tags"].keys().isdisjoint({"reason", "rule", "blames", "decisive_line", "scope.cuda"})
    assert not {"create_run", "delete_run", "log_artifacts"} & set(client.names[3:])


def test_a_document_that_changed_is_uploaded_again(store: Any) -> None:
    study = snapshot("document", (), documents={"report.md": "old"})
    store.mirror().sync(study)
    assert store.mirror().sync(replace(study, documents={"report.md": "new"})).updated == 1
    assert dump(store.client, "document")["study"]["artifacts"]["report.md"] == "new"


def test_of_two_copies_the_complete_one_stays(any_store: Any) -> None:
    study = snapshot("copies", (trial(0, study="copies"),))
    report = any_store.mirror().sync(study)
    expected = dump(any_store.client, "copies")
    any_store.client.create_run(report.experiment_id, start_time=1, tags={"agent.study": "copies", "agent.trial": "0"})
    repaired = any_store.mirror().sync(study)
    assert (repaired.unchanged, repaired.removed) == (2, 1)
    assert dump(any_store.client, "copies") == expected


def test_batches_keep_to_the_limits_and_end_with_the_last_tag() -> None:
    class Recorder:
        calls: ClassVar[list[tuple[Any, ...]]] = []

        def log_batch(self, run_id: str, *parts: Any) -> None:
            self.calls.append(parts)

    log_batch(
        Recorder(),
        "run",
        params={f"p{n}": "1" for n in range(250)},
        metrics=[("m", 1.0, n) for n in range(900)],
        timestamp_ms=1,
        tags={f"t{n}": "1" for n in range(350)},
    )
    sizes = [tuple(map(len, parts)) for parts in Recorder.calls]
    assert all(metrics <= 800 and params <= 100 and tags <= 100 for metrics, params, tags in sizes)
    assert tuple(map(sum, zip(*sizes, strict=True))) == (900, 250, 350)
    assert Recorder.calls[-1][2][-1].key == "t349"


def test_a_description_edited_in_the_view_stays(store: Any) -> None:
    study = snapshot("note", (failed(0, study="note"),))
    store.mirror().sync(study)
    found = store.client.search_runs([store.mirror().sync(study).experiment_id])
    child = next(run.info.run_id for run in found if "agent.trial" in run.data.tags)
    store.client.set_tag(child, "mlflow.note.content", "my own words")
    assert store.mirror().sync(study).unchanged == 2
    assert dump(store.client, "note")["0"]["tags"]["mlflow.note.content"] == "my own words"


def test_duplicates_and_runs_of_unknown_trials_go_foreign_runs_stay(any_store: Any) -> None:
    study = snapshot("spare", (trial(0, study="spare"),))
    report = any_store.mirror().sync(study)
    tags = {"agent.study": "spare"}
    any_store.client.create_run(report.experiment_id, tags={**tags, "agent.trial": "0"})
    any_store.client.create_run(report.experiment_id, tags={**tags, "agent.trial": "77"})
    any_store.client.create_run(report.experiment_id, tags={"mine": "yes"})
    repaired = any_store.mirror().sync(study)
    assert (repaired.unchanged, repaired.removed) == (2, 2)
    assert len(any_store.client.search_runs([report.experiment_id])) == 3


def test_a_deleted_experiment_is_restored(any_store: Any) -> None:
    study = snapshot("binned", (trial(0, study="binned"),))
    report = any_store.mirror().sync(study)
    expected = dump(any_store.client, "binned")
    any_store.client.delete_experiment(report.experiment_id)
    any_store.mirror().sync(study)
    assert dump(any_store.client, "binned") == expected


def test_a_closed_trial_costs_one_creation_one_upload_one_batch_one_close(store: Any, dying: Any) -> None:
    client = dying(store.client, 1000, after=True)
    mirror = store.mirror(client)
    mirror.open_study(snapshot("calls", (), status="running"))
    client.names.clear()
    mirror.mirror_trial(trial(0, study="calls"))
    assert client.names == ["create_run", "log_artifacts", "log_batch", "set_terminated"]
    client.names.clear()
    mirror.mirror_trial(in_flight(1, study="calls"))
    assert client.names == ["create_run"]
    client.names.clear()
    mirror.mirror_trial(trial(1, study="calls"))
    assert client.names == ["log_artifacts", "log_batch", "set_terminated"]
    client.names.clear()
    mirror.mirror_trial(trial(1, study="calls"), ["D7"])
    assert client.names == ["log_batch"]


def test_a_resumed_study_runs_again_and_keeps_its_runs(any_store: Any) -> None:
    """Links to them stay good. The study's metrics have one point for each of its ends."""
    done = snapshot("resumed", (trial(0, study="resumed"),), best=0, gain=1.1)
    any_store.mirror().sync(done)
    before = run_ids(any_store.client, "resumed")
    mirror = any_store.mirror()
    mirror.open_study(replace(done, status="running"))
    assert dump(any_store.client, "resumed")["study"]["info"][0] == "RUNNING"
    mirror.mirror_trial(trial(1, study="resumed"))
    later = {"best": 1, "gain": 1.2, "ended_at": START + timedelta(hours=2)}
    whole = replace(done, trials=(*done.trials, trial(1, study="resumed")), **later)  # type: ignore[arg-type]
    assert mirror.sync(whole).removed == 0
    assert run_ids(any_store.client, "resumed").items() >= before.items()
    assert any_store.mirror().sync(whole).unchanged == 3
    shown = dump(any_store.client, "resumed")
    assert shown["study"]["tags"]["best.gain"] == "1.2000"
    ends = [milliseconds(START + timedelta(hours=hours)) for hours in (1, 2)]
    assert shown["study"]["metrics"]["gain"] == [(1, 1.1, ends[0]), (2, 1.2, ends[1])]
    parent = any_store.client.get_run(before["study"])
    assert (parent.data.metrics["gain"], parent.info.lifecycle_stage) == (1.2, "active")
    assert all(run["parent_is_active"] for run in shown.values())


def test_a_study_whose_figures_changed_without_a_launch_gets_a_new_run(store: Any) -> None:
    """Its failures were judged again: MLflow can neither change nor remove a point, and shows the larger of two."""
    done = snapshot("judged", (trial(0, study="judged"),), best=0, gain=1.2)
    store.mirror().sync(done)
    store.mirror().sync(replace(done, gain=1.1))
    assert dump(store.client, "judged")["study"]["metrics"]["gain"] == [(1, 1.1, milliseconds(START) + 3_600_000)]


def test_more_than_a_batch_of_settings_and_facts_is_mirrored(store: Any) -> None:
    many = {f"name{n}": n for n in range(250)}
    study = snapshot("many", (), spec=many, facts=many)
    store.mirror().sync(study)
    assert store.mirror().sync(study).unchanged == 1
    shown = dump(store.client, "many")["study"]
    assert len([name for name in shown["params"] if name.startswith("spec.")]) == 250
    assert len([name for name in shown["tags"] if name.startswith("fact.")]) == 250


def test_no_secret_reaches_mlflow(store: Any, tmp_path: Path) -> None:
    store.mirror().sync(rich("secrets", tmp_path))
    shown = repr(dump(store.client, "secrets"))
    assert SECRET not in shown
    assert "KeyError: 12" in shown


def test_a_long_log_loses_its_middle(store: Any, tmp_path: Path) -> None:
    study = rich("long", tmp_path)
    Path(study.trials[0].record.log_path).write_text("first\n" + "x" * 5000 + "\nlast\n")
    store.mirror(max_file_bytes=1000).sync(study)
    log = dump(store.client, "long")["0"]["artifacts"]["log.txt"]
    assert log.startswith("first")
    assert log.endswith("last\n")
    assert "4012 bytes left out" in log
    assert len(log) < 1200


def test_a_trial_of_another_study_is_refused(store: Any) -> None:
    mirror = store.mirror()
    mirror.open_study(snapshot("mine", (), status="running"))
    with pytest.raises(ValueError, match="theirs"):
        mirror.mirror_trial(trial(0, study="theirs"))
