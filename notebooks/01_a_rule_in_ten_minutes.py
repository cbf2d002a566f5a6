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
# # A rule in ten minutes
#
# A small draft model proposes a token $x \sim q$; a large target model, whose law is $p$, keeps it or replaces it.
# How it decides is the *verification rule*. Lossless rules emit a token of law $p$ whatever $q$ is. In ten minutes we
# write one, let it be checked, read the counterexample, mend it, and see why it is then right for every vocabulary.

# %%
import json
import subprocess
import sys
from dataclasses import dataclass
from pathlib import Path

import numpy as np
from IPython.display import Image

import fly_theory as ft
from fly_theory import figures
from fly_theory.arrays import array_namespace
from fly_theory.example_pairs import example_pair


def show(figure):
    return Image(figures.encode(figure, "png"), width=round(100 * figure.get_figwidth()))


# %% [markdown]
# ## What a rule is
#
# A rule at one position is two arrays of the shape of $p$:
#
# * **accepted**, $m(x)$ with $0 \le m \le q$: the draft mass that survives, so a drafted $x$ is kept with probability
#   $m(x)/q(x)$;
# * **residual**, $r(x) \ge 0$: what a rejected token is redrawn from, up to normalisation.
#
# Everything else follows. With $S = \sum_x m(x)$ the acceptance rate, the emitted token has the law
#
# $$\mathrm{out}(x) = m(x) + (1 - S)\,\frac{r(x)}{\sum_y r(y)} .$$
#
# A rule is written against the Python array API, with no random numbers and no branches on array values. That is why
# the same lines can be read on numpy, torch and jax, in exact fractions, and over symbols.
#
# ## Write one
#
# Keep a draft as often as the target allows, $m = \min(p, q)$; when it is rejected, ask the target: redraw from $p$.
# It looks safe: a rejected token is replaced by what the target itself would have said.


# %%
@dataclass(frozen=True)
class AskTheTarget(ft.Rule):
    """Keep min(p, q), redraw a rejected token from the target."""

    def verdict(self, p, q):
        return array_namespace(p, q).minimum(p, q), p


# %% [markdown]
# ## Check it
#
# `ft.check` searches rational pairs in exact arithmetic. A claim that fails comes with its smallest counterexample.

# %%
report = ft.check(AskTheTarget(), claims=["lossless"], cases=100)
print(report.verdict, "- TV(out, p) reaches", report.tv, "and out/p reaches", report.max_ratio)
witness = report["lossless"].witness
print(witness)

# %% [markdown]
# Two tokens suffice. The target is a fair coin, the draft always says heads. Half of its proposals survive, and the
# other half is thrown again, when heads may come up once more:
#
# $$\mathrm{out}(\text{heads}) = \tfrac12 + \tfrac12 \cdot \tfrac12 = \tfrac34 .$$
#
# Fractions in, fractions out: this is no rounding.

# %%
p, q = ft.exact(["1/2", "1/2"]), ft.exact(["1", "0"])
print("kept    ", AskTheTarget().verdict(p, q).accepted)
print("emitted ", AskTheTarget().induced(p, q))

# %% [markdown]
# The same on a pair the size of a figure. Wherever the draft gives less than the target, redrawing from $p$ hands
# part of the rejected mass to tokens that need none, so the purple output misses the blue target on both sides.

# %%
p, q = example_pair("smooth").arrays()
show(figures.diagram(p, q, [AskTheTarget(), ft.rule("lossless")], titles=["ask the target", "lossless"]))

# %% [markdown]
# ## Mend it
#
# The tokens that still lack mass after acceptance are those with $m < p$, and they lack exactly $p - m$. Redraw from
# that.


# %%
@dataclass(frozen=True)
class FillTheGap(ft.Rule):
    """Keep min(p, q), redraw a rejected token from what p has left."""

    def verdict(self, p, q):
        accepted = array_namespace(p, q).minimum(p, q)
        return accepted, p - accepted


report = ft.check(FillTheGap(), claims=["lossless"], cases=150)
lossless = report["lossless"]
print(report.verdict, "- lossless:", lossless.outcome, "- pairs searched:", lossless.cases)
assert report.ok

# %% [markdown]
# A search that finds nothing would say "held on so many pairs", which is not "proved". Here `check` also asked the
# prover, which is installed, and says what it answered.
#
# ## Prove it
#
# The argument takes three lines. $m = \min(p, q) \le p$, so the residual $r = p - m$ is nonnegative. Both $p$ and $q$
# sum to one, so the rejected mass is $1 - S = 1 - \sum_x m(x) = \sum_x r(x)$. The normalisation therefore cancels:
#
# $$\mathrm{out} = m + (1 - S)\,\frac{r}{\sum_y r(y)} = m + r = p .$$
#
# No step mentions how many tokens there are. A machine can follow it: `fly-theory prove` runs the rule's own lines
# over symbols, for one generic token and sums over all of them, and has what must hold decided by z3 and again by
# cvc5. Both rules of this notebook are in `examples/my_rule.py`, under the names `MyRule` and `Corrected`.


# %%
def prove(name):
    program = Path(sys.executable).with_name("fly-theory")
    arguments = ["prove", f"../examples/my_rule.py:{name}", "--claim", "lossless"]
    done = subprocess.run([program, *arguments, "--json"], capture_output=True, text=True, check=False)
    (proof,) = json.loads(done.stdout)
    print(f"{proof['name']} is {proof['outcome']} by {proof['method']}, {proof['obligations']} obligations")
    return done.returncode


assert prove("Corrected") == 0
assert prove("MyRule") != 0

# %% [markdown]
# ## Loosen it
#
# Speed is bought with acceptance. A cautious way to loosen: let no token become more than twice as likely as the
# target made it. Claims are part of a rule; `ft.check` holds a rule to all of them.


# %%
@dataclass(frozen=True)
class AtMostTwice(ft.Rule):
    """Keep min(q, 2 p), redraw from the positive part of p - q."""

    def verdict(self, p, q):
        xp = array_namespace(p, q)
        return xp.minimum(q, 2 * p), xp.maximum(p - q, xp.zeros_like(p))

    @property
    def claims(self):
        return (ft.claims.Ceiling(2), ft.claims.OnTheLine(), ft.claims.FixedPoint())


report = ft.check(AtMostTwice(), cases=100)
for result in report.results[:3]:
    print(f"{result.name:40} {result.outcome}")
assert report.ok
assert not ft.check(AtMostTwice(), claims=["ceiling:3/2"], cases=100).ok

# %% [markdown]
# It holds what it claims and no more: a ceiling of $3/2$ is refuted at once. On the figure's pair it accepts more,
# and its output stays below the dashed ceiling. This is `lenience:l=0.5` under another name, and under a ceiling
# $1/\ell$ no rule that drafts one token accepts more: what is kept of $x$ is at most $q(x)$, and at most
# $\mathrm{out}(x) \le p(x)/\ell$.

# %%
p, q = example_pair("smooth").arrays()
assert np.array_equal(AtMostTwice().induced(p, q), ft.rule("lenience:l=0.5").induced(p, q))
show(figures.diagram(p, q, [FillTheGap(), AtMostTwice()], titles=["fill the gap", "at most twice"]))

# %% [markdown]
# From a file the same rule is checked with `fly-theory check my_rule.py:AtMostTwice`, drawn with `fly-theory
# diagram`, and replayed on captured logits with `fly-theory replay`. The next notebook looks at all the rules that
# people use.
