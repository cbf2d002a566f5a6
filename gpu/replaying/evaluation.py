"""The rows of a block evaluated under a plan: the pair once, every rule on it, in chunks that fit in memory."""

import pickle
from collections.abc import Callable, Iterator
from functools import lru_cache, partial
from typing import Any

import torch
from torch import Tensor

from fly_theory.errors import FlyTheoryError
from gpu.replaying.compilation import compiled
from gpu.replaying.measures import UNDEFINED, Pair, measure_draft, measure_rows, of_block
from gpu.replaying.plan import NOT_PORTABLE, Plan
from gpu.trace import TraceBlock

__all__ = ["Evaluator", "evaluator"]

Values = dict[str, Tensor]
Stage = Callable[..., Any]

# Rules that share a stage: their loops load p and q once, and have more to do while they wait for a result. More of
# them save little more, and take ever longer to compile.
_TOGETHER = 2


class Evaluator:
    """Evaluates blocks, one after the other, under one plan; `notes` says what a reader has to know about how.

    The logits of a block become p and q once; then comes one stage for the pair and one for every two rules. Stages are
    the plain functions of `measures`, or the same compiled where the plan says so and torch can. Rows that do not fit
    in memory together are halved until they do, and later blocks are cut up the same way.
    """

    def __init__(self, plan: Plan) -> None:
        self.notes: set[str] = set()
        self._plan = plan
        detectors = plan.detectors
        self._further = plan.further if detectors is None else (*plan.further, detectors)
        self._checked = detectors is None or not detectors.report_stuck
        self._most_rows: int | None = None
        self._rooms: Tensor | None = None
        self._compiles = plan.compiled
        self._compiled: dict[tuple[tuple[int, ...], int], Stage] = {}

    def __call__(self, block: TraceBlock) -> list[Values]:
        """The values of the pair and of every rule in the order of the plan, one a row or one for the block; on CPU."""
        rows = len(block.tokens)
        found = self._fitting(block.target_logits[:rows], block.draft_logits, block.tokens)
        return [of_block(values) for values in found]

    def _fitting(self, target: Tensor, draft: Tensor, tokens: Tensor) -> list[Values]:
        rows = len(tokens)
        if self._most_rows is None or rows <= self._most_rows:
            try:
                return self._evaluate(target, draft, tokens)
            except (MemoryError, RuntimeError) as error:
                if rows == 1 or not _is_out_of_memory(error):
                    raise
            self._rooms = None
            self._most_rows = half = (rows + 1) // 2
            self.notes.add(f"Rows of a block did not fit in memory together and were evaluated {half} at a time.")
        half = min(self._most_rows, (rows + 1) // 2)
        parts = (slice(None, half), slice(half, None))
        first, second = (self._fitting(target[part], draft[part], tokens[part]) for part in parts)
        return [{name: torch.cat([a[name], b[name]]) for name in a} for a, b in zip(first, second, strict=True)]

    def _evaluate(self, target: Tensor, draft: Tensor, tokens: Tensor) -> list[Values]:
        p, q = (
            self._plan.settings.law_of(logits, room=room)
            for logits, room in zip((target, draft), self._room(target), strict=True)
        )
        of_pair, pair = self._run((), self._pair, p, q, target, tokens)
        found, rules = [of_pair], range(len(self._plan.rules))
        for first in rules[::_TOGETHER]:
            found += self._of_rules(tuple(rules[first : first + _TOGETHER]), *pair, tokens)
        fetched = _fetched(found)
        for rule, values in zip(self._plan.rules, fetched[1:], strict=True):
            if UNDEFINED in values and values.pop(UNDEFINED).any():
                measure_rows(rule, pair, tokens)  # raises, and names the row
        return fetched

    def _room(self, logits: Tensor) -> list[Tensor]:
        """Memory for p and q, kept from one block to the next: on CPU, fresh memory takes longer than a softmax."""
        if self._rooms is None or self._rooms.shape[1] < len(logits) or self._rooms.shape[2:] != logits.shape[1:]:
            settings = self._plan.settings
            self._rooms = torch.empty(2, *logits.shape, dtype=settings.torch_dtype, device=settings.device)
        return list(self._rooms[:, : len(logits)])

    def _pair(self, p: Tensor, q: Tensor, target: Tensor, tokens: Tensor) -> tuple[Values, Pair]:
        pair = Pair.of(p, q)
        found = measure_draft(pair, tokens)
        detectors = self._plan.detectors
        return (found if detectors is None else found | detectors.of_pair(p, q, tokens, target)), pair

    def _of_rules(self, numbers: tuple[int, ...], *pair_and_tokens: Tensor) -> list[Values]:
        return self._run(numbers, partial(self._rules, numbers), *pair_and_tokens)

    def _rules(self, numbers: tuple[int, ...], *pair_and_tokens: Tensor) -> list[Values]:
        *pair, tokens = pair_and_tokens
        return [
            measure_rows(self._plan.rules[number], Pair(*pair), tokens, self._further, checked=self._checked)
            for number in numbers
        ]

    def _one_by_one(self, numbers: tuple[int, ...], *pair_and_tokens: Tensor) -> list[Values]:
        return [values for number in numbers for values in self._of_rules((number,), *pair_and_tokens)]

    def _run(self, numbers: tuple[int, ...], stage: Stage, *arguments: Tensor) -> Any:
        """Run the stage of some rules, or of the pair, compiled for these shapes if the plan asks for it."""
        if not self._compiles:
            return stage(*arguments)
        key = numbers, len(arguments[-1])
        if key not in self._compiled:
            self._compiled[key] = self._prepared(numbers, stage, *arguments)
        return self._compiled[key](*arguments)

    def _prepared(self, numbers: tuple[int, ...], stage: Stage, *arguments: Tensor) -> Stage:
        """A stage compiled, or as it is if it cannot be; rules that cannot be compiled together are prepared alone."""
        try:
            prepared = compiled(stage, *arguments)
        except FlyTheoryError:
            raise
        except Exception as error:
            if _is_out_of_memory(error):
                raise
            prepared = stage
            if len(numbers) <= 1:
                what = self._plan.rules[numbers[0]].spec if numbers else "all rules"
                self.notes.add(f"Not compiled, and so slower: {what} ({_first_line(error)}).")
            if not numbers:
                # The pair asks for nothing that rules do not ask for: no other stage would fare better.
                self._compiles = False
        return partial(self._one_by_one, numbers) if prepared is stage and len(numbers) > 1 else prepared


def evaluator(plan: Plan) -> Evaluator:
    """An evaluator for a plan; one that compiles is kept for the next shard, with what it compiled."""
    if not plan.compiled:
        return Evaluator(plan)
    try:
        return _kept(pickle.dumps(plan))
    except NOT_PORTABLE:
        # The plan is the same object for every shard.
        return _kept(plan)


@lru_cache(maxsize=1)
def _kept(plan: bytes | Plan) -> Evaluator:
    return Evaluator(pickle.loads(plan) if isinstance(plan, bytes) else plan)


def _fetched(found: list[Values]) -> list[Values]:
    """The values in one transfer from the device."""
    columns: Iterator[Tensor] = iter(torch.stack([column for values in found for column in values.values()]).cpu())
    return [{name: next(columns) for name in values} for values in found]


def _is_out_of_memory(error: BaseException) -> bool:
    if isinstance(error, MemoryError | torch.OutOfMemoryError):
        return True
    message = str(error)
    return isinstance(error, RuntimeError) and ("out of memory" in message or "can't allocate memory" in message)


def _first_line(error: Exception) -> str:
    reason = getattr(error, "inner_exception", error)
    return next(iter(str(reason).strip().splitlines()), type(reason).__name__)
