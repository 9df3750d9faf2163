"""Secrets do not leave; evidence and counts do."""

from __future__ import annotations

import pytest

from agent.redaction import (
    environment_secrets,
    is_secret,
    redact_argv,
    redact_json,
    redact_mapping,
    redact_text,
    secrets_of,
)


@pytest.mark.parametrize(
    "name",
    ["HF_TOKEN", "hf_token", "AWS_SECRET_ACCESS_KEY", "PGPASSWORD", "api-key", "--api-key", "apiKey", "MY_CREDENTIALS"],
)
def test_a_name_that_may_hold_a_secret_is_masked(name: str) -> None:
    assert is_secret(name, "value")
    assert redact_mapping({name: "value"}) == {name: "***"}


@pytest.mark.parametrize(
    ("name", "value"),
    [
        ("num_draft_tokens", 4),
        ("--max-total-tokens", "4096"),
        ("tokenizer", "a/b"),
        ("token_map", "x.pt"),
        ("num_speculative_tokens_per_batch_size", "[[1, 2, 3]]"),
        ("path", "x"),
    ],
)
def test_counts_of_tokens_and_tokenizers_are_no_secrets(name: str, value: object) -> None:
    assert not is_secret(name, value)


def test_a_number_under_a_secret_name_is_masked() -> None:
    assert is_secret("PGPASSWORD", 1234)
    assert is_secret("AUTH_TOKENS", "abc")


def test_flags_are_masked_in_both_forms() -> None:
    argv = ("serve", "--api-key", "abc", "--hf-token=def", "--num-draft-tokens", "4", "-e", "HF_TOKEN=ghi", "--tp", "2")
    assert redact_argv(argv) == (
        *("serve", "--api-key", "***", "--hf-token=***", "--num-draft-tokens", "4", "-e", "HF_TOKEN=***", "--tp", "2"),
    )


def test_a_secret_flag_without_a_value_hides_nothing_else() -> None:
    assert redact_argv(("--use-token", "--tp", "2")) == ("--use-token", "--tp", "2")


@pytest.mark.parametrize(
    ("text", "clean"),
    [
        ("postgresql://me:pw@db:5432/x", "postgresql://me:***@db:5432/x"),
        ("see http://u:p@h/a and http://v:q@h/b", "see http://u:***@h/a and http://v:***@h/b"),
        ("redis://:pw@h", "redis://:***@h"),
        ("HF_TOKEN=abc next", "HF_TOKEN=*** next"),
        ("HF_TOKEN: abc", "HF_TOKEN: ***"),
        ("run --api-key abc --tp 2", "run --api-key *** --tp 2"),
        ("run --api-key=abc", "run --api-key=***"),
        ("Namespace(api_key='abc', tp=2)", "Namespace(api_key='***', tp=2)"),
        ('{"api_key": "abc", "tp": 2}', '{"api_key": "***", "tp": 2}'),
        ("Authorization: Bearer abc.def", "Authorization: Bearer ***"),
        ("got hf_abcdefghijklmnopqrst", "got ***"),
        ("password=abc\nother", "password=***\nother"),
    ],
)
def test_text_is_masked(text: str, clean: str) -> None:
    assert redact_text(text) == clean


@pytest.mark.parametrize(
    "line",
    [
        "KeyError: 12",
        "KeyError: 'sm_90'",
        "unexpected key: layers.0.weight",
        "prompt_tokens=512, num_draft_tokens=4",
        "Loading tokenizer: fast",
        "http://127.0.0.1:8000/v1",
        "12:00:01 http://host:8000/a mail me@host",
        "max_total_num_tokens=441963, chunked_prefill_size=8192",
    ],
)
def test_evidence_is_left_as_it_is(line: str) -> None:
    assert redact_text(line) == line


def test_known_values_are_masked_wherever_they_turn_up() -> None:
    secrets = secrets_of(("--api-key", "sesame-open"), {"HF_TOKEN": "abc-def-ghi", "TP": "long-enough"})
    assert secrets == {"sesame-open", "abc-def-ghi"}
    assert redact_text("key is sesame-open, TP is long-enough", secrets) == "key is ***, TP is long-enough"


def test_json_is_masked_at_any_depth() -> None:
    value = {"a": [{"api_key": "abc"}], "secret": {"b": 1}, "num_tokens": 5, "use_token": True, "u": "http://a:b@c"}
    assert redact_json(value) == {
        "a": [{"api_key": "***"}],
        "secret": {"b": 1},
        "num_tokens": 5,
        "use_token": True,
        "u": "http://a:***@c",
    }


def test_long_words_cost_no_more_than_their_length() -> None:
    """A base64 blob in a log must not stall the mirror."""
    blob = "KEYa" * 100_000
    assert redact_text(blob) == blob


def test_passwords_of_urls_and_keys_of_json_are_known_values() -> None:
    """A log repeats them without their names: a proxy's password, a key inside an object."""
    argv = ("serve", "--proxy", "http://user:pass-word@proxy", "--config", '{"inner": [{"api_key": "json-secret"}]}')
    assert secrets_of(argv, {"HTTPS_PROXY": "http://u:other-word@p:1"}) == {"pass-word", "json-secret", "other-word"}


def test_every_word_of_a_secret_option_is_masked() -> None:
    """vLLM takes several API keys in a row."""
    assert redact_argv(("serve", "--api-key", "one-key", "two-key", "--tp", "2")) == (
        *("serve", "--api-key", "***", "***", "--tp", "2"),
    )


def test_an_inherited_secret_is_one_that_no_log_has_by_chance() -> None:
    """A path, or a short word, would be masked in every line."""
    variables = {
        "HF_TOKEN": "abcdefghijkl",
        "SSH_KEY": "/home/me/.ssh/id",
        "SHORT_KEY": "default",
        "HOME": "/home/me12345",
    }
    assert environment_secrets(variables) == {"abcdefghijkl"}
