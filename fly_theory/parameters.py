"""Parameters that declare their domain once: validation, help text and random test values all come from it."""

import dataclasses
from collections.abc import Iterator
from dataclasses import dataclass
from fractions import Fraction
from typing import Any, Protocol

import numpy as np

from fly_theory.arrays import Number, as_fraction
from fly_theory.errors import ParameterError


class Domain(Protocol):
    """The set of values a parameter may take."""

    def contains(self, value: Any) -> bool:
        """Whether `value` is allowed."""

    def parse(self, text: str) -> Any:
        """The value written as `text` in a SPEC string; ValueError when it cannot be read."""

    def __str__(self) -> str: ...


@dataclass(frozen=True)
class Interval:
    """Real numbers between two ends, each closed unless said to be open; None is unbounded."""

    low: Number | None
    high: Number | None
    low_open: bool = False
    high_open: bool = False

    def contains(self, value: Any) -> bool:
        """Whether `value` is a real number inside the interval (NaN and bool are not)."""
        if isinstance(value, bool) or not isinstance(value, int | float | Fraction) or value != value:
            return False
        if value in (float("inf"), float("-inf")):
            return False
        above = self.low is None or (value > self.low if self.low_open else value >= self.low)
        below = self.high is None or (value < self.high if self.high_open else value <= self.high)
        return above and below

    def parse(self, text: str) -> Number:
        """Decimals become floats, a quotient such as 2/3 a Fraction."""
        return Fraction(text) if "/" in text else float(text)

    def __str__(self) -> str:
        left = "(-inf" if self.low is None else f"{'(' if self.low_open else '['}{self.low}"
        right = "inf)" if self.high is None else f"{self.high}{')' if self.high_open else ']'}"
        return f"{left}, {right}"


@dataclass(frozen=True)
class Integers:
    """Integers from `low` upwards, up to `high` when given."""

    low: int
    high: int | None = None

    def contains(self, value: Any) -> bool:
        """Whether `value` is an int (not a bool) inside the range."""
        return isinstance(value, int) and not isinstance(value, bool) and self.low <= value <= (self.high or value)

    def parse(self, text: str) -> int:
        """An integer literal."""
        return int(text)

    def __str__(self) -> str:
        return f"integers >= {self.low}" if self.high is None else f"integers {self.low}..{self.high}"


@dataclass(frozen=True)
class Choice:
    """One of a few names."""

    options: tuple[str, ...]

    def contains(self, value: Any) -> bool:
        """Whether `value` is one of the options."""
        return value in self.options

    def parse(self, text: str) -> str:
        """The name itself."""
        return text

    def __str__(self) -> str:
        return " | ".join(self.options)


@dataclass(frozen=True)
class Flag:
    """True or false."""

    def contains(self, value: Any) -> bool:
        """Whether `value` is a bool."""
        return isinstance(value, bool)

    def parse(self, text: str) -> bool:
        """`true` or `false`."""
        values = {"true": True, "false": False}
        if text.lower() not in values:
            msg = f"{text!r} is neither 'true' nor 'false'"
            raise ValueError(msg)
        return values[text.lower()]

    def __str__(self) -> str:
        return "true | false"


@dataclass(frozen=True)
class Parameter:
    """What a rule declares about one of its parameters.

    `strict_at` is the value at which the rule becomes the lossless rule, if there is one; `typical` are values of
    interest inside the domain, used by tables, examples and tests.
    """

    name: str
    domain: Domain
    help: str
    default: Any
    strict_at: Any
    typical: tuple[Any, ...]

    @property
    def required(self) -> bool:
        """Whether a value must be given."""
        return self.default is dataclasses.MISSING


def parameter(
    domain: Domain,
    help: str,
    *,
    default: Any = dataclasses.MISSING,
    strict_at: Any = None,
    typical: tuple[Any, ...] = (),
) -> Any:
    """Declare a dataclass field as a parameter with a domain."""
    metadata = {"domain": domain, "help": help, "strict_at": strict_at, "typical": typical}
    if default is dataclasses.MISSING:
        return dataclasses.field(metadata=metadata)
    return dataclasses.field(default=default, metadata=metadata)


class Parametrised:
    """Base of frozen dataclasses whose fields were declared with `parameter`; values are validated on construction."""

    def __post_init__(self) -> None:
        """Take numbers of numpy as the plain ones that they are, and refuse values outside their domains.

        Raises
        ------
        ParameterError
            Naming the parameter, its value and the domain.
        """
        for declared in parameters(type(self)):
            value = getattr(self, declared.name)
            if isinstance(value, np.generic):
                value = value.item()
                object.__setattr__(self, declared.name, value)
            if not declared.domain.contains(value):
                shown = f"{spec_name(type(self))}: {declared.name}={value!r}"
                msg = f"{shown} is outside its domain {declared.domain} ({declared.help})"
                raise ParameterError(msg)

    @property
    def spec(self) -> str:
        """The SPEC string that makes this object, e.g. `lenience:l=0.4`."""
        values = ",".join(f"{p.name}={_text(getattr(self, p.name))}" for p in parameters(type(self)))
        return f"{spec_name(type(self))}:{values}" if values else spec_name(type(self))

    def exact(self, name: str) -> Fraction:
        """A numeric parameter as the rational it means."""
        return as_fraction(getattr(self, name))


def _text(value: Any) -> str:
    """As a SPEC has it: a float without a trailing `.0`."""
    if isinstance(value, bool):
        return str(value).lower()
    return str(value).removesuffix(".0") if isinstance(value, float) else str(value)


def spec_name(cls: type) -> str:
    """The registered name of a class, or its own name when it has none."""
    return getattr(cls, "name", None) or cls.__name__


def parameters(cls: type) -> tuple[Parameter, ...]:
    """The declared parameters of a dataclass, in order."""
    return tuple(_declared(cls))


def _declared(cls: type) -> Iterator[Parameter]:
    if not dataclasses.is_dataclass(cls):
        return
    for field in dataclasses.fields(cls):
        if "domain" in field.metadata:
            yield Parameter(field.name, default=field.default, **field.metadata)


def build(cls: type, settings: dict[str, str]) -> Any:
    """Construct `cls` from the texts of a SPEC string.

    Raises
    ------
    ParameterError
        For an unknown, missing, unreadable or out-of-domain parameter, and for a field that is not declared as one.
    """
    declared = {p.name: p for p in parameters(cls)}
    name = spec_name(cls)
    values = {}
    for key, text in settings.items():
        if key not in declared:
            allowed = ", ".join(f"{p.name} in {p.domain}" for p in declared.values()) or "none"
            msg = f"{name} has no parameter {key!r}; its parameters: {allowed}"
            raise ParameterError(msg)
        try:
            values[key] = declared[key].domain.parse(text)
        except (ValueError, ZeroDivisionError) as error:
            msg = f"{name}: {key}={text!r} cannot be read ({error}); allowed: {declared[key].domain}"
            raise ParameterError(msg) from error
    missing = [f"{p.name} in {p.domain} ({p.help})" for p in declared.values() if p.required and p.name not in values]
    if missing:
        msg = f"{name} needs {'; '.join(missing)}: write {name}:{','.join(f'{m.split()[0]}=...' for m in missing)}"
        raise ParameterError(msg)
    try:
        return cls(**values)
    except TypeError as error:
        msg = f"{name} cannot be made of its parameters ({error}); declare each field with parameter(domain, help)"
        raise ParameterError(msg) from error
