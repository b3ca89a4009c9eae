// A channel between two processes, used as the shim and the executor use it, without CUDA.
#include <unistd.h>

#include <algorithm>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <memory>

#include "base/clock.h"
#include "base/copy.h"
#include "limits.h"
#include "transport/pair.h"

namespace weft::bench {

namespace {

using transport::Buffer;
using transport::Channel;
using transport::PathKind;
using transport::Received;

constexpr int kRoundTrips = 20'000;
constexpr int kIdleRoundTrips = 300;
constexpr int kFrameBursts = 5;
constexpr std::uint32_t kFramesPerBurst = 1'000'000;
constexpr std::size_t kFrameBytes = 96;
constexpr int kBulkRepeats = 5;

enum Opcode : std::uint16_t { kEcho = 1, kNoReply = 2, kBulk = 3, kFetch = 4, kData = 5 };

struct Frame {
    wire::FrameHeader header{};
    std::uint64_t offset = 0;
    std::byte rest[kFrameBytes - sizeof(wire::FrameHeader) - 8] = {};
};
static_assert(sizeof(Frame) == kFrameBytes);

[[noreturn]] void give_up(const char* what, const Status& status) {
    std::fprintf(stderr, "weft-bench-limits: %s: %s\n", what, status ? "no reason" : status.text().c_str());
    ::_exit(1);
}

Frame make_frame(Opcode opcode, std::size_t size_bytes = kFrameBytes) {
    Frame frame;
    frame.header.size_bytes = static_cast<std::uint32_t>(size_bytes);
    frame.header.opcode = opcode;
    return frame;
}

std::span<const std::byte> bytes_of(const Frame& frame) {
    return std::as_bytes(std::span(&frame, 1)).first(frame.header.size_bytes);
}

// One end of the channel: appends, flushes and receives in one thread.
class End {
  public:
    End(std::unique_ptr<Channel> channel, std::byte* bulk) : channel_(std::move(channel)), bulk_(bulk) {
        channel_->set_placer([this](std::span<const std::byte> frame) -> void* { return bulk_ + offset_of(frame); });
    }
    Channel& channel() { return *channel_; }

    void append(const Frame& frame) {
        std::byte* room;
        while ((room = channel_->reserve(frame.header.size_bytes)) == nullptr) make_room();
        std::memcpy(room, &frame, frame.header.size_bytes);
        channel_->commit(frame.header.size_bytes);
    }
    void flush() {
        if (Status status = channel_->flush(); !status) give_up("flush", status);
    }
    // The next frame; false when the peer is gone.
    bool receive(Frame* frame) {
        for (;;) {
            auto received = channel_->poll();
            if (!received) return false;
            if (*received) {
                take(*received, frame);
                return true;
            }
            if (channel_->has_unsent()) flush();
            if (!channel_->wait(channel_->has_unsent(), kNoDeadline)) return false;
        }
    }
    void send_bulk(Opcode opcode) {
        const std::size_t piece = channel_->payload_piece_bytes();
        for (std::size_t offset = 0; offset < kBulkBytes; offset += piece) {
            Frame frame = make_frame(opcode, sizeof(wire::FrameHeader) + 8);
            frame.header.flags = wire::kFlagPayload;
            frame.header.payload_bytes = static_cast<std::uint32_t>(piece);
            frame.offset = offset;
            std::size_t progress = 0;
            while (!channel_->send_from(bytes_of(frame), {bulk_ + offset, piece}, &progress)) make_room();
            flush();
        }
    }

  private:
    static std::size_t offset_of(std::span<const std::byte> frame) {
        std::uint64_t offset;
        std::memcpy(&offset, frame.data() + sizeof(wire::FrameHeader), sizeof offset);
        return offset;
    }
    void take(const Received& received, Frame* frame) {
        std::memcpy(frame, received.frame.data(), std::min(sizeof *frame, received.frame.size()));
        if (!received.buffer) return;
        copy_streaming(bulk_ + frame->offset, received.payload.data(), received.payload.size());
        channel_->release_buffer(received.buffer);
    }
    void make_room() {
        flush();
        if (Status status = channel_->wait(true, kNoDeadline); !status) give_up("wait", status);
    }

    std::unique_ptr<Channel> channel_;
    std::byte* bulk_;
};

void serve(End end) {
    Frame frame;
    while (end.receive(&frame)) {
        if (frame.header.opcode == kEcho) end.append(make_frame(kEcho, kMessageBytes));
        if (frame.header.opcode == kFetch) {
            end.send_bulk(kData);
            end.append(make_frame(kEcho, kMessageBytes));
        }
        if (frame.header.opcode == kEcho || frame.header.opcode == kFetch) end.flush();
    }
}

void await_echo(End& end) {
    Frame frame;
    do {
        if (!end.receive(&frame)) give_up("receive", Status::ok());
    } while (frame.header.opcode != kEcho);
}

double call_us(End& end, Opcode opcode) {
    const std::uint64_t start = now_ns();
    end.append(make_frame(opcode, kMessageBytes));
    end.flush();
    await_echo(end);
    return static_cast<double>(now_ns() - start) / 1000;
}

double frames_per_s(End& end) {
    const std::uint64_t start = now_ns();
    for (std::uint32_t i = 0; i < kFramesPerBurst; ++i) {
        end.append(make_frame(kNoReply));
        if (i % 32 == 31) end.flush();
    }
    call_us(end, kEcho);
    return kFramesPerBurst * 1e9 / static_cast<double>(now_ns() - start);
}

double bulk_gb_per_s(End& end, bool to_client) {
    const std::uint64_t start = now_ns();
    if (!to_client) end.send_bulk(kBulk);
    call_us(end, to_client ? kFetch : kEcho);
    return static_cast<double>(kBulkBytes) / static_cast<double>(now_ns() - start);
}

void measure_latency(End& end, ChannelFigures& figures) {
    std::vector<double> samples;
    for (int i = 0; i < kRoundTrips; ++i) samples.push_back(call_us(end, kEcho));
    figures.round_trip_us = percentile(samples, 0.5);
    figures.round_trip_p99_us = percentile(samples, 0.99);
    samples.clear();
    for (int i = 0; i < kIdleRoundTrips; ++i) {
        ::usleep(1000);
        samples.push_back(call_us(end, kEcho));
    }
    figures.round_trip_after_idle_us = percentile(samples, 0.5);
}

}  // namespace

ChannelFigures measure_channel(PathKind kind, const transport::ChannelOptions& options) {
    ChannelFigures figures;
    auto sockets = transport::make_socket_pair(kind);
    if (!sockets) give_up("socket", sockets.status());
    PeerProcess peer([&] {
        sockets->first.reset();
        std::vector<std::byte> device = make_bulk();
        auto channel = transport::open_executor(kind, std::move(sockets->second), options);
        if (!channel) give_up("executor", channel.status());
        serve(End(std::move(*channel), device.data()));
    });
    sockets->second.reset();
    auto channel = transport::open_client(kind, std::move(sockets->first), options);
    if (!channel) give_up("client", channel.status());
    // After the fork: pages that two processes share would be copied during the measurement.
    std::vector<std::byte> bulk = make_bulk();
    End end(std::move(*channel), bulk.data());
    call_us(end, kEcho);
    measure_latency(end, figures);
    for (int i = 0; i < kFrameBursts; ++i) figures.frames_per_s = std::max(figures.frames_per_s, frames_per_s(end));
    for (int i = 0; i < kBulkRepeats; ++i) {
        figures.to_executor_gb_per_s = std::max(figures.to_executor_gb_per_s, bulk_gb_per_s(end, false));
        figures.to_client_gb_per_s = std::max(figures.to_client_gb_per_s, bulk_gb_per_s(end, true));
    }
    ::usleep(500'000);  // the last acknowledgement is looked after once
    const double cpu_before = peer.cpu_s(), sleeps_before = peer.sleeps();
    ::usleep(1'000'000);
    figures.idle_cpu_percent = 100 * (peer.cpu_s() - cpu_before);
    figures.idle_wakeups_per_s = peer.sleeps() - sleeps_before;
    end.channel().close();
    return figures;
}

}  // namespace weft::bench
