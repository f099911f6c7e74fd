"""Endless hostile inputs from a few good ones; the same ones for the same seed."""

from collections.abc import Sequence
from random import Random

LARGEST = 4096
_KEPT = 400
_TELLING = (
    *(
        *(b"\0", b"\n", b"\t", b"\r", b" ", b"/", b"//", b"..", b"./", b"-", b"=", b":", b"\\"),
        b"\xff",
    ),
    *(b"0", b"-1", b"00", b"99999999999999999999", b"4294967296", b"9223372036854775808"),
    *(b"\x80", b"\x7f", b"\xc2\x9b", "\N{RIGHT-TO-LEFT OVERRIDE}".encode(), b"\xed\xa0\x80"),
    *(b"%", b"%00", b"*", b"**", b"[", b"]", b"?", b"'", b'"', b"\\x00", b"\\x2f"),
)


class Mutator:
    """Keeps what `learn` is given: inputs that led somewhere new lead further."""

    def __init__(self, seed: int, corpus: Sequence[bytes], words: Sequence[bytes]) -> None:
        """`words` are what the grammar knows, to be put anywhere."""
        self._random = Random(seed)
        self._good = list(corpus)
        self._learned: list[bytes] = []
        self._words = [*_TELLING, *words]

    def next(self) -> bytes:
        """One more input."""
        random = self._random
        data = self._pick()
        for _ in range(random.choice((1, 1, 1, 2, 2, 3, 6))):
            data = self._step(data)
        return data[:LARGEST]

    def learn(self, data: bytes) -> None:
        """Go on from `data` too."""
        if len(self._learned) >= _KEPT:
            self._learned[self._random.randrange(_KEPT)] = data
        else:
            self._learned.append(data)

    def _pick(self) -> bytes:
        random = self._random
        if self._learned and random.random() < 0.5:
            return random.choice(self._learned)
        return random.choice(self._good)

    def _step(self, data: bytes) -> bytes:
        at = int(self._random.random() * (len(data) + 1))
        to = min(len(data), at + self._random.choice((0, 1, 1, 2, 4, 20)))
        middle, to = self._instead(data, at, to)
        return data[:at] + middle + data[to:]

    def _instead(self, data: bytes, at: int, to: int) -> tuple[bytes, int]:
        """Return the replacement of a piece, and where the rest continues."""
        random = self._random
        middle = b""
        match int(random.random() * 8):
            case 0:  # another byte
                middle, to = bytes((int(random.random() * 256),)), at + 1
            case 1:  # another bit
                middle = bytes(byte ^ 1 << random.randrange(8) for byte in data[at:to])
            case 2 | 3:
                middle = random.choice(self._words)
            case 4:  # cut out, or cut off
                to = to if random.random() < 0.8 else len(data)
            case 5:  # once more, or very often
                middle = data[at:to] * random.choice((2, 2, 2, 3, 50, LARGEST))
            case 6:  # a piece of another one
                middle = self._piece(self._pick(), random.choice((4, 30, 400)))
            case _:  # a piece from elsewhere in it
                middle = self._piece(data, random.choice((1, 4, 30)))
        return middle, to

    def _piece(self, data: bytes, size: int) -> bytes:
        begin = int(self._random.random() * (len(data) + 1))
        return data[begin : begin + size]
