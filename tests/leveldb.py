"""LevelDB's log framing, written: for the tests of W&B's and SwanLab's files."""

import struct
import zlib

BLOCK = 32768
WANDB = b":W&B\xe1\xbe\x00"
SWANLAB = b":SWL\xd6\xe1\x02"


def framed(header, payloads):
    """Return a file of these records, and the offset after each of them."""
    data, ends = bytearray(header), []
    for payload in payloads:
        rest, kinds = payload, (1, 2)
        while True:
            left = BLOCK - len(data) % BLOCK
            if left < 7:
                data += bytes(left)
                left = BLOCK
            piece, rest = rest[: left - 7], rest[left - 7 :]
            kind = kinds[1] if rest else kinds[0]
            check = zlib.crc32(piece, zlib.crc32(bytes([kind])))
            data += struct.pack("<IHB", check, len(piece), kind) + piece
            kinds = (4, 3)
            if not rest:
                break
        ends.append(len(data))
    return bytes(data), ends


def flip_bits(path, data, rounds, chance):
    """Have a file hold `data` with one bit flipped, `rounds` times; yield each time."""
    path.write_bytes(data)
    with path.open("r+b", buffering=0) as file:  # in place: making a file anew takes longer
        for _ in range(rounds):
            at = chance.randrange(len(data))
            file.seek(at)
            file.write(bytes([data[at] ^ 1 << chance.randrange(8)]))
            yield at
            file.seek(at)
            file.write(data[at : at + 1])


def _field(number, data):
    tag = number << 3 | 2
    head = bytes([tag]) if tag < 128 else bytes([tag & 127 | 128, tag >> 7])
    return head + bytes([len(data)]) + data


def wandb_file(*rows):
    """A W&B file of rows as W&B of 2023 wrote them: {key: number}."""
    payloads = []
    for row in rows:
        items = [_field(1, key.encode()) + _field(16, str(v).encode()) for key, v in row.items()]
        payloads.append(_field(2, b"".join(_field(1, item) for item in items)))
    return framed(WANDB, payloads)[0]


def swanlab_file(*points):
    """A SwanLab file of (step, value) points of a loss."""
    payloads = [
        _field(13, _field(1, b"loss") + bytes([16, step]) + _field(5, struct.pack("<Bd", 9, value)))
        for step, value in points
    ]
    return framed(SWANLAB, payloads)[0]
