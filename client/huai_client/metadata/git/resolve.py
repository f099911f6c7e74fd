"""Finding out the id of every object in a pack: deltas are applied, each of them once.

Reads a pack and the objects that are here; writes nothing.  Goes from bases to what is made
from them, so that the time is proportional to what is in the pack, and needs memory only for
the bases on the way to the object at work.  Rule: whatever is made is counted as work first.
"""

from collections import defaultdict
from collections.abc import Callable
from itertools import chain

from huai_client.metadata.git.delta import apply_delta
from huai_client.metadata.git.limits import CHAIN_DEPTH, HELD_BYTES, NAMING_BYTES, Work
from huai_client.metadata.git.objects import GitObject, MissingObjectError, Objects
from huai_client.metadata.git.records import PackBytes, PackRecord, check_pack, inflate, scan_pack
from huai_schema.errors import FormatError
from huai_schema.git.objects import Kind, object_id
from huai_schema.git.packfile import Place

_STEP_WORK = 16
"""Following a byte of a delta takes about as long as making so many by inflation."""

OnBase = Callable[[bytes, GitObject], None]
"""Told of every object that deltas need and that is not in the pack."""

_OBJECT_BYTES = 200
"""What an object in memory takes beside its content."""


class _Base:
    """An object on the way from a whole one to the one at work."""

    __slots__ = ("content", "record", "waiting")

    def __init__(
        self, content: bytes, record: PackRecord | bytes, waiting: list[PackRecord]
    ) -> None:
        self.content: bytes | None = content
        self.record = record
        """Where it came from: its record, or its id if it was here already."""
        self.waiting = waiting


class Resolver:
    """One pack."""

    def __init__(
        self,
        pack: PackBytes,
        objects: Objects,
        on_base: OnBase,
        work: Work,
        *,
        room: int = HELD_BYTES,
    ) -> None:
        """`objects` has what the pack was packed against.

        `room` bytes of bases and of deltas each are held in memory, not counting one at work.
        """
        self._pack = pack
        self._objects = objects
        self._on_base = on_base
        self._work = work
        self._places: dict[bytes, Place] = {}
        self.naming: dict[bytes, GitObject] = {}
        """Commits and trees of the pack, by id: nobody has to make them once more."""
        self._naming_room = NAMING_BYTES
        self._deltas: dict[int, bytes] = {}
        self._held = 0
        self._room = room
        self._on_offset: dict[int, list[PackRecord]] = defaultdict(list)
        self._on_name: dict[bytes, list[PackRecord]] = defaultdict(list)

    def resolve(self) -> dict[bytes, Place]:
        """Where each object stands, by its id; without the bases that are not in the pack."""
        for oid, kind, record in self._scan():
            if record.offset in self._on_offset or oid in self._on_name:
                found = GitObject(kind, inflate(self._pack, record, self._work))
                self._descend(oid, record, found)
        for oid in list(self._on_name):
            # One that an earlier round came by is not missing any more.
            if oid in self._on_name and (here := self._objects.find(oid)):
                self._on_base(oid, here)
                self._descend(oid, oid, here)
        if left := [*chain.from_iterable((*self._on_offset.values(), *self._on_name.values()))]:
            place = f"byte {left[0].offset} of the pack"
            raise MissingObjectError("a delta against an object that is not here", place)
        return self._places

    def _scan(self) -> list[tuple[bytes, Kind, PackRecord]]:
        """Note all whole objects, which are returned, and all deltas under their bases."""
        whole: list[tuple[bytes, Kind, PackRecord]] = []
        kept = 0
        for record, content in scan_pack(self._pack, check_pack(self._pack), self._work):
            if record.kind is not None:
                oid = object_id(record.kind, content)
                self._note(oid, record, GitObject(record.kind, content))
                whole.append((oid, record.kind, record))
                continue
            if isinstance(record.base, int):
                self._on_offset[record.base].append(record)
            else:
                self._on_name[record.base].append(record)
            kept += len(content)
            if kept <= self._room:
                self._deltas[record.offset] = content
        return whole

    def _note(self, oid: bytes, record: PackRecord, found: GitObject) -> None:
        if oid in self._places:
            raise FormatError("an object that is in the pack twice", oid.hex())
        self._places[oid] = Place(record.offset, record.crc)
        if found.kind != "blob":
            self._naming_room -= len(found.data) + _OBJECT_BYTES
            if self._naming_room < 0:
                reason = f"trees of more than {NAMING_BYTES} bytes in one pack"
                raise FormatError(reason, "the upstream's reply")
            self.naming[oid] = found

    def _waiting(self, oid: bytes, record: PackRecord | bytes) -> list[PackRecord]:
        """What is made from an object that is known now."""
        waiting = self._on_name.pop(oid, [])
        if isinstance(record, PackRecord):
            waiting += self._on_offset.pop(record.offset, [])
        return waiting

    def _descend(self, oid: bytes, record: PackRecord | bytes, found: GitObject) -> None:
        """Make everything that is based on an object, at however many removes."""
        kind, content = found
        stack = [_Base(content, record, self._waiting(oid, record))]
        self._held = len(content)
        while stack:
            base = stack[-1]
            if not base.waiting:
                stack.pop()
                self._held -= len(base.content or b"")
                continue
            delta = base.waiting.pop()
            content = self._made(self._content(stack), delta)
            oid = object_id(kind, content)
            self._note(oid, delta, GitObject(kind, content))
            if not base.waiting:
                # The last one: a long chain needs no more memory than a short one.
                self._held -= len(base.content or b"")
                base.content = None
            if waiting := self._waiting(oid, delta):
                stack.append(_Base(content, delta, waiting))
                self._held += len(content)
                self._limit(stack)

    def _limit(self, stack: list[_Base]) -> None:
        """Refuse endless chains; forget the bases that are needed last, if there are too many."""
        if len(stack) > CHAIN_DEPTH:
            raise FormatError(f"a chain of more than {CHAIN_DEPTH} deltas", "the upstream's reply")
        for base in stack[:-1] if self._held > self._room else ():
            self._held -= len(base.content or b"")
            base.content = None
            if self._held <= self._room:
                break

    def _content(self, stack: list[_Base]) -> bytes:
        """The newest base; made once more if it was forgotten."""
        base = stack[-1]
        if base.content is None:
            content = self._again(stack[0].record)
            for above in stack[1:]:
                if isinstance(above.record, PackRecord):  # only the first is none
                    content = self._made(content, above.record)
            base.content = content
            self._held += len(content)
        return base.content

    def _again(self, record: PackRecord | bytes) -> bytes:
        """A whole object of the pack, or one that was here before, once more."""
        if isinstance(record, PackRecord):
            return inflate(self._pack, record, self._work)
        found = self._objects.find(record)
        if found is None:
            raise MissingObjectError("the object cannot be read any more", record.hex())
        self._work.spend(len(found.data))
        return found.data

    def _made(self, base: bytes, record: PackRecord) -> bytes:
        delta = self._deltas.get(record.offset)
        if delta is None:
            delta = inflate(self._pack, record, self._work)
        self._work.spend(_STEP_WORK * len(delta))
        content = apply_delta(base, delta)
        self._work.spend(len(content))
        return content
