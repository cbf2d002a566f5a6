"""What the command line knows about a rule: its words, parameters, claims, and who can read it."""

import inspect
import itertools
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

from fly_theory.errors import ParameterError, unknown_name
from fly_theory.interpreters import Interpreter
from fly_theory.parameters import Parameter, parameters
from fly_theory.registry import Level, block_rule, rule, rule_class, rules, tree_rule

__all__ = ["Entry", "entries", "find"]

SUMMARY = "Summary"


@dataclass(frozen=True)
class Entry:
    """A rule of one level, as a class."""

    name: str
    level: Level
    cls: type

    @property
    def sections(self) -> dict[str, str]:
        """The sections of the rule's documentation by heading; what comes before the first is the summary."""
        lines = (inspect.getdoc(self.cls) or "").splitlines()
        sections: dict[str, list[str]] = {SUMMARY: []}
        heading = SUMMARY
        for line, following in itertools.pairwise([*lines, ""]):
            if line and _underlines(following):
                heading = line
                sections[heading] = []
            elif not _underlines(line):
                sections[heading].append(line)
        return {name: "\n".join(text).strip() for name, text in sections.items()}

    @property
    def summary(self) -> str:
        """The first line of the rule's documentation."""
        return self.sections[SUMMARY].partition("\n")[0]

    @property
    def parameters(self) -> tuple[Parameter, ...]:
        """The declared parameters."""
        return parameters(self.cls)

    def typical(self) -> Any:
        """The rule at its defaults, and at the middle typical value of every parameter without one."""
        return self.cls(**{p.name: self._typical(p)[len(self._typical(p)) // 2] for p in self.parameters if p.required})

    def unreadable(self) -> dict[Interpreter, tuple[str, bool]]:
        """Who cannot read the rule: the reason, and whether that is so at every typical setting or only at some."""
        found = [self.cls(**setting).unreadable for setting in self._settings()]
        reasons = {interpreter: reason for unreadable in found for interpreter, reason in unreadable.items()}
        return {
            interpreter: (reasons[interpreter], all(interpreter in unreadable for unreadable in found))
            for interpreter in Interpreter
            if interpreter in reasons
        }

    def as_json(self) -> dict[str, Any]:
        """The entry as a document."""
        return {
            "name": self.name,
            "level": self.level,
            "summary": self.summary,
            "parameters": [
                {
                    "name": p.name,
                    "domain": str(p.domain),
                    "help": p.help,
                    "required": p.required,
                    "default": None if p.required else p.default,
                    "strict_at": p.strict_at,
                    "typical": p.typical,
                }
                for p in self.parameters
            ],
            "unreadable": {
                interpreter.value: {"reason": reason, "always": always}
                for interpreter, (reason, always) in self.unreadable().items()
            },
        }

    def _settings(self) -> Iterator[dict[str, Any]]:
        for values in itertools.product(*map(self._typical, self.parameters)):
            yield dict(zip((p.name for p in self.parameters), values, strict=True))

    def _typical(self, parameter: Parameter) -> tuple[Any, ...]:
        if parameter.typical:
            return parameter.typical
        if parameter.required:
            msg = f"{self.name} declares no typical value of {parameter.name}; give some: parameter(..., typical=(...))"
            raise ParameterError(msg)
        return (parameter.default,)


def entries() -> list[Entry]:
    """All registered rules, token level first."""
    levels: tuple[Level, ...] = ("token", "block", "tree")
    return [Entry(name, level, rule_class(name, level=level)) for level in levels for name in rules(level=level)]


def find(spec: str) -> tuple[Entry, Any]:
    """The rule a SPEC names, and the object; a bare name means the rule at typical parameters.

    Raises
    ------
    UnknownName, ParameterError, InvalidInput
        As `fly_theory.rule` does.
    """
    name, *others = spec.split(":")
    elsewhere: tuple[Level, ...] = ("block", "tree")
    level: Level = next((each for each in elsewhere if name in rules(level=each)), "token")
    if not others and name not in rules():
        raise unknown_name(kind="rule", name=name, known=rules())
    if spec in rules(level=level):
        entry = Entry(spec, level, rule_class(spec, level=level))
        return entry, entry.typical()
    found = {"token": rule, "block": block_rule, "tree": tree_rule}[level](spec)
    return Entry(found.spec.partition(":")[0], level, type(found)), found


def _underlines(line: str) -> bool:
    return bool(line) and set(line) == {"-"}
