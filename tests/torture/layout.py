"""The file of stamps, as witness.cc lays it out."""

import dataclasses
import mmap
import struct

RECORD = struct.Struct("=Qq40s5q5q5i4x5Q56x")
MOST_ATTEMPTS = 200_000  # the file is sparse


@dataclasses.dataclass
class Record:
    fence: int
    slot: int
    token: str
    first: list  # stamps of the command and its descendants, in seconds of CLOCK_BOOTTIME; 0: never
    last: list
    updates: int
    lost_unfenced: int
    lost_fenced: int
    refused: int
    done: bool  # the command ended by itself

    @property
    def began(self):
        return self.first[0] > 0

    @property
    def runs(self):
        return self.began and not self.done


class Stamps:
    def __init__(self, folder):
        with open(folder / "stamps", "rb") as file:
            self.bytes = mmap.mmap(file.fileno(), 0, prot=mmap.PROT_READ)

    def __getitem__(self, number):
        fields = RECORD.unpack_from(self.bytes, number * RECORD.size)
        fence, slot, token, *times = fields[:13]
        updates, lost_unfenced, lost_fenced, refused, done = fields[18:]
        seconds = [t / 1e9 for t in times]
        name = token.rstrip(b"\0").decode()
        return Record(fence, slot, name, seconds[:5], seconds[5:], updates, lost_unfenced, lost_fenced, refused, bool(done))
