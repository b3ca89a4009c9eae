// Entry for libFuzzer.
#include "fuzz/fatbin_fuzz.h"

extern "C" int LLVMFuzzerTestOneInput(const unsigned char* data, std::size_t size) {
    weft::fuzz::fuzz_fatbin(std::as_bytes(std::span(data, size)));
    return 0;
}
