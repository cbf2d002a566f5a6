"""One parameter of a rule, or the draft length, moved through a range: a way to ask for many settings at once."""

import re
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from fractions import Fraction
from typing import Any

from fly_theory.errors import InvalidInput
from fly_theory.rules.base import Rule
from gpu.replaying.on_blocks.setting import BlockSetting
from gpu.replaying.resolving import Asked, from_spec

__all__ = ["DRAFT_LENGTH", "Point", "Sweep", "points_only"]

# What the parameter of a sweep over the draft length is called.
DRAFT_LENGTH = "K"

_MOST = 1000
_RANGE = re.compile(r"(?P<key>\w+=|@)(?P<low>[^:,@=]+):(?P<high>[^:,@=]+):(?P<step>[^:,@=]+)")
_FORM = "write RULE:parameter=LOW:HIGH:STEP, with other parameters after a comma, or RULE@LOW:HIGH:STEP over K"


@dataclass(frozen=True)
class Point:
    """One value of the parameter, and the SPEC of the setting that has it."""

    value: float
    rule: str


@dataclass(frozen=True)
class Sweep:
    """What was asked for, and the settings that it stands for.

    Attributes
    ----------
    text
        E.g. `fly:theta=0:1:0.1`, `fly:theta=0.3,window=0:12:1`, `fly@1:15:1`, `lenience:l=0.1:1:0.1`.
    parameter
        The name of the parameter, or "K" for the draft length.
    values
        In rising order, exact: HIGH is among them when whole steps lead to it.
    settings
        One a value.
    """

    text: str
    parameter: str
    values: tuple[Fraction, ...]
    settings: tuple[Rule | BlockSetting, ...]

    @classmethod
    def parse(cls, text: str) -> "Sweep":
        """The sweep that a text describes.

        Raises
        ------
        InvalidInput
            A text without exactly one range, or a range that is empty or too long.
        UnknownName, ParameterError
            As for the SPEC of each setting.
        """
        ranges = list(_RANGE.finditer(text))
        if len(ranges) != 1:
            msg = f"sweep={text!r} has {len(ranges)} ranges; {_FORM}"
            raise InvalidInput(msg)
        found = ranges[0]
        values = _values(text, *found.group("low", "high", "step"))
        key = found["key"]
        before, after = text[: found.start()], text[found.end() :]
        settings = tuple(from_spec(f"{before}{key}{_written(value)}{after}") for value in values)
        return cls(text, DRAFT_LENGTH if key == "@" else key[:-1], values, settings)

    @property
    def points(self) -> tuple[Point, ...]:
        """The values with the SPECs of their settings."""
        return tuple(Point(float(v), each.spec) for v, each in zip(self.values, self.settings, strict=True))

    def to_json(self) -> dict[str, Any]:
        """As plain values; the figures are those of the settings."""
        points = [{"value": point.value, "rule": point.rule} for point in self.points]
        return {"sweep": self.text, "parameter": self.parameter, "points": points}


def points_only(rules: Sequence[Asked], sweeps: Iterable[Sweep]) -> tuple[Rule | BlockSetting, ...]:
    """The settings of sweeps that are not among what is asked for one by one, each once."""
    named = [from_spec(rule) if isinstance(rule, str) else rule for rule in rules]
    asked = {getattr(rule, "spec", None) for rule in named}
    points = {setting.spec: setting for sweep in sweeps for setting in sweep.settings}
    return tuple(setting for spec, setting in points.items() if spec not in asked)


def _values(text: str, *ends: str) -> tuple[Fraction, ...]:
    try:
        low, high, step = (Fraction(end.strip()) for end in ends)
    except (ValueError, ZeroDivisionError) as error:
        msg = f"sweep={text!r}: {':'.join(ends)!r} is no range of numbers; {_FORM}"
        raise InvalidInput(msg) from error
    if step <= 0 or high < low or (high - low) / step >= _MOST:
        msg = f"sweep={text!r}: the range needs LOW <= HIGH, STEP > 0 and at most {_MOST} values"
        raise InvalidInput(msg)
    return tuple(low + i * step for i in range(int((high - low) / step) + 1))


def _written(value: Fraction) -> str:
    """As a SPEC has it: an integer, a decimal where that is exact, else a quotient."""
    if value.denominator == 1:
        return str(value.numerator)
    decimal = repr(float(value))
    return decimal if Fraction(decimal) == value else str(value)
