"""How a trace is turned into distributions for replay, and whether its drafts were drawn from them."""

from dataclasses import asdict, dataclass
from typing import Any

import torch
from torch import Tensor

from fly_theory.distributions import warp
from fly_theory.errors import InvalidInput
from gpu.devices import resolve_device
from gpu.trace import Trace, TraceBlock

__all__ = ["DTYPES", "ReplaySettings", "drawn_temperature"]

DTYPES = {"float32": torch.float32, "float64": torch.float64}


@dataclass(frozen=True, kw_only=True)
class ReplaySettings:
    """Temperature and warpers, applied to the logits of both models alike (see `fly_theory.warp`), and the arithmetic.

    Raises
    ------
    InvalidInput
        A setting outside its domain, or a device that is not there.
    """

    temperature: float
    top_k: int | None = None
    top_p: float | None = None
    min_p: float | None = None
    epsilon: float | None = None
    eta: float | None = None
    dtype: str = "float32"
    device: str = "cpu"

    def __post_init__(self) -> None:
        if self.dtype not in DTYPES:
            msg = f"dtype={self.dtype!r}; allowed are {', '.join(DTYPES)}"
            raise InvalidInput(msg)
        if self.device not in ("cpu", "cuda"):
            msg = f"device={self.device!r}; allowed are auto, cpu and cuda"
            raise InvalidInput(msg)
        resolve_device(self.device)
        warp(torch.zeros(1), **self.law)

    @property
    def law(self) -> dict[str, Any]:
        """The arguments of `fly_theory.warp`."""
        return {name: value for name, value in asdict(self).items() if name not in ("dtype", "device")}

    @property
    def warpers(self) -> dict[str, Any]:
        """The warpers in use, without the temperature."""
        return {name: value for name, value in self.law.items() if name != "temperature" and value is not None}

    def pair(self, block: TraceBlock) -> tuple[Tensor, Tensor]:
        """Target p and draft q, (K, V) each, at the draft tokens of a block."""
        rows = block.draft_logits.shape[0]
        return self.law_of(block.target_logits[:rows]), self.law_of(block.draft_logits)

    def laws(self, block: TraceBlock) -> tuple[Tensor, Tensor]:
        """Target p (K+1, V), the row of the bonus token included, and draft q (K, V) of a block."""
        return self.law_of(block.target_logits), self.law_of(block.draft_logits)

    def law_of(self, logits: Tensor, *, room: Tensor | None = None) -> Tensor:
        """The distributions (..., V) that logits (..., V) become, in `room` (..., V) where that can be filled.

        Without warpers this is the softmax of torch, several times as fast as the one `warp` spells out, normalised
        once more, since in float32 its sums are off by some 1e-6. Rows that have none, whose every entry it makes NaN,
        are left to `warp` to name.
        """
        logits = logits.to(self.device)
        if not self.warpers and self.temperature > 0:
            tempered = logits if self.temperature == 1 else logits.to(self.torch_dtype) / self.temperature
            law = torch.softmax(tempered, dim=-1, dtype=self.torch_dtype, out=room)
            if not law[..., 0].isnan().any():
                return law.div_(law.sum(dim=-1, keepdim=True))
        return warp(logits.to(self.torch_dtype), **self.law)

    @property
    def torch_dtype(self) -> torch.dtype:
        """The dtype of all arithmetic."""
        return DTYPES[self.dtype]

    def mismatch(self, trace: Trace) -> str | None:
        """Why the draft law of this replay is not the one the trace's drafts were drawn from, or None when it is."""
        drawn = drawn_temperature(trace)
        if drawn is None:
            return "the trace does not say at which temperature its draft tokens were drawn"
        how = "taken greedily" if drawn == 0 else f"drawn at temperature {drawn:g}"
        if self.warpers:
            names = ", ".join(f"{name}={value:g}" for name, value in self.warpers.items())
            return f"the draft tokens were {how} without warpers, and this replay applies {names}"
        if self.temperature != drawn:
            return f"the draft tokens were {how}, and this replay is at temperature {self.temperature:g}"
        return None


def drawn_temperature(trace: Trace) -> float | None:
    """The temperature the draft tokens of a trace were drawn at, or None when its manifest does not say."""
    temperature = trace.manifest["source"].get("settings", {}).get("temperature")
    return None if temperature is None else float(temperature)
