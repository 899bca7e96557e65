"""The unpacked bytes of a .gz of others. zlib reads its heads, too: the standard library's gzip reads a long name in one, and zeros behind the last
member, byte by byte.

    with open_regular(path) as packed, gunzip(packed) as file:
        file.read(100)                      # zlib.error, EOFError: it is damaged"""
import io
import zlib

_PIECE = 1 << 14                # of packed bytes: what is left of one is copied at the end of each member


class _Unpacked(io.RawIOBase):
    def __init__(self, packed):
        self._packed, self._rest, self._member = packed, b"", None

    def readable(self):
        return True

    def _begin(self):
        """Another member, if there is one. Zeros may fill a file up behind one."""
        rest = self._rest
        while True:
            if self._member:
                rest = rest.lstrip(b"\0")
            if rest:
                self._rest, self._member = rest, zlib.decompressobj(31)
                return True
            if not (rest := self._packed.read(_PIECE)):
                return False

    def _unpack(self, n):
        self._rest = self._rest or self._packed.read(_PIECE)
        if not self._rest:
            raise EOFError("it is truncated: its gzip data stop in the middle")
        piece = self._member.decompress(self._rest, n)
        self._rest = self._member.unused_data if self._member.eof else self._member.unconsumed_tail
        return piece

    def readinto(self, room):
        piece = b""
        while not piece:
            if (not self._member or self._member.eof) and not self._begin():
                return 0
            piece = self._unpack(len(room))
        room[:len(piece)] = piece
        return len(piece)


def gunzip(packed):
    return io.BufferedReader(_Unpacked(packed), 1 << 16)
