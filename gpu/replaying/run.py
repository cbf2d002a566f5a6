"""Replay: verification rules evaluated on every row of a trace, in one pass and bounded memory."""

from collections.abc import Callable, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import torch

from fly_theory.errors import InvalidInput
from fly_theory.provenance import provenance
from gpu.devices import resolve_device
from gpu.replaying.baselines import own_law
from gpu.replaying.bounding import check_bounding
from gpu.replaying.by_shard import tally_by_shard
from gpu.replaying.compilation import worth_compiling
from gpu.replaying.executors import Executor, executor
from gpu.replaying.files import check_folder, write
from gpu.replaying.modes import Detectors
from gpu.replaying.on_trees import TreeReplay, replay_trees, tree_rules, write_result
from gpu.replaying.partials import Partials, identity
from gpu.replaying.plan import Plan
from gpu.replaying.resolving import Asked, resolve
from gpu.replaying.result import Replay
from gpu.replaying.settings import ReplaySettings, drawn_temperature
from gpu.replaying.summary import summarise
from gpu.replaying.sweep import Sweep, points_only
from gpu.trace import TopKTrace, Trace, TreeTrace, open_trace

__all__ = ["replay"]


def replay(
    trace: Trace | str | Path,
    rules: Sequence[Asked] = (),
    *,
    sweeps: Sequence[str] = (),
    temperature: float | None = None,
    top_k: int | None = None,
    top_p: float | None = None,
    min_p: float | None = None,
    epsilon: float | None = None,
    eta: float | None = None,
    dtype: str = "float32",
    device: str = "auto",
    modes: bool | Sequence[str] = True,
    tail: float | None = None,
    out: str | Path | None = None,
    overwrite: bool = False,
    workers: int = 1,
    ray: bool = False,
    resume: bool = False,
    progress: Callable[[int, int], None] | None = None,
) -> Replay | TreeReplay:
    """Evaluate verification rules on the captured rows of a trace.

    The trace is read block by block and no more than one block of logits is held by a worker. Target p and draft q are
    made from the logits once a block and shared by all rules, which are the same objects the closed form uses. The
    result depends neither on how the blocks are spread over shards nor on who replays which shard in which order. (With
    unseen tokens, blocks of a shard are evaluated together: how they are spread shows in the last digit.)

    On a trace of draft trees, rules are tree rules, and token-level rules applied to siblings in turn; such a trace is
    replayed by this process alone, and no failure modes are looked for.

    Parameters
    ----------
    trace
        A trace, or its folder.
    rules
        Rules of a token or of a whole block, or SPEC strings, all different. `SPEC@K` is the rule of a block on the
        first K drafts of each.
    sweeps
        Ranges of one parameter of a rule, `fly:theta=0:1:0.1`, or of the draft length, `fly@1:15:1`, ends included.
        Each value is a setting like any other, and the curve a figure of the report.
    temperature
        Of both models; by default the one the trace's draft tokens were drawn at (1 where the trace does not say).
    top_k, top_p, min_p, epsilon, eta
        Warpers, applied to both models alike, in the order of `fly_theory.warp`.
    dtype
        float32 or float64, of all arithmetic. In float32, figures below 1e-6 are rounding.
    device
        cpu, cuda, or auto: cuda where there is one.
    modes
        The failure modes to look for, by the names in `gpu.replaying.modes.MODES`: all that the trace allows, those
        named, or none (False). With `zero_residual` among them, a rule that has nothing to redraw from in some rows is
        reported instead of refused, and those rows are left out of what depends on its output.
    tail
        Tokens of a joint mass (p + q)/2 up to this, in each row, are summed by their ratio of q to p and not evaluated
        one by one; every figure of a token-level rule is then an interval that certainly contains the exact one. By
        default every token is evaluated.
        On a top-k trace figures are such intervals in any case. No failure modes are looked for then.
    out
        Folder for results.json, results.parquet and report.html; nothing is written without it.
    overwrite
        Whether `out` may hold an earlier result, which is then replaced.
    workers
        How many processes share the shards of the trace; 1 is this process. They are spawned, so a script that asks
        for several keeps its main part under `if __name__ == "__main__"`.
    ray
        Whether the shards are spread over a Ray cluster instead, one worker per GPU or core, whose machines all see the
        trace under its path.
    resume
        Whether the finished shards that a killed run left in `out` are kept, if they are of this trace and plan.
    progress
        Called with (blocks done, blocks in all) at the start and after every block, or every shard of another process.

    Returns
    -------
    Replay, or TreeReplay on a trace of draft trees
        One `RuleResult` a token-level rule and one `BlockRuleResult` a block rule, in the order given. Block efficiency
        is None, with the reason in `notes`, when the draft tokens were not drawn from the q of this replay and the rule
        asks for that.

    Raises
    ------
    InvalidInput
        No rule, a rule given twice or not made for such a trace, a draft length above the trace's, a setting outside
        its domain, a device that is not there, a folder `out` that holds something already, or the beginning of another
        replay to be resumed.
    UnknownName, ParameterError, NotReadable
        A SPEC that names no rule, a name that is no mode, a parameter outside its domain, or a rule that torch cannot
        read.
    TraceError
        A missing, truncated or altered trace.
    ZeroResidualError
        A rule that rejects and has nothing to redraw from: in every row, or in any where that mode is not looked for.
    WorkerLost
        A worker process died, and so did those that took up its shard.
    """
    if not isinstance(trace, Trace):
        trace = open_trace(trace)
    on_trees, swept = isinstance(trace, TreeTrace), tuple(Sweep.parse(text) for text in sweeps)
    points = () if on_trees else points_only(rules, swept)
    if on_trees:
        chosen = not isinstance(modes, bool)
        _check_for_trees(trace, sweeps=swept, modes=chosen, tail=tail, workers=workers != 1, ray=ray, resume=resume)
        asked = tree_rules(rules, trace)
    else:
        asked = resolve([*rules, *points], draft_length=trace.draft_length)
    if temperature is None:
        drawn = drawn_temperature(trace)
        temperature = 1.0 if drawn is None else drawn
    settings = ReplaySettings(
        temperature=temperature,
        top_k=top_k,
        top_p=top_p,
        min_p=min_p,
        epsilon=epsilon,
        eta=eta,
        dtype=dtype,
        device=resolve_device(device),
    )
    if resume and out is None:
        msg = "resume needs the folder that the killed run was given as out"
        raise InvalidInput(msg)
    if out is not None:
        check_folder(Path(out), overwrite=overwrite, resume=resume)
    if on_trees:
        known = _provenance(trace, settings, executor(workers=1, ray=False))
        of_trees = replay_trees(trace, asked, settings, provenance=known, progress=progress)
        if out is not None:
            write_result(of_trees, Path(out))
        return of_trees
    token_rules, block_rules = asked
    if tail is not None or isinstance(trace, TopKTrace):
        check_bounding(trace, settings, asked, tail=tail, modes=modes)
        plan = Plan(token_rules, settings, block_rules=block_rules, bounded=True, tail=tail)
    else:
        detectors = Detectors.of(trace, None if modes is True else tuple(modes)) if modes else None
        plan = Plan(
            token_rules,
            settings,
            (own_law,),
            detectors=detectors,
            block_rules=block_rules,
            compiled=worth_compiling(len(trace) * trace.draft_length, trace.vocabulary),
        )
    by = executor(workers=workers, ray=ray)
    known = _provenance(trace, settings, by) | {"evaluation": "compiled" if plan.compiled else "plain"}
    partials = None if out is None else Partials(Path(out), identity(trace.sha256, plan, known), resume=resume)
    tallies = tally_by_shard(trace, plan, by, partials=partials, progress=progress)
    found = summarise(trace, plan, tallies, known)
    result = replace(found, sweeps=swept, points_only=frozenset(point.spec for point in points))
    if out is not None and partials is not None:
        write(result, Path(out))
        partials.remove()
    return result


def _check_for_trees(trace: TreeTrace, **given: Any) -> None:
    unknown = [name for name, value in given.items() if value]
    if unknown:
        msg = f"{trace.path} holds draft trees, of which replay knows no {' and no '.join(unknown)}"
        raise InvalidInput(msg)


def _provenance(trace: Trace, settings: ReplaySettings, by: Executor) -> dict[str, Any]:
    device = torch.cuda.get_device_name() if settings.device == "cuda" else f"cpu, {torch.get_num_threads()} threads"
    known = provenance(("numpy", "torch", "safetensors"), seed=None, device=device)
    return known | {
        "executor": str(by),
        "trace": {"path": trace.path, "sha256": trace.sha256, "source": trace.manifest["source"]},
    }
