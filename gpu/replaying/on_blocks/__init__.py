"""Rules that judge a block of drafts as a whole, on captured blocks: what is measured, summed up and told."""
