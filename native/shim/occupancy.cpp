#include "shim/occupancy.h"

#include <algorithm>

#include "base/bytes.h"
#include "gen/shim_api.h"
#include "shim/library.h"
#include "shim/submit.h"

namespace weft::shim {

CUresult ask_occupancy(Context& context, CUfunction handle, int threads, std::size_t dynamic_shared_bytes,
                       unsigned flags, int* blocks) {
    Function* function;
    if (const CUresult result = resolve_function(handle, context, &function); result != CUDA_SUCCESS) return result;
    using Frame = wire::OccupancyMaxActiveBlocksPerMultiprocessorWithFlags;
    const Reply reply = Runtime::get()->session().call<Frame>(context.number, 0, [&](Frame& frame, std::byte*) {
        frame.dynamicSMemSize = dynamic_shared_bytes;
        frame.module = function->module->number;
        frame.function = function->index;
        frame.blockSize = threads;
        frame.flags = flags;
    });
    if (reply.status != CUDA_SUCCESS) return settle(context, reply.status);
    ByteReader in(reply.tail);
    *blocks = in.value<int>();
    return in.is_ok() ? CUDA_SUCCESS : CUDA_ERROR_UNKNOWN;
}

namespace api {

// The block size with the most threads on a multiprocessor; of equals the larger one.
CUresult cuOccupancyMaxPotentialBlockSizeWithFlags(int* min_grid, int* block_size, CUfunction handle,
                                                   CUoccupancyB2DSize shared_for_block, std::size_t shared_bytes,
                                                   int limit, unsigned int flags) {
    Context* context;
    if (const CUresult result = usable_context(&context); result != CUDA_SUCCESS) return result;
    Function* function;
    if (const CUresult result = resolve_function(handle, *context, &function); result != CUDA_SUCCESS) return result;
    if (limit < 0) return CUDA_ERROR_INVALID_VALUE;
    const auto& attributes = context->device->info.attributes;
    const int warp = attributes.get(CU_DEVICE_ATTRIBUTE_WARP_SIZE).value_or(32);
    int most = attributes.get(CU_DEVICE_ATTRIBUTE_MAX_THREADS_PER_BLOCK).value_or(1024);
    most = std::min(most, function->info->attributes.get(CU_FUNC_ATTRIBUTE_MAX_THREADS_PER_BLOCK).value_or(most));
    if (limit > 0) most = std::min(most, limit);
    int best_threads = 0, best_block = 0, best_blocks = 0;
    for (int size = (most + warp - 1) / warp * warp; size > 0; size -= warp) {
        const int block = std::min(size, most);
        int blocks = 0;
        const std::size_t shared = shared_for_block != nullptr ? shared_for_block(block) : shared_bytes;
        if (const CUresult result = ask_occupancy(*context, handle, block, shared, flags, &blocks);
            result != CUDA_SUCCESS)
            return result;
        if (blocks * block <= best_threads) continue;
        best_threads = blocks * block;
        best_block = block;
        best_blocks = blocks;
    }
    *block_size = best_block;
    *min_grid = best_blocks * attributes.get(CU_DEVICE_ATTRIBUTE_MULTIPROCESSOR_COUNT).value_or(1);
    return CUDA_SUCCESS;
}

CUresult cuOccupancyMaxPotentialBlockSize(int* min_grid, int* block_size, CUfunction function,
                                          CUoccupancyB2DSize shared_for_block, std::size_t shared_bytes, int limit) {
    return cuOccupancyMaxPotentialBlockSizeWithFlags(min_grid, block_size, function, shared_for_block, shared_bytes,
                                                     limit, 0);
}

}  // namespace api
}  // namespace weft::shim
