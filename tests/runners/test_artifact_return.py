"""Files of a trial come back from a node that does not see the study's folder."""

from __future__ import annotations

from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from runners import Exit, Phase, RunRecord, TrialRequest, artifact_return
from runners.artifact_return import Returned, at_hand, mark, packed, sees_folder, unpacked
from tests.runners.test_ray_pool import SYNTHETIC, request_for

RECORD = RunRecord(exit=Exit(code=0), phase=Phase.STOP, wall_s=1.0)


def there_and_back(asked: TrialRequest, files: dict[str, bytes]) -> RunRecord:
    """Run on a node that does not see the folder, with these files as the result."""
    with at_hand([asked]) as (ran,):
        folder = Path(ran.artifact_dir)
        for name, content in files.items():
            (folder / name).parent.mkdir(parents=True, exist_ok=True)
            (folder / name).write_bytes(content)
        record = RECORD.model_copy(update={"log_path": str(folder / "engine.log")})
        sent = packed(asked, ran, record, lambda piece: piece)
    assert not folder.exists()
    return unpacked(sent, asked, lambda piece: piece)


def test_who_sees_the_folder_writes_there(tmp_path: Path) -> None:
    asked = request_for(SYNTHETIC, tmp_path)
    mark(asked)
    with at_hand([asked]) as (ran,):
        assert ran == asked
        sent = packed(asked, ran, RECORD, lambda piece: piece)
    assert sent.files == {}
    assert unpacked(sent, asked, lambda piece: piece) == RECORD


def test_a_folder_of_the_same_name_on_another_node_is_not_the_folder(tmp_path: Path) -> None:
    asked = request_for(SYNTHETIC, tmp_path)
    assert not sees_folder(asked)
    Path(asked.artifact_dir).mkdir(parents=True)
    (Path(asked.artifact_dir) / artifact_return.MARK).write_text("somebody else's cookie")
    assert not sees_folder(asked)


@given(
    content=st.binary(max_size=200), piece=st.integers(1, 50), name=st.sampled_from(["engine.log", "a/b.json", "é.txt"])
)
def test_whatever_was_written_arrives_as_it_was(
    tmp_path_factory: pytest.TempPathFactory, content: bytes, piece: int, name: str
) -> None:
    asked = request_for(SYNTHETIC, tmp_path_factory.mktemp("home"))
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(artifact_return, "PIECE_BYTES", piece)
        record = there_and_back(asked, {name: content})
    assert (Path(asked.artifact_dir) / name).read_bytes() == content
    assert record.log_path == str(Path(asked.artifact_dir) / "engine.log")


def test_a_huge_log_keeps_its_beginning_and_its_end(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(artifact_return, "LARGEST_FILE_BYTES", 20)
    asked = request_for(SYNTHETIC, tmp_path)
    there_and_back(asked, {"engine.log": b"beginning " + b"x" * 1000 + b"the root!!"})
    kept = (Path(asked.artifact_dir) / "engine.log").read_bytes()
    assert kept.startswith(b"beginning ")
    assert kept.endswith(b"the root!!")
    assert b"1000 bytes are left out" in kept


def test_a_node_cannot_write_outside_of_the_trial_s_folder(tmp_path: Path) -> None:
    asked = request_for(SYNTHETIC, tmp_path)
    mark(asked)
    evil = Returned(RECORD.model_dump_json(), "/elsewhere", {"../../escaped": [b"x"]})
    with pytest.raises(ValueError, match="does not belong"):
        unpacked(evil, asked, lambda piece: piece)
    assert not (tmp_path.parent / "escaped").exists()
    assert [path.name for path in Path(asked.artifact_dir).iterdir()] == [artifact_return.MARK]
