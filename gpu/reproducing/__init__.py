"""Items of `fly-theory reproduce` that need a captured trace."""
