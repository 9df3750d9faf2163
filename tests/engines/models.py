"""Tiny models for real engines, made on the spot: `PYTHON tests/engines/models.py FOLDER`, nothing is downloaded.

target    two-layer Llama of 1024 tokens, random weights
near      the target with noise on its weights: a draft that is often right
foreign   a draft with another vocabulary: the engine has to refuse it
corrupt   the target with half of its weights' file cut off

PYTHON is that of the engine: it has transformers.
"""

from __future__ import annotations

import shutil
import sys
from pathlib import Path

import torch
from tokenizers import Tokenizer, models, pre_tokenizers
from transformers import LlamaConfig, LlamaForCausalLM, PreTrainedTokenizerFast

VOCABULARY = 1024
LONGEST = 4096
NOISE = 0.1
"""Share of each matrix's own spread that the draft's weights are off."""
SPECIAL = ("<unk>", "<s>", "</s>", "<pad>")


def tokenizer(vocabulary: int) -> PreTrainedTokenizerFast:
    """Return a tokenizer of made-up words: token 17 is the word w17."""
    words = [*SPECIAL, *(f"w{number}" for number in range(len(SPECIAL), vocabulary))]
    table = Tokenizer(models.WordLevel({word: number for number, word in enumerate(words)}, unk_token=SPECIAL[0]))
    table.pre_tokenizer = pre_tokenizers.WhitespaceSplit()
    names = dict(zip(("unk_token", "bos_token", "eos_token", "pad_token"), SPECIAL, strict=True))
    return PreTrainedTokenizerFast(tokenizer_object=table, model_max_length=LONGEST, **names)


def llama(vocabulary: int = VOCABULARY, layers: int = 2) -> LlamaForCausalLM:
    """Return a Llama with seeded random weights."""
    torch.manual_seed(0)
    config = LlamaConfig(
        vocab_size=vocabulary,
        hidden_size=128,
        intermediate_size=256,
        num_hidden_layers=layers,
        num_attention_heads=4,
        num_key_value_heads=2,
        head_dim=32,
        max_position_embeddings=LONGEST,
        bos_token_id=1,
        eos_token_id=2,
        pad_token_id=3,
        tie_word_embeddings=False,
        dtype="bfloat16",
    )
    return LlamaForCausalLM(config)


def with_noise(model: LlamaForCausalLM) -> LlamaForCausalLM:
    """Return the model with noise on every matrix."""
    with torch.no_grad():
        for weight in model.parameters():
            if weight.dim() > 1:
                weight += NOISE * weight.std() * torch.randn_like(weight)
    return model


def save(model: LlamaForCausalLM, folder: Path) -> None:
    """Write the model in bfloat16, with a tokenizer of its vocabulary."""
    model.to(torch.bfloat16).save_pretrained(folder)
    tokenizer(model.config.vocab_size).save_pretrained(folder)


def main(folder: Path) -> None:
    """Make all of them."""
    save(llama(), folder / "target")
    save(with_noise(llama()), folder / "near")
    save(llama(vocabulary=2 * VOCABULARY, layers=1), folder / "foreign")
    shutil.copytree(folder / "target", folder / "corrupt")
    weights = folder / "corrupt" / "model.safetensors"
    weights.write_bytes(weights.read_bytes()[: weights.stat().st_size // 2])


if __name__ == "__main__":
    main(Path(sys.argv[1]))
