"""Items of `fly-theory reproduce` that need a real model pair: traces captured once, and what is read off them."""
