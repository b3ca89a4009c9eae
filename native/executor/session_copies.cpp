// Copies between the client and device memory. See session.h; the ways a copy can take: docs/design/executor.md,
// "Copies".
#include <algorithm>
#include <array>
#include <cstring>

#include "base/clock.h"
#include "base/copy.h"
#include "executor/session.h"

namespace weft::executor {

namespace {

constexpr std::size_t kSmallCopyBytes = wire::kMaxInlineBytes;

std::span<const std::byte> span_at(const void* address, std::uint64_t size) {
    return {static_cast<const std::byte*>(address), size};
}

}  // namespace

// --------------------------------------------------------------------------------------------------- idle streams

bool Session::is_stream_idle(StreamState& stream) {
    if (stream.in_flight.outstanding() == 0) return true;
    set_current(stream.context);
    const CUresult state = driver_.cuStreamQuery(stream.handle);
    if (state != CUDA_SUCCESS) return false;
    stream.in_flight.all_complete();
    return true;
}

// Nothing that the stream would have to wait for is with the driver.
bool Session::is_idle_with_relations(StreamState& stream) {
    if (!is_stream_idle(stream)) return false;
    ContextState& context = stream.context;
    if (stream.queue.role() == ParkingQueue::Role::blocking) return is_stream_idle(*context.legacy);
    if (stream.queue.role() != ParkingQueue::Role::legacy) return true;
    return std::all_of(context.streams.begin(), context.streams.end(), [&](StreamState* other) {
        return other->queue.role() != ParkingQueue::Role::blocking || is_stream_idle(*other);
    });
}

// Where the CPU may read or write this device memory now on behalf of the stream; nullptr: only the driver may.
void* Session::direct_access(StreamState& stream, std::uint64_t address, std::uint64_t size_bytes) {
    if (driver_.weftHostAccess == nullptr || memory_jobs_ != 0 || stream.context.is_sticky_reported) return nullptr;
    if (!is_idle_with_relations(stream)) return nullptr;
    return driver_.weftHostAccess(address, size_bytes);
}

// ------------------------------------------------------------------------------------------------------ to the device

// Makes the bytes of a frame last until the stream has read them (see keep_source). False: no memory.
bool Session::hold_source(Arrival& arrival, std::span<const std::byte>* bytes) {
    if (arrival.buffer) {
        host_memory_.pin(arrival.buffer.data, arrival.buffer.capacity_bytes);
    } else if (arrival.memory == nullptr) {
        // The bytes lie in the frame, which is gone soon.
        arrival.memory = host_memory_.acquire(bytes->size());
        if (arrival.memory == nullptr) return false;
        std::memcpy(arrival.memory.get(), bytes->data(), bytes->size());
        *bytes = {arrival.memory.get(), bytes->size()};
    }
    return true;
}

void Session::keep_source(Arrival& arrival, StreamState& stream) {
    if (arrival.buffer) {
        stream.in_flight.keep(std::exchange(arrival.buffer, {}));
    } else {
        stream.in_flight.keep(std::shared_ptr<void>(std::move(arrival.memory)));
    }
    stream.in_flight.add(1);
    mark(stream);
}

CUresult Session::copy_in(Arrival& arrival, StreamState& stream, std::uint64_t destination,
                          std::span<const std::byte> bytes) {
    if (bytes.empty()) return CUDA_SUCCESS;
    counters_.copied_in_bytes += bytes.size();
    if (void* memory = direct_access(stream, destination, bytes.size())) {
        copy_streaming(memory, bytes.data(), bytes.size());
        return CUDA_SUCCESS;
    }
    set_current(stream.context);
    if (!hold_source(arrival, &bytes)) return CUDA_ERROR_OUT_OF_MEMORY;
    const CUresult result = driver_.cuMemcpyHtoDAsync_v2(destination, bytes.data(), bytes.size(), stream.handle);
    if (result == CUDA_SUCCESS) keep_source(arrival, stream);
    return result;
}

Outcome Session::on_copy_h2d(Arrival& arrival) {
    const auto copy = fields_of<wire::CopyH2d>(arrival);
    if (arrival.is_landed) {
        counters_.copied_in_bytes += arrival.payload.size();
        return Outcome::submitted;
    }
    const CUresult result = copy_in(arrival, *arrival.stream, copy.destination, arrival.payload);
    if (result != CUDA_SUCCESS) refuse(arrival, result);
    return Outcome::submitted;
}

Outcome Session::on_copy_h2d_inline(Arrival& arrival) {
    const auto copy = fields_of<wire::CopyH2dInline>(arrival);
    const auto tail = tail_of<wire::CopyH2dInline>(arrival);
    if (copy.size_bytes > tail.size() || copy.size_bytes > wire::kMaxInlineBytes)
        return bad_frame(arrival, "inline bytes are cut off");
    const CUresult result = copy_in(arrival, *arrival.stream, copy.destination, tail.first(copy.size_bytes));
    if (result != CUDA_SUCCESS) refuse(arrival, result);
    return Outcome::submitted;
}

void* Session::place_copy(std::span<const std::byte> frame) {
    if (frame.size() != wire::encoded_size<wire::CopyH2d>(0)) return nullptr;
    Arrival arrival;
    arrival.frame = frame;
    arrival.header = wire::header_of(frame);
    const auto copy = fields_of<wire::CopyH2d>(arrival);
    ContextState* context = find_context(arrival.header.context);
    if (context == nullptr || context->handle == nullptr || arrival.header.payload_bytes == 0) return nullptr;
    StreamState* stream = find_stream(*context, copy.stream);
    if (stream == nullptr) return nullptr;
    if (!parking_.must_park(stream->queue, {})) {
        void* memory = direct_access(*stream, copy.destination, arrival.header.payload_bytes);
        placed_directly_ = memory != nullptr;
        return memory;
    }
    // It will have to wait: land where it can, instead of keeping a buffer of the channel.
    set_current(*context);
    placed_memory_ = host_memory_.acquire(arrival.header.payload_bytes);
    return placed_memory_.get();
}

// ------------------------------------------------------------------------------------------------------ segments

// The bytes of a segment that a copy names; empty if they do not exist.
std::span<std::byte> Session::segment_bytes(std::uint32_t segment, std::uint64_t offset, std::uint64_t size_bytes) {
    const auto found = segments_.find(segment);
    if (found == segments_.end()) return {};
    const std::span<std::byte> bytes = found->second.bytes;
    if (offset > bytes.size() || size_bytes > bytes.size() - offset) return {};
    return bytes.subspan(offset, size_bytes);
}

// The context that it was page-locked in may have ended since.
void Session::pin_segment(std::uint32_t segment) {
    const std::span<std::byte> bytes = segments_.find(segment)->second.bytes;
    host_memory_.pin(bytes.data(), bytes.size());
}

Outcome Session::finish_segment_copy(Arrival& arrival, CUresult result) {
    StreamState& stream = *arrival.stream;
    if (result != CUDA_SUCCESS) {
        refuse(arrival, result);
        return Outcome::submitted;
    }
    submitted(stream);
    if ((arrival.header.flags & wire::kFlagWaiting) != 0) reply_when_stream_is_done(arrival);
    return Outcome::submitted;
}

Outcome Session::on_copy_h2d_segment(Arrival& arrival) {
    const auto copy = fields_of<wire::CopyH2dSegment>(arrival);
    const auto bytes = segment_bytes(copy.segment, copy.offset, copy.size_bytes);
    if (bytes.data() == nullptr) return bad_frame(arrival, "outside of the segment");
    set_current(*arrival.context);
    pin_segment(copy.segment);
    counters_.copied_in_bytes += bytes.size();
    return finish_segment_copy(
        arrival, driver_.cuMemcpyHtoDAsync_v2(copy.destination, bytes.data(), bytes.size(), arrival.stream->handle));
}

Outcome Session::on_copy_d2h_segment(Arrival& arrival) {
    const auto copy = fields_of<wire::CopyD2hSegment>(arrival);
    const auto bytes = segment_bytes(copy.segment, copy.offset, copy.size_bytes);
    if (bytes.data() == nullptr) return bad_frame(arrival, "outside of the segment");
    set_current(*arrival.context);
    pin_segment(copy.segment);
    counters_.copied_out_bytes += bytes.size();
    return finish_segment_copy(
        arrival, driver_.cuMemcpyDtoHAsync_v2(bytes.data(), copy.source, bytes.size(), arrival.stream->handle));
}

// ---------------------------------------------------------------------------------------------------------- pulls

Outcome Session::on_copy_h2d_pull(Arrival& arrival) {
    const auto copy = fields_of<wire::CopyH2dPull>(arrival);
    if (copy.size_bytes == 0) return Outcome::submitted;
    return start_pull(arrival, copy.pull,
                      {.stream = arrival.stream, .destination = copy.destination, .size_bytes = copy.size_bytes});
}

Outcome Session::start_pull(const Arrival& arrival, std::uint32_t number, Pull pull) {
    if (pulls_.contains(number)) return bad_frame(arrival, "pull number in use");
    // Copies to the client that are still under way in this stream may write what the client is going to read.
    StreamState& stream = *arrival.stream;
    set_current(stream.context);
    CUresult result = CUDA_SUCCESS;
    EventRef marker = record_marker(stream.context.events, stream.handle, &result);
    if (marker == nullptr) {
        refuse(arrival, result);
        return Outcome::submitted;
    }
    pulls_[number] = std::move(pull);
    completion_.add_wait(
        {std::move(marker)},
        [this, context = arrival.header.context, number](CUresult) {
            const auto found = pulls_.find(number);
            if (found == pulls_.end()) return;
            found->second.is_asked = true;
            outbox_.send<wire::Pull>(context, 0, {}, [&](wire::Pull& pull) { pull.pull = number; });
        },
        Clock::now());
    return Outcome::started;
}

Outcome Session::on_pull_data(Arrival& arrival) {
    const auto data = fields_of<wire::PullData>(arrival);
    const auto found = pulls_.find(data.pull);
    if (found == pulls_.end() || !found->second.is_asked) return bad_frame(arrival, "bytes that were not asked for");
    Pull& pull = found->second;
    std::span<const std::byte> bytes = arrival.payload;
    if ((arrival.header.flags & wire::kFlagPayload) == 0) {
        const auto tail = tail_of<wire::PullData>(arrival);
        if (data.size_bytes > tail.size()) return bad_frame(arrival, "inline bytes are cut off");
        bytes = tail.first(data.size_bytes);
    }
    if (bytes.empty() || data.offset != pull.received || bytes.size() > pull.size_bytes - pull.received) {
        return bad_frame(arrival, "not the next piece of the pull");
    }
    StreamState& stream = *pull.stream;
    if (arrival.is_landed) {
        counters_.copied_in_bytes += bytes.size();
    } else if (pull.failure == CUDA_SUCCESS) {
        pull.failure = pull.box != nullptr ? copy_box_in(arrival, stream, *pull.box, pull.received, bytes)
                                           : copy_in(arrival, stream, pull.destination + pull.received, bytes);
        if (pull.failure != CUDA_SUCCESS) report(stream.context, pull.failure, wire::CopyH2dPull::kOpcode);
    }
    pull.received += bytes.size();
    if (pull.received == pull.size_bytes) {
        pulls_.erase(found);
        release(stream);
    }
    return Outcome::submitted;
}

void* Session::place_pull(std::span<const std::byte> frame) {
    if (frame.size() < wire::encoded_size<wire::PullData>(0)) return nullptr;
    Arrival arrival;
    arrival.frame = frame;
    const auto data = fields_of<wire::PullData>(arrival);
    const auto found = pulls_.find(data.pull);
    const std::uint32_t size = wire::header_of(frame).payload_bytes;
    if (found == pulls_.end() || !found->second.is_asked || found->second.failure != CUDA_SUCCESS) return nullptr;
    const Pull& pull = found->second;
    if (pull.box != nullptr || data.offset != pull.received || size == 0 || size > pull.size_bytes - pull.received)
        return nullptr;
    void* memory = direct_access(*pull.stream, pull.destination + pull.received, size);
    placed_directly_ = memory != nullptr;
    return memory;
}

// ---------------------------------------------------------------------------------------------------- from the device

Outcome Session::on_copy_d2h(Arrival& arrival) {
    const auto fields = fields_of<wire::CopyD2h>(arrival);
    CopyOut copy;
    copy.header = arrival.header;
    copy.stream = arrival.stream;
    copy.source = fields.source;
    copy.size_bytes = fields.size_bytes;
    copy.transfer = fields.transfer;
    counters_.copied_out_bytes += copy.size_bytes;
    return start_copy_out(arrival, std::move(copy));
}

Outcome Session::start_copy_out(Arrival& arrival, CopyOut copy) {
    if (copy.size_bytes <= kSmallCopyBytes) return copy_out_small(arrival, copy);
    if (copy.box == nullptr && channel_.kind() != transport::PathKind::shm) {
        if (void* memory = direct_access(*copy.stream, copy.source, copy.size_bytes)) {
            outbox_.send_transfer(copy.header.context, copy.transfer, span_at(memory, copy.size_bytes), [this, copy] {
                finish_copy_out(copy, CUDA_SUCCESS);
                // A client that destroys a context it still copies from has taken the stream away.
                if (is_alive(copy.stream, copy.header.context)) release(*copy.stream);
            });
            return Outcome::started;
        }
    }
    copies_out_.push_back(std::move(copy));
    return Outcome::started;
}

// Bytes [offset, offset + size) of the copy, in stream order.
CUresult Session::read_device(const CopyOut& copy, std::byte* to, std::uint64_t offset, std::size_t size) {
    const CUstream stream = copy.stream->handle;
    return copy.box != nullptr ? copy_packed_out(driver_, to, *copy.box, offset, size, stream)
                               : driver_.cuMemcpyDtoHAsync_v2(to, copy.source + offset, size, stream);
}

// The same at once; false: only the driver may.
bool Session::read_directly(const CopyOut& copy, std::byte* to, std::uint64_t offset, std::size_t size) {
    if (copy.box == nullptr) {
        const void* memory = direct_access(*copy.stream, copy.source + offset, size);
        if (memory != nullptr) std::memcpy(to, memory, size);
        return memory != nullptr;
    }
    const DeviceBox& box = *copy.box;
    if (box.array != nullptr) return false;
    const void* memory = direct_access(*copy.stream, box.place, *box.pitches.span(box.box));
    if (memory == nullptr) return false;
    pack(to, static_cast<const std::byte*>(memory), box.pitches, box.box, offset, size);
    return true;
}

// Fits into one frame.
Outcome Session::copy_out_small(Arrival& arrival, const CopyOut& copy) {
    StreamState& stream = *copy.stream;
    if (copy.size_bytes == 0) {
        finish_copy_out(copy, CUDA_SUCCESS);
        return Outcome::submitted;
    }
    std::array<std::byte, kSmallCopyBytes> small;
    if (read_directly(copy, small.data(), 0, copy.size_bytes)) {
        outbox_.send_data_inline(copy.header.context, copy.transfer, 0, span_at(small.data(), copy.size_bytes));
        finish_copy_out(copy, CUDA_SUCCESS);
        return Outcome::submitted;
    }
    set_current(stream.context);
    auto block = host_memory_.acquire(copy.size_bytes);
    CUresult result = block != nullptr ? CUDA_SUCCESS : CUDA_ERROR_OUT_OF_MEMORY;
    if (result == CUDA_SUCCESS) result = read_device(copy, block.get(), 0, copy.size_bytes);
    if (result != CUDA_SUCCESS) {
        refuse(arrival, result);
        return Outcome::submitted;
    }
    submitted(stream);
    EventRef marker = record_marker(stream.context.events, stream.handle, &result);
    if (marker == nullptr) {
        refuse(arrival, result);
        return Outcome::submitted;
    }
    const auto send = [this, copy, block](CUresult status) {
        if (status == CUDA_SUCCESS) {
            outbox_.send_data_inline(copy.header.context, copy.transfer, 0, {block.get(), copy.size_bytes});
        } else {
            report_copy_out(copy.header, status);
        }
    };
    completion_.add_data(marker, send, Clock::now());
    if ((copy.header.flags & wire::kFlagWaiting) != 0) {
        completion_.add_wait(
            {std::move(marker)}, [this, copy](CUresult status) { finish_copy_out(copy, status); }, Clock::now());
        wake_at_end_of(stream);
    }
    return Outcome::submitted;
}

bool Session::is_alive(const StreamState* stream, std::uint32_t context_number) {
    const ContextState* context = find_context(context_number);
    if (context == nullptr) return false;
    return context->legacy.get() == stream ||
           std::find(context->streams.begin(), context->streams.end(), stream) != context->streams.end();
}

// Tells the client that a waited-for copy has ended; its DATA is queued already.
void Session::finish_copy_out(const CopyOut& copy, CUresult status) {
    if ((copy.header.flags & wire::kFlagWaiting) == 0) return;
    completion_.tell_implied();
    if (ContextState* context = find_context(copy.header.context)) collect_output(*context);
    answer(copy.header, status);
}

bool Session::advance_copies_out() {
    bool any = false;
    for (std::size_t i = 0; i < copies_out_.size();) {
        const std::uint64_t before = copies_out_[i].offset;
        if (!advance_copy_out(copies_out_[i])) {
            any |= copies_out_[i].offset != before;
            ++i;
            continue;
        }
        any = true;
        release(*copies_out_[i].stream);
        copies_out_.erase(copies_out_.begin() + static_cast<std::ptrdiff_t>(i));
    }
    return any;
}

// Gives the driver as many pieces as there are buffers for; true when the copy needs nothing more.
bool Session::advance_copy_out(CopyOut& copy) {
    StreamState& stream = *copy.stream;
    const std::size_t piece_bytes = channel_.payload_piece_bytes();
    while (copy.offset < copy.size_bytes) {
        const transport::Buffer buffer = channel_.acquire_buffer();
        if (!buffer) return false;
        const std::size_t size =
            std::min({copy.size_bytes - copy.offset, std::uint64_t{piece_bytes}, std::uint64_t{buffer.capacity_bytes}});
        const CUresult result = copy_out_piece(copy, buffer, size);
        if (result != CUDA_SUCCESS) {
            channel_.discard_buffer(buffer);
            fail_copy_out(copy, result);
            return true;
        }
        copy.offset += size;
    }
    if (copy.last == nullptr) {
        finish_copy_out(copy, CUDA_SUCCESS);
    } else if ((copy.header.flags & wire::kFlagWaiting) != 0) {
        EventRef last = std::exchange(copy.last, nullptr);
        completion_.add_wait(
            {std::move(last)}, [this, copy](CUresult status) { finish_copy_out(copy, status); }, Clock::now());
        wake_at_end_of(stream);
    }
    return true;
}

void Session::fail_copy_out(const CopyOut& copy, CUresult status) {
    finish_copy_out(copy, status);
    report_copy_out(copy.header, status);
}

// A copy that nobody waits for has failed. Its stream may be gone by now.
void Session::report_copy_out(const wire::FrameHeader& header, CUresult status) {
    if ((header.flags & wire::kFlagWaiting) != 0) return;
    if (ContextState* context = find_context(header.context)) report(*context, status, header.opcode);
}

CUresult Session::copy_out_piece(CopyOut& copy, transport::Buffer buffer, std::size_t size) {
    StreamState& stream = *copy.stream;
    auto* to = static_cast<std::byte*>(static_cast<void*>(buffer.data));
    if (copy.last == nullptr && read_directly(copy, to, copy.offset, size)) {
        outbox_.send_data(copy.header.context, copy.transfer, copy.offset, buffer, size);
        return CUDA_SUCCESS;
    }
    set_current(stream.context);
    host_memory_.pin(buffer.data, buffer.capacity_bytes);
    CUresult result = read_device(copy, to, copy.offset, size);
    if (result != CUDA_SUCCESS) return result;
    submitted(stream);
    EventRef marker = record_marker(stream.context.events, stream.handle, &result);
    if (marker == nullptr) return result;
    copy.last = marker;
    completion_.add_data(
        std::move(marker),
        [this, header = copy.header, transfer = copy.transfer, offset = copy.offset, buffer, size](CUresult status) {
            if (status == CUDA_SUCCESS) return outbox_.send_data(header.context, transfer, offset, buffer, size);
            channel_.discard_buffer(buffer);
            report_copy_out(header, status);
        },
        Clock::now());
    return CUDA_SUCCESS;
}

}  // namespace weft::executor
