"""The jobs wing: how a recipe becomes finished notebooks. Nothing here imports torch, and the learning wing never imports it."""
