"""The verb `decode`: one document, coloured or bracketed text, and errors."""

import io
import json
import re
from pathlib import Path
from types import SimpleNamespace

import pytest
import typer
from rich.console import Console
from typer.testing import CliRunner

import gpu
from gpu.decode_cli import decode as decode_command
from gpu.decoding.display import parts

PROMPTS = ["the fox and the hare", "one and one are"]


def run(tiny: SimpleNamespace, *arguments: object) -> tuple[int, str, str]:
    app = typer.Typer()
    app.command()(decode_command)
    models = ["--target", tiny.llama, "--draft", "layerskip:1", "--device", "cpu", "--max-new-tokens", 12]
    result = CliRunner().invoke(app, [str(argument) for argument in (*models, *arguments)])
    if result.exception is not None and not isinstance(result.exception, SystemExit):
        return 2, result.stdout, str(result.exception)
    return result.exit_code, result.stdout, result.stderr


def test_json_is_one_document_that_equals_the_library(tiny: SimpleNamespace, tmp_path: Path) -> None:
    (tmp_path / "prompts.txt").write_text("\n".join(PROMPTS))
    options = ["--rule", "lenience:l=0.5", "--draft-length", 3, "--temperature", 0.7, "--top-k", 9, "--seed", 4]
    code, out, _ = run(tiny, *options, "--prompts", tmp_path / "prompts.txt", "--json")
    document = json.loads(out)
    settings = {"draft_length": 3, "temperature": 0.7, "top_k": 9, "seed": 4, "max_new_tokens": 12, "device": "cpu"}
    expected = gpu.decode(tiny.llama, "layerskip:1", "lenience:l=0.5", PROMPTS, **settings)
    assert code == 0
    assert [text["ids"] for text in document["continuations"]] == [list(text.ids) for text in expected]
    assert document["figures"]["accepted_per_call"]["mean"] == expected.accepted_per_call.mean
    assert document["settings"]["top_k"] == 9


def test_without_colours_what_is_no_draft_stands_in_brackets(tiny: SimpleNamespace) -> None:
    code, out, err = run(tiny, "--rule", "lossless", "--prompt", PROMPTS[0], "--seed", 2, "--draft-length", 2)
    assert code == 0
    assert "kept draft  ⟨replaced⟩  ⟦bonus⟧" in out
    options = {"seed": 2, "draft_length": 2, "max_new_tokens": 12, "device": "cpu"}
    (text,) = gpu.decode(tiny.llama, "layerskip:1", "lossless", PROMPTS[:1], **options)
    shown = out.split("\n\n", 1)[1].rsplit("\n\n", 1)[0]
    assert re.sub("[⟨⟩⟦⟧]", "", shown).split() == text.text.split()
    assert f"{len(text.ids) / text.calls:.2f}" in out
    assert "decoding" in err


def test_in_a_terminal_each_kind_of_token_has_its_colour(tiny: SimpleNamespace) -> None:
    options = {"draft_length": 2, "max_new_tokens": 12, "device": "cpu", "seed": 2}
    decoding = gpu.decode(tiny.llama, "layerskip:1", "lossless", PROMPTS, **options)
    console = Console(file=io.StringIO(), force_terminal=True, color_system="standard", width=200, highlight=False)
    console.print(*parts(decoding, coloured=True), sep="\n")
    written = console.file.getvalue()
    assert all(f"\x1b[{colour}m" in written for colour in (31, 32, 34))
    assert "⟨" not in written
    assert "cluster-robust over the 2 prompts" in written
    styles = {str(span.style) for part in parts(decoding, coloured=True) for span in getattr(part, "spans", ())}
    assert {"green", "red", "blue"} <= styles


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        (["--rule", "lossless", "--prompt", "a", "--prompts", "b.txt"], "give one of them"),
        (["--rule", "lossles", "--prompt", "a"], "Did you mean 'lossless'"),
        (["--rule", "lossless", "--prompts", "nothing.txt"], "cannot be read"),
        (["--rule", "fly:theta=0.3,window=2", "--prompt", "a", "--temperature", "1"], "own temperature 0"),
    ],
)
def test_errors_are_messages(tiny: SimpleNamespace, arguments: list[str], said: str) -> None:
    code, out, err = run(tiny, *arguments)
    assert code == 2
    assert said in err
    assert not out
