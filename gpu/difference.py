"""Where two JSON documents first differ, in words."""

import reprlib
from typing import Any

__all__ = ["first_difference"]


def first_difference(before: Any, now: Any, where: str = "") -> str | None:
    """The place of the first difference and both values, or None when the documents are equal."""
    if isinstance(before, dict) and isinstance(now, dict):
        for key in [*before, *(key for key in now if key not in before)]:
            there = f"{where}.{key}" if where else key
            if key not in before or key not in now:
                return f"{there} is {'only there' if key in before else 'only here'}"
            if difference := first_difference(before[key], now[key], there):
                return difference
        return None
    if isinstance(before, list) and isinstance(now, list) and len(before) == len(now):
        pairs = enumerate(zip(before, now, strict=True))
        return next((d for i, (a, b) in pairs if (d := first_difference(a, b, f"{where}[{i}]"))), None)
    return None if before == now else f"{where} is {reprlib.repr(before)} there and {reprlib.repr(now)} now"
