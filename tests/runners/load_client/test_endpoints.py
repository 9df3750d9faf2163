"""Events as the engines send them: counted, put together, or refused with the server's words."""

from __future__ import annotations

import json

import pytest

from runners.load_client.answer import Answer, AnswerError
from runners.load_client.endpoints import Endpoint, NativeEndpoint, OpenAiEndpoint, read_events
from runners.load_client.prompts import Prompt

OPENAI, NATIVE = OpenAiEndpoint("m"), NativeEndpoint()


def read(endpoint: Endpoint, *events: object) -> Answer:
    answer = Answer(sent_at=0.0)
    for number, event in enumerate(events, start=1):
        read_events(endpoint, [b"data: " + json.dumps(event).encode()], answer, float(number))
    read_events(endpoint, [b": a comment", b"data: [DONE]", b""], answer, 99.0)
    return answer


def choice(text: str, finish: str | None = None, **more: object) -> dict[str, object]:
    return {"choices": [{"index": 0, "text": text, "finish_reason": finish, **more}]}


USAGE = {"choices": [], "usage": {"prompt_tokens": 2, "completion_tokens": 3, "total_tokens": 5}}


def test_token_ids_tell_how_many_tokens_an_event_carries() -> None:
    """A verify pass may bring several, and a token may bring no text yet."""
    answer = read(OPENAI, choice("", token_ids=[5]), choice(" b c", "length", token_ids=[6, 7]), USAGE)
    assert (answer.ids, answer.tokens_per_event, answer.arrivals) == ([5, 6, 7], [1, 2], [1.0, 2.0])
    assert (answer.output_tokens, answer.prompt_tokens, answer.finish_reason) == (3, 2, "length")
    answer.check(3)


def test_a_server_without_token_ids_is_counted_by_its_usage_and_compared_by_its_text() -> None:
    """SGLang before 0.5.16 ignores the field that asks for ids."""
    answer = read(OPENAI, choice(" a"), choice(" b c"), choice("", "length"), USAGE)
    assert (answer.ids, answer.text, answer.output_tokens) == ([], " a b c", 3)
    answer.check(3)
    assert answer.record(1, 0, 0.0, 9.0, None).text_sha256 is not None


def native(ids: list[int], total: int, finish: dict[str, str] | None = None, **meta: object) -> dict[str, object]:
    return {
        "output_ids": ids,
        "meta_info": {"prompt_tokens": 2, "completion_tokens": total, "finish_reason": finish, **meta},
    }


@pytest.mark.parametrize(
    "events",
    [
        [native([5], 1), native([5, 6, 7], 3, {"type": "length"})],
        [native([5], 1), native([6, 7], 3, {"type": "length"})],
        [native([5, 6], 2), native([7], 3, {"type": "length"})],
    ],
    ids=["all so far", "new ones", "new ones, fewer than before"],
)
def test_ids_are_put_together_whether_an_event_holds_all_or_the_new_ones(events: list[dict[str, object]]) -> None:
    """The total tells which."""
    answer = read(NATIVE, *events)
    assert (answer.ids, sum(answer.tokens_per_event), answer.output_tokens) == ([5, 6, 7], 3, 3)
    answer.check(3)


def test_an_event_without_new_tokens_is_no_step() -> None:
    """Only its news counts."""
    answer = read(NATIVE, native([5], 1), native([5], 1, {"type": "stop"}))
    assert (answer.arrivals, answer.finish_reason) == ([1.0], "stop")


@pytest.mark.parametrize("name", ["spec_correct_drafts_histogram", "spec_accept_histogram"])
def test_counts_of_verification_are_kept_under_either_name(name: str) -> None:
    """The histogram was renamed."""
    answer = read(NATIVE, native([5, 6, 7], 3, {"type": "length"}, spec_verify_ct=2, **{name: [1, 1]}))
    assert (answer.verify_passes, answer.accepted_histogram) == (2, (1, 1))


@pytest.mark.parametrize(
    ("endpoint", "event", "words"),
    [
        (OPENAI, {"error": {"message": "EngineCore died", "code": 500}}, "EngineCore died"),
        (OPENAI, {"object": "error", "message": "old form"}, "old form"),
        (OPENAI, {"id": 1}, "no event of this API"),
        (OPENAI, [1], "no event of this API"),
        (OPENAI, {"choices": [], "usage": {"prompt_tokens": 1}}, "no event of this API"),
        (NATIVE, {"error": {"message": "too long"}}, "too long"),
        (NATIVE, native([], 0, {"type": "abort", "message": "out of slots"}), "out of slots"),
        (NATIVE, {"text": "x"}, "no event of this API"),
    ],
)
def test_an_event_that_is_an_error_or_none_is_refused(endpoint: Endpoint, event: object, words: str) -> None:
    """With the server's words."""
    with pytest.raises(AnswerError, match=words):
        read(endpoint, event)


@pytest.mark.parametrize(
    ("events", "words"),
    [
        ([choice(" a", token_ids=[5])], "broke off after 1 tokens"),
        ([choice(" a", "length", token_ids=[5])], "did not say how many"),
        ([choice(" a b c", "abort", token_ids=[5, 6, 7]), USAGE], "gave the request up"),
        ([choice(" a", "length", token_ids=[5]), USAGE], "1 token ids and counts 3"),  # while it is read
        ([choice(" a b c", "stop", token_ids=[5, 6, 7]), USAGE], "3 tokens came instead of 8"),
    ],
)
def test_an_answer_that_is_not_whole_does_not_count(events: list[dict[str, object]], words: str) -> None:
    """A level is only as good as its worst request."""
    with pytest.raises(AnswerError, match=words):
        read(OPENAI, *events).check(8)


def test_a_request_is_greedy_and_of_exact_length() -> None:
    """What makes two trials comparable."""
    prompt = Prompt(output_tokens=9, input_ids=(1, 2))
    body = OPENAI.body(prompt, ignore_eos=True)
    assert (body["prompt"], body["max_tokens"], body["temperature"], body["ignore_eos"]) == ([1, 2], 9, 0.0, True)
    native_body = NATIVE.body(prompt, ignore_eos=True)
    assert native_body["input_ids"] == [1, 2]
    assert native_body["sampling_params"] == {"max_new_tokens": 9, "temperature": 0.0, "ignore_eos": True}
