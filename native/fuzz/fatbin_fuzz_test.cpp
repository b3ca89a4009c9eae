// Changed fat binaries: none crashes a reader. WEFT_FUZZ_IMAGES sets how many (default 20,000), WEFT_FUZZ_SEED where to
// begin.
#include <gtest/gtest.h>

#include <cstdlib>

#include "base/random.h"
#include "fatbin/testing_fatbin.h"
#include "fuzz/fatbin_fuzz.h"

namespace weft::fuzz {
namespace {

std::uint64_t number_from(const char* variable, std::uint64_t otherwise) {
    const char* value = std::getenv(variable);
    return value != nullptr ? std::strtoull(value, nullptr, 10) : otherwise;
}

std::string seed_image() {
    const std::string lz4 = std::string("\x48") + "abcd" + std::string("\x04\x00", 2) + "\x30" + "xyz";
    const std::string zstd = std::string("\x28\xb5\x2f\xfd\x20\x05\x29\x00\x00", 9) + "hello";
    return fatbin::build_fatbin({{.sm = 75, .payload = ".version 7.0\n.visible .entry k(.param .u64 p) { ret; }\n"},
                                 {.flags = fatbin::kFlagLz4, .payload = lz4, .plain_bytes = 19},
                                 {.flags = fatbin::kFlagZstd, .payload = zstd, .plain_bytes = 5},
                                 {.kind = 2,
                                  .sm = 80,
                                  .payload = "\x7f"
                                             "ELF rubbish"}});
}

TEST(FatbinFuzz, ChangedImagesCrashNothing) {
    Random random(number_from("WEFT_FUZZ_SEED", 1));
    const std::string seed = seed_image();
    for (std::uint64_t i = number_from("WEFT_FUZZ_IMAGES", 20'000); i > 0; --i) {
        std::string image = seed;
        for (std::uint64_t changes = random.next() % 6; changes > 0; --changes)
            image[random.next() % image.size()] = static_cast<char>(random.next());
        if (random.next() % 4 == 0) image.resize(random.next() % image.size());
        fuzz_fatbin(fatbin::bytes_of(image));
    }
}

}  // namespace
}  // namespace weft::fuzz
