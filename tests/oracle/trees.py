"""The naive oracle for draft trees: what verifiers do at one position and on one tree, in Fractions, token by token.

Rows p, q are lists of Fractions. A tree is (token, [subtrees]) pairs below a root; may not be made clever.
"""

import itertools
from fractions import Fraction

ONE = Fraction(1)


def normalised(law):
    total = sum(law)
    return [x / total for x in law] if total else law


def positive(law):
    return [max(x, Fraction(0)) for x in law]


def minus(law, token):
    return normalised([Fraction(0) if i == token else x for i, x in enumerate(law)])


def candidates(q, n, drawing):
    """Every way to draw n candidates, with its probability."""
    tokens = range(len(q))
    for drawn in itertools.product(tokens, repeat=n):
        if drawing == "deterministic":
            best = sorted(tokens, key=lambda t: (-q[t], t))[:n]
            probability = ONE if list(drawn) == best else Fraction(0)
        else:
            probability, law = ONE, q
            for x in drawn:
                probability *= law[x]
                if drawing == "without-replacement":
                    law = minus(law, x)
        if probability:
            yield drawn, probability


def sibling_laws(q, drawn, drawing):
    """The law that each candidate was drawn from, given those before it."""
    laws = []
    for i, x in enumerate(drawn):
        if drawing == "deterministic":
            laws.append([ONE if t == x else Fraction(0) for t in range(len(q))])
        else:
            laws.append(q)
            for earlier in drawn[:i] if drawing == "without-replacement" else ():
                laws[i] = minus(laws[i], earlier)
    return laws


def recursive(p, laws, drawn, l=ONE):
    """Probability that each candidate is the one kept, and the law after all fail; l is the lenience of each ratio."""
    kept, left = [], ONE
    for x, q in zip(drawn, laws, strict=True):
        keep = min(ONE, p[x] / (l * q[x]))
        kept.append(left * keep)
        left *= 1 - keep
        p = normalised(positive([a - b for a, b in zip(p, q, strict=True)]))
    return kept, left, p


def min_p(p, laws, drawn, base):
    allowed = [x >= base * max(p) for x in p]
    first = next((i for i, x in enumerate(drawn) if allowed[x]), None)
    kept = [Fraction(i == first) for i in range(len(drawn))]
    return kept, 1 - sum(kept), p


def thresholds(p, laws, drawn, single, acc):
    """One coin for all: cut its range [0, 1) at each S_k / acc, and say which candidate each piece takes."""
    sums = list(itertools.accumulate(p[x] for x in drawn))
    ends = sorted({Fraction(0), ONE, *(min(ONE, s / acc) for s in sums)})
    kept, left = [Fraction(0)] * len(drawn), Fraction(0)
    for low, high in itertools.pairwise(ends):
        coin = (low + high) / 2
        taken = next((i for i, x in enumerate(drawn) if coin < sums[i] / acc or p[x] >= single), None)
        if taken is None:
            left += high - low
        else:
            kept[taken] += high - low
    return kept, left, normalised([Fraction(0) if t in drawn else x for t, x in enumerate(p)])


def position_law(verifier, p, q, n, drawing, **settings):
    """(accepted mass, redrawn mass) at each token."""
    accepted, redrawn = [Fraction(0)] * len(p), [Fraction(0)] * len(p)
    for drawn, probability in candidates(q, n, drawing):
        kept, left, law = verifier(p, sibling_laws(q, drawn, drawing), drawn, **settings)
        for x, mass in zip(drawn, kept, strict=True):
            accepted[x] += probability * mass
        for t, x in enumerate(law):
            redrawn[t] += probability * left * x
    return accepted, redrawn


def fly_sampled(rows, tokens, parents, window):
    """{(stop, emitted): probability} of FLy's tree mode when the target draws one token at every node, all spelled out.

    rows are the N+1 target rows, tokens and parents those of nodes 1..N.
    """
    nodes = range(1, len(tokens) + 1)

    def path(node):
        return [*path(parents[node - 1]), node] if node else []

    leaves = [path(node) for node in nodes if node not in parents]
    # Depth first: compare paths by their places among siblings.
    places = {node: sum(parents[i - 1] == parents[node - 1] for i in range(1, node)) for node in nodes}
    leaves.sort(key=lambda way: [places[node] for node in way])
    found = {}
    for sampled in itertools.product(range(len(rows[0])), repeat=len(rows)):
        probability = ONE
        for row, token in zip(rows, sampled, strict=True):
            probability *= row[token]
        if not probability:
            continue
        matches = {node: tokens[node - 1] == sampled[parents[node - 1]] for node in nodes}
        best = []
        for way in leaves:
            kept = []
            for j, node in enumerate(way, start=1):
                following = way[j : j + window - 1]
                cleared = j + window <= len(way) and all(matches[x] for x in following)
                if not (matches[node] or cleared):
                    break
                kept.append(node)
            if len(kept) > len(best):
                best = kept
        stop = best[-1] if best else 0
        key = (stop, sampled[stop])
        found[key] = found.get(key, 0) + probability
    return found
