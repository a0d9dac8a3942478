"""Search: a tool over a set of pages, and the agent loop that uses it."""
