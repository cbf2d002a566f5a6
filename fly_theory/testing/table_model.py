"""A stand-in for a causal language model whose next-token law is a known table."""

from types import SimpleNamespace
from typing import Any

import torch

from fly_theory.conformance.laws import read_table
from fly_theory.errors import InvalidInput

__all__ = ["TableModel", "TokenCache", "next_token_logits", "table_logits"]


class TokenCache:
    """A key-value cache that holds the tokens seen so far, with the methods that callers of transformers use."""

    is_croppable = True

    def __init__(self) -> None:
        self._tokens: torch.Tensor | None = None

    def update(self, keys: torch.Tensor, values: torch.Tensor, layer: int) -> tuple[torch.Tensor, torch.Tensor]:
        """Append keys (B, 1, T, 1), and return all of them, for keys and values alike."""
        self._tokens = keys if self._tokens is None else torch.cat([self._tokens, keys], dim=2)
        return self._tokens, self._tokens

    def get_seq_length(self, layer: int = 0) -> int:
        """Number of tokens held."""
        return 0 if self._tokens is None else self._tokens.shape[2]

    def crop(self, length: int) -> None:
        """Keep the first `length` tokens; a length <= 0 drops that many of the last ones."""
        if self._tokens is not None:
            keep = length if length > 0 else self._tokens.shape[2] + length
            self._tokens = self._tokens[:, :, :keep]


class TableModel(torch.nn.Module):  # type: ignore[misc]
    """A torch module that a transformers-style caller takes for a causal language model.

    The law of the next token is a row of the table, chosen by the last tokens; before there are as many as the table is
    deep, token 0 stands for what is missing, and so it does for positions that the attention mask leaves out.

    Parameters
    ----------
    table : (V,), (V, V) or (V, V, V)
        Rows by the last 0, 1 or 2 tokens. Decimals and "3/10" are read as written.
    eos : int
        The id that ends a text, for `config.eos_token_id`.
    padding : int
        Number of ids that are added to the vocabulary and never have any mass.

    Raises
    ------
    DistributionError, ShapeError
        For a table that is no law.
    InvalidInput
        For an eos outside the vocabulary, or negative padding.

    Examples
    --------
    >>> import fly_theory as ft, torch
    >>> model = ft.testing.TableModel([["1/2", "1/2"], ["1/4", "3/4"]])
    >>> model(torch.tensor([[0, 1]])).logits.softmax(-1)[0]
    tensor([[0.5000, 0.5000],
            [0.2500, 0.7500]])
    """

    def __init__(self, table: Any, *, eos: int | None = None, padding: int = 0) -> None:
        super().__init__()
        logits = table_logits(table, eos=eos, padding=padding)
        self.log_rows = torch.nn.Parameter(logits, requires_grad=False)
        self.config = SimpleNamespace(
            vocab_size=logits.shape[-1],
            eos_token_id=eos,
            pad_token_id=eos,
            is_encoder_decoder=False,
            model_type="table",
        )

    @property
    def device(self) -> torch.device:
        """Where the table is."""
        device: torch.device = self.log_rows.device
        return device

    @property
    def dtype(self) -> torch.dtype:
        """Of the logits."""
        dtype: torch.dtype = self.log_rows.dtype
        return dtype

    def forward(
        self,
        input_ids: torch.Tensor,
        attention_mask: torch.Tensor | None = None,
        past_key_values: Any = None,
        use_cache: bool | None = None,
        cache: Any = None,
        **ignored: Any,
    ) -> SimpleNamespace:
        """Logits (B, T, V) after each of the input_ids (B, T), which follow those in the cache, if one is given."""
        cache = past_key_values if cache is None else cache
        if cache is None and use_cache:
            cache = TokenCache()
        logits = next_token_logits(self.log_rows, input_ids, attention_mask, cache)
        return SimpleNamespace(logits=logits, past_key_values=cache, cache=cache)


def table_logits(table: Any, *, eos: int | None = None, padding: int = 0) -> torch.Tensor:
    """Logarithms of the rows of a table, float32 (V,) * depth + (V + padding,); see `TableModel`."""
    law = read_table(table, "table")
    size, width = law.vocabulary, law.vocabulary + padding
    if padding < 0 or not (eos is None or 0 <= eos < size):
        msg = f"padding={padding!r}, eos={eos!r}: allowed are padding >= 0, and an eos in 0..{size - 1} or None"
        raise InvalidInput(msg)
    rows = torch.zeros((size,) * law.depth + (width,), dtype=torch.float64)
    for context, row in law.rows.items():
        rows[(*context, slice(size))] = torch.tensor([float(mass) for mass in row], dtype=torch.float64)
    return rows.log().to(torch.float32)


def next_token_logits(
    log_rows: torch.Tensor, input_ids: torch.Tensor, attention_mask: torch.Tensor | None, cache: Any
) -> torch.Tensor:
    """Logits (B, T, V) after each of the input_ids (B, T), by the tokens before them, in the cache or not.

    Tokens are kept in the cache as keys of a single layer with a single head of size one.
    """
    tokens, depth = input_ids, log_rows.ndim - 1
    if cache is not None:
        states = input_ids[:, None, :, None].to(torch.float32)
        keys, _ = cache.update(states, states, 0)
        tokens = keys[:, 0, :, 0].to(torch.int64)
    if attention_mask is not None and attention_mask.ndim == 2:
        tokens = tokens * attention_mask[:, : tokens.shape[1]].to(tokens.dtype)
    padded = torch.nn.functional.pad(tokens, (depth, 0))
    context = [padded[:, i + 1 : i + 1 + tokens.shape[1]] for i in range(depth)]
    rows = log_rows[tuple(context)] if depth else log_rows.expand(*tokens.shape, -1)
    return rows[:, -input_ids.shape[1] :]
