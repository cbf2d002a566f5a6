"""What block verifiers do, in Fractions, straight from their definitions. Slow on purpose: nothing here may be clever.

A model is a function from a context (a tuple of tokens) to two lists of Fractions: target p and draft q. A verifier is
a function (model, context, drafts) -> {(kept, emitted tokens): probability}; text emitted in one round is a tuple.
"""

import itertools
import math
from fractions import Fraction

ONE = Fraction(1)


# -- verifiers ---------------------------------------------------------------------------------------------------------


def lossless(model, context, drafts):
    """Leviathan et al.: accept with min(1, p/q) in order; redraw the first rejected token from (p - q)+."""
    outcomes, reached = {}, ONE
    for i, x in enumerate(drafts):
        p, q = model(context + drafts[:i])
        accept = min(ONE, p[x] / q[x])
        emit(outcomes, drafts[:i], residual(ONE, p, ONE, q), reached * (1 - accept))
        reached *= accept
    emit(outcomes, drafts, model(context + drafts)[0], reached)
    return outcomes


def block(model, context, drafts):
    """Sun et al., Algorithm 2, over all outcomes of the K coins."""
    K = len(drafts)
    rows = [model(context + drafts[:i]) for i in range(K + 1)]
    b = [ONE]
    for i, x in enumerate(drafts):
        b.append(min(ONE, b[-1] * rows[i][0][x] / rows[i][1][x]))
    h = [ONE]
    for i in range(1, K):
        s = sum(max(b[i] * p - q, 0) for p, q in zip(*rows[i], strict=True))
        h.append(ratio(s, s + 1 - b[i]))
    h.append(b[K])
    outcomes = {}
    for coins in itertools.product([True, False], repeat=K):
        probability = math.prod(h[i + 1] if heads else 1 - h[i + 1] for i, heads in enumerate(coins))
        tau = max([i + 1 for i, heads in enumerate(coins) if heads], default=0)
        law = rows[K][0] if tau == K else residual(b[tau], rows[tau][0], ONE, rows[tau][1])
        emit(outcomes, drafts[:tau], law, probability)
    return outcomes


def hierarchical(model, context, drafts):
    """Zhou et al.: ratios restart after the best strictly earlier prefix; one redraw from the branch residual."""
    K = len(drafts)
    r = prefix_ratios(model, context, drafts)
    earlier = r[:K]
    best = max(range(K), key=lambda i: earlier[i]) if max(earlier) > 1 else 0
    whole = min(ONE, r[K] / r[best])
    factors = [r[t] / max([ONE, *r[1 : t + 1]]) for t in range(K)]
    return walk_back(model, context, drafts, whole, factors)


def hierarchical_mincap(model, context, drafts):
    """The `fast` version of the released patch: prefix ratios cut at one."""
    r = prefix_ratios(model, context, drafts)
    return walk_back(model, context, drafts, min(ONE, r[-1]), [min(ONE, ratio) for ratio in r[:-1]])


def hierarchical_uncapped(model, context, drafts, l=ONE):
    """The released simulation: nothing capped, draft probabilities of the prefix multiplied by the lenience."""
    r = [ratio / l**t for t, ratio in enumerate(prefix_ratios(model, context, drafts))]
    return walk_back(model, context, drafts, min(ONE, r[-1]), r[:-1])


def hierarchical_naive(model, context, drafts):
    """Uncapped walk back, then every remaining position from the joint residual of the text so far."""
    K = len(drafts)
    r = prefix_ratios(model, context, drafts)
    stopped = walk_back(model, context, drafts, min(ONE, r[-1]), r[:-1])
    outcomes = {}
    for (kept, text), probability in stopped.items():
        unfinished = {text: probability}
        while kept < K and len(next(iter(unfinished))) < K:
            longer = {}
            for so_far, mass in unfinished.items():
                P = math.prod(model(context + so_far[:i])[0][y] for i, y in enumerate(so_far))
                Q = math.prod(model(context + so_far[:i])[1][y] for i, y in enumerate(so_far))
                p, q = model(context + so_far)
                for y, share in enumerate(residual(P, p, Q, q)):
                    longer[(*so_far, y)] = longer.get((*so_far, y), 0) + mass * share
            unfinished = longer
        for full, mass in unfinished.items():
            outcomes[kept, full] = outcomes.get((kept, full), 0) + mass
    return outcomes


def fly(model, context, drafts, theta, window):
    """FLy, Algorithm 1 of the paper, line by line."""
    K = len(drafts)
    rows = [model(context + drafts[:i])[0] for i in range(K + 1)]
    y = [row.index(max(row)) for row in rows]
    matches = [drafts[i] == y[i] for i in range(K)]
    for j in [i for i in range(K) if not matches[i]]:
        if entropy(rows[j]) / math.log(len(rows[j])) < theta:
            return {(j, (*drafts[:j], y[j])): ONE}
        mismatches = sum(1 for i in range(j + 1, min(j + window, K - 1) + 1) if not matches[i])
        if not (mismatches == 0 and j + 1 + window <= K):
            return {(j, (*drafts[:j], y[j])): ONE}
    return {(K, (*drafts, y[K])): ONE}


def fly_released(model, context, drafts, theta, window, samples=2, no_window=False):
    """The released code at temperature 1, over all outcomes of the target's draws (the first is the correction)."""
    K = len(drafts)
    rows = [model(context + drafts[:i])[0] for i in range(K + 1)]
    outcomes = {}
    per_position = list(itertools.product(range(len(rows[0])), repeat=samples))
    for draws in itertools.product(per_position, repeat=K):
        probability = math.prod(rows[i][y] for i in range(K) for y in draws[i])
        if probability == 0:
            continue
        accepted = released_mask([drafts[i] in draws[i] for i in range(K)], rows, theta, window, no_window)
        n = accepted.index(False) if False in accepted else K
        law = rows[K] if n == K else [ONE if v == draws[n][0] else 0 * ONE for v in range(len(rows[0]))]
        emit(outcomes, drafts[:n], law, probability)
    return outcomes


def fly_released_greedy(model, context, drafts, theta, window, no_window=False):
    """The released code at temperature 0."""
    K = len(drafts)
    rows = [model(context + drafts[:i])[0] for i in range(K + 1)]
    y = [row.index(max(row)) for row in rows]
    accepted = released_mask([drafts[i] == y[i] for i in range(K)], rows, theta, window, no_window)
    n = accepted.index(False) if False in accepted else K
    return {(n, (*drafts[:n], y[n])): ONE}


def released_mask(matches, rows, theta, window, no_window):
    """The mask as the code builds it: sliding patterns, the tail put back, the gate applied last."""
    K, accepted = len(matches), list(matches)
    if window <= K:
        pattern = [False] + [True] * (window - 1)
        for j in range(K - window + 1):
            accepted[j] = accepted[j] or matches[j : j + window] == pattern
        for j in range(K - window, K):
            accepted[j] = matches[j]
    if theta > 0.01:
        vetoed = [top3(rows[j]) < theta and not matches[j] for j in range(K)]
        accepted = [not v if no_window else a and not v for a, v in zip(accepted, vetoed, strict=True)]
    elif no_window:
        accepted = [True] * K
    return accepted


def fly_ceiling(model, context, drafts, theta, window, floor):
    """`fly`, refusing also mismatches whose target probability is below the floor."""
    K = len(drafts)
    rows = [model(context + drafts[:i])[0] for i in range(K + 1)]
    y = [row.index(max(row)) for row in rows]
    for j in range(K):
        if drafts[j] == y[j]:
            continue
        calm = all(drafts[i] == y[i] for i in range(j + 1, min(j + window, K - 1) + 1))
        gate = entropy(rows[j]) / math.log(len(rows[j])) >= theta and rows[j][drafts[j]] >= floor
        if not (gate and calm and j + window <= K - 1):
            return {(j, (*drafts[:j], y[j])): ONE}
    return {(K, (*drafts, y[K])): ONE}


# -- rounds and texts --------------------------------------------------------------------------------------------------


def round_law(verifier, model, context, K):
    """{(kept, emitted): probability} of one round, over all drafts the draft model can produce."""
    V = len(model(context)[0])
    outcomes = {}
    for drafts in itertools.product(range(V), repeat=K):
        drafted = math.prod(model(context + drafts[:i])[1][x] for i, x in enumerate(drafts))
        if drafted > 0:
            for outcome, probability in verifier(model, context, drafts).items():
                outcomes[outcome] = outcomes.get(outcome, 0) + drafted * probability
    return outcomes


def text_law(verifier, model, context, K, length):
    """{text: probability} of the first `length` tokens over repeated rounds."""
    if length <= 0:
        return {(): ONE}
    texts = {}
    for (_, emitted), probability in round_law(verifier, model, context, K).items():
        if probability:
            for rest, share in text_law(verifier, model, context + emitted, K, length - len(emitted)).items():
                text = (emitted + rest)[:length]
                texts[text] = texts.get(text, 0) + probability * share
    return texts


def target_text_law(model, context, length):
    """{text: probability} under the target."""
    V = len(model(context)[0])
    return {
        text: math.prod(model(context + text[:i])[0][y] for i, y in enumerate(text))
        for text in itertools.product(range(V), repeat=length)
    }


# -- pieces ------------------------------------------------------------------------------------------------------------


def emit(outcomes, kept, law, probability):
    for token, share in enumerate(law):
        if probability * share:
            key = (len(kept), (*kept, token))
            outcomes[key] = outcomes.get(key, 0) + probability * share


def residual(weight_p, p, weight_q, q):
    excess = [max(weight_p * a - weight_q * b, 0 * ONE) for a, b in zip(p, q, strict=True)]
    total = sum(excess)
    return [e / total for e in excess] if total else excess


def ratio(numerator, denominator):
    return ONE if numerator == denominator == 0 else numerator / denominator


def prefix_ratios(model, context, drafts):
    rows = [model(context + drafts[:i]) for i in range(len(drafts))]
    ratios = [rows[i][0][x] / rows[i][1][x] for i, x in enumerate(drafts)]
    return [math.prod(ratios[:t], start=ONE) for t in range(len(drafts) + 1)]


def walk_back(model, context, drafts, whole, factors):
    """Keep all with probability `whole`; else from the last branch to the first, stop with D+ / max(D+, D-)."""
    outcomes = {}
    emit(outcomes, drafts, model(context + drafts)[0], whole)
    walking = 1 - whole
    for t in reversed(range(len(drafts))):
        p, q = model(context + drafts[:t])
        plus = sum(max(factors[t] * a - b, 0) for a, b in zip(p, q, strict=True))
        minus = sum(max(b - factors[t] * a, 0) for a, b in zip(p, q, strict=True))
        stop = ONE if t == 0 else ratio(plus, max(plus, minus))
        emit(outcomes, drafts[:t], residual(factors[t], p, ONE, q), walking * stop)
        walking *= 1 - stop
    return outcomes


def entropy(row):
    return -sum(float(v) * math.log(v) for v in row if v > 0)


def top3(row):
    return entropy(sorted(row)[-3:])
