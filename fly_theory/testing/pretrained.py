"""A table model that is a `PreTrainedModel` of transformers, for callers that insist on one."""

from typing import Any

import torch
from transformers import DynamicCache, GenerationConfig, GenerationMixin, PretrainedConfig, PreTrainedModel
from transformers.modeling_outputs import CausalLMOutputWithPast

from fly_theory.testing.table_model import next_token_logits, table_logits

# What transformers calls the cache in its outputs, earlier and now.
_CACHE = "cache" if "cache" in CausalLMOutputWithPast.__dataclass_fields__ else "past_key_values"

__all__ = ["PretrainedTableModel", "TableConfig", "pretrained_table_model"]


class TableConfig(PretrainedConfig):  # type: ignore[misc]
    """The configuration of a `PretrainedTableModel`: its table of logits, -inf written as None, and its special ids."""

    model_type = "fly_theory_table"

    def __init__(self, log_rows: Any = ((0.0,),), **kwargs: Any) -> None:
        self.log_rows = log_rows
        self.num_hidden_layers = self.num_attention_heads = self.hidden_size = 1
        super().__init__(**kwargs)


class PretrainedTableModel(PreTrainedModel, GenerationMixin):  # type: ignore[misc]
    """`TableModel` as a `PreTrainedModel`, with `generate`."""

    config_class = TableConfig

    def __init__(self, config: TableConfig) -> None:
        super().__init__(config)
        self.log_rows = torch.nn.Parameter(_tensor(config.log_rows), requires_grad=False)
        self.post_init()

    def forward(
        self,
        input_ids: torch.Tensor,
        attention_mask: torch.Tensor | None = None,
        past_key_values: Any = None,
        use_cache: bool | None = None,
        cache: Any = None,
        **ignored: Any,
    ) -> Any:
        """Logits (B, T, V) after each of the input_ids (B, T), which follow those in the cache, if one is given."""
        cache = past_key_values if cache is None else cache
        if cache is None and use_cache:
            cache = DynamicCache()
        logits = next_token_logits(self.log_rows, input_ids, attention_mask, cache)
        return CausalLMOutputWithPast(logits=logits, **{_CACHE: cache})


def pretrained_table_model(table: Any, *, eos: int | None = None, padding: int = 0) -> PretrainedTableModel:
    """A `PretrainedTableModel` with the laws of `TableModel(table, eos=eos, padding=padding)`."""
    logits = table_logits(table, eos=eos, padding=padding)
    ends = {"eos_token_id": eos, "pad_token_id": eos if eos is not None else 0}
    config = TableConfig(_nested(logits), vocab_size=logits.shape[-1], **ends)
    model: PretrainedTableModel = PretrainedTableModel(config).eval()
    model.generation_config = GenerationConfig(**ends)
    return model


def _nested(logits: torch.Tensor) -> Any:
    """The logits as nested lists that JSON can hold."""
    values = logits.tolist()
    return _mapped(values, lambda value: None if value == float("-inf") else value)


def _tensor(nested: Any) -> torch.Tensor:
    return torch.tensor(_mapped(nested, lambda value: float("-inf") if value is None else value))


def _mapped(nested: Any, function: Any) -> Any:
    return [_mapped(each, function) for each in nested] if isinstance(nested, list | tuple) else function(nested)
