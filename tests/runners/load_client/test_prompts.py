"""Prompts are the same in every trial, whatever else is asked, and a dataset's mistakes are named by line."""

from __future__ import annotations

from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from runners import Workload
from runners.load_client import LoadJob
from runners.load_client.prompts import WARMUP_OUTPUT_TOKENS, DatasetError, Prompt, prompts, read_dataset


def job(**changes: object) -> LoadJob:
    workload = Workload(concurrency=(8, 1), prompt_tokens=20, output_tokens=50, requests=6)
    fields = {"base_url": "http://127.0.0.1:1", "api": "openai", "model": "m", "workload": workload}
    return LoadJob.model_validate(fields | changes)


def counted(asked: LoadJob) -> dict[int, list[Prompt]]:
    return {concurrency: drawn for concurrency, _, drawn in prompts(asked)}


def test_levels_come_highest_first_and_once() -> None:
    """What is clearly slower shows itself sooner there; a level that decides alone comes before all others."""
    first = job(workload=Workload(concurrency=(1, 8, 4), first=4))
    assert [concurrency for concurrency, _, _ in prompts(first)] == [4, 8, 1]
    twice = job(workload=Workload(concurrency=(8, 1, 8)))
    assert [concurrency for concurrency, _, _ in prompts(twice)] == [8, 1]


def test_no_level_has_fewer_requests_than_are_in_flight() -> None:
    """Else the level is not what its name says."""
    assert {level: len(drawn) for level, drawn in counted(job()).items()} == {1: 6, 8: 8}
    assert {level: len(drawn) for level, drawn in counted(job(workload=Workload())).items()} == {1: 4, 8: 32}


def test_a_prompt_depends_on_seed_level_and_place_alone() -> None:
    """More requests, more warm-ups or another level leave it as it is; another seed does not."""
    base = counted(job())[8]
    more = job(
        workload=Workload(concurrency=(8, 64), prompt_tokens=20, output_tokens=50, requests=60), warmup_requests=1
    )
    assert counted(more)[8][:8] == base
    other = job(workload=Workload(concurrency=(8,), prompt_tokens=20, output_tokens=50, requests=6, seed=1))
    assert counted(other)[8] != base


def test_no_prompt_comes_twice() -> None:
    """A prefix cache would answer it faster, in a later level most of all."""
    everything = [prompt.input_ids for _, warmups, drawn in prompts(job()) for prompt in (*warmups, *drawn)]
    assert len(set(everything)) == len(everything) == 1 + 6 + 8 + 8


def test_a_warm_up_has_the_whole_prompt_and_a_short_answer() -> None:
    """It brings the sizes to be compiled, and costs little."""
    for concurrency, warmups, _ in prompts(job()):
        assert len(warmups) == concurrency
        assert {(len(prompt.input_ids or ()), prompt.output_tokens) for prompt in warmups} == {
            (20, WARMUP_OUTPUT_TOKENS)
        }


@given(vocabulary=st.integers(4, 300_000), shortest=st.integers(1, 40) | st.none(), longest=st.integers(1, 30))
def test_drawn_prompts_have_the_length_and_the_ids_asked_for(
    vocabulary: int, shortest: int | None, longest: int
) -> None:
    """Ids lie within the vocabulary and off its edges; lengths within the range, and at the length without one."""
    asked = job(
        vocabulary_size=vocabulary,
        shortest_prompt_tokens=shortest,
        workload=Workload(concurrency=(1,), prompt_tokens=longest, requests=5),
    )
    for prompt in counted(asked)[1]:
        assert prompt.input_ids is not None
        assert min(shortest or longest, longest) <= len(prompt.input_ids) <= longest
        assert all(0 < token < vocabulary - 1 for token in prompt.input_ids)


def test_a_dataset_is_read_in_order_with_its_own_lengths(tmp_path: Path) -> None:
    """Columns of its own and empty lines do not matter."""
    path = tmp_path / "set.jsonl"
    path.write_text('{"prompt": "hello", "id": 3}\n\n{"input_ids": [1, 2], "output_tokens": 9}\n')
    assert read_dataset(path, 50) == [
        Prompt(output_tokens=50, text="hello"),
        Prompt(output_tokens=9, input_ids=(1, 2)),
    ]


def test_a_dataset_is_used_up_before_a_prompt_comes_again(tmp_path: Path) -> None:
    """Levels take one after the other; the seed alone decides on the order."""
    path = tmp_path / "set.jsonl"
    path.write_text("".join(f'{{"input_ids": [{number}]}}\n' for number in range(23)))
    asked = job(dataset=str(path))
    everything = [prompt.input_ids for _, warmups, drawn in prompts(asked) for prompt in (*warmups, *drawn)]
    assert sorted(ids for (ids,) in filter(None, everything)) == list(range(23))
    assert counted(asked) == counted(asked)


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ('{"prompt": "x"}\n{"prompt": ', ":2: not JSON"),
        ('{"question": "x"}\n', ":1: .*either `prompt`"),
        ('{"prompt": "x", "input_ids": [1]}\n', ":1: .*either `prompt`"),
        ('{"prompt": ""}\n', ":1: prompt: "),
        ('\n{"input_ids": [1], "output_tokens": 0}\n', ":2: output_tokens: "),
        ("[1]\n", ":1: "),
        ("\n", "no prompts"),
    ],
)
def test_a_mistake_in_a_dataset_is_named(text: str, message: str, tmp_path: Path) -> None:
    """File, line, key, and what belongs there."""
    path = tmp_path / "set.jsonl"
    path.write_text(text)
    with pytest.raises(DatasetError, match=message) as caught:
        read_dataset(path, 50)
    assert str(path) in str(caught.value)


def test_a_dataset_that_is_not_there_is_named(tmp_path: Path) -> None:
    """Instead of a traceback."""
    with pytest.raises(DatasetError, match=r"missing\.jsonl"):
        read_dataset(tmp_path / "missing.jsonl", 50)
