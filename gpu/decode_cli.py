"""`fly-theory decode`."""

from pathlib import Path
from typing import Annotated

import typer
from rich.console import Console

from fly_theory.cli.options import AsJson
from fly_theory.cli.output import display, print_json
from fly_theory.errors import InvalidInput
from gpu.command_line import Epsilon, Eta, MinP, TopK, TopP, let_threads_sleep, progress_bar
from gpu.settings import DecodeSettings, Device, Dtype

_DEFAULT = DecodeSettings()


def decode(
    target: Annotated[str, typer.Option(help="Model folder, .gguf file, locally cached id, or smollm2-135m.")],
    draft: Annotated[str, typer.Option(help="As --target, or layerskip:10,20: the target without these layers.")],
    rule: Annotated[str, typer.Option(help="SPEC of a token-level or block rule.")],
    prompt: Annotated[str | None, typer.Option(help="One prompt, as text.")] = None,
    prompts: Annotated[
        Path | None,
        typer.Option(help="Text file with a prompt a line, or JSONL; the shipped set when both are left out."),
    ] = None,
    draft_length: Annotated[int, typer.Option(help="Draft tokens in a round, K.")] = _DEFAULT.draft_length,
    max_new_tokens: Annotated[int, typer.Option(help="Longest continuation, in tokens.")] = _DEFAULT.max_new_tokens,
    temperature: Annotated[
        float | None, typer.Option(help="Of both models; 0 is greedy. By default 1, or the rule's own (fly).")
    ] = _DEFAULT.temperature,
    top_k: TopK = None,
    top_p: TopP = None,
    min_p: MinP = None,
    epsilon: Epsilon = None,
    eta: Eta = None,
    stop: Annotated[
        list[str] | None, typer.Option(help="Text that ends a continuation; may be given more than once.")
    ] = None,
    chat: Annotated[bool, typer.Option("--chat", help="Put prompts into the tokenizer's chat template.")] = False,
    model_dtype: Annotated[Dtype, typer.Option(help="What the models compute in.")] = _DEFAULT.model_dtype,
    seed: Annotated[int, typer.Option(help="Of every random draw.")] = _DEFAULT.seed,
    device: Annotated[Device, typer.Option(help="auto is cuda where there is one.")] = _DEFAULT.device,
    as_json: AsJson = False,
) -> None:
    """Decode with a verification rule in a real speculative loop, and show which tokens the draft wrote.

    Examples:

      fly-theory decode --target smollm2-135m --draft layerskip:10,20 --rule lossless --prompt "Why is the sky blue?"

      fly-theory decode --target ./Qwen2.5-7B --draft ./Qwen2.5-0.5B --rule fly:theta=0.3,window=6 --json
    """
    let_threads_sleep()
    if prompt is not None and prompts is not None:
        msg = f"--prompt {prompt!r} and --prompts {str(prompts)!r} are both given; give one of them"
        raise InvalidInput(msg)
    import gpu

    with progress_bar("tokens") as bar:
        task = bar.add_task("loading the models", total=None)
        decoding = gpu.decode(
            target,
            draft,
            rule,
            prompts if prompt is None else [prompt],
            draft_length=draft_length,
            max_new_tokens=max_new_tokens,
            temperature=temperature,
            top_k=top_k,
            top_p=top_p,
            min_p=min_p,
            epsilon=epsilon,
            eta=eta,
            stop=stop or (),
            chat=chat,
            model_dtype=model_dtype,
            seed=seed,
            device=device,
            progress=lambda done, total: bar.update(task, description="decoding", completed=done, total=total),
        )
    if as_json:
        print_json(decoding.to_json())
        return
    from gpu.decoding.display import parts

    display(*parts(decoding, coloured=Console().is_terminal))
