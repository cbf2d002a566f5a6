"""The book: one theorem, or one tight family, a chapter; each begins with what it states."""

CHAPTERS = ("lossless", "sample_match", "truncated", "lenience")
