"""Random draft trees, and every tree rule at a typical setting."""

import numpy as np

import fly_theory as ft
from fly_theory.parameters import parameters
from fly_theory.registry import rule_class, rules

TOKEN_RULES = ("lossless", "lenience:l=0.5", "min-p:base=0.25", "sample-match:n=1", "typical", "cactus:delta=0.1")
SETTINGS = ("threshold-walk:single=0.5,acc=0.75", "fly-tree:theta=0.6,window=1", "fly-tree-released:window=2")


def typical_rules():
    """The registered rules, and token rules on candidates in turn."""
    registered = [rule_class(name, level="tree") for name in rules(level="tree")]
    return [
        *(cls(**{p.name: (p.typical or (p.default,))[0] for p in parameters(cls)}) for cls in registered),
        *map(ft.tree_rule, (*SETTINGS, *TOKEN_RULES)),
    ]


def arrays(seed, parents, batch=(), vocabulary=4, drawing="with-replacement"):
    """Target, draft and tokens of random trees, whose tokens could have been drawn as said."""
    rng = np.random.default_rng(seed)
    shape = (*batch, len(parents) + 1, vocabulary)
    target, draft = (
        rng.dirichlet(np.full(vocabulary, 0.7), shape[:-1]),
        rng.dirichlet(np.full(vocabulary, 2), shape[:-1]),
    )
    tokens = rng.integers(0, vocabulary, (*batch, len(parents)))
    if drawing != "with-replacement":
        for node in range(len(parents) + 1):
            children = [child - 1 for child, parent in enumerate(parents, start=1) if parent == node]
            order = np.argsort(rng.random((*batch, vocabulary)), axis=-1)
            tokens[..., children] = order[..., : len(children)]
    return target, draft, tokens


def tree_for(rule, seed, parents, batch=(), vocabulary=4):
    """A random tree of the kind that the rule is usually given."""
    drawing = rule.drawings[0]
    target, draft, tokens = arrays(seed, parents, batch, vocabulary, drawing)
    return ft.DraftTree(target, draft, tokens, parents, drawing=drawing)
