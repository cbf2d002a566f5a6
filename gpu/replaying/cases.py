"""The worst positions of a rule, looked at again: context, draft token, and where the probability went."""

from collections.abc import Iterable
from dataclasses import asdict, dataclass, replace
from typing import Any

import numpy as np

from fly_theory.cli.pair_source import readable
from fly_theory.rules.base import Rule
from gpu.replaying.settings import ReplaySettings
from gpu.replaying.tally import Worst
from gpu.trace import Trace

__all__ = ["Case", "TokenMass", "TokenNames", "examine", "pair_at"]

_CONTEXT_TOKENS = 48
_TOP = 5


@dataclass(frozen=True)
class TokenMass:
    """One token at one position: what target, draft and rule give it, and the draft mass that survives."""

    token: int
    text: str
    p: float
    q: float
    accepted: float
    out: float


@dataclass(frozen=True)
class Case:
    """A position where a rule is far from the target.

    Attributes
    ----------
    block, position
        Number of the block in the trace, and of the draft token in the block.
    prompt
        Id of the prompt, or its number where the trace names none.
    tv, acceptance
        TV(p, out) and the acceptance probability there, as replayed.
    context
        Text before the position: the last tokens of the block's context and its earlier draft tokens.
    drafted
        The draft token.
    tokens
        The most probable tokens of p, of q and of out, by falling p.
    """

    block: int
    position: int
    prompt: str
    tv: float
    acceptance: float
    context: str
    drafted: TokenMass
    tokens: tuple[TokenMass, ...]

    def to_json(self) -> dict[str, Any]:
        """As plain values."""
        return asdict(self)


class TokenNames:
    """What the tokens of a trace are called: their text, or their ids where the trace holds no tokenizer."""

    def __init__(self, trace: Trace) -> None:
        self._trace = trace
        self._known = trace.manifest["tokenizer"] is not None

    def text(self, ids: Iterable[int]) -> str:
        """Token ids as running text."""
        ids = list(ids)
        return self._trace.decode(ids) if self._known else " ".join(f"#{i}" for i in ids)

    def label(self, token: int) -> str:
        """One token with its white space visible."""
        return readable(self.text([token]), token)


def pair_at(trace: Trace, settings: ReplaySettings, block: int, position: int) -> tuple[np.ndarray, np.ndarray]:
    """Target p and draft q (V,) at one position, in float64."""
    p, q = replace(settings, dtype="float64", device="cpu").pair(trace[block])
    return p[position].numpy(), q[position].numpy()


def examine(trace: Trace, settings: ReplaySettings, rule: Rule, worst: Worst) -> Case:
    """Read one of the worst positions again."""
    p, q = pair_at(trace, settings, worst.block, worst.position)
    verdict = rule.verdict(p, q)
    out = rule.induced_from(verdict, q)
    names, block = TokenNames(trace), trace[worst.block]
    prompts = trace.manifest["source"].get("prompts", [])

    def mass(token: int) -> TokenMass:
        shares = (float(law[token]) for law in (p, q, verdict.accepted, out))
        return TokenMass(int(token), names.text([token]), *shares)

    top = {int(token) for law in (p, q, out) for token in np.argsort(-law, kind="stable")[:_TOP]}
    before = [*block.context.tolist(), *block.tokens[: worst.position].tolist()]
    return Case(
        block=worst.block,
        position=worst.position,
        prompt=prompts[block.prompt]["id"] if prompts else str(block.prompt),
        tv=worst.value,
        acceptance=float(verdict.accepted.sum()),
        context=names.text(before[-_CONTEXT_TOKENS:]),
        drafted=mass(int(block.tokens[worst.position])),
        tokens=tuple(mass(token) for token in sorted(top, key=lambda token: (-p[token], token))),
    )
