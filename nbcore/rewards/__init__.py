"""Rewards: what a rollout is worth, in parts that can be read. Paper sections 3 to 6."""
