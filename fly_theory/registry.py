"""Rules by name, found through entry points so that listing them imports none of them.

Group `fly_theory.rules` holds token-level rules, `fly_theory.block_rules` block-level and `fly_theory.tree_rules`
tree-level ones; another distribution adds a rule by declaring an entry point in its own packaging metadata.
"""

import functools
import importlib
import importlib.util
import sys
from importlib.metadata import EntryPoint, entry_points
from pathlib import Path
from typing import Any, Literal

from fly_theory.errors import FlyTheoryError, InvalidInput, ParameterError, UnknownName, unknown_name
from fly_theory.parameters import build

Level = Literal["token", "block", "tree"]
_GROUPS: dict[Level, str] = {
    "token": "fly_theory.rules",
    "block": "fly_theory.block_rules",
    "tree": "fly_theory.tree_rules",
}
_MAKERS: dict[Level, str] = {"token": "rule", "block": "block_rule", "tree": "tree_rule"}

__all__ = ["block_rule", "class_by_name", "load", "rule", "rule_class", "rules", "tree_rule"]


@functools.cache
def _registered(level: Level) -> dict[str, EntryPoint]:
    found: dict[str, EntryPoint] = {}
    for entry in entry_points(group=_GROUPS[level]):
        known = found.setdefault(entry.name, entry)
        if known.value != entry.value:
            msg = f"rule name {entry.name!r} is registered twice: {known.value} and {entry.value}"
            raise InvalidInput(msg)
    return dict(sorted(found.items()))


def rules(*, level: Level | None = None) -> tuple[str, ...]:
    """Names of all registered rules, or of one level ("token", "block", "tree"), without importing their modules."""
    levels = _GROUPS if level is None else (level,)
    return tuple(name for each in levels for name in _registered(each))


def rule_class(name: str, *, level: Level = "token") -> type:
    """The class registered under `name`.

    Raises
    ------
    UnknownName
        With the nearest names and the list of all of them.
    """
    registered = _registered(level)
    if name not in registered:
        for other in _GROUPS:
            if other != level and name in _registered(other):
                msg = f"{name!r} is a {other}-level rule; use ft.{_MAKERS[other]}({name!r})"
                raise UnknownName(msg)
        # Token-level rules lift to the other levels, so their names are allowed there too.
        raise unknown_name(name, kind=f"{level}-level rule", known={*registered, *_registered("token")})
    loaded: type = registered[name].load()
    return loaded


def class_by_name(name: str) -> type | None:
    """The registered rule class of any level with this class name (`Lenience`), or None."""
    for level in _GROUPS:
        for entry in _registered(level).values():
            if entry.attr == name:
                found: type = entry.load()
                return found
    return None


def rule(spec: str) -> Any:
    """The token-level rule a SPEC names: `lenience:l=0.4`, `package.module:Object` or `my_rule.py:MyRule`.

    Parameters follow after a colon, separated by commas; decimals and quotients (2/3) are read as written.

    Raises
    ------
    UnknownName, ParameterError, InvalidInput
        With what was found instead and what is allowed.
    """
    from fly_theory.rules import Rule

    return _construct(spec, Rule, "token")


def block_rule(spec: str) -> Any:
    """The block-level rule a SPEC names, e.g. `fly:theta=0.3,window=6`; see `rule` for the forms of a SPEC.

    The SPEC of a token-level rule gives that rule lifted by first rejection, as `ft.tokenwise(ft.rule(spec))`.
    """
    from fly_theory.blocks import BlockRule, tokenwise

    name = spec.partition(":")[0]
    if name in _registered("token"):
        return tokenwise(rule(spec))
    return _construct(spec, BlockRule, "block")


def tree_rule(spec: str) -> Any:
    """The tree-level rule a SPEC names, e.g. `k-seq`; see `rule` for the forms of a SPEC.

    The SPEC of a token-level rule gives that rule applied to the candidates of a position in turn (`Siblingwise`).
    """
    from fly_theory.trees import TreeRule, siblingwise

    name = spec.partition(":")[0]
    if name in _registered("token"):
        return siblingwise(rule(spec))
    return _construct(spec, TreeRule, "tree")


def _construct(spec: str, base: type, level: Level) -> Any:
    target, settings = load(spec, level=level)
    if isinstance(target, type) and issubclass(target, base):
        return build(target, settings)
    if isinstance(target, base):
        if settings:
            msg = f"{spec!r} names a finished rule object; it takes no parameters"
            raise ParameterError(msg)
        return target
    msg = f"{spec!r} names a {type(target).__name__}, not a {base.__name__} (class or object)"
    raise InvalidInput(msg)


def load(spec: str, *, level: Level = "token") -> tuple[Any, dict[str, str]]:
    """The object a SPEC names, whatever it is, and the texts of its parameters.

    Raises
    ------
    UnknownName, ParameterError, InvalidInput
        For a SPEC that cannot be read, and for a module or file that cannot be imported.
    """
    try:
        return _load(spec, level)
    except FlyTheoryError:
        raise
    except (Exception, SystemExit) as error:
        msg = f"{spec!r} cannot be imported: {type(error).__name__}: {error}"
        raise InvalidInput(msg) from error


def _load(spec: str, level: Level) -> tuple[Any, dict[str, str]]:
    head, *rest = spec.split(":")
    settings: dict[str, str] = {}
    if rest and "=" in rest[-1]:
        settings = _settings(spec, rest.pop())
    if not rest:
        if head.endswith(".py"):
            msg = f"SPEC {spec!r} names a file; name a rule in it: {head}:Name"
            raise InvalidInput(msg)
        return rule_class(head, level=level), settings
    if len(rest) > 1:
        msg = f"SPEC {spec!r} has too many colons; write NAME:key=value,... or FILE.py:Name:key=value,..."
        raise InvalidInput(msg)
    module = _module_from_file(Path(head)) if head.endswith(".py") else _module_by_name(spec, head)
    if not hasattr(module, rest[0]):
        public = [name for name in vars(module) if not name.startswith("_")]
        raise unknown_name(rest[0], kind=f"object in {head}", known=public)
    return getattr(module, rest[0]), settings


def _settings(spec: str, text: str) -> dict[str, str]:
    settings: dict[str, str] = {}
    for item in text.split(","):
        key, equals, value = item.partition("=")
        if not (key and equals and value):
            msg = f"SPEC {spec!r}: {item!r} is not of the form key=value"
            raise ParameterError(msg)
        if key in settings:
            msg = f"SPEC {spec!r} gives {key!r} twice"
            raise ParameterError(msg)
        settings[key] = value
    return settings


def _module_by_name(spec: str, name: str) -> Any:
    if name in rules():
        msg = f"SPEC {spec!r}: parameters of {name!r} are written key=value"
        raise ParameterError(msg)
    try:
        return importlib.import_module(name)
    except ModuleNotFoundError as error:
        if error.name is None or not f"{name}.".startswith(f"{error.name}."):
            raise
        raise unknown_name(name, kind="rule or module", known=rules()) from error


def _module_from_file(path: Path) -> Any:
    if not path.is_file():
        msg = f"there is no file {str(path)!r}"
        raise InvalidInput(msg)
    # Named by its path, so that it takes the place of no other module.
    name = str(path.resolve())
    found = importlib.util.spec_from_file_location(name, path)
    if found is None or found.loader is None:
        msg = f"{str(path)!r} cannot be imported as Python"
        raise InvalidInput(msg)
    module = sys.modules[name] = importlib.util.module_from_spec(found)  # where dataclasses look up annotations
    found.loader.exec_module(module)
    return module
