"""nbcore: the parts of the Nanbeige4.1 post-training cookbook. The stages themselves are told in `notebooks/`."""
