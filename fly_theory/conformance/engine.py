"""Whole engines: the text they generate from table models, held against the law of the target's text."""

import functools
import math
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from fractions import Fraction
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt

from fly_theory.claims import Claim, Lossless
from fly_theory.conformance.cases import Case
from fly_theory.conformance.emitted import Emitted
from fly_theory.conformance.guard import CallFailed, guarded, read_tokens
from fly_theory.conformance.laws import Row, Text, read_row, read_table
from fly_theory.conformance.metrics import check_stopping
from fly_theory.conformance.observations import Observations, worst_of
from fly_theory.conformance.sampled import chance_at, measured
from fly_theory.conformance.sequential import Tally, detectable_tv, log_evidence, samples_for
from fly_theory.conformance.summary import check_claims, invalid, summarise
from fly_theory.errors import InvalidInput, MissingExtra
from fly_theory.pairs import MarkovPair
from fly_theory.report import Report, Result, Witness

__all__ = ["conformance_engine"]

Generate = Callable[[Any, Any, Any, int], Any]

# A case is judged by its first tokens, by every token, and by an interval for its TV: each gets a share of the budget.
_TESTS_A_CASE = 3
_ROUND = 32
_REPEATS = 8
_EXTRA_IDS = 2


def conformance_engine(
    generate: Generate,
    pair: Any = None,
    length: int = 3,
    *,
    goal: Callable[[Any], Any] | None = None,
    eos: int | None = None,
    padding: int = 0,
    prompt: Sequence[int] = (0, 1),
    model: Callable[..., Any] | None = None,
    claims: Sequence[Claim] = (Lossless(),),
    seed: int = 0,
    false_alarm: float = 1e-6,
    resolution: float = 0.1,
    call_seconds: float = 60.0,
    seconds: float = 120.0,
) -> Report:
    """Hold the text that a whole engine generates against the law of the target's text.

    Both models are stand-ins whose next-token laws are known tables. Two things are tested on samples, with the
    sequential test of `fly_theory.conformance.sequential`: the joint law of the first `length` tokens, and the law of
    every token given those before it, however long the text.

    Parameters
    ----------
    generate : callable (draft_model, target_model, input_ids, seed) -> ids
        Given input_ids (1, T), a torch tensor, it returns the prompt and at least `length` more tokens, (1, T') or
        (T',), fewer only where the text ends with eos. How many must not depend on the tokens otherwise.
    pair : (target, draft) tables, or a MarkovPair
        Rows (V,), (V, V) or (V, V, V) by the last tokens. By default three pairs: of depth one, of depth two, and of
        depth one with ids that never have mass.
    length : int
        Positions of the joint law.
    goal : callable row -> row
        The law asked for, given a target row (V,) of floats: what temperature and filters make of it. By default the
        row.
    eos, padding
        As in `TableModel`. What follows the first eos counts as wrong, unless it is eos again.
    prompt : token ids
        What the text continues; without eos.
    model : callable (table, eos=, padding=) -> model
        `TableModel` by default; `fly_theory.testing.pretrained_table_model` for callers that insist on a
        PreTrainedModel.
    claims, seed, false_alarm, resolution, call_seconds, seconds
        As in `conformance`.

    Raises
    ------
    DistributionError, ShapeError, InvalidInput
        For tables and settings that are not allowed.
    MissingExtra
        When torch is not installed.
    """
    check_claims(claims)
    if eos is not None and eos in prompt:
        msg = f"prompt={tuple(prompt)!r} holds eos={eos}; a text that has ended has no continuation"
        raise InvalidInput(msg)
    pairs = _standing_pairs(seed) if pair is None else [_Pair(*_tables(pair), 0)]
    make = model or _table_model()
    chance = false_alarm / (_TESTS_A_CASE * len(pairs))
    deadline = time.monotonic() + seconds
    runs = []
    for each in pairs:
        ids = each.padding + padding
        models = [make(table, eos=eos, padding=ids) for table in (each.draft, each.target)]
        case = _case(each, tuple(prompt), length, eos, goal)
        vocabulary = case.vocabulary + ids
        runs.append(_Run(generate, models, case, vocabulary, seed, call_seconds))
    subject = getattr(generate, "__qualname__", type(generate).__name__)
    settings: dict[str, Any] = {"method": "texts of a whole engine", "seed": seed}
    seen = Observations()
    try:
        for run in runs:
            run.sample(chance, resolution, deadline)
            seen.emitted.append(run.emitted(chance))
        seen.informing.append(worst_of([run.repeated() for run in runs]))
    except CallFailed as failed:
        return invalid(subject, failed, settings)
    tokens = worst_of([run.every_token(chance) for run in runs])
    seen.changes.append(tokens)
    if eos is not None:
        seen.changes.append(worst_of([check_stopping(run.texts, eos) for run in runs]))
    settings |= {
        "texts": sum(run.tally.total for run in runs),
        "false alarms": false_alarm,
        "detectable TV": max(detectable_tv(run.tally, run.tally.total, chance) for run in runs),
    }
    enough, first_tokens = all(run.enough for run in runs), any(run.joint_law_differs(chance) for run in runs)
    witness = None if first_tokens else tokens.witness
    return summarise(subject, seen, claims, settings, enough=enough, witness=witness)


class _Pair(NamedTuple):
    target: Any
    draft: Any
    padding: int


@dataclass(frozen=True, eq=False)
class _TextCase(Case):
    """The text that follows a prompt."""

    pair: _Pair | None = None
    prompt: Text = ()
    depth: int = 0

    def context(self, text: Text) -> Text:
        """The tokens that the law after `text` depends on."""
        before = (0,) * self.depth + self.prompt + text
        return before[len(before) - self.depth :]

    def shown(self) -> Mapping[str, Any]:
        """The tables and the prompt."""
        return {"target": self.pair.target, "draft": self.pair.draft, "prompt": self.prompt} if self.pair else {}


class _Run:
    """An engine on one pair of models."""

    def __init__(
        self,
        generate: Generate,
        models: Sequence[Any],
        case: _TextCase,
        vocabulary: int,
        seed: int,
        call_seconds: float,
    ) -> None:
        self._generate, self._models, self._case = generate, models, case
        self._vocabulary, self._seed, self._call_seconds = vocabulary, seed, call_seconds
        self.tally = Tally(case.goal_law, case.positions)
        self.enough = True
        self.texts: list[Text] = []
        self._counts: dict[Text, npt.NDArray[np.float64]] = {}
        self._rows: dict[Text, Row] = {}
        self._looks = 0

    def sample(self, chance: float, resolution: float, deadline: float) -> None:
        """Generate texts until a deviation of this TV would be seen, or one is clear, or time is up."""
        wanted, threshold = samples_for(self.tally, resolution, chance), -math.log(chance)
        while self.tally.total < wanted and max(self.tally.log_evidence, self._token_evidence()) < threshold:
            if self.texts and time.monotonic() > deadline:
                self.enough = False
                break
            for _ in range(min(_ROUND, wanted - self.tally.total)):
                self._add(self._text(self._seed + len(self.texts)))
            self._looks += 1

    def emitted(self, chance: float) -> Emitted:
        """The joint law of the first tokens; it differs too where later ones do."""
        differs = self.joint_law_differs(chance) or self._token_evidence() >= -math.log(chance)
        return measured(self._case, self.tally, chance_at(self._looks, chance), differs=differs)

    def joint_law_differs(self, chance: float) -> bool:
        """Whether the joint law of the first tokens is found wrong."""
        return self.tally.log_evidence >= -math.log(chance)

    def every_token(self, chance: float) -> Result:
        """Whether each token follows the law given those before it."""
        name, count = "every token given those before it", int(sum(counts.sum() for counts in self._counts.values()))
        if self._token_evidence() < -math.log(chance):
            return Result(name, "held", count)
        context = max(self._counts, key=self._evidence_after)
        seen = self._counts[context] / self._counts[context].sum()
        right = tuple(map(float, self._rows[context]))
        witness = Witness({**self._case.shown(), "after": context}, "next token", tuple(seen.tolist()), right)
        return Result(name, "refuted", count, witness)

    def repeated(self) -> Result:
        """Whether texts repeat when seeds do."""
        name = "same seed, same text"
        for i, text in enumerate(self.texts[:_REPEATS]):
            again = self._text(self._seed + i)
            if again != text:
                witness = Witness({"seed": self._seed + i}, "text", again, text)
                return Result(name, "refuted", i + 1, witness, asked=False)
        return Result(name, "held", min(_REPEATS, len(self.texts)), asked=False)

    def _text(self, seed: int) -> Text:
        import torch

        case, prompt = self._case, self._case.prompt

        def shown() -> Mapping[str, Any]:
            return {**case.shown(), "seed": seed}

        ids = torch.tensor([prompt])
        draft, target = self._models
        returned = guarded(lambda: self._generate(draft, target, ids, seed), shown, self._call_seconds)
        returned = returned.tolist() if hasattr(returned, "tolist") else returned
        alone = isinstance(returned, list) and len(returned) == 1 and isinstance(returned[0], list)
        tokens = read_tokens(returned[0] if alone else returned, self._vocabulary, shown)
        text = tokens[len(prompt) :]
        ended = case.eos is not None and case.eos in text
        if tokens[: len(prompt)] != prompt or (len(text) < case.positions and not ended):
            what = f"returned {list(tokens)}, which is not the prompt and at least {case.positions} more tokens"
            raise CallFailed(what, shown())
        return text

    def _add(self, text: Text) -> None:
        case, eos = self._case, self._case.eos
        self.texts.append(text)
        end = text.index(eos) + 1 if eos in text else len(text)
        padding = all(token == eos for token in text[end:])
        self.tally.add([text[: min(end, case.positions)] if padding else text[: case.positions]])
        for i in range(end):
            context = case.context(text[:i])
            self._rows[context] = case.goal(text[:i])
            self._counts.setdefault(context, np.zeros(self._vocabulary))[text[i]] += 1
            if text[i] >= case.vocabulary:
                break

    def _token_evidence(self) -> float:
        return sum(map(self._evidence_after, self._counts))

    def _evidence_after(self, context: Text) -> float:
        row, right = np.zeros(self._vocabulary), self._rows[context]
        row[: len(right)] = [float(mass) for mass in right]
        return log_evidence(self._counts[context], row)


def _case(pair: _Pair, prompt: Text, length: int, eos: int | None, goal: Callable[[Any], Any] | None) -> _TextCase:
    table = read_table(pair.target, "target")
    read_table(pair.draft, "draft")

    @functools.cache
    def law(text: Text) -> Row:
        row = table(prompt + text)
        if goal is None:
            return row
        return read_row(list(goal(np.array([float(mass) for mass in row]))), "what goal returns")

    return _TextCase(
        *(law, law, law, law),
        vocabulary=table.vocabulary,
        draft_length=0,
        positions=length,
        eos=eos,
        pair=pair,
        prompt=prompt,
        depth=table.depth,
    )


def _tables(pair: Any) -> tuple[Any, Any]:
    if isinstance(pair, MarkovPair):
        return pair.target, pair.draft
    if not (isinstance(pair, tuple | list) and len(pair) == 2):
        msg = f"pair is a {type(pair).__name__}; expected (target, draft), two tables, or a MarkovPair"
        raise InvalidInput(msg)
    return pair[0], pair[1]


def _standing_pairs(seed: int) -> list[_Pair]:
    """Random tables in small fractions, zeros among them: of depth one, of depth two, of depth one and padded."""
    rng = np.random.default_rng(seed)

    def table(shape: tuple[int, ...]) -> Any:
        weights = rng.integers(0, 9, shape)
        weights[..., 0] += 1
        totals = weights.sum(axis=-1)
        flat = [
            [Fraction(int(w), int(total)) for w in row]
            for row, total in zip(weights.reshape(-1, shape[-1]), totals.reshape(-1), strict=True)
        ]
        return np.array(flat, dtype=object).reshape(shape).tolist()

    def pair(shape: tuple[int, ...], padding: int = 0) -> _Pair:
        return _Pair(table(shape), table(shape), padding)

    return [pair((3, 3)), pair((4, 4, 4)), pair((3, 3), _EXTRA_IDS)]


def _table_model() -> Callable[..., Any]:
    try:
        from fly_theory.testing.table_model import TableModel
    except ImportError as error:
        msg = "torch is not installed; it comes with `pip install 'fly-theory[replay]'`"
        raise MissingExtra(msg) from error
    return TableModel
