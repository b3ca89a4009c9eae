// The end of all work of a context, with the piece of device memory that the client expects to read next. See
// session.h; docs/design/executor.md, "Synchronisation".
#include <utility>

#include "base/clock.h"
#include "executor/session.h"

namespace weft::executor {

Outcome Session::on_ctx_sync(Arrival& arrival) {
    const auto sync = fields_of<wire::CtxSync>(arrival);
    if (sync.read_bytes > wire::kMaxInlineBytes) return bad_frame(arrival, "reads more than fits into a frame");
    std::vector<EventRef> pending;
    const CUresult status = collect_pending(*arrival.context, &pending);
    if (sync.read_bytes == 0) {
        reply_when(arrival, std::move(pending), status);
    } else {
        reply_when(arrival, std::move(pending), status, [this, sync](const wire::FrameHeader& header) {
            answer_with_bytes(header, sync.read_source, sync.read_bytes);
        });
    }
    return Outcome::submitted;
}

// Nothing that the client has to know fails here: without bytes it copies them by itself.
void Session::answer_with_bytes(const wire::FrameHeader& header, std::uint64_t source, std::uint32_t size_bytes) {
    ContextState* context = find_context(header.context);
    const bool may_look = driver_.weftHostAccess != nullptr && memory_jobs_ == 0;
    if (const void* memory = may_look ? driver_.weftHostAccess(source, size_bytes) : nullptr) {
        counters_.copied_out_bytes += size_bytes;
        answer(header, CUDA_SUCCESS, {static_cast<const std::byte*>(memory), size_bytes});
    } else if (context == nullptr || !read_by_driver(header, *context, source, size_bytes)) {
        answer(header, CUDA_SUCCESS);
    }
}

// In a stream of its own: work that came after the synchronisation shall not hold the answer up.
bool Session::read_by_driver(const wire::FrameHeader& header, ContextState& context, std::uint64_t source,
                             std::uint32_t size_bytes) {
    set_current(context);
    if (context.reader == nullptr && driver_.cuStreamCreate(&context.reader, CU_STREAM_NON_BLOCKING) != CUDA_SUCCESS) {
        context.reader = nullptr;
        return false;
    }
    auto block = host_memory_.acquire(size_bytes);
    if (block == nullptr ||
        driver_.cuMemcpyDtoHAsync_v2(block.get(), source, size_bytes, context.reader) != CUDA_SUCCESS)
        return false;
    CUresult result = CUDA_SUCCESS;
    EventRef marker = record_marker(context.events, context.reader, &result);
    if (marker == nullptr) {
        // The block must not be used again before the driver has written it.
        (void)driver_.cuStreamSynchronize(context.reader);
        return false;
    }
    counters_.copied_out_bytes += size_bytes;
    completion_.add_wait(
        {std::move(marker)},
        [this, header, block = std::move(block), size_bytes](CUresult status) {
            const std::size_t read_bytes = status == CUDA_SUCCESS ? size_bytes : 0;
            answer(header, CUDA_SUCCESS, {block.get(), read_bytes});
        },
        Clock::now());
    return true;
}

void Session::drop_reader(ContextState& context) {
    const CUstream reader = std::exchange(context.reader, nullptr);
    if (reader == nullptr) return;
    (void)driver_.cuStreamSynchronize(reader);  // a few KiB at most: their memory is free after this
    (void)driver_.cuStreamDestroy_v2(reader);
}

}  // namespace weft::executor
