"""Classes of tokens, told from the vocabulary of a trace's tokenizer."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Self

import numpy as np

from fly_theory.arrays import Array, array_namespace, device

__all__ = ["CODE", "NUMBER", "UNNAMED", "TokenClasses"]

NUMBER, CODE, UNNAMED = "number", "code", "unnamed"

_CODE_CHARACTERS = frozenset("{}[]<>=_\\|&^~`")


@dataclass(frozen=True)
class TokenClasses:
    """Ids by class, out of the V ids of a trace.

    Attributes
    ----------
    number
        Tokens whose text has a decimal digit and no letter.
    code
        Other tokens whose text has one of `{}[]<>=_\\|&^~` or a backtick, or is an indentation: white space with a tab
        or with two blanks in a row. Words, brackets ( ), quotes and the marks of Markdown are found in prose as well
        and do not count.
    unnamed
        Ids without a token: the padding of a vocabulary.

    Special tokens are of no class. The text of a token is what the tokenizer decodes it to by itself.
    """

    number: tuple[int, ...]
    code: tuple[int, ...]
    unnamed: tuple[int, ...]

    @classmethod
    def of(cls, texts: Sequence[str | None]) -> Self:
        """From the text of every id: empty for a special token, None for an id without a token."""
        found: dict[str, list[int]] = {NUMBER: [], CODE: [], UNNAMED: []}
        for token, text in enumerate(texts):
            if text is None:
                found[UNNAMED].append(token)
            elif _is_number(text):
                found[NUMBER].append(token)
            elif _is_code(text):
                found[CODE].append(token)
        return cls(**{name: tuple(ids) for name, ids in found.items()})

    def masks(self, like: Array) -> dict[str, Array]:
        """A mask (V,) a class, with the namespace, device and V of `like` (..., V)."""
        xp, known = array_namespace(like), {}
        for name, ids in ((NUMBER, self.number), (CODE, self.code), (UNNAMED, self.unnamed)):
            mask = np.zeros(like.shape[-1], dtype=bool)
            mask[list(ids)] = True
            known[name] = xp.asarray(mask, device=device(like))
        return known


def _is_number(text: str) -> bool:
    return any(c.isdecimal() for c in text) and not any(c.isalpha() for c in text)


def _is_code(text: str) -> bool:
    return not _CODE_CHARACTERS.isdisjoint(text) or (text.isspace() and ("\t" in text or "  " in text))
