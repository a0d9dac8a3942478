"""Training: supervised fine-tuning on masked rows."""
