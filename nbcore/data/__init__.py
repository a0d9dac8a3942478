"""Training data: mixing abilities by supervised tokens."""
