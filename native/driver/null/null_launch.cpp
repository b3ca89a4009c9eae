// Launches of the null driver: counted, not executed. One kernel does something: weft_bench_stamp stores the monotonic
// clock in nanoseconds where its first parameter points, so that a benchmark can tell when a launch arrived.
#include <time.h>

#include <atomic>
#include <cstring>

#include "swgpu/driver/api.h"
#include "swgpu/driver/launch.h"

extern "C" void* weftHostAccess(CUdeviceptr address, std::size_t size_bytes);

namespace weft::swdriver {

const bool kImmediate = true;

namespace {
std::atomic<std::uint64_t> launches{0};
}

namespace {

void stamp(std::span<const std::uint8_t> parameters) {
    CUdeviceptr address = 0;
    if (parameters.size() < sizeof address) return;
    std::memcpy(&address, parameters.data(), sizeof address);
    void* memory = weftHostAccess(address, sizeof(std::int64_t));
    if (memory == nullptr) return;
    timespec now;
    clock_gettime(CLOCK_MONOTONIC, &now);
    const std::int64_t stamp_ns = std::int64_t{now.tv_sec} * 1'000'000'000 + now.tv_nsec;
    std::memcpy(memory, &stamp_ns, sizeof stamp_ns);
}

}  // namespace

CUresult start_launch(const LaunchRequest& request) {
    launches.fetch_add(1, std::memory_order_relaxed);
    if (request.function.info.name == "weft_bench_stamp") [[unlikely]]
        stamp(request.parameters);
    return CUDA_SUCCESS;
}

}  // namespace weft::swdriver

// How many kernel launches this process has had.
WEFT_API std::uint64_t weftNullLaunchCount() { return weft::swdriver::launches.load(std::memory_order_relaxed); }
