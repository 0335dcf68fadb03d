"""The name that someone who misspelt it meant."""
from difflib import get_close_matches
from typing import Iterable


def did_you_mean(word: str, known: Iterable[str]) -> str:
    """`` Did you mean X?`` for the name nearest to ``word``, or nothing if
    none is near. Case doesn't matter."""
    names = {name.lower(): name for name in map(str, known)}
    near = get_close_matches(str(word).lower(), names, 1, 0.5)
    return f' Did you mean {names[near[0]]}?' if near else ''
