"""Figures as intervals: rules evaluated on rows of which most tokens are known only by their mass.

A row is its heads, tokens looked at one by one, and the unseen rest, of which the masses p(T), q(T) and bounds on each
token are known; where whole rows were there, also the masses by direction q/(p+q) (`cells`, `heads`). A quantity at the
unseen tokens lies between two lines along each sector of directions (`lines`). An `Enclosure` carries such quantities
through the array API, so that a rule's own `verdict` is read unchanged (`array`, `namespace`). A sum over all tokens is
bounded by the dual of a linear programme whose constraints are the known masses, or by the lines of the sectors
(`sums`); convex divergences are enclosed by chords from above and tangents from below (`divergences`).

Of whole rows most heads are points: what a rule accepts there is exactly known, and of the output only one number a
row, the redraw factor, is not. They are summed at one value of it (`points`). Rows with about as many heads are
evaluated together (`grouping`); unseen tokens are summed by sectors that the bits of q/p tell apart (`sectors`).

Rigour. Every step encloses the real value given the float64 rows. Sums are moved outwards by 2^-35 of the magnitudes
they add, by which 2^18 terms in float64 may round in whatever order, and every figure by `SLACK`, relatively and
absolutely, which covers the few ulps of elementwise arithmetic in between. Comparisons of what is known exactly are
made on the float64 values as computed.

Not enclosed are numbers below the smallest normal one, 2e-308, which may have lost their digits; and where all that is
rejected is the rounding of a row or of what is accepted, 1e-16 of it, the redraw factor is rounding too, and with it
max out/p and the relative entropies.

A rule that takes every token, as sorting does, asks the namespace for what it lacks; its `NotReadable` says so.
"""
