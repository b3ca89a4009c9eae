#include "fuzz/fatbin_fuzz.h"

#include "executor/symbols.h"
#include "fatbin/decompress.h"

namespace weft::fuzz {

void fuzz_fatbin(std::span<const std::byte> image) {
    fatbin::Reader reader(image);
    while (const auto entry = reader.next())
        if (entry->plain_bytes <= 1u << 20) (void)fatbin::decompress(*entry);  // larger ones only cost time
    if (image.size() >= sizeof(fatbin::Header)) (void)executor::scan_image(image);
}

}  // namespace weft::fuzz
