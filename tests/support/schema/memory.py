"""Git objects in memory: the real interface, with a record of what was read."""

from huai_schema.errors import FormatError
from huai_schema.git.objects import Kind
from tests.support.git_objects import object_id


class MemoryObjects:
    """An `ObjectReader` and `ObjectWriter`."""

    def __init__(self) -> None:
        self.objects: dict[bytes, tuple[Kind, bytes]] = {}
        self.read_ids: list[bytes] = []

    def write(self, kind: Kind, data: bytes) -> bytes:
        oid = object_id(kind, data)
        self.objects[oid] = kind, data
        return oid

    def read(self, oid: bytes, kind: Kind) -> bytes:
        self.read_ids.append(oid)
        kind_stored, data = self.objects.get(oid, (None, b""))
        if kind_stored != kind:
            raise FormatError(f"no such {kind}", oid.hex())
        return data

    def copy(self) -> "MemoryObjects":
        other = MemoryObjects()
        other.objects = dict(self.objects)
        return other
