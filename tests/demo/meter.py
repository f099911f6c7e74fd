"""A relay on loopback that counts every byte it passes on, in both directions.

`python meter.py COUNTS PORT…` relays one new port to each PORT, writes the new ports to
standard output as one line of JSON, and keeps the counts in the file COUNTS: a little-endian
64-bit number for each.  Knows nothing of what it relays, so that huai and rsync are counted alike.
"""

import json
import mmap
import os
import socket
import struct
import sys
import threading
from pathlib import Path
from typing import NoReturn

_CHUNK = 1 << 18
_FORMAT = "<Q"
_SIZE = struct.calcsize(_FORMAT)


class Counts:
    """The counts, in shared memory."""

    def __init__(self, path: Path, number: int) -> None:
        """Start `number` counts at 0."""
        path.write_bytes(bytes(number * _SIZE))
        with path.open("r+b") as file:
            self._memory = mmap.mmap(file.fileno(), number * _SIZE)
        self._lock = threading.Lock()

    def add(self, index: int, size: int) -> None:
        """Count `size` more bytes."""
        with self._lock:
            (before,) = struct.unpack_from(_FORMAT, self._memory, index * _SIZE)
            struct.pack_into(_FORMAT, self._memory, index * _SIZE, before + size)


def read_counts(path: Path) -> list[int]:
    """Return the present counts."""
    return [count for (count,) in struct.iter_unpack(_FORMAT, path.read_bytes())]


def relay(listener: socket.socket, port: int, counts: Counts, index: int) -> NoReturn:
    """Relay every connection to `port`, for ever."""
    while True:
        near, _ = listener.accept()
        try:
            far = socket.create_connection(("127.0.0.1", port))
        except OSError:
            near.close()
            continue
        for source, sink in ((near, far), (far, near)):
            arguments = (source, sink, counts, index)
            threading.Thread(target=_pump, args=arguments, daemon=True).start()


def _pump(source: socket.socket, sink: socket.socket, counts: Counts, index: int) -> None:
    """Relay one direction until its end, and the end itself."""
    buffer = memoryview(bytearray(_CHUNK))
    try:
        while size := source.recv_into(buffer):
            sink.sendall(buffer[:size])
            counts.add(index, size)
        sink.shutdown(socket.SHUT_WR)
    except OSError:
        # The other direction has to notice as well.
        for end in (source, sink):
            try:
                end.shutdown(socket.SHUT_RDWR)
            except OSError:
                continue


def main(counts_file: str, *ports: str) -> None:
    """Relay until killed."""
    counts = Counts(Path(counts_file), len(ports))
    bound = []
    for index, port in enumerate(ports):
        listener = socket.create_server(("127.0.0.1", 0))
        bound.append(listener.getsockname()[1])
        threading.Thread(
            target=relay, args=(listener, int(port), counts, index), daemon=True
        ).start()
    sys.stdout.write(json.dumps(bound) + "\n")
    sys.stdout.flush()
    sys.stdout.close()
    threading.Event().wait()


if __name__ == "__main__":
    os.environ.clear()
    main(*sys.argv[1:])
