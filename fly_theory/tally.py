"""What drawn cases say about one invariant, and the result and the verdict that come of it."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from fly_theory.errors import UndecidableError
from fly_theory.invariants import RuleFailure, Violation
from fly_theory.report import Result, VerdictName, Witness, show

__all__ = ["Tally", "result", "verdict_of"]


@dataclass
class Tally:
    """The count of one invariant, of any level, over cases as they are drawn; the first that refutes it is kept."""

    invariant: Any
    judged: int = 0
    refuted_by: Any = None
    violation: Violation | None = None
    undecided: str = ""

    def look(self, case: Any, drawn: Any) -> None:
        """Judge one more case, made of what was drawn, unless the invariant is refuted already."""
        if self.refuted_by is not None or not self.invariant.applies(case):
            return
        try:
            self.violation = self.invariant.judge(case)
        except RuleFailure:
            return
        except UndecidableError as error:
            self.undecided = str(error)
            return
        self.judged += 1
        self.refuted_by = drawn if self.violation is not None else None


def result(tally: Tally, proof: str | None, witness: Witness | None, *, asked: bool) -> Result:
    """The result of an invariant; `proof` names a theorem that covers it."""
    name, cases = tally.invariant.name, tally.judged
    if witness is not None:
        detail = f"although {proof} says it is proved" if proof else "" if asked else _briefly(witness)
        return Result(name, "refuted", cases, witness if asked else None, detail, asked)
    if tally.undecided:
        return Result(name, "undecided", cases, detail=tally.undecided, asked=asked)
    if proof is not None:
        return Result(name, "proved", cases, detail=f"{proof}; held on {cases} cases", asked=asked)
    return Result(name, "held" if cases else "not applicable", cases, asked=asked)


def _briefly(witness: Witness) -> str:
    inputs = ", ".join(f"{name} = {show(value)}" for name, value in witness.inputs.items())
    return f"at {inputs}: {witness.quantity} is {show(witness.got)}"


def verdict_of(results: Sequence[Result], structural: Sequence[str], *, slower: bool) -> VerdictName:
    """What a rule is: invalid when it breaks what every rule owes, else what its result named "lossless" says."""
    outcomes = {result.name: result.outcome for result in results}
    if any(outcomes[name] == "refuted" for name in structural):
        return "invalid"
    match outcomes["lossless"]:
        case "refuted":
            return "lossy"
        case "undecided":
            return "undecided"
    return "lossless but slower" if slower else "lossless"
