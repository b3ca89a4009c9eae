"""The driver API by ctypes for the programs beside this file: no CUDA package is needed. Errors raise CudaError."""

import ctypes
from ctypes import byref, c_char_p, c_int, c_size_t, c_uint, c_uint64, c_void_p

Address = c_uint64
OUT_OF_MEMORY, NOT_READY, DEVICE_UNAVAILABLE = 2, 600, 46
# A kernel that adds 1 to each of `count` 32-bit numbers, `rounds` times.
PTX = b"""
.version 7.0
.target sm_70
.address_size 64
.visible .entry increment(.param .u64 data, .param .u32 count, .param .u32 rounds)
{
    .reg .pred %p<3>;
    .reg .b32 %r<8>;
    .reg .b64 %rd<4>;
    ld.param.u64 %rd1, [data];
    ld.param.u32 %r1, [count];
    ld.param.u32 %r2, [rounds];
    mov.u32 %r3, %ctaid.x;
    mov.u32 %r4, %ntid.x;
    mov.u32 %r5, %tid.x;
    mad.lo.u32 %r6, %r3, %r4, %r5;
    setp.ge.u32 %p1, %r6, %r1;
    @%p1 bra END;
    cvta.to.global.u64 %rd1, %rd1;
    mul.wide.u32 %rd2, %r6, 4;
    add.u64 %rd3, %rd1, %rd2;
AGAIN:
    ld.global.u32 %r7, [%rd3];
    add.u32 %r7, %r7, 1;
    st.global.u32 [%rd3], %r7;
    sub.u32 %r2, %r2, 1;
    setp.ne.u32 %p2, %r2, 0;
    @%p2 bra AGAIN;
END:
    ret;
}
"""

library = ctypes.CDLL("libcuda.so.1")


class CudaError(Exception):
    def __init__(self, name: str, code: int) -> None:
        super().__init__(f"{name}: {code}")
        self.code = code


def call(name: str, *arguments: object) -> None:
    code = getattr(library, name)(*arguments)
    if code:
        raise CudaError(name, code)


def open_context() -> c_void_p:
    device, context = c_int(), c_void_p()
    call("cuInit", 0)
    call("cuDeviceGet", byref(device), 0)
    call("cuDevicePrimaryCtxRetain", byref(context), device)
    call("cuCtxSetCurrent", context)
    return context


def allocate(size_bytes: int) -> c_uint64:
    address = c_uint64()
    call("cuMemAlloc_v2", byref(address), c_size_t(size_bytes))
    return address


def free(address: c_uint64) -> None:
    call("cuMemFree_v2", address)


def total_bytes() -> int:
    size = c_size_t()
    call("cuDeviceTotalMem_v2", byref(size), 0)
    return size.value


def load_increment() -> c_void_p:
    module, function = c_void_p(), c_void_p()
    call("cuModuleLoadData", byref(module), c_char_p(PTX))
    call("cuModuleGetFunction", byref(function), module, c_char_p(b"increment"))
    return function


def increment(function: c_void_p, address: c_uint64, count: int, rounds: int = 1) -> None:
    numbers = (c_uint64(address.value), c_uint(count), c_uint(rounds))
    pointers = (c_void_p * 3)(*(ctypes.cast(byref(number), c_void_p) for number in numbers))
    call("cuLaunchKernel", function, -(-count // 64), 1, 1, 64, 1, 1, 0, c_void_p(), pointers, c_void_p())


def synchronize() -> None:
    call("cuCtxSynchronize")


def read_words(address: c_uint64, count: int) -> list[int]:
    words = (c_uint * count)()
    call("cuMemcpyDtoH_v2", words, address, c_size_t(4 * count))
    return list(words)


def write_words(address: c_uint64, words: list[int]) -> None:
    call("cuMemcpyHtoD_v2", address, (c_uint * len(words))(*words), c_size_t(4 * len(words)))
