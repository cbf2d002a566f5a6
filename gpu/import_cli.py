"""`fly-theory import-logprobs`."""

import json
from pathlib import Path
from typing import Annotated

import typer


def import_logprobs(
    target: Annotated[Path, typer.Option(help="JSON or JSONL file of the target run, a block an object.")],
    draft: Annotated[Path, typer.Option(help="The same of the draft run, along the same draft tokens.")],
    vocabulary: Annotated[int, typer.Option(help="How many tokens the models have, V.")],
    out: Annotated[Path, typer.Option(help="Trace folder: new or empty.")],
    temperature: Annotated[float, typer.Option(help="What the draft tokens were drawn at; 0 is greedy.")] = 1.0,
    logprobs_at: Annotated[float, typer.Option(help="The temperature the log-probabilities are at.")] = 1.0,
    tokenizer: Annotated[Path | None, typer.Option(help="A tokenizer.json to keep for decoding.")] = None,
    as_json: Annotated[bool, typer.Option("--json", help="Print a JSON document.")] = False,
) -> None:
    """Turn the top log-probabilities that a serving engine returned into a trace for `replay`.

    Each block is an object {"token_ids": [...], "logprobs": [{"11": {"logprob": -0.2, "rank": 1}, ...}, ...]} as vLLM
    gives it, with one entry of logprobs for each draft token, and in the target's file one more. The documentation of
    `gpu.importing` has the details.

    Examples:

      fly-theory import-logprobs --target target.jsonl --draft draft.jsonl --vocabulary 49152 --out trace
    """
    import gpu

    folder = gpu.import_logprobs(
        target,
        draft,
        out=out,
        vocabulary=vocabulary,
        temperature=temperature,
        logprobs_at=logprobs_at,
        tokenizer=tokenizer,
    )
    trace = gpu.open_trace(folder)
    if as_json:
        summary = {
            "trace": str(folder),
            "blocks": len(trace),
            "draft_length": trace.draft_length,
            "top_k": trace.top_k,
            "sha256": trace.sha256,
        }
        typer.echo(json.dumps(summary))
    else:
        typer.echo(
            f"{folder}: {len(trace)} blocks, K={trace.draft_length}, V={trace.vocabulary}, k={trace.top_k}\n"
            f"next: fly-theory replay {folder} lossless lenience:l=0.5"
        )
