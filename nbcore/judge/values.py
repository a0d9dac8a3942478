"""Values on their way out of the sandbox and back: JSON in which every kind keeps its kind.

Stands alone (standard library only): the fork server reads this file by itself, behind its walls.
"""

from __future__ import annotations

LARGEST = 1 << 4096  # Python's JSON refuses to read integers of more than 4,300 digits


def plain(value):
    """A value as JSON can hold it. Tuples, sets, dicts with other keys than strings, bytes, complex and huge ints become tagged dicts.

    Subclasses become what they extend. Raises TypeError for anything else (functions, objects) and RecursionError for cycles.
    """
    if value is None or isinstance(value, bool | str):
        return value if value is None or isinstance(value, bool) else str(value)
    if isinstance(value, int):
        return int(value) if -LARGEST < value < LARGEST else {"\0int": hex(value)}
    if isinstance(value, float):
        return float(value)
    if isinstance(value, list):
        return [plain(v) for v in value]
    if isinstance(value, tuple):
        return {"\0tuple": [plain(v) for v in value]}
    if isinstance(value, set | frozenset):
        return {"\0set": sorted((plain(v) for v in value), key=repr)}
    if isinstance(value, dict):
        if all(type(k) is str and not k.startswith("\0") for k in value):
            return {k: plain(v) for k, v in value.items()}
        return {"\0pairs": sorted(([plain(k), plain(v)] for k, v in value.items()), key=repr)}
    if isinstance(value, bytes | bytearray):
        return {"\0bytes": bytes(value).hex()}
    if isinstance(value, complex):
        return {"\0complex": [value.real, value.imag]}
    raise TypeError(f"{type(value).__name__} is no value that a judge can compare")


def lifted(value):
    """The Python value of a plain one; `lifted(plain(x)) == x`. Raises ValueError or TypeError for tags that a program made up."""
    if isinstance(value, list):
        return [lifted(v) for v in value]
    if not isinstance(value, dict):
        return value
    tag = next((k for k in value if k.startswith("\0")), None)
    if tag is None:
        return {k: lifted(v) for k, v in value.items()}
    held = value[tag]
    if tag == "\0int":
        return int(held, 16)
    if tag == "\0tuple":
        return tuple(map(lifted, held))
    if tag == "\0set":
        return set(map(lifted, held))
    if tag == "\0pairs":
        return {lifted(k): lifted(v) for k, v in held}
    if tag == "\0bytes":
        return bytes.fromhex(held)
    if tag == "\0complex":
        return complex(*held)
    raise ValueError(f"{tag!r} is no tag of a plain value")


def frames(lines, nonces):
    """What a job said, as text: each frame must begin with the secret of its own place, so that one call can't answer for another."""
    found = []
    for line in lines:
        if len(found) < len(nonces) and line.startswith(nonces[len(found)]):
            found.append(line[len(nonces[0]) :].decode("ascii", "replace"))
        elif line.startswith(nonces[-1]):  # the program could not be loaded, or was ended
            found.append(line[len(nonces[0]) :].decode("ascii", "replace"))
            break
    return found
