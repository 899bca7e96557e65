"""Holds the memory of a GPU but for so many bytes, until its standard input ends. usage: ballast.py LEAVE_BYTES"""
import ctypes
import sys


def main(leave):
    cuda = ctypes.CDLL("libcuda.so.1")
    context, block = ctypes.c_void_p(), ctypes.c_void_p()
    free, total = ctypes.c_size_t(), ctypes.c_size_t()
    calls = [lambda: cuda.cuInit(0), lambda: cuda.cuDevicePrimaryCtxRetain(ctypes.byref(context), 0),
             lambda: cuda.cuCtxSetCurrent(context), lambda: cuda.cuMemGetInfo_v2(ctypes.byref(free), ctypes.byref(total)),
             lambda: cuda.cuMemAlloc_v2(ctypes.byref(block), ctypes.c_size_t(max(free.value - leave, 1)))]
    for call in calls:
        code = call()
        if code:
            sys.exit(f"ballast: driver error {code}")
    print("holding", flush=True)
    sys.stdin.read()


if __name__ == "__main__":
    main(int(sys.argv[1]))
