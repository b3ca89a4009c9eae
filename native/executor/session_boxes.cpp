// Copies of two and three dimensions between the client and the device. See session.h and device_box.h; the ways that
// host bytes take are those of session_copies.cpp.
#include <cstring>

#include "base/clock.h"
#include "executor/session.h"

namespace weft::executor {

namespace {

template <typename Frame>
DeviceBox box_of(const Frame& frame) {
    DeviceBox found;
    found.place = frame.place;
    found.pitches = {frame.row_pitch, frame.plane_pitch};
    found.x = frame.x;
    found.y = frame.y;
    found.z = frame.z;
    found.box = {frame.width, frame.height, frame.depth};
    return found;
}

}  // namespace

// Completes a box that came in a frame. False: the frame was refused.
bool Session::complete_box(Arrival& arrival, bool is_array, DeviceBox* box) {
    const char* wrong = check_box(box->box);
    if (wrong == nullptr && !is_array) wrong = check_rows(box->box, box->pitches);
    if (wrong != nullptr) return bad_frame(arrival, wrong), false;
    if (!is_array) return true;
    const auto found = arrays_.find(static_cast<std::uint32_t>(box->place));
    if (found == arrays_.end() || found->second.context->device != arrival.context->device) {
        refuse(arrival, CUDA_ERROR_INVALID_HANDLE);
        return false;
    }
    box->array = found->second.handle;
    return true;
}

CUresult Session::copy_box_in(Arrival& arrival, StreamState& stream, const DeviceBox& box, std::uint64_t offset,
                              std::span<const std::byte> bytes) {
    if (bytes.empty()) return CUDA_SUCCESS;
    counters_.copied_in_bytes += bytes.size();
    if (box.array == nullptr) {
        if (void* memory = direct_access(stream, box.place, *box.pitches.span(box.box))) {
            unpack(static_cast<std::byte*>(memory), box.pitches, box.box, offset, bytes.data(), bytes.size());
            return CUDA_SUCCESS;
        }
    }
    set_current(stream.context);
    if (!hold_source(arrival, &bytes)) return CUDA_ERROR_OUT_OF_MEMORY;
    const CUresult result = copy_packed_in(driver_, box, offset, bytes.data(), bytes.size(), stream.handle);
    // Some parts may be on their way even if another was refused.
    keep_source(arrival, stream);
    return result;
}

Outcome Session::on_copy_box_h2d(Arrival& arrival) {
    const auto copy = fields_of<wire::CopyBoxH2d>(arrival);
    DeviceBox box = box_of(copy);
    std::span<const std::byte> bytes = arrival.payload;
    if ((arrival.header.flags & wire::kFlagPayload) == 0) {
        const auto tail = tail_of<wire::CopyBoxH2d>(arrival);
        if (copy.size_bytes > tail.size() || copy.size_bytes > wire::kMaxInlineBytes)
            return bad_frame(arrival, "inline bytes are cut off");
        bytes = tail.first(copy.size_bytes);
    }
    if (!complete_box(arrival, copy.is_array != 0, &box)) return Outcome::submitted;
    const std::uint64_t all = *box.box.bytes();
    if (copy.offset > all || bytes.size() > all - copy.offset) return bad_frame(arrival, "bytes beyond the box");
    const CUresult result = copy_box_in(arrival, *arrival.stream, box, copy.offset, bytes);
    if (result != CUDA_SUCCESS) refuse(arrival, result);
    return Outcome::submitted;
}

Outcome Session::on_copy_box_pull(Arrival& arrival) {
    const auto copy = fields_of<wire::CopyBoxPull>(arrival);
    auto box = std::make_shared<DeviceBox>(box_of(copy));
    if (!complete_box(arrival, copy.is_array != 0, box.get())) return Outcome::submitted;
    Pull pull{.stream = arrival.stream, .destination = 0, .size_bytes = *box->box.bytes()};
    pull.box = std::move(box);
    return start_pull(arrival, copy.pull, std::move(pull));
}

Outcome Session::on_copy_box_d2h(Arrival& arrival) {
    const auto fields = fields_of<wire::CopyBoxD2h>(arrival);
    auto box = std::make_shared<DeviceBox>(box_of(fields));
    if (!complete_box(arrival, fields.is_array != 0, box.get())) return Outcome::submitted;
    CopyOut copy;
    copy.header = arrival.header;
    copy.stream = arrival.stream;
    copy.size_bytes = *box->box.bytes();
    copy.transfer = fields.transfer;
    copy.box = std::move(box);
    counters_.copied_out_bytes += copy.size_bytes;
    return start_copy_out(arrival, std::move(copy));
}

Outcome Session::on_copy_box_segment(Arrival& arrival) {
    const auto copy = fields_of<wire::CopyBoxSegment>(arrival);
    DeviceBox box = box_of(copy);
    if (!complete_box(arrival, copy.is_array != 0, &box)) return Outcome::submitted;
    const Pitches pitches{copy.host_row_pitch, copy.host_plane_pitch};
    if (const char* wrong = check_rows(box.box, pitches)) return bad_frame(arrival, wrong);
    const auto bytes = segment_bytes(copy.segment, copy.host_offset, *pitches.span(box.box));
    if (bytes.data() == nullptr) return bad_frame(arrival, "outside of the segment");
    set_current(*arrival.context);
    pin_segment(copy.segment);
    const HostRows rows{bytes.data(), pitches};
    const bool to_device = copy.to_device != 0;
    (to_device ? counters_.copied_in_bytes : counters_.copied_out_bytes) += *box.box.bytes();
    return finish_segment_copy(arrival, to_device ? copy_rows_in(driver_, box, rows, arrival.stream->handle)
                                                  : copy_rows_out(driver_, rows, box, arrival.stream->handle));
}

Outcome Session::on_copy_box_d2d(Arrival& arrival) {
    const auto copy = fields_of<wire::CopyBoxD2d>(arrival);
    DeviceBox to, from;
    to.box = from.box = {copy.width, copy.height, copy.depth};
    to.place = copy.to_place;
    to.pitches = {copy.to_row_pitch, copy.to_plane_pitch};
    to.x = copy.to_x, to.y = copy.to_y, to.z = copy.to_z;
    from.place = copy.from_place;
    from.pitches = {copy.from_row_pitch, copy.from_plane_pitch};
    from.x = copy.from_x, from.y = copy.from_y, from.z = copy.from_z;
    if (!complete_box(arrival, copy.to_is_array != 0, &to)) return Outcome::submitted;
    if (!complete_box(arrival, copy.from_is_array != 0, &from)) return Outcome::submitted;
    set_current(*arrival.context);
    const CUresult result = copy_box(driver_, to, from, arrival.stream->handle);
    if (result != CUDA_SUCCESS) {
        refuse(arrival, result);
    } else {
        submitted(*arrival.stream);
    }
    return Outcome::submitted;
}

}  // namespace weft::executor
