"""Figures as intervals: rules evaluated on rows of which most tokens are known only by their mass.

A row is its heads, tokens looked at one by one, and the unseen rest, of which the masses p(T), q(T) and bounds on each
token are known (`cells`). A quantity at the unseen tokens lies between two lines along each sector of directions
q/(p+q) (`lines`), an `Enclosure` carries such quantities through the array API, so that a rule's own `verdict` is read
unchanged (`array`, `namespace`), and a sum over all tokens is bounded by the dual of a linear programme whose
constraints are the known masses (`sums`). Convex divergences are enclosed by chords from above and tangents from below
(`divergences`).

Rigour. Every step encloses the real value given the float64 rows. Sums are moved outwards by 2^-40 of the sum of the
magnitudes they add (2^18 terms in float64 round by at most 2^-35 of it in the worst case that no summation order of
torch comes near; 2^-47 was the most seen), and every figure by `SLACK`, relatively and absolutely, which covers the few
ulps of elementwise arithmetic in between. Comparisons with a threshold are made on the float64 values as computed.
"""
