"""Running untrusted programs and saying what they did. Paper section 5."""
