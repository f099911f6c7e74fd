"""Breaking encoded values in ways that a decoder may overlook."""

from random import Random


def damaged(data: bytes, random: Random) -> bytes:
    """Some bytes flipped, cut, doubled or swapped for telling ones."""
    for _ in range(random.choice([1, 1, 1, 2, 5])):
        at = random.randrange(len(data) + 1)
        to = min(len(data), at + random.choice([0, 1, 1, 2, 20]))
        telling = [b"\t", b"\n", b"/", b"./", b"..", b"\\x2f", b"\\x00", b"\0", b"0", b"-", b">"]
        telling += [b"\tzz", b"\tZ", b"\tm7", b"=", b"\xff", data[at:to] * 2, data[:at], b""]
        data = data[:at] + random.choice(telling) + data[to:]
    return data
