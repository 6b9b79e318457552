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
