#!/usr/bin/env python3
"""Makes one object of an archive, with every hidden symbol visible: what libsnug-test.so is made of, so that tests of internals
can link to it. The code is the library's own: only the visibility in the symbol table changes. usage: visible.py LD ARCHIVE OBJECT"""
import os
import struct
import subprocess
import sys

SYMBOLS, HIDDEN = 2, 2  # SHT_SYMTAB, STV_HIDDEN


def sections(data):
    """(type, offset, size) of each section of a 64-bit little-endian object."""
    if data[:6] != b"\x7fELF\x02\x01":
        sys.exit("visible.py: not a 64-bit little-endian ELF object")
    at, = struct.unpack_from("<Q", data, 40)
    size, count = struct.unpack_from("<HH", data, 58)
    if count == 0:  # more than fit in 16 bits: the first one's size says how many
        count, = struct.unpack_from("<Q", data, at + 32)
    for i in range(count):
        yield struct.unpack_from("<4xI16xQQ", data, at + i * size)


def main(ld, archive, output):
    made = output + ".part"
    subprocess.run([ld, "-r", "--whole-archive", archive, "-o", made], check=True)
    with open(made, "r+b") as f:
        data = bytearray(f.read())
        for kind, at, size in sections(data):
            if kind == SYMBOLS:
                for other in range(at + 5, at + size, 24):  # st_other of each symbol
                    if data[other] & 3 == HIDDEN:
                        data[other] &= ~3
                f.seek(at)
                f.write(data[at:at + size])
    os.replace(made, output)


main(*sys.argv[1:])
