// The rules of the occupancy calculator of NVIDIA's programming guide for compute capability 8.0.
#include "swgpu/driver/occupancy.h"

#include <algorithm>

namespace weft::swdriver {
namespace {

constexpr int kWarp = 32;
constexpr int kThreads = 2048, kBlocks = 32, kRegisters = 65536;
constexpr int kRegisterUnit = 256;       // registers are given to a warp in such units
constexpr std::size_t kShared = 167936;  // per multiprocessor, of which each block takes 1 KiB for the system
constexpr std::size_t kReservedShared = 1024;
constexpr std::size_t kSharedUnit = 128;

std::size_t round_up(std::size_t value, std::size_t unit) { return (value + unit - 1) / unit * unit; }

}  // namespace

int active_blocks(const ptx::FunctionInfo& info, const FunctionSettings& settings, int threads,
                  std::size_t dynamic_shared) {
    if (threads > max_threads(info) || dynamic_shared > static_cast<std::size_t>(max_dynamic_shared(info, settings)))
        return 0;
    const int warps = (threads + kWarp - 1) / kWarp;
    const int registers_per_warp =
        static_cast<int>(round_up(static_cast<std::size_t>(registers(info)) * kWarp, kRegisterUnit));
    const std::size_t shared = round_up(info.static_shared_bytes + dynamic_shared, kSharedUnit) + kReservedShared;
    const int by_threads = kThreads / kWarp / warps;
    const int by_registers = kRegisters / registers_per_warp / warps;
    const int by_shared = static_cast<int>(kShared / shared);
    return std::min({by_threads, by_registers, by_shared, kBlocks});
}

std::size_t available_shared(const ptx::FunctionInfo& info, const FunctionSettings& settings, int blocks) {
    const std::size_t each = kShared / static_cast<std::size_t>(blocks) / kSharedUnit * kSharedUnit;
    const std::size_t taken = info.static_shared_bytes + kReservedShared;
    if (each <= taken) return 0;
    return std::min(each - taken, static_cast<std::size_t>(max_dynamic_shared(info, settings)));
}

}  // namespace weft::swdriver
