#include "swgpu/engine/special.h"

#include <ctime>

#include "swgpu/engine/warp.h"

namespace weft::engine {
namespace {

using ptx::SpecialRegister;

uint32_t component_of(const Dim3& dim, uint32_t component) {
    return component == 0 ? dim.x : component == 1 ? dim.y : component == 2 ? dim.z : 0;
}

uint64_t nanoseconds(clockid_t clock) {
    timespec now{};
    clock_gettime(clock, &now);
    return static_cast<uint64_t>(now.tv_sec) * 1'000'000'000u + static_cast<uint64_t>(now.tv_nsec);
}

uint32_t lane_mask(SpecialRegister which, uint32_t lane) {
    uint32_t eq = 1u << lane, lt = eq - 1;
    switch (which) {
        case SpecialRegister::lanemask_eq: return eq;
        case SpecialRegister::lanemask_lt: return lt;
        case SpecialRegister::lanemask_le: return lt | eq;
        case SpecialRegister::lanemask_gt: return ~(lt | eq);
        default: return ~lt;
    }
}

uint64_t uniform(const Context& context, SpecialRegister which, uint32_t component) {
    const Block& block = *context.block;
    const LaunchData& launch = *block.launch;
    switch (which) {
        case SpecialRegister::ntid: return component_of(launch.block, component);
        case SpecialRegister::ctaid:
        case SpecialRegister::clusterid: return component_of(block.id, component);
        case SpecialRegister::nctaid:
        case SpecialRegister::nclusterid: return component_of(launch.grid, component);
        case SpecialRegister::cluster_nctaid: return 1;
        case SpecialRegister::cluster_nctarank: return 1;
        case SpecialRegister::warpid: return context.warp->index;
        case SpecialRegister::nwarpid: return launch.warps;
        case SpecialRegister::smid: return block.sm;
        case SpecialRegister::nsmid: return launch.sm_count;
        case SpecialRegister::gridid: return launch.grid_id;
        case SpecialRegister::envreg1: return launch.grid_workspace >> 32;
        case SpecialRegister::envreg2: return static_cast<uint32_t>(launch.grid_workspace);
        case SpecialRegister::clock: return static_cast<uint32_t>(nanoseconds(CLOCK_MONOTONIC));
        case SpecialRegister::clock_hi: return nanoseconds(CLOCK_MONOTONIC) >> 32;
        case SpecialRegister::clock64: return nanoseconds(CLOCK_MONOTONIC);
        case SpecialRegister::globaltimer: return nanoseconds(CLOCK_REALTIME);
        case SpecialRegister::globaltimer_lo: return static_cast<uint32_t>(nanoseconds(CLOCK_REALTIME));
        case SpecialRegister::globaltimer_hi: return nanoseconds(CLOCK_REALTIME) >> 32;
        case SpecialRegister::dynamic_smem_size: return launch.dynamic_shared_bytes;
        case SpecialRegister::total_smem_size:
        case SpecialRegister::aggr_smem_size: return launch.shared_bytes;
        default: return 0;
    }
}

}  // namespace

void read_special(Context& context, SpecialRegister which, uint32_t component, uint64_t* lanes) {
    const LaunchData& launch = *context.block->launch;
    for (uint32_t lane = 0; lane < kWarpLanes; ++lane) {
        switch (which) {
            case SpecialRegister::tid:
                lanes[lane] = component < 3 ? launch.tid[component][context.warp->index * kWarpLanes + lane] : 0;
                break;
            case SpecialRegister::laneid: lanes[lane] = lane; break;
            case SpecialRegister::lanemask_eq:
            case SpecialRegister::lanemask_le:
            case SpecialRegister::lanemask_lt:
            case SpecialRegister::lanemask_ge:
            case SpecialRegister::lanemask_gt: lanes[lane] = lane_mask(which, lane); break;
            default:
                if (lane == 0) lanes[0] = uniform(context, which, component);
                lanes[lane] = lanes[0];
        }
    }
}

}  // namespace weft::engine
