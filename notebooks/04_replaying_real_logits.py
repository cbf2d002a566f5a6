# ---
# jupyter:
#   jupytext:
#     formats: ipynb,py:percent
#     text_representation:
#       extension: .py
#       format_name: percent
#   kernelspec:
#     display_name: Python 3
#     language: python
#     name: python3
# ---

# %% [markdown]
# # Replaying real logits
#
# What a rule does depends on the pairs $(p, q)$ it meets. A *trace* holds those of a real model pair: draft tokens
# with the logits of both models along them. It is captured once; any rule can then be evaluated on it in closed form,
# row by row, without running a model again. Here the target is SmolLM2-135M-Instruct, the draft the same model with
# two of its thirty layers left out, and the capture is kept tiny, so the *method* is shown and not a result.

# %%
import tempfile
import warnings

import numpy as np
from IPython.display import Image, Markdown
from tqdm import TqdmWarning

import fly_theory as ft
import gpu
from fly_theory import figures
from fly_theory.figures import ONE_COLUMN, SERIES, new_figure, style

warnings.simplefilter("ignore", TqdmWarning)  # no progress bars here, so no widgets are needed


def show(figure):
    return Image(figures.encode(figure, "png"), width=round(100 * figure.get_figwidth()))


# %% [markdown]
# ## Capture
#
# The target continues each prompt; the continuation is cut at a few positions; after each of these contexts the draft
# proposes $K$ tokens. Stored are its logits at each of them and the target's, one row more for the bonus token.

# %%
folder = tempfile.TemporaryDirectory()
trace = gpu.open_trace(
    gpu.capture(
        "smollm2-135m",
        "layerskip:10,20",
        ["Why is the sky blue?", "Tell me about lighthouses."],
        out=f"{folder.name}/trace",
        blocks=4,
        draft_length=6,
        continuation=12,
        chat=True,
    )
)
print(f"{len(trace)} blocks of {trace.draft_length} draft tokens, vocabulary {trace.vocabulary}")
for block in trace:
    print(repr(trace.decode(block.context[-6:])), "->", repr(trace.decode(block.tokens)))

# %% [markdown]
# ## One position
#
# Logits become distributions, and a rule does to them what it does to any pair. We pick the position where the two
# models differ about as much as they do on average, and name its tokens.

# %%
P = np.concatenate([ft.softmax(block.target_logits[:-1].double().numpy()) for block in trace])
Q = np.concatenate([ft.softmax(block.draft_logits.double().numpy()) for block in trace])
distances = ft.divergence.total_variation(P, Q)
row = int(abs(distances - distances.mean()).argmin())
print(f"TV(p, q): mean {distances.mean():.3f}, here {distances[row]:.3f}, largest {distances.max():.3f}")
show(
    figures.diagram(
        P[row],
        Q[row],
        [ft.rule("lenience:l=0.5"), ft.rule("min-p:base=0.1")],
        top=10,
        token_name=lambda token: trace.decode([token]).replace(" ", "␣").replace("\n", "↵"),
    )
)

# %% [markdown]
# ## Every position, every rule
#
# `gpu.replay` reads the trace once and evaluates all rules on every row. Block efficiency is the expected number of
# tokens a target call yields on the captured drafts, an expectation over the coins of the rule, so there is no
# sampling noise in it beyond that of the drafts; intervals take positions of one prompt together.

# %%
SPECS = [
    "lossless",
    "lenience:l=0.5",
    "cos:w=0.5",
    "min-p:base=0.1",
    "truncated-min-p:base=0.1",
    "typical:eps=0.09,delta=0.3",
]
result = gpu.replay(trace, SPECS)

lines = ["| rule | tokens a call | acceptance | TV(out, p) | waste | largest out/p |", "|---|--:|--:|--:|--:|--:|"]
for spec in SPECS:
    found = result[spec]
    cells = [found[name].mean for name in ("tokens_per_call", "acceptance", "tv", "waste")] + [
        found["max_ratio"].largest
    ]
    lines.append(f"| `{spec}` | " + " | ".join(f"{cell:.3g}" for cell in cells) + " |")
Markdown("\n".join(lines))

# %% [markdown]
# The picture of the toy pairs returns. Lenience and CoS waste nothing; lenience alone has a ceiling. The allowed set
# of min-p lets improbable tokens through, up to a ratio of $1 / (0.1 \max p)$. The fair baseline beside it,
# truncating the target and verifying losslessly, is far from $p$ on purpose, and is exact for what it aims at. Figures
# below 1e-6 are the rounding of float32.
#
# Replay agrees with the closed forms on the same rows, in another library and another precision:

# %%
for spec in ("lenience:l=0.5", "min-p:base=0.1"):
    by_hand = float(np.mean(ft.divergence.total_variation(P, ft.rule(spec).induced(P, Q))))
    print(f"{spec:16} mean TV on torch in float32 {result[spec]['tv'].mean:.6f}, on numpy in float64 {by_hand:.6f}")
    np.testing.assert_allclose(result[spec]["tv"].mean, by_hand, atol=1e-4)

# %% [markdown]
# ## Two gates on real rows
#
# FLy asks at each mismatch whether the target was undecided, by an entropy of $p$ compared with 0.3. The paper
# divides the full entropy by $\log |V|$; the released code sums over the three largest probabilities, in nats.

# %%
paper, released = ft.normalised_entropy(P), ft.top_k_entropy(P, 3)
with style():
    figure = new_figure(ONE_COLUMN, 2.4)
    ax = figure.subplots()
    ax.plot(paper, released, "o", color=SERIES[0], markersize=4, markerfacecolor="none")
    ax.axvline(0.3, color="0.6", linewidth=0.8)
    ax.axhline(0.3, color="0.6", linewidth=0.8)
    ax.set(xlabel="paper: entropy / log |V|", ylabel="code: top-3 entropy, nats", xlim=(0, 1), ylim=(0, 1.15))
show(figure)

# %%
print(f"open at {(paper >= 0.3).mean():.0%} of the positions by the paper, {(released >= 0.3).mean():.0%} by the code")

# %% [markdown]
# ## At scale
#
# A few dozen positions decide nothing. The same two steps from the command line take more prompts, longer blocks and
# a GPU where there is one, and write a report:
#
# ```console
# $ fly-theory capture --target smollm2-135m --draft layerskip:10,20 --blocks 48 --chat --out trace
# $ fly-theory replay trace lossless lenience:l=0.5 min-p:base=0.1 truncated-min-p:base=0.1 --out report
# ```

# %%
folder.cleanup()
