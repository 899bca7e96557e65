"""Holds the memory of a GPU but for so many bytes: each line of its standard input says how many are left to others from then on, and is answered
with "holding". usage: ballast.py"""
import ctypes
import sys


def asked(code):
    if code:
        sys.exit(f"ballast: driver error {code}")


def main():
    cuda = ctypes.CDLL("libcuda.so.1")
    context, block = ctypes.c_void_p(), ctypes.c_void_p()
    free, total = ctypes.c_size_t(), ctypes.c_size_t()
    asked(cuda.cuInit(0))
    asked(cuda.cuDevicePrimaryCtxRetain(ctypes.byref(context), 0))
    asked(cuda.cuCtxSetCurrent(context))
    for line in sys.stdin:
        if block:
            asked(cuda.cuMemFree_v2(block))
        asked(cuda.cuMemGetInfo_v2(ctypes.byref(free), ctypes.byref(total)))
        asked(cuda.cuMemAlloc_v2(ctypes.byref(block), ctypes.c_size_t(max(free.value - int(line), 1))))
        print("holding", flush=True)


if __name__ == "__main__":
    main()
