"""What block rules read of a captured block, computed once for all of them."""

from collections.abc import Callable

from torch import Tensor

from fly_theory.arrays import Array, Number, one_hot
from fly_theory.blocks import Block
from fly_theory.distributions import softmax, trusted_inputs
from gpu.replaying.on_blocks.setting import BlockSetting
from gpu.replaying.settings import DTYPES, ReplaySettings
from gpu.trace import TraceBlock

__all__ = ["BlockLaws"]


class BlockLaws:
    """The laws of a captured block, each made on first use.

    Most block rules judge drafts by the laws p and q of the replay. FLy and its variants take greedy drafts and a
    target at their own temperature, and their gates read the target at temperature 1: what they are given depends
    neither on the temperature of the replay nor on its warpers.
    """

    def __init__(self, captured: TraceBlock, settings: ReplaySettings) -> None:
        self._captured = captured
        self._settings = settings
        self._tokens = captured.tokens.to(settings.device)
        self._targets: dict[Number, Tensor] = {}
        self._blocks: dict[Number | None, Block] = {}
        self._entropies: dict[Callable[[Array], Array], Tensor] = {}

    def block(self, setting: BlockSetting) -> Block:
        """The block that a setting judges."""
        temperature = None if setting.deferred is None else setting.deferred.target_temperature
        if temperature not in self._blocks:
            self._blocks[temperature] = self._greedy(temperature) if temperature else self._sampled()
        with trusted_inputs():
            return setting.cut(self._blocks[temperature])

    def entropy(self, statistic: Callable[[Array], Array]) -> Tensor:
        """An entropy (K,) of the target at temperature 1, where the drafts are judged."""
        if statistic not in self._entropies:
            self._entropies[statistic] = statistic(self._target(1)[:-1])
        return self._entropies[statistic]

    def _target(self, temperature: Number) -> Tensor:
        if temperature not in self._targets:
            logits = self._captured.target_logits.to(self._settings.device, DTYPES[self._settings.dtype])
            self._targets[temperature] = softmax(logits, temperature=temperature)
        return self._targets[temperature]

    def _greedy(self, temperature: Number) -> Block:
        target = self._target(temperature)
        return self._made(target, one_hot(self._tokens, target[:-1]))

    def _sampled(self) -> Block:
        return self._made(*self._settings.laws(self._captured))

    def _made(self, target: Tensor, draft: Tensor) -> Block:
        with trusted_inputs():
            return Block(target, draft, self._tokens)
