"""`fly-theory capture`."""

import json
from pathlib import Path
from typing import Annotated

import typer

from fly_theory.errors import InvalidInput
from gpu.command_line import let_threads_sleep, progress_bar
from gpu.settings import CaptureSettings, Device, Dtype

_DEFAULT = CaptureSettings()


def capture(
    target: Annotated[str, typer.Option(help="Model folder, .gguf file, locally cached id, or smollm2-135m.")],
    draft: Annotated[str, typer.Option(help="As --target, or layerskip:10,20: the target without these layers.")],
    out: Annotated[Path, typer.Option(help="Trace folder: new, empty, or the beginning of this same trace.")],
    prompts: Annotated[
        Path | None, typer.Option(help="Text file with a prompt a line, or JSONL; the shipped set when left out.")
    ] = None,
    blocks: Annotated[int, typer.Option(help="Blocks in all, spread evenly over the prompts.")] = _DEFAULT.blocks,
    draft_length: Annotated[
        int | None, typer.Option(help="Draft tokens in a block, K.", show_default=str(_DEFAULT.draft_length))
    ] = None,
    tree: Annotated[
        str | None,
        typer.Option(
            help="Draft trees instead: total=60,depth=5,top_k=8 are the draft's most probable paths, as EAGLE grows "
            "them; 3,2,2 full trees with so many drawn children at each depth."
        ),
    ] = None,
    topk: Annotated[
        int | None,
        typer.Option(help="Store only so many most probable tokens of each row; replay then certifies intervals."),
    ] = None,
    drawing: Annotated[
        str | None,
        typer.Option(
            help="Of the children of full trees: with-replacement, without-replacement or deterministic.",
            show_default="with-replacement",
        ),
    ] = None,
    temperature: Annotated[float, typer.Option(help="Of the draft tokens; 0 is greedy.")] = _DEFAULT.temperature,
    context_temperature: Annotated[
        float, typer.Option(help="Of the target's continuation that contexts are cut from; 0 is greedy.")
    ] = _DEFAULT.context_temperature,
    continuation: Annotated[
        int, typer.Option(help="Longest continuation of a prompt, in tokens.")
    ] = _DEFAULT.continuation,
    chat: Annotated[bool, typer.Option("--chat", help="Put prompts into the tokenizer's chat template.")] = False,
    dtype: Annotated[Dtype, typer.Option(help="Stored logits.")] = _DEFAULT.dtype,
    model_dtype: Annotated[Dtype, typer.Option(help="What the models compute in.")] = _DEFAULT.model_dtype,
    seed: Annotated[int, typer.Option(help="Of every random draw.")] = _DEFAULT.seed,
    blocks_per_shard: Annotated[int, typer.Option(help="Blocks in one file.")] = _DEFAULT.blocks_per_shard,
    batch_size: Annotated[int, typer.Option(help="Sequences in a model at once.")] = _DEFAULT.batch_size,
    device: Annotated[Device, typer.Option(help="auto is cuda where there is one.")] = _DEFAULT.device,
    as_json: Annotated[bool, typer.Option("--json", help="Print a JSON document.")] = False,
) -> None:
    """Capture draft tokens of a model pair, with the logits of both, into a trace for `replay`.

    Run again after a kill or a full disk, the same command goes on where it stopped.

    Examples:

      fly-theory capture --target smollm2-135m --draft layerskip:10,20 --chat --out trace

      fly-theory capture --target smollm2-135m --draft layerskip:10,20 --chat --topk 256 --out small

      fly-theory capture --target smollm2-135m --draft layerskip:10,20 --tree total=60,depth=5,top_k=8 --out trees

      fly-theory capture --target ./Qwen2.5-7B --draft ./Qwen2.5-0.5B --prompts prompts.jsonl --blocks 1000 --out trace
    """
    let_threads_sleep()
    import gpu
    from gpu.tree_shapes import tree_shape

    if tree is None and drawing is not None:
        msg = f"--drawing {drawing} belongs to a --tree such as 3,2,2; blocks have one draft a position"
        raise InvalidInput(msg)
    with progress_bar("blocks") as bar:
        task = bar.add_task("loading the models", total=None)
        folder = gpu.capture(
            target,
            draft,
            prompts,
            out=out,
            draft_length=draft_length,
            topk=topk,
            tree=None if tree is None else tree_shape(tree, drawing),
            blocks=blocks,
            temperature=temperature,
            context_temperature=context_temperature,
            continuation=continuation,
            chat=chat,
            dtype=dtype,
            model_dtype=model_dtype,
            seed=seed,
            blocks_per_shard=blocks_per_shard,
            batch_size=batch_size,
            device=device,
            progress=lambda done, total: bar.update(task, description="capturing", completed=done, total=total),
        )
    trace = gpu.open_trace(folder)
    shape = {"nodes": trace.nodes, "drawing": trace.drawing} if isinstance(trace, gpu.TreeTrace) else {}
    size = sum(shard["bytes"] for shard in trace.manifest["shards"])
    summary = {
        "trace": str(folder),
        "blocks": len(trace),
        "draft_length": trace.draft_length,
        **shape,
        "vocabulary": trace.manifest["vocabulary"],
        "dtype": trace.manifest["dtype"],
        "bytes": size,
        "sha256": trace.sha256,
    }
    if as_json:
        typer.echo(json.dumps(summary))
    else:
        drafted = f"{len(trace)} trees, N={trace.nodes}" if shape else f"{len(trace)} blocks, K={trace.draft_length}"
        rules = "lossless min-p:base=0.1" if shape else "lossless lenience:l=0.5"
        typer.echo(
            f"{folder}: {drafted}, V={trace.vocabulary}, {trace.manifest['dtype']}, {size / 1e6:.0f} MB\n"
            f"next: fly-theory replay {folder} {rules}"
        )
