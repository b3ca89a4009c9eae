// See frame_writer.h.
#include "fuzz/frame_writer.h"

#include <algorithm>
#include <cstring>
#include <string_view>

#include "base/sha256.h"
#include "gen/cuda_abi.h"
#include "gen/wire_frames.h"
#include "wire/describe.h"

namespace weft::fuzz {

namespace {

constexpr std::string_view kImage = "image";

wire::Hash image_hash() { return sha256(std::as_bytes(std::span(kImage))); }

}  // namespace

template <typename Frame>
WrittenFrame FrameWriter::write(const Frame& fields, std::size_t tail_bytes, std::size_t payload_bytes) {
    WrittenFrame out;
    out.frame.resize(wire::encoded_size<Frame>(tail_bytes));
    constexpr wire::FrameInfo info = Frame::kInfo;
    const bool waits = info.waiting == wire::Has::always || (info.waiting == wire::Has::optional && choices_.one_in(2));
    const std::uint16_t flags = (waits ? wire::kFlagWaiting : 0) | (payload_bytes != 0 ? wire::kFlagPayload : 0);
    *wire::begin_frame<Frame>(out.frame.data(), context_, waits ? ++request_ : 0, flags, tail_bytes) = fields;
    std::byte* tail = wire::tail_of<Frame>(out.frame.data());
    for (std::size_t i = 0; i < std::min<std::size_t>(tail_bytes, 64); ++i)
        tail[i] = static_cast<std::byte>(choices_.next());
    out.payload.resize(payload_bytes, std::byte{0x5a});
    reinterpret_cast<wire::FrameHeader*>(out.frame.data())->payload_bytes = static_cast<std::uint32_t>(payload_bytes);
    return out;
}

std::uint64_t FrameWriter::address() {
    return choices_.one_in(50) ? choices_.next() : kWindow + choices_.below(4u << 20);
}

std::uint64_t FrameWriter::size() {
    if (choices_.one_in(50)) return choices_.next();
    return choices_.one_in(8) ? choices_.below(1u << 20) : choices_.below(4096);
}

std::vector<WrittenFrame> FrameWriter::opening() {
    std::vector<WrittenFrame> frames;
    wire::Hello hello{};
    hello.protocol = wire::kProtocolVersion;
    hello.window_base = kWindow;
    hello.window_stride_bytes = kStride;
    frames.push_back(write(hello));
    frames.push_back(write(wire::CtxCreate{}));
    wire::MemMap map{};
    map.address = kWindow;
    map.size_bytes = 8u << 20;
    frames.push_back(write(map));
    wire::Image image{};
    image.hash = image_hash();
    image.size_bytes = kImage.size();
    WrittenFrame piece = write(image, kImage.size());
    std::memcpy(wire::tail_of<wire::Image>(piece.frame.data()), kImage.data(), kImage.size());
    frames.push_back(std::move(piece));
    frames.push_back(module());
    for (std::uint32_t i = 1; i < 6; ++i) {
        wire::StreamCreate stream{};
        stream.stream = i;
        stream.flags = i % 2;
        frames.push_back(write(stream));
        wire::EventCreate event{};
        event.event = i;
        frames.push_back(write(event));
    }
    return frames;
}

WrittenFrame FrameWriter::next() {
    if (spoil_one_in_ != 0 && choices_.one_in(spoil_one_in_ * 4)) return garbage();
    WrittenFrame frame = plausible();
    if (spoil_one_in_ != 0 && choices_.one_in(spoil_one_in_)) spoil(&frame);
    return frame;
}

WrittenFrame FrameWriter::plausible() {
    if (!pending_.empty()) {
        WrittenFrame next = std::move(pending_.front());
        pending_.pop_front();
        return next;
    }
    context_ = choices_.one_in(200) ? number() : 1;
    switch (choices_.below(14)) {
        case 0:
        case 1: return copy();
        case 2: return transfer();
        case 3: return object();
        case 4:
        case 5: return event();
        case 6: return choices_.one_in(20) ? module() : launch();
        case 7: return host();
        case 8: return graph();
        default: return launch();
    }
}

WrittenFrame FrameWriter::launch() {
    wire::Launch fields{};
    fields.module = choices_.one_in(100) ? number() : 7;
    fields.function = static_cast<std::uint32_t>(choices_.one_in(100) ? choices_.next() : 1);
    fields.grid_x = fields.grid_y = fields.grid_z = fields.block_x = fields.block_y = fields.block_z = 1;
    fields.stream = number();
    fields.parameter_bytes = static_cast<std::uint32_t>(choices_.below(64));
    fields.attribute_count = choices_.one_in(20) ? static_cast<std::uint32_t>(choices_.below(3)) : 0;
    return write(fields, fields.parameter_bytes + fields.attribute_count * sizeof(CUlaunchAttribute));
}

WrittenFrame FrameWriter::copy() {
    if (choices_.one_in(4)) return box();
    switch (choices_.below(4)) {
        case 0: {
            wire::CopyH2d fields{};
            fields.destination = address();
            fields.stream = number();
            return write(fields, 0, 1 + choices_.below(8192));
        }
        case 1: {
            wire::CopyH2dInline fields{};
            fields.destination = address();
            fields.stream = number();
            fields.size_bytes = static_cast<std::uint32_t>(choices_.below(512));
            return write(fields, fields.size_bytes);
        }
        case 2: {
            wire::CopyD2h fields{};
            fields.source = address();
            fields.size_bytes = size();
            fields.transfer = number();
            fields.stream = number();
            return write(fields);
        }
        default: {
            wire::MemsetD8Async fields{};
            fields.dstDevice = address();
            fields.N = size();
            fields.stream = number();
            return write(fields);
        }
    }
}

// Copies of boxes: small ones, now and then with pitches that cannot be.
WrittenFrame FrameWriter::box() {
    const auto fill = [&](auto& fields) {
        fields.place = address();
        fields.width = 1 + choices_.below(300);
        fields.height = 1 + choices_.below(8);
        fields.depth = 1 + choices_.below(3);
        fields.row_pitch = choices_.one_in(20) ? choices_.next() : 320;
        fields.plane_pitch = fields.row_pitch * (choices_.one_in(20) ? 1 : 9);
        fields.is_array = choices_.one_in(20) ? 1 : 0;
        fields.stream = number();
    };
    switch (choices_.below(5)) {
        case 0: {
            wire::CopyBoxH2d fields{};
            fill(fields);
            fields.offset = choices_.one_in(4) ? choices_.below(64) : 0;
            if (choices_.one_in(2)) return write(fields, 0, 1 + choices_.below(4000));
            fields.size_bytes = static_cast<std::uint32_t>(choices_.below(300));
            return write(fields, fields.size_bytes);
        }
        case 1: {
            wire::CopyBoxPull fields{};
            fill(fields);
            fields.width = 1 + choices_.below(16);
            fields.height = fields.depth = 1;
            fields.pull = ++fresh_;
            return write(fields);
        }
        case 2: {
            wire::CopyBoxD2h fields{};
            fill(fields);
            fields.transfer = number();
            return write(fields);
        }
        case 3: {
            wire::CopyBoxSegment fields{};
            fill(fields);
            fields.segment = number();
            return write(fields);
        }
        default: {
            wire::CopyBoxD2d fields{};
            fields.to_place = address();
            fields.from_place = address();
            fields.to_row_pitch = fields.from_row_pitch = 320;
            fields.width = choices_.below(320);
            fields.height = choices_.below(8);
            fields.depth = 1;
            fields.stream = number();
            return write(fields);
        }
    }
}

WrittenFrame FrameWriter::transfer() {
    switch (choices_.below(5)) {
        case 0: {
            wire::CopyH2dPull fields{};
            fields.destination = address();
            fields.size_bytes = choices_.below(64);
            fields.pull = ++fresh_;
            fields.stream = number();
            return write(fields);
        }
        case 1: {
            wire::PullData fields{};
            fields.pull = fresh_;
            fields.size_bytes = static_cast<std::uint32_t>(choices_.below(64));
            return write(fields, fields.size_bytes);
        }
        case 2: {
            wire::MemMap fields{};
            fields.address = kWindow + choices_.below(64) * (2u << 20);
            fields.size_bytes = 2u << 20;
            return write(fields);
        }
        case 3: {
            wire::MemUnmap fields{};
            fields.address = kWindow + choices_.below(64) * (2u << 20);
            fields.size_bytes = 2u << 20;
            return write(fields);
        }
        default: {
            wire::Fence fields{};
            fields.token = choices_.next();
            return write(fields);
        }
    }
}

WrittenFrame FrameWriter::object() {
    switch (choices_.below(8)) {
        case 0: {
            wire::StreamCreate fields{};
            fields.stream = ++fresh_;
            fields.flags = static_cast<std::uint32_t>(choices_.below(2));
            return write(fields);
        }
        case 1: {
            wire::StreamDestroy fields{};
            fields.stream = choices_.one_in(10) ? number() : fresh_;
            return write(fields);
        }
        case 2: {
            wire::StreamSync fields{};
            fields.stream = number();
            return write(fields);
        }
        case 3: {
            wire::StreamQuery fields{};
            fields.stream = number();
            return write(fields);
        }
        case 4: {
            context_ = number();
            return choices_.one_in(4) ? write(wire::CtxDestroy{}) : write(wire::CtxCreate{});
        }
        case 5: {
            wire::MemNoteAlloc fields{};
            fields.address = address();
            fields.size_bytes = size();
            return write(fields);
        }
        default: {
            wire::CtxSync fields{};
            fields.read_source = address();
            fields.read_bytes = static_cast<std::uint32_t>(choices_.below(64));
            return write(fields);
        }
    }
}

WrittenFrame FrameWriter::event() {
    switch (choices_.below(7)) {
        case 0: {
            wire::EventCreate fields{};
            fields.event = ++fresh_;
            return write(fields);
        }
        case 1: {
            wire::EventDestroy fields{};
            fields.event = choices_.one_in(10) ? number() : fresh_;
            return write(fields);
        }
        case 2: {
            wire::EventRecord fields{};
            fields.event = number();
            fields.stream = number();
            fields.record = static_cast<std::uint32_t>(choices_.next());
            return write(fields);
        }
        case 3: {
            wire::StreamWaitEvent fields{};
            fields.stream = number();
            fields.event = number();
            return write(fields);
        }
        case 4: {
            wire::EventSync fields{};
            fields.event = number();
            return write(fields);
        }
        case 5: {
            wire::EventQuery fields{};
            fields.event = number();
            return write(fields);
        }
        default: {
            wire::EventElapsed fields{};
            fields.start = number();
            fields.end = number();
            return write(fields);
        }
    }
}

WrittenFrame FrameWriter::host() {
    if (choices_.one_in(2)) {
        wire::HostFunction fields{};
        fields.call = ++fresh_;
        fields.stream = number();
        return write(fields);
    }
    wire::HostDone fields{};
    fields.call = fresh_ - static_cast<std::uint32_t>(choices_.below(3));
    return write(fields);
}

WrittenFrame FrameWriter::graph_node(std::uint32_t graph, std::uint32_t node, const WrittenFrame& inner) {
    wire::GraphNode fields{};
    fields.graph = graph;
    fields.node = node;
    fields.size_bytes = static_cast<std::uint32_t>(inner.frame.size());
    WrittenFrame out = write(fields, inner.frame.size());
    std::memcpy(wire::tail_of<wire::GraphNode>(out.frame.data()), inner.frame.data(), inner.frame.size());
    return out;
}

WrittenFrame FrameWriter::begin_graph() {
    constexpr std::uint32_t kNodes = 4;
    graph_ = ++fresh_;
    context_ = 1;
    wire::GraphCreate create{};
    create.graph = graph_;
    create.node_count = kNodes;
    wire::HostFunction call{};
    call.call = ++fresh_;
    wire::EventRecord record{};
    record.event = number();
    pending_.push_back(graph_node(graph_, 0, launch()));
    pending_.push_back(graph_node(graph_, 1, choices_.one_in(3) ? write(call) : write(record)));
    pending_.push_back(graph_node(graph_, 2, choices_.one_in(3) ? copy() : launch()));
    wire::GraphEdges edges{};
    edges.graph = graph_;
    edges.count = 2;
    WrittenFrame pairs = write(edges, 16);
    const std::uint32_t list[] = {0, 1, static_cast<std::uint32_t>(choices_.below(3)), 3};
    std::memcpy(wire::tail_of<wire::GraphEdges>(pairs.frame.data()), list, sizeof list);
    pending_.push_back(std::move(pairs));
    wire::GraphInstantiate ready{};
    ready.graph = graph_;
    pending_.push_back(write(ready));
    return write(create);
}

WrittenFrame FrameWriter::graph() {
    const std::uint32_t named = choices_.one_in(20) ? number() : graph_;
    switch (choices_.below(6)) {
        case 0: return begin_graph();
        case 1: {
            const WrittenFrame inner = launch();
            wire::GraphUpdate fields{};
            fields.graph = named;
            fields.stream = number();
            fields.is_enabled = choices_.one_in(4) ? 0 : 1;
            fields.node = static_cast<std::uint32_t>(choices_.below(4));
            fields.size_bytes = choices_.one_in(2) ? static_cast<std::uint32_t>(inner.frame.size()) : 0;
            WrittenFrame out = write(fields, inner.frame.size());
            std::memcpy(wire::tail_of<wire::GraphUpdate>(out.frame.data()), inner.frame.data(), inner.frame.size());
            return out;
        }
        case 2: {
            wire::GraphDestroy fields{};
            fields.graph = named;
            return write(fields);
        }
        default: {
            wire::GraphLaunch fields{};
            fields.graph = named;
            fields.stream = number();
            fields.record_count = 1;
            return write(fields, 4);
        }
    }
}

WrittenFrame FrameWriter::module() {
    wire::ModuleLoad fields{};
    fields.module = fresh_ == 100 ? 7 : ++fresh_;
    if (fresh_ == 100) ++fresh_;
    fields.kind = 1;
    fields.size_bytes = kImage.size();
    fields.hash = image_hash();
    WrittenFrame frame = write(fields, 4);
    std::memset(wire::tail_of<wire::ModuleLoad>(frame.frame.data()), 0, 4);
    return frame;
}

// Any bytes behind a header that may pass for one.
WrittenFrame FrameWriter::garbage() {
    WrittenFrame out;
    out.frame.resize(sizeof(wire::FrameHeader) + choices_.below(16) * 8);
    for (std::byte& byte : out.frame) byte = static_cast<std::byte>(choices_.next());
    auto* header = reinterpret_cast<wire::FrameHeader*>(out.frame.data());
    header->size_bytes = static_cast<std::uint32_t>(out.frame.size());
    header->opcode =
        static_cast<std::uint16_t>(choices_.one_in(4) ? choices_.next() : choices_.below(wire::kLastOpcode + 2));
    header->flags &= 3;
    header->payload_bytes = 0;
    if ((header->flags & wire::kFlagPayload) != 0) {
        out.payload.resize(1 + choices_.below(64));
        header->payload_bytes = static_cast<std::uint32_t>(out.payload.size());
    }
    return out;
}

void FrameWriter::spoil(WrittenFrame* frame) {
    auto* header = reinterpret_cast<wire::FrameHeader*>(frame->frame.data());
    switch (choices_.below(4)) {
        case 0: {  // truncated, as a channel would still deliver it
            const std::size_t words = frame->frame.size() / 8;
            frame->frame.resize(std::max<std::size_t>(3, choices_.below(words) + 1) * 8);
            header = reinterpret_cast<wire::FrameHeader*>(frame->frame.data());
            header->size_bytes = static_cast<std::uint32_t>(frame->frame.size());
            break;
        }
        case 1: {  // longer than its fields
            frame->frame.resize(frame->frame.size() + 8 * (1 + choices_.below(4)));
            header = reinterpret_cast<wire::FrameHeader*>(frame->frame.data());
            header->size_bytes = static_cast<std::uint32_t>(frame->frame.size());
            break;
        }
        default: {  // some bytes changed; what a channel checks itself stays
            const wire::FrameHeader kept = *header;
            for (std::uint64_t i = 0; i <= choices_.below(4); ++i) {
                frame->frame[choices_.below(frame->frame.size())] = static_cast<std::byte>(choices_.next());
            }
            header->size_bytes = kept.size_bytes;
            header->payload_bytes = kept.payload_bytes;
            break;
        }
    }
}

}  // namespace weft::fuzz
