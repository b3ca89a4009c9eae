// Launches of the null driver: counted, not executed.
#include <atomic>

#include "swgpu/driver/api.h"
#include "swgpu/driver/launch.h"

namespace weft::swdriver {

const bool kImmediate = true;

namespace {
std::atomic<std::uint64_t> launches{0};
}

CUresult start_launch(const LaunchRequest&) {
    launches.fetch_add(1, std::memory_order_relaxed);
    return CUDA_SUCCESS;
}

}  // namespace weft::swdriver

// How many kernel launches this process has had.
WEFT_API std::uint64_t weftNullLaunchCount() { return weft::swdriver::launches.load(std::memory_order_relaxed); }
