"""The made-up world on which the CPU recipes learn: four abilities at a size of about one and a half million parameters.

`names` who is in it · `arithmetic` reason · `traits` align · `programs` code · `atlas` act · `geography` act, on the real
world, never trained on · `corpus` and `pretrain` the base model · `probes` what the base must be able to do.
"""
