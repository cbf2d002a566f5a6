"""What an invariant is, and the case it judges: one rule at one pair."""

import dataclasses
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any, ClassVar, Literal

import numpy as np

from fly_theory.arrays import Array, Number, array_namespace, as_fraction
from fly_theory.claims import Bound
from fly_theory.distributions import as_pair, trusted_inputs
from fly_theory.errors import ExactnessError, FlyTheoryError, InvalidInput, UndecidableError
from fly_theory.exact import exact
from fly_theory.parameters import parameters
from fly_theory.rules.base import Rule, Verdict

__all__ = ["FLOAT_TOLERANCE", "Asked", "Case", "Invariant", "RuleFailure", "Violation", "shaped", "values"]

FLOAT_TOLERANCE = 1e-9
"""How far float64 figures may be from what an invariant asks; exact figures have no tolerance."""


class RuleFailure(FlyTheoryError):
    """A rule raised instead of answering (the original error is the cause), or answered in a wrong shape."""


@dataclass(frozen=True)
class Violation:
    """How an invariant is broken: the wrong value and the right one.

    quantity : the name of what is compared, e.g. "out"
    got, expected : plain values (Fractions, floats, ids); `relation` is what should hold between them
    inputs : what else went in besides p and q
    """

    quantity: str
    got: Any
    expected: Any
    relation: str = "="
    inputs: Mapping[str, Any] = field(default_factory=dict)


class Asked:
    """A rule that is asked for its answers in one arithmetic, with comparisons up to its tolerance."""

    rule: Any
    xp: Any
    is_exact: bool

    @property
    def tolerance(self) -> float:
        """How far from equal counts as equal: nothing in exact arithmetic."""
        return 0 if self.is_exact else FLOAT_TOLERANCE

    def array(self, numbers: Any) -> Array:
        """A number, or nested lists of numbers, as an array of this arithmetic."""
        return exact(numbers) if self.is_exact else np.array(numbers, dtype=np.float64)

    def ask(self, question: Callable[[], Any]) -> Any:
        """The rule's answer; inputs that were validated are not validated again.

        Raises
        ------
        RuleFailure
            When the rule raises.
        """
        try:
            with trusted_inputs(), np.errstate(all="ignore"):
                return question()
        except (ExactnessError, UndecidableError, RuleFailure):
            raise
        except Exception as error:
            msg = f"{type(error).__name__}: {error}"
            raise RuleFailure(msg) from error

    def evaluate(self, limit: Number | Bound, p: Array, q: Array) -> Array:
        """A number, or what a function of (p, q) says of a pair, as an array of this arithmetic.

        Raises
        ------
        InvalidInput
            When the function raises, and for what is neither an array nor a number.
        """
        try:
            value = limit(p, q) if callable(limit) else limit
            return value if hasattr(value, "shape") else self.array(as_fraction(value))
        except FlyTheoryError:
            raise
        except Exception as error:
            msg = f"a claim of {self.rule.spec} cannot be evaluated: {type(error).__name__}: {error}"
            raise InvalidInput(msg) from error

    def rule_with(self, settings: Mapping[str, Any]) -> Any:
        """The rule with other parameters.

        Raises
        ------
        InvalidInput
            For parameters that the rule does not have.
        """
        try:
            return dataclasses.replace(self.rule, **settings)
        except TypeError as error:
            msg = f"{self.rule.spec} cannot be set to {dict(settings)}: {error}"
            raise InvalidInput(msg) from error

    def settings_of(self, parameter: str, *, looser: Literal["smaller", "larger"]) -> list[Any]:
        """The rule's own value of a parameter and the typical ones it declares, the tightest first.

        Raises
        ------
        InvalidInput
            For a parameter that the rule does not declare.
        UndecidableError
            For one that has no second value.
        """
        declared = {p.name: p.typical for p in parameters(type(self.rule))}
        if parameter not in declared:
            known = ", ".join(declared) or "none"
            msg = f"{self.rule.spec} declares no parameter {parameter!r}; it declares {known}"
            raise InvalidInput(msg)
        values = {getattr(self.rule, parameter), *declared[parameter]}
        if len(values) == 1:
            msg = f"{self.rule.spec} declares no second value of {parameter!r}: parameter(domain, help, typical=(...))"
            raise UndecidableError(msg)
        return sorted(values, key=as_fraction, reverse=looser == "smaller")

    def differ(self, got: Array, expected: Array) -> bool:
        """Whether two arrays differ somewhere by more than the tolerance; NaN differs from everything."""
        return not bool(self.xp.all(self.xp.abs(got - expected) <= self.tolerance))

    def exceeds(self, got: Array, limit: Array) -> bool:
        """Whether one array is above the other somewhere by more than the tolerance."""
        return not bool(self.xp.all(got <= limit + self.tolerance))


class Case(Asked):
    """A token-level rule at one target p (V,) and draft q (V,), with what it answers there, computed once.

    p and q are exact arrays, or lists that `ft.exact` reads, and are judged exactly; numpy float64 arrays are judged up
    to FLOAT_TOLERANCE.
    """

    def __init__(self, rule: Rule, p: Any, q: Any) -> None:
        self.rule = rule
        self.p, self.q = as_pair(*(exact(x) if isinstance(x, list | tuple) else x for x in (p, q)))
        self.xp = array_namespace(self.p, self.q)
        self.is_exact = bool(getattr(self.p, "is_exact", False))
        self._shape = np.broadcast_shapes(tuple(self.p.shape), tuple(self.q.shape))

    def at(self, p: Array, q: Array) -> "Case":
        """The same rule at another pair."""
        return Case(self.rule, p, q)

    def of(self, rule: Rule) -> "Case":
        """Another rule at the same pair."""
        return Case(rule, self.p, self.q)

    def having(self, settings: Mapping[str, Any]) -> "Case":
        """The rule with other parameters, at the same pair."""
        return self.of(self.rule_with(settings))

    def bound(self, limit: Number | Bound) -> Array:
        """A number, or what a function of (p, q) says of this pair."""
        return self.evaluate(limit, self.p, self.q)

    @cached_property
    def verdict(self) -> Verdict:
        """The rule's accepted mass and residual, (V,) each."""
        rows = {tuple(self.p.shape), tuple(self.q.shape), self._shape}
        accepted, residual = self.ask(lambda: self.rule.verdict(self.p, self.q))
        return Verdict(shaped("accepted", accepted, rows), shaped("residual", residual, rows))

    @cached_property
    def out(self) -> Array:
        """The induced distribution (V,)."""
        if type(self.rule).induced is Rule.induced:  # derived, from the verdict at hand
            out = self.ask(lambda: self.rule.induced_from(self.verdict, self.q))
        else:
            out = self.ask(lambda: self.rule.induced(self.p, self.q))
        return shaped("out", out, {self._shape})

    @cached_property
    def acceptance(self) -> Array:
        """The acceptance rate ()."""
        if type(self.rule).acceptance is Rule.acceptance:
            return self.xp.sum(self.verdict.accepted, axis=-1)
        return shaped("acceptance", self.ask(lambda: self.rule.acceptance(self.p, self.q)), {self._shape[:-1]})

    @cached_property
    def keep(self) -> Array:
        """The probability (V,) that each draft token is kept."""
        tokens = np.arange(self.p.shape[-1])
        kept = self.ask(lambda: self.rule.keep(self.p[None, :], self.q[None, :], tokens))
        return shaped("keep", kept, {self._shape})

    def residual_after(self, token: int) -> Array:
        """The residual (V,) after a rejected token."""
        residual = self.ask(lambda: self.rule.residual_after(self.p, self.q, np.asarray(token)))
        return shaped("residual after a token", residual, {self._shape})

    def sample(self, tokens: Array, uniforms: Array) -> Array:
        """The emitted tokens (...,) for draft tokens (...,) and uniforms (..., 2)."""
        emitted = self.ask(lambda: self.rule.sample(self.p, self.q, tokens, uniforms))
        return shaped("emitted tokens", emitted, {tuple(tokens.shape)})

    @property
    def total_variation(self) -> Array:
        """TV(out, p) ()."""
        return self.distance(self.out, self.p)

    def distance(self, a: Array, b: Array) -> Array:
        """Total variation distance (...,) of two distributions (..., V)."""
        return self.xp.sum(self.xp.abs(a - b), axis=-1) / 2


class Invariant:
    """A property of rules that one pair can refute.

    `stride` thins the pairs of a search: an invariant that is dear to judge looks at every stride-th only.
    """

    stride: ClassVar[int] = 1

    @property
    def name(self) -> str:
        """What reports call it."""
        raise NotImplementedError

    def applies(self, case: Case) -> bool:
        """Whether the case says anything about this invariant."""
        return True

    def judge(self, case: Case) -> Violation | None:
        """How the case breaks the invariant, or None where it holds.

        Raises
        ------
        RuleFailure
            When the rule raises instead of answering.
        UndecidableError
            When exact arithmetic cannot decide a comparison.
        """
        raise NotImplementedError

    def examine(self, rule: Rule, p: Any, q: Any) -> Violation | None:
        """Judge a rule at one pair, target p (V,) and draft q (V,): None where it holds, or does not apply.

        Lists of ints, Fractions and texts, and exact arrays, are judged exactly; numpy float64 arrays with a tolerance.
        """
        case = Case(rule, p, q)
        return self.judge(case) if self.applies(case) else None


def shaped(name: str, array: Any, allowed: set[tuple[int, ...]]) -> Any:
    """An array of one of the allowed shapes, as it is.

    Raises
    ------
    RuleFailure
        For another shape, and for what is no array.
    """
    wanted = " or ".join(map(str, sorted(allowed)))
    if not hasattr(array, "shape"):
        msg = f"{name} is a {type(array).__name__}, not an array of shape {wanted}"
        raise RuleFailure(msg)
    if tuple(array.shape) not in allowed:
        msg = f"{name} has shape {tuple(array.shape)}, not {wanted}"
        raise RuleFailure(msg)
    return array


def values(x: Array) -> Any:
    """An array as plain values: a Fraction, float or int, or nested tuples of them."""
    return _tuples(x.tolist())


def _tuples(x: Any) -> Any:
    return tuple(map(_tuples, x)) if isinstance(x, list) else x
