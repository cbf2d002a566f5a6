"""Live decoding: a verification rule in a real speculative loop, on-policy, with key-value caches."""
