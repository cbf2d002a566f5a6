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
# # Figure 2 and the zoo of rules
#
# Figure 2 of *Revisiting Lossy Verification in Speculative Decoding* shows what two families of loose rules do to one
# target $p$ and one draft $q$. Here it is drawn from closed forms, and then all token-level rules are put on one map:
# how much each rejects, and how far its output is from the target.

# %%
from IPython.display import Image, Markdown

import fly_theory as ft
from fly_theory import figures
from fly_theory.divergence import max_ratio, total_variation
from fly_theory.example_pairs import example_pair
from fly_theory.figures import SERIES, TWO_COLUMNS, new_figure, style


def show(figure):
    return Image(figures.encode(figure, "png"), width=round(100 * figure.get_figwidth()))


p, q = example_pair("smooth").arrays()

# %% [markdown]
# ## Collaborative rules
#
# They mix the two laws. **CoS** emits $w q + (1-w) p$, the same mixture at every token. **Lenience** keeps $\min(q,
# p/\ell)$: where the draft overshoots, the output is cut at the dashed ceiling $p/\ell$, and elsewhere it lies
# between $p$ and $q$.

# %%
show(figures.diagram(p, q, [ft.rule("cos:w=0.5"), ft.rule("lenience:l=0.5")]))

# %% [markdown]
# ## Truncating rules
#
# They accept a drafted token if it lies in an allowed set $A$ that depends on $p$ alone, and redraw from $p$
# otherwise:
#
# $$\mathrm{out} = q\,1_A + (1 - q(A))\,p , \qquad \mathrm{TV}(\mathrm{out}, p) = q(A)\,\mathrm{TV}(q_A, p) .$$
#
# Inside $A$ the output is the whole draft, plus what the target fills in after rejections; the more of the draft the
# set lets through, the less the target is heard. Truncating the target itself and verifying losslessly, the fair
# comparison, emits $p_A$ instead.

# %%
show(
    figures.diagram(
        p, q, [ft.rule(s) for s in ("min-p:base=0.3", "typical:eps=0.09,delta=0.3", "truncated-min-p:base=0.3")]
    )
)

# %% [markdown]
# ## The line that nothing crosses
#
# The output differs from the draft only where a token was rejected, so $\mathrm{TV}(\mathrm{out}, q) \le
# P_\mathrm{rej}$, and by the triangle inequality
#
# $$\mathrm{TV}(\mathrm{out}, p) \;\ge\; \mathrm{TV}(p, q) - P_\mathrm{rej} .$$
#
# (Yin et al. 2024, arXiv 2411.00841.) A rule touches the line exactly when it never rejects what the lossless rule
# would keep, and redraws no token beyond the mass that the target still lacks there. What it loses above the line,
# its *waste*, is distance from the target that bought no acceptance.

# %%
SWEEPS = {
    "lenience": [f"lenience:l={l}" for l in (1, 0.8, 0.6, 0.4, 0.2, 0.1)],
    "CoS": [f"cos:w={w}" for w in (0, 0.2, 0.4, 0.6, 0.8, 1)],
    "mentored": [f"mentored:budget={b}" for b in (0, 0.02, 0.05, 0.1, 0.2, 0.4)],
    "min-p set": [f"min-p:base={b}" for b in (0.05, 0.1, 0.2, 0.3, 0.5, 0.9)],
    "typical set": [f"typical:eps={e},delta={d}" for e, d in ((0.02, 0.14), (0.04, 0.2), (0.06, 0.25), (0.09, 0.3))],
    "truncated target": [f"truncated-min-p:base={b}" for b in (0.05, 0.1, 0.2, 0.3, 0.5, 0.9)],
}
MARKERS = "osD^vP"

with style():
    figure = new_figure(TWO_COLUMNS, 3.1)
    ax = figure.subplots()
    distance = float(total_variation(p, q))
    ax.plot([0, distance], [distance, 0], color="0.6", label="the TV line")
    for (name, specs), colour, marker in zip(SWEEPS.items(), SERIES, MARKERS, strict=False):
        rules = [ft.rule(spec) for spec in specs]
        rejected = [1 - rule.acceptance(p, q) for rule in rules]
        distances = [total_variation(p, rule.induced(p, q)) for rule in rules]
        ax.plot(rejected, distances, marker, color=colour, label=name, markersize=5, markerfacecolor="none")
    ax.set(xlabel="rejection probability", ylabel="TV(out, p)", xlim=(-0.02, 1), ylim=(-0.01, None))
    ax.legend(loc="upper left", bbox_to_anchor=(0.12, 1), ncols=2)
show(figure)

# %% [markdown]
# Lenience, CoS and mentored decoding sit on the line at every setting: for the same rejections they are as close to
# the target as any rule can be. They differ in *which* tokens pay, not in how much is paid. The allowed-set rules lie
# above. Truncated targets are a different bargain: they are exact for $p_A$, and far from $p$ on purpose.
#
# ## All of them, in figures
#
# The last column separates rules that share the line: how much likelier than the target any token can become.

# %%
SPECS = [
    "lossless",
    "lenience:l=0.5",
    "lenience-substituted:l=0.5",
    "lenience-resample:l=0.5",
    "gated-ceiling:base=0.5,l=0.5",
    "cos:w=0.5",
    "mentored:budget=0.1",
    "cactus:delta=0.1",
    "cascade-token-v3:alpha=0.5",
    "min-p:base=0.5",
    "typical:eps=0.09,delta=0.3",
    "eta:eps=0.09",
    "truncated-min-p:base=0.5",
    "fuzzy:divergence=tv,t=0.5",
    "sample-match:n=2",
]


def row(spec):
    rule = ft.rule(spec)
    out, waste = rule.induced(p, q), float(ft.waste(p, q, rule))
    cells = (rule.acceptance(p, q), total_variation(p, out), max(waste, 0.0), max_ratio(p, out))
    return f"| `{spec}` | " + " | ".join(f"{float(cell):.3f}" for cell in cells) + " |"


Markdown("| rule | acceptance | TV(out, p) | waste | max out/p |\n|---|--:|--:|--:|--:|\n" + "\n".join(map(row, SPECS)))

# %% [markdown]
# Three readings of lenience that differ only in what a rejected token is redrawn from show how much hangs on it:
# redrawing from $p$ breaks the very ceiling the rule exists for, and substituting $\ell q$ in the residual leaves the
# line.
#
# ## On the line for every pair?
#
# One pair decides nothing. The exact search looks for a pair that pushes a rule off the line, and prints the
# smallest.

# %%
for spec in ("lenience:l=0.5", "cos:w=0.5", "min-p:base=0.5", "lenience-resample:l=0.5"):
    result = ft.check(spec, claims=["on-the-line"], cases=100)["on the TV line"]
    found = "" if result.witness is None else "; ".join(str(result.witness).splitlines()[:2])
    print(f"{spec:26} {result.outcome}  {found}")

# %% [markdown]
# "Proved" means for every vocabulary size: `check` asks the theorems of `fly-theory prove` where the search finds
# nothing. The next notebook turns to a rule that judges whole blocks.
