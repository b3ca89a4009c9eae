#include "shim/copy_box.h"

#include <memory>
#include <new>

#include "shim/submit.h"

namespace weft::shim {
namespace {

// One stretch of memory on both sides: an ordinary copy.
bool is_linear(const DeviceSide& device, const HostSide& host, const Box& box) {
    return !device.is_array && device.pitches.is_packed(box) && host.pitches.is_packed(box);
}

CUresult send_piece(Stream& stream, const DeviceSide& to, const Box& box, std::uint64_t offset,
                    std::span<const std::byte> bytes) {
    const auto fill = [&](wire::CopyBoxH2d& frame) {
        fill_box_side(frame, to, box);
        frame.offset = offset;
    };
    if (bytes.size() > wire::kMaxInlineBytes) return submit_payload<wire::CopyBoxH2d>(stream, bytes, fill);
    return submit<wire::CopyBoxH2d>(stream, bytes.size(), [&](auto& frame, std::byte* tail) {
        fill(frame);
        frame.size_bytes = static_cast<std::uint32_t>(bytes.size());
        std::memcpy(tail, bytes.data(), bytes.size());
    });
}

// The bytes are copied away before this returns, in pieces of whole rows where they fit.
CUresult send_now(Stream& stream, const DeviceSide& to, const HostSide& from, const Box& box) {
    const std::uint64_t piece_bytes = Runtime::get()->session().payload_piece_bytes();
    const std::uint64_t all = *box.bytes();
    std::unique_ptr<std::byte[]> packed(new (std::nothrow) std::byte[std::min(piece_bytes, all)]);
    if (!packed) return CUDA_ERROR_OUT_OF_MEMORY;
    std::uint64_t offset = 0;
    while (const std::uint64_t size = next_piece(box, offset, piece_bytes)) {
        pack(packed.get(), from.base, from.pitches, box, offset, size);
        if (const CUresult sent = send_piece(stream, to, box, offset, {packed.get(), size}); sent != CUDA_SUCCESS)
            return sent;
        offset += size;
    }
    return CUDA_SUCCESS;
}

// The executor moves the box between the shared segment and the device by itself.
CUresult move_in_place(Stream& stream, const DeviceSide& device, const HostSide& host, const HostRange& range,
                       const Box& box, bool to_device, CopyMode mode) {
    const auto fill = [&](wire::CopyBoxSegment& frame, std::byte*) {
        fill_box_side(frame, device, box);
        frame.segment = range.segment;
        frame.host_offset = range.offset + (reinterpret_cast<std::uint64_t>(host.base) - range.address);
        frame.host_row_pitch = host.pitches.row;
        frame.host_plane_pitch = host.pitches.plane;
        frame.to_device = to_device ? 1 : 0;
    };
    if (mode == CopyMode::asynchronous) return submit<wire::CopyBoxSegment>(stream, 0, fill);
    return settle(*stream.context, submit_and_wait<wire::CopyBoxSegment>(stream, 0, fill).status);
}

CUresult send_when_asked(Stream& stream, const DeviceSide& to, const HostSide& from, const Box& box) {
    const std::uint32_t pull = Runtime::get()->open_pull(from.base, from.pitches, box);
    return submit<wire::CopyBoxPull>(stream, 0, [&](auto& frame, std::byte*) {
        fill_box_side(frame, to, box);
        frame.pull = pull;
    });
}

}  // namespace

CUresult copy_box_to_device(Stream& stream, const DeviceSide& to, const HostSide& from, const Box& box, CopyMode mode) {
    if (is_linear(to, from, box)) return copy_to_device(stream, to.place, from.base, *box.bytes(), mode);
    Runtime& runtime = *Runtime::get();
    const std::uint64_t span = *from.pitches.span(box);
    const auto range = runtime.host_memory().find(from.base, span);
    if (!range) return send_now(stream, to, from, box);
    if (range->segment != 0) return move_in_place(stream, to, from, *range, box, true, mode);
    Transfers& transfers = runtime.session().transfers();
    if (!transfers.overlaps(from.base, span)) return send_now(stream, to, from, box);
    // Work in flight may still write the source.
    if (mode == CopyMode::asynchronous) return send_when_asked(stream, to, from, box);
    if (!runtime.session().wait_until([&] { return !transfers.overlaps(from.base, span); })) return Session::kLost;
    return send_now(stream, to, from, box);
}

CUresult copy_box_from_device(Stream& stream, const HostSide& to, const DeviceSide& from, const Box& box,
                              CopyMode mode) {
    if (is_linear(from, to, box)) return copy_from_device(stream, to.base, from.place, *box.bytes(), mode);
    Runtime& runtime = *Runtime::get();
    Session& session = runtime.session();
    const auto range = runtime.host_memory().find(to.base, *to.pitches.span(box));
    if (range && range->segment != 0) return move_in_place(stream, from, to, *range, box, false, mode);
    const bool in_background = mode == CopyMode::asynchronous && range.has_value();
    const std::uint32_t transfer = session.transfers().open_box(to.base, to.pitches, box, in_background);
    const auto fill = [&](wire::CopyBoxD2h& frame, std::byte*) {
        fill_box_side(frame, from, box);
        frame.transfer = transfer;
    };
    if (in_background) {
        session.expect_inbound();
        const CUresult sent = submit<wire::CopyBoxD2h>(stream, 0, fill);
        session.transfers().belongs_to(transfer, stream.last_work.load());
        return sent;
    }
    const Reply reply = submit_and_wait<wire::CopyBoxD2h>(stream, 0, fill);
    session.transfers().close(transfer);
    return settle(*stream.context, reply.status);
}

CUresult copy_box_within_device(Stream& stream, const DeviceSide& to, const DeviceSide& from, const Box& box) {
    return submit<wire::CopyBoxD2d>(stream, 0, [&](auto& frame, std::byte*) {
        frame.to_place = to.place;
        frame.to_row_pitch = to.pitches.row;
        frame.to_plane_pitch = to.pitches.plane;
        frame.to_x = to.x;
        frame.to_y = to.y;
        frame.to_z = to.z;
        frame.to_is_array = to.is_array ? 1 : 0;
        frame.from_place = from.place;
        frame.from_row_pitch = from.pitches.row;
        frame.from_plane_pitch = from.pitches.plane;
        frame.from_x = from.x;
        frame.from_y = from.y;
        frame.from_z = from.z;
        frame.from_is_array = from.is_array ? 1 : 0;
        frame.width = box.width;
        frame.height = box.height;
        frame.depth = box.depth;
    });
}

CUresult copy_box_on_host(Stream& stream, const HostSide& to, const HostSide& from, const Box& box) {
    const Reply reply = submit_and_wait<wire::StreamSync>(stream, 0, [](auto&, std::byte*) {});
    if (reply.status != CUDA_SUCCESS) return settle(*stream.context, reply.status);
    for (std::uint64_t z = 0; z < box.depth; ++z) {
        for (std::uint64_t y = 0; y < box.height; ++y)
            std::memmove(to.base + z * to.pitches.plane + y * to.pitches.row,
                         from.base + z * from.pitches.plane + y * from.pitches.row, box.width);
    }
    return CUDA_SUCCESS;
}

}  // namespace weft::shim
