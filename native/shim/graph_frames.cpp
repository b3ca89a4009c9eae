#include "shim/graph_frames.h"

#include <cstring>

#include "shim/copy_box.h"
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

CUresult encode_host(const HostWork& work, Context& context, ExecutableGraph::HostEnd* end,
                     std::vector<std::byte>* out) {
    Runtime& runtime = *Runtime::get();
    end->call = runtime.next_number();
    const HostCall call{.function = work.function, .data = work.data, .stays = true};
    if (const CUresult added = runtime.callbacks().add(end->call, call); added != CUDA_SUCCESS) return added;
    return encode<wire::HostFunction>(context.number, 0, out, [&](auto& frame, std::byte*) { frame.call = end->call; });
}

bool is_linear(const CopySides& copy) {
    const Pitches& to = copy.to_device ? copy.to_place.pitches : copy.to_host.pitches;
    const Pitches& from = copy.from_device ? copy.from_place.pitches : copy.from_host.pitches;
    return !copy.to_place.is_array && !copy.from_place.is_array && to.is_packed(copy.box) && from.is_packed(copy.box);
}

// A box between a shared segment and the device.
CUresult encode_in_place(const CopySides& copy, const DeviceSide& device, const HostSide& host, const HostRange& range,
                         Context& context, std::vector<std::byte>* out) {
    const std::uint64_t offset = range.offset + (reinterpret_cast<std::uint64_t>(host.base) - range.address);
    if (!is_linear(copy))
        return encode<wire::CopyBoxSegment>(context.number, 0, out, [&](auto& frame, std::byte*) {
            fill_box_side(frame, device, copy.box);
            frame.segment = range.segment;
            frame.host_offset = offset;
            frame.host_row_pitch = host.pitches.row;
            frame.host_plane_pitch = host.pitches.plane;
            frame.to_device = copy.to_device ? 1 : 0;
        });
    const auto fill = [&](auto& frame) {
        frame.size_bytes = *copy.box.bytes();
        frame.offset = offset;
        frame.segment = range.segment;
    };
    if (copy.to_device)
        return encode<wire::CopyH2dSegment>(context.number, 0, out, [&](auto& frame, std::byte*) {
            fill(frame);
            frame.destination = device.place;
        });
    return encode<wire::CopyD2hSegment>(context.number, 0, out, [&](auto& frame, std::byte*) {
        fill(frame);
        frame.source = device.place;
    });
}

CUresult encode_in(const CopySides& copy, Context& context, ExecutableGraph::HostEnd* end,
                   std::vector<std::byte>* out) {
    Runtime& runtime = *Runtime::get();
    const HostSide& host = copy.from_host;
    const auto range = runtime.host_memory().find(host.base, *host.pitches.span(copy.box));
    if (range && range->segment != 0) return encode_in_place(copy, copy.to_place, host, *range, context, out);
    end->pull = runtime.open_pull(host.base, host.pitches, copy.box, true);
    if (!is_linear(copy))
        return encode<wire::CopyBoxPull>(context.number, 0, out, [&](auto& frame, std::byte*) {
            fill_box_side(frame, copy.to_place, copy.box);
            frame.pull = end->pull;
        });
    return encode<wire::CopyH2dPull>(context.number, 0, out, [&](auto& frame, std::byte*) {
        frame.destination = copy.to_place.place;
        frame.size_bytes = *copy.box.bytes();
        frame.pull = end->pull;
    });
}

CUresult encode_out(const CopySides& copy, Context& context, ExecutableGraph::HostEnd* end,
                    std::vector<std::byte>* out) {
    Runtime& runtime = *Runtime::get();
    const HostSide& host = copy.to_host;
    const auto range = runtime.host_memory().find(host.base, *host.pitches.span(copy.box));
    if (range && range->segment != 0) return encode_in_place(copy, copy.from_place, host, *range, context, out);
    Transfers& transfers = runtime.session().transfers();
    if (!is_linear(copy)) {
        end->transfer = transfers.open_repeated(host.base, host.pitches, copy.box);
        return encode<wire::CopyBoxD2h>(context.number, 0, out, [&](auto& frame, std::byte*) {
            fill_box_side(frame, copy.from_place, copy.box);
            frame.transfer = end->transfer;
        });
    }
    end->transfer = transfers.open_repeated({host.base, *copy.box.bytes()});
    return encode<wire::CopyD2h>(context.number, 0, out, [&](auto& frame, std::byte*) {
        frame.source = copy.from_place.place;
        frame.size_bytes = *copy.box.bytes();
        frame.transfer = end->transfer;
    });
}

CUresult encode_within(const CopySides& copy, Context& context, std::vector<std::byte>* out) {
    if (is_linear(copy))
        return encode<wire::MemcpyDtoDAsync>(context.number, 0, out, [&](auto& frame, std::byte*) {
            frame.dstDevice = copy.to_place.place;
            frame.srcDevice = copy.from_place.place;
            frame.ByteCount = *copy.box.bytes();
        });
    return encode<wire::CopyBoxD2d>(context.number, 0, out, [&](auto& frame, std::byte*) {
        frame.to_place = copy.to_place.place;
        frame.to_row_pitch = copy.to_place.pitches.row;
        frame.to_plane_pitch = copy.to_place.pitches.plane;
        frame.from_place = copy.from_place.place;
        frame.from_row_pitch = copy.from_place.pitches.row;
        frame.from_plane_pitch = copy.from_place.pitches.plane;
        frame.width = copy.box.width;
        frame.height = copy.box.height;
        frame.depth = copy.box.depth;
    });
}

struct HostCopy {
    HostSide to, from;
    Box box;
};

// From host to host: a host function of our own.
CUresult encode_on_host(const CopySides& copy, Context& context, ExecutableGraph::HostEnd* end,
                        std::vector<std::byte>* out) {
    end->copy = std::make_shared<HostCopy>(HostCopy{copy.to_host, copy.from_host, copy.box});
    const auto run = [](void* data) {
        const auto& host = *static_cast<const HostCopy*>(data);
        for (std::uint64_t z = 0; z < host.box.depth; ++z)
            for (std::uint64_t y = 0; y < host.box.height; ++y)
                std::memmove(host.to.base + z * host.to.pitches.plane + y * host.to.pitches.row,
                             host.from.base + z * host.from.pitches.plane + y * host.from.pitches.row, host.box.width);
    };
    return encode_host({run, end->copy.get()}, context, end, out);
}

CUresult encode_copy(const CUDA_MEMCPY3D& copy, Context& context, ExecutableGraph::HostEnd* end,
                     std::vector<std::byte>* out) {
    CopySides sides;
    if (const CUresult read = api::read_sides(copy, &sides); read != CUDA_SUCCESS) return read;
    if (sides.to_device && sides.from_device) return encode_within(sides, context, out);
    if (sides.to_device) return encode_in(sides, context, end, out);
    if (sides.from_device) return encode_out(sides, context, end, out);
    return encode_on_host(sides, context, end, out);
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

}  // namespace

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
