"""Models: load them by name or path, save them whole, sample from them."""

from nbcore.models.generate import Completion, generate
from nbcore.models.load import NANO, Loaded, load, save

__all__ = ["NANO", "Completion", "Loaded", "generate", "load", "save"]
