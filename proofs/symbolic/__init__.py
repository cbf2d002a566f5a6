"""The symbolic interpreter: rules run over it unchanged and give z3 terms about one generic token."""

from proofs.symbolic.array import SymbolicArray, VocabularySize
from proofs.symbolic.world import World

__all__ = ["SymbolicArray", "VocabularySize", "World"]
