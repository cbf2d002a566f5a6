"""Prompts: one a line of a text file, or JSON lines with a text, an id and tags."""

import json
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from importlib.resources import files
from pathlib import Path

from fly_theory.errors import InvalidInput


@dataclass(frozen=True)
class Prompt:
    """A prompt: its text, a name that is unique in its set, and free tags."""

    id: str
    text: str
    tags: tuple[str, ...] = ()


def read_prompts(source: str | Path | Sequence[str] | None) -> list[Prompt]:
    """Read prompts from a file, from a sequence of texts, or (None) the shipped set.

    A `.jsonl` file holds one object a line: `{"prompt": ..., "id": ..., "tags": [...]}`, of which only `prompt` is
    required. Any other file is text with one prompt a line. Blank lines are skipped in both; an absent id is the
    prompt's number, counted from 0.

    Raises
    ------
    InvalidInput
        A file that is not there or is not UTF-8, a line that is not as described, an empty prompt, an id used twice,
        or no prompt at all.
    """
    if source is None:
        name, prompts = "the shipped prompts", _from_json_lines(_shipped(), "prompts.jsonl")
    elif isinstance(source, str | Path):
        path = Path(source)
        name, lines = f"prompt file {path}", _lines_of(path)
        prompts = _from_json_lines(lines, str(path)) if path.suffix == ".jsonl" else _from_texts(_not_blank(lines))
    else:
        name, prompts = "prompts", _from_texts(source)
    if not prompts:
        msg = f"{name}: there is no prompt in it; expected at least one"
        raise InvalidInput(msg)
    _check_ids(prompts, name)
    return prompts


def _shipped() -> list[str]:
    return files("gpu").joinpath("data/prompts.jsonl").read_text(encoding="utf-8").splitlines()


def _lines_of(path: Path) -> list[str]:
    try:
        # Not str.splitlines, which also breaks a prompt at form feeds and Unicode separators.
        return path.read_text(encoding="utf-8").split("\n")
    except (OSError, UnicodeDecodeError) as error:
        msg = f"prompt file {path} cannot be read: {error}"
        raise InvalidInput(msg) from error


def _not_blank(lines: Iterable[str]) -> list[str]:
    return [line for line in lines if line.strip()]


def _from_texts(texts: Iterable[str]) -> list[Prompt]:
    prompts = [Prompt(id=str(number), text=text) for number, text in enumerate(texts)]
    for prompt in prompts:
        if not isinstance(prompt.text, str) or not prompt.text.strip():
            msg = f"prompts[{prompt.id}] is {prompt.text!r}; expected a text that is not blank"
            raise InvalidInput(msg)
    return prompts


def _from_json_lines(lines: Iterable[str], name: str) -> list[Prompt]:
    prompts: list[Prompt] = []
    for number, line in enumerate(lines, start=1):
        if line.strip():
            prompts.append(_from_json(line, f"{name} line {number}", default_id=str(len(prompts))))
    return prompts


def _from_json(line: str, where: str, *, default_id: str) -> Prompt:
    expected = 'expected an object {"prompt": text, "id": text, "tags": [text, ...]}, of which prompt is required'
    try:
        entry = json.loads(line)
    except json.JSONDecodeError as error:
        msg = f"{where} is not JSON ({error}); {expected}"
        raise InvalidInput(msg) from error
    if not isinstance(entry, dict) or not isinstance(entry.get("prompt"), str):
        msg = f"{where} has no text under 'prompt'; {expected}"
        raise InvalidInput(msg)
    if not entry["prompt"].strip():
        msg = f"{where}: 'prompt' is blank; {expected}"
        raise InvalidInput(msg)
    tags = entry.get("tags", [])
    if not isinstance(tags, list) or not all(isinstance(tag, str) for tag in tags):
        msg = f"{where}: 'tags' is {tags!r}; {expected}"
        raise InvalidInput(msg)
    return Prompt(id=str(entry.get("id", default_id)), text=entry["prompt"], tags=tuple(tags))


def _check_ids(prompts: Sequence[Prompt], name: str) -> None:
    seen: set[str] = set()
    for prompt in prompts:
        if prompt.id in seen:
            msg = f"{name}: the id {prompt.id!r} is used twice; each prompt needs its own"
            raise InvalidInput(msg)
        seen.add(prompt.id)
