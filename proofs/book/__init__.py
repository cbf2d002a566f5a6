"""The book: one theorem, or one tight family, a chapter; each begins with what it states."""

CHAPTERS = (
    "lossless",
    "sample_match",
    "truncated",
    "lenience",
    "sampled_laws",
    "cos",
    "contrastive",
    "line",
    "optimality",
    "accept_set",
    "mentored",
    "cactus",
    "gated_ceiling",
    "normalised",
    "fixed_point",
    "reductions",
    "monotone",
    "blocks",
    "fly",
    "false_statements",
)
