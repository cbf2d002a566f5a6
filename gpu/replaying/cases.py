"""The worst positions of a rule, looked at again: context, draft token, and where the probability went."""

from collections.abc import Iterable
from dataclasses import asdict, dataclass, replace
from typing import Any

import numpy as np

from fly_theory import divergence
from fly_theory.cli.pair_source import readable
from fly_theory.rules.base import Rule
from gpu.replaying.certified.seen import completion
from gpu.replaying.settings import ReplaySettings
from gpu.trace import TopKBlock, Trace

__all__ = ["Case", "TokenMass", "TokenNames", "examine", "pair_at"]

_CONTEXT_TOKENS = 48
_TOP = 5
_GAINING = 2

# An output that misses more than this of its mass is undefined.
_SHORT = 1e-6


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
        TV(p, out) and the acceptance probability there. No TV where the rule has nothing to redraw from: its output
        is then undefined, and the tokens show what it accepts in its place.
    context
        Text before the position: the last tokens of the block's context and its earlier draft tokens.
    drafted
        The draft token.
    tokens
        The most probable tokens of p, of q and of out, and those that out gives most over p; by falling p.
    """

    block: int
    position: int
    prompt: str
    tv: float | None
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
    """Target p and draft q (V,) at one position, in float64; in a top-k trace, unseen tokens share what is left."""
    whole, row = trace[block], slice(position, position + 1)
    if isinstance(whole, TopKBlock):
        return completion(whole, settings, position)
    alone = replace(whole, target_logits=whole.target_logits[row], draft_logits=whole.draft_logits[row])
    p, q = replace(settings, dtype="float64", device="cpu").pair(alone)
    return p[0].numpy(), q[0].numpy()


def examine(trace: Trace, settings: ReplaySettings, rule: Rule, number: int, position: int) -> Case:
    """Look again at one position of the block of that number."""
    p, q = pair_at(trace, settings, number, position)
    verdict = rule.verdict(p, q)
    out = rule.induced_from(verdict, q, checked=False)
    names, block = TokenNames(trace), trace[number]
    prompts = trace.manifest["source"].get("prompts", [])

    def mass(token: int) -> TokenMass:
        shares = (float(law[token]) for law in (p, q, verdict.accepted, out))
        return TokenMass(int(token), names.text([token]), *shares)

    ranked = ((p, _TOP), (q, _TOP), (out, _TOP), (out - p, _GAINING))
    top = {int(token) for values, count in ranked for token in np.argsort(-values, kind="stable")[:count]}
    before = [*block.context.tolist(), *block.tokens[:position].tolist()]
    return Case(
        block=number,
        position=position,
        prompt=prompts[block.prompt]["id"] if prompts else str(block.prompt),
        tv=float(divergence.total_variation(p, out)) if abs(out.sum() - 1) < _SHORT else None,
        acceptance=float(verdict.accepted.sum()),
        context=names.text(before[-_CONTEXT_TOKENS:]),
        drafted=mass(int(block.tokens[position])),
        tokens=tuple(mass(token) for token in sorted(top, key=lambda token: (-p[token], token))),
    )
