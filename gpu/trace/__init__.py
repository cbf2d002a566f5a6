"""The trace: blocks of draft tokens with the logits of both models, in a folder that checks itself.

    manifest.json                     what was captured and how, and the checksum of every shard
    tokenizer.json                    when known, so that decoding needs no model
    shards/shard-00000.safetensors    blocks_per_shard blocks each (B), the last one fewer:
        target_logits    (B, K+1, V_target)   row n follows the context and the first n draft tokens
        draft_logits     (B, K, V_draft)      row n is what draft token n was drawn from
        tokens           (B, K)               the draft tokens, int64
        context_ids      (sum of lengths,)    the contexts, one after the other, int64
        context_offsets  (B + 1,)             where each of them begins and the last one ends, int64
        prompt           (B,)                 number of the prompt, int64
        position         (B,)                 how many tokens of the context follow the prompt, int64

K is the draft length. The two models may differ in width; logits beyond a model's own width count as -inf. A trace
holds no dates, durations or paths of its own: it is a function of what was asked for. A trace of draft trees is
described in `gpu.trace.tree`, one of the most probable tokens only in `gpu.trace.top_k`.
"""

from gpu.trace.block import TraceBlock
from gpu.trace.header import TraceHeader
from gpu.trace.opening import open_trace
from gpu.trace.reader import Trace
from gpu.trace.top_k import TopKBlock, TopKHeader, TopRows, top_k_of
from gpu.trace.top_k_reader import TopKTrace
from gpu.trace.top_k_writer import TopKWriter, top_k_header, truncate_trace
from gpu.trace.tree import TraceTree, TreeHeader
from gpu.trace.tree_reader import TreeTrace
from gpu.trace.tree_writer import TreeWriter, write_trees
from gpu.trace.writer import TraceWriter, reshard, write_trace

__all__ = [
    "TopKBlock",
    "TopKHeader",
    "TopKTrace",
    "TopKWriter",
    "TopRows",
    "Trace",
    "TraceBlock",
    "TraceHeader",
    "TraceTree",
    "TraceWriter",
    "TreeHeader",
    "TreeTrace",
    "TreeWriter",
    "open_trace",
    "reshard",
    "top_k_header",
    "top_k_of",
    "truncate_trace",
    "write_trace",
    "write_trees",
]
