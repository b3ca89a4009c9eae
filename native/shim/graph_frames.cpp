#include "shim/graph_frames.h"

#include <cstring>

#include "shim/device_range.h"
#include "shim/library.h"
#include "shim/submit.h"

namespace weft::shim {
namespace {

using graph::CopyWork;
using graph::EventWork;
using graph::FillWork;
using graph::HostWork;
using graph::KernelWork;

template <typename Frame, typename Fill>
CUresult encode(std::uint32_t context, std::size_t tail_bytes, std::vector<std::byte>* out, Fill&& fill) {
    if (tail_bytes > wire::kMaxTailBytes<Frame>) return CUDA_ERROR_INVALID_VALUE;
    // Vectors of bytes are aligned for any frame.
    out->assign(wire::encoded_size<Frame>(tail_bytes), std::byte{0});
    fill(*wire::begin_frame<Frame>(out->data(), context, 0, 0, tail_bytes), wire::tail_of<Frame>(out->data()));
    return CUDA_SUCCESS;
}

CUresult encode_kernel(const KernelWork& work, Context& context, std::vector<std::byte>* out) {
    Function* function;
    if (const CUresult found = resolve_function(work.function, context, &function); found != CUDA_SUCCESS) return found;
    const std::size_t attribute_bytes = work.attributes.size() * sizeof(CUlaunchAttribute);
    return encode<wire::Launch>(
        context.number, attribute_bytes + work.parameters.size(), out, [&](wire::Launch& frame, std::byte* tail) {
            frame.module = function->module->number;
            frame.function = function->index;
            frame.grid_x = work.grid[0];
            frame.grid_y = work.grid[1];
            frame.grid_z = work.grid[2];
            frame.block_x = work.block[0];
            frame.block_y = work.block[1];
            frame.block_z = work.block[2];
            frame.shared_bytes = work.shared_bytes;
            frame.parameter_bytes = static_cast<std::uint32_t>(work.parameters.size());
            frame.attribute_count = static_cast<std::uint32_t>(work.attributes.size());
            if (attribute_bytes != 0) std::memcpy(tail, work.attributes.data(), attribute_bytes);
            if (!work.parameters.empty())
                std::memcpy(tail + attribute_bytes, work.parameters.data(), work.parameters.size());
        });
}

CUresult encode_fill(const CUDA_MEMSET_NODE_PARAMS& fill, Context& context, std::vector<std::byte>* out) {
    const auto place = [&](auto& frame) {
        frame.dstDevice = fill.dst;
        frame.dstPitch = fill.pitch;
        frame.Width = fill.width;
        frame.Height = fill.height;
    };
    if (fill.elementSize == 1)
        return encode<wire::MemsetD2D8Async>(context.number, 0, out, [&](auto& frame, std::byte*) {
            place(frame);
            frame.uc = static_cast<std::uint8_t>(fill.value);
        });
    if (fill.elementSize == 2)
        return encode<wire::MemsetD2D16Async>(context.number, 0, out, [&](auto& frame, std::byte*) {
            place(frame);
            frame.us = static_cast<std::uint16_t>(fill.value);
        });
    return encode<wire::MemsetD2D32Async>(context.number, 0, out, [&](auto& frame, std::byte*) {
        place(frame);
        frame.ui = fill.value;
    });
}

CUresult encode_in(const CopySides& copy, Context& context, ExecutableGraph::HostEnd* end,
                   std::vector<std::byte>* out) {
    Runtime& runtime = *Runtime::get();
    const void* source = reinterpret_cast<const void*>(copy.source);
    const auto range = runtime.host_memory().find(source, copy.size_bytes);
    if (range && range->segment != 0)
        return encode<wire::CopyH2dSegment>(context.number, 0, out, [&](auto& frame, std::byte*) {
            frame.destination = copy.destination;
            frame.size_bytes = copy.size_bytes;
            frame.offset = range->offset + (copy.source - range->address);
            frame.segment = range->segment;
        });
    end->pull = runtime.open_pull(source, copy.size_bytes, true);
    return encode<wire::CopyH2dPull>(context.number, 0, out, [&](auto& frame, std::byte*) {
        frame.destination = copy.destination;
        frame.size_bytes = copy.size_bytes;
        frame.pull = end->pull;
    });
}

CUresult encode_out(const CopySides& copy, Context& context, ExecutableGraph::HostEnd* end,
                    std::vector<std::byte>* out) {
    Runtime& runtime = *Runtime::get();
    auto* destination = reinterpret_cast<std::byte*>(copy.destination);
    const auto range = runtime.host_memory().find(destination, copy.size_bytes);
    if (range && range->segment != 0)
        return encode<wire::CopyD2hSegment>(context.number, 0, out, [&](auto& frame, std::byte*) {
            frame.source = copy.source;
            frame.size_bytes = copy.size_bytes;
            frame.offset = range->offset + (copy.destination - range->address);
            frame.segment = range->segment;
        });
    end->transfer = runtime.session().transfers().open_repeated({destination, copy.size_bytes});
    return encode<wire::CopyD2h>(context.number, 0, out, [&](auto& frame, std::byte*) {
        frame.source = copy.source;
        frame.size_bytes = copy.size_bytes;
        frame.transfer = end->transfer;
    });
}

CUresult encode_copy(const CUDA_MEMCPY3D& copy, Context& context, ExecutableGraph::HostEnd* end,
                     std::vector<std::byte>* out) {
    CopySides sides;
    if (const CUresult read = read_copy(copy, &sides); read != CUDA_SUCCESS) return read;
    if (!sides.to_device) return encode_out(sides, context, end, out);
    if (!sides.from_device) return encode_in(sides, context, end, out);
    return encode<wire::MemcpyDtoDAsync>(context.number, 0, out, [&](auto& frame, std::byte*) {
        frame.dstDevice = sides.destination;
        frame.srcDevice = sides.source;
        frame.ByteCount = sides.size_bytes;
    });
}

CUresult encode_host(const HostWork& work, Context& context, ExecutableGraph::HostEnd* end,
                     std::vector<std::byte>* out) {
    Runtime& runtime = *Runtime::get();
    end->call = runtime.next_number();
    const HostCall call{.function = work.function, .data = work.data, .stays = true};
    if (const CUresult added = runtime.callbacks().add(end->call, call); added != CUDA_SUCCESS) return added;
    return encode<wire::HostFunction>(context.number, 0, out, [&](auto& frame, std::byte*) { frame.call = end->call; });
}

CUresult encode_event(const EventWork& work, Context& context, std::vector<std::byte>* out) {
    const Event* event = Runtime::get()->events.find(work.event);
    if (event == nullptr || event->context != &context) return CUDA_ERROR_INVALID_HANDLE;
    if (work.is_record)
        return encode<wire::EventRecord>(context.number, 0, out,
                                         [&](auto& frame, std::byte*) { frame.event = event->number; });
    return encode<wire::StreamWaitEvent>(context.number, 0, out,
                                         [&](auto& frame, std::byte*) { frame.event = event->number; });
}

// One side of a copy: whether it is device memory, and where it begins.
CUresult read_side(CUmemorytype type, const void* host, CUdeviceptr device, std::size_t x, bool* is_device,
                   CUdeviceptr* address) {
    switch (type) {
        case CU_MEMORYTYPE_HOST:
            *is_device = false;
            *address = reinterpret_cast<CUdeviceptr>(host) + x;
            return host != nullptr ? CUDA_SUCCESS : CUDA_ERROR_INVALID_VALUE;
        case CU_MEMORYTYPE_DEVICE:
            *is_device = true;
            *address = device + x;
            return CUDA_SUCCESS;
        case CU_MEMORYTYPE_UNIFIED:
            *is_device = find_device_range(device).has_value();
            *address = device + x;
            return device != 0 ? CUDA_SUCCESS : CUDA_ERROR_INVALID_VALUE;
        case CU_MEMORYTYPE_ARRAY: return CUDA_ERROR_NOT_SUPPORTED;
    }
    return CUDA_ERROR_INVALID_VALUE;
}

}  // namespace

CUresult read_copy(const CUDA_MEMCPY3D& copy, CopySides* sides) {
    if (copy.WidthInBytes == 0 || copy.Height == 0 || copy.Depth == 0) return CUDA_ERROR_INVALID_VALUE;
    // Rows that follow each other without a gap are one.
    const bool is_flat =
        copy.Depth == 1 &&
        (copy.Height == 1 || (copy.srcPitch == copy.WidthInBytes && copy.dstPitch == copy.WidthInBytes));
    const bool begins_at_row = (copy.srcY | copy.srcZ | copy.dstY | copy.dstZ | copy.srcLOD | copy.dstLOD) == 0;
    if (!is_flat || !begins_at_row) return CUDA_ERROR_NOT_SUPPORTED;
    sides->size_bytes = copy.WidthInBytes * copy.Height;
    if (const CUresult read = read_side(copy.dstMemoryType, copy.dstHost, copy.dstDevice, copy.dstXInBytes,
                                        &sides->to_device, &sides->destination);
        read != CUDA_SUCCESS)
        return read;
    if (const CUresult read = read_side(copy.srcMemoryType, copy.srcHost, copy.srcDevice, copy.srcXInBytes,
                                        &sides->from_device, &sides->source);
        read != CUDA_SUCCESS)
        return read;
    if (sides->to_device && !is_device_range(sides->destination, sides->size_bytes)) return CUDA_ERROR_INVALID_VALUE;
    if (sides->from_device && !is_device_range(sides->source, sides->size_bytes)) return CUDA_ERROR_INVALID_VALUE;
    return sides->to_device || sides->from_device ? CUDA_SUCCESS : CUDA_ERROR_NOT_SUPPORTED;
}

CUresult encode_work(const graph::Work& work, Context& context, ExecutableGraph::HostEnd* end,
                     std::vector<std::byte>* frame) {
    frame->clear();
    if (const auto* kernel = std::get_if<KernelWork>(&work)) return encode_kernel(*kernel, context, frame);
    if (const auto* fill = std::get_if<FillWork>(&work)) return encode_fill(fill->fill, context, frame);
    if (const auto* copy = std::get_if<CopyWork>(&work)) return encode_copy(copy->copy, context, end, frame);
    if (const auto* host = std::get_if<HostWork>(&work)) return encode_host(*host, context, end, frame);
    if (const auto* event = std::get_if<EventWork>(&work)) return encode_event(*event, context, frame);
    return CUDA_SUCCESS;  // memory of a graph is there from the start; the ends of children only order
}

void drop_end(const ExecutableGraph::HostEnd& end) {
    Runtime& runtime = *Runtime::get();
    if (end.call != 0) runtime.callbacks().drop(end.call);
    if (end.pull != 0) runtime.close_pull(end.pull);
    if (end.transfer != 0) runtime.session().transfers().close(end.transfer);
}

}  // namespace weft::shim
