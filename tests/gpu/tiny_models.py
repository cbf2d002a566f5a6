"""Model folders made from a config, random weights and a tokenizer trained on a few lines: no network, no download."""

from pathlib import Path

import torch
from tokenizers import Tokenizer, decoders, models, pre_tokenizers, trainers
from transformers import LlamaConfig, LlamaForCausalLM, PreTrainedTokenizerFast, Qwen2Config, Qwen2ForCausalLM

TEXT = [
    "the fox and the hare ran over the hill, and the hill was green",
    "one and one are two, two and two are four, four and four are eight",
    "def add(a, b): return a + b",
]
SIZES = {
    "hidden_size": 32,
    "intermediate_size": 48,
    "num_attention_heads": 4,
    "num_key_value_heads": 2,
    "max_position_embeddings": 160,
    "initializer_range": 0.3,
}
CHAT_TEMPLATE = "{% for message in messages %}<user>{{ message['content'] }}{% endfor %}<model>"
END = "<|endoftext|>"  # the name that the Qwen2 tokenizer class of transformers adds when it is missing


def train_tokenizer(vocabulary: int = 290, texts: list[str] = TEXT) -> PreTrainedTokenizerFast:
    """A byte-level BPE tokenizer whose id 0 ends a sequence."""
    tokenizer = Tokenizer(models.BPE())
    tokenizer.pre_tokenizer = pre_tokenizers.ByteLevel(add_prefix_space=False)
    tokenizer.decoder = decoders.ByteLevel()
    alphabet = pre_tokenizers.ByteLevel.alphabet()
    trainer = trainers.BpeTrainer(
        vocab_size=vocabulary, special_tokens=[END], initial_alphabet=alphabet, show_progress=False
    )
    tokenizer.train_from_iterator(texts, trainer)
    return PreTrainedTokenizerFast(tokenizer_object=tokenizer, eos_token=END, chat_template=CHAT_TEMPLATE)


def save_llama(folder: Path, tokenizer: PreTrainedTokenizerFast, *, vocabulary: int, layers: int = 3) -> Path:
    """A Llama with `vocabulary` rows of embedding, which may be more than the tokenizer has tokens."""
    torch.manual_seed(1)
    config = LlamaConfig(vocab_size=vocabulary, num_hidden_layers=layers, bos_token_id=None, eos_token_id=0, **SIZES)
    return _save(LlamaForCausalLM(config), tokenizer, folder)


def save_qwen2(folder: Path, tokenizer: PreTrainedTokenizerFast, *, vocabulary: int, layers: int = 2) -> Path:
    """A Qwen2 with a sliding window in its last layer, shorter than the contexts of the tests."""
    torch.manual_seed(2)
    config = Qwen2Config(
        vocab_size=vocabulary,
        num_hidden_layers=layers,
        bos_token_id=None,
        eos_token_id=0,
        use_sliding_window=True,
        sliding_window=12,
        max_window_layers=layers - 1,
        **SIZES,
    )
    return _save(Qwen2ForCausalLM(config), tokenizer, folder)


def _save(network: torch.nn.Module, tokenizer: PreTrainedTokenizerFast, folder: Path) -> Path:
    network.save_pretrained(folder)
    tokenizer.save_pretrained(folder)
    return folder
