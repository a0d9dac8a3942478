"""How well a model does: tasks, sampling from it, and the uncertainty of the numbers. Paper section 7."""
