#include "wire/describe.h"

#include <string_view>
#include <utility>

#include "base/bytes.h"

namespace weft::wire {
namespace {

// Each kind of element has write(writer, element), read(reader) and the least bytes that one takes.
template <typename T, typename Write>
void write_list(ByteWriter& out, const std::vector<T>& list, Write&& write) {
    out.u32(list.size());
    for (const T& element : list) write(out, element);
}

template <typename T, typename Read>
std::vector<T> read_list(ByteReader& in, std::size_t limit, std::size_t element_bytes, Read&& read) {
    const std::size_t n = in.count(limit, element_bytes);
    std::vector<T> list;
    list.reserve(n);
    for (std::size_t i = 0; i < n && in.is_ok(); ++i) list.push_back(read(in));
    return list;
}

template <std::size_t N>
std::array<std::uint8_t, N> read_array(ByteReader& in) {
    return in.value<std::array<std::uint8_t, N>>();
}

// Values first, then one bit per value: is it there?
void write_attributes(ByteWriter& out, const AttributeTable& table) {
    out.u32(table.size());
    for (std::size_t id = 0; id < table.size(); ++id) out.i32(table.get(id).value_or(0));
    for (std::size_t first = 0; first < table.size(); first += 8) {
        std::uint8_t bits = 0;
        for (std::size_t id = first; id < first + 8; ++id)
            bits |= static_cast<std::uint8_t>(table.get(id).has_value() << (id - first));
        out.value(bits);
    }
}

AttributeTable read_attributes(ByteReader& in) {
    const std::size_t n = in.count(kMaxAttributes, sizeof(std::int32_t));
    const auto values = in.take(n * sizeof(std::int32_t));
    const auto bits = in.take((n + 7) / 8);
    AttributeTable table;
    if (!in.is_ok()) return table;
    ByteReader reader(values);
    for (std::size_t id = 0; id < n; ++id) {
        const std::int32_t value = reader.i32();
        if ((static_cast<std::uint8_t>(bits[id / 8]) >> (id % 8) & 1) != 0) table.set(id, value);
    }
    return table;
}

void write_device(ByteWriter& out, const DeviceInfo& device) {
    out.u32(device.ordinal);
    out.text(device.name, kMaxNameBytes);
    out.value(device.uuid);
    out.u64(device.total_memory_bytes);
    out.u64(device.granularity_bytes);
    write_attributes(out, device.attributes);
    out.text(device.pci_bus_id, kMaxNameBytes);
    out.i32(device.stream_priority_least);
    out.i32(device.stream_priority_greatest);
    out.u32(device.primary_flags);
}

DeviceInfo read_device(ByteReader& in) {
    DeviceInfo device;
    device.ordinal = in.u32();
    device.name = in.text(kMaxNameBytes);
    device.uuid = read_array<16>(in);
    device.total_memory_bytes = in.u64();
    device.granularity_bytes = in.u64();
    device.attributes = read_attributes(in);
    device.pci_bus_id = in.text(kMaxNameBytes);
    device.stream_priority_least = in.i32();
    device.stream_priority_greatest = in.i32();
    device.primary_flags = in.u32();
    return device;
}

void write_range(ByteWriter& out, const AddressRange& range) {
    out.u64(range.address);
    out.u64(range.size_bytes);
}

AddressRange read_range(ByteReader& in) {
    const std::uint64_t address = in.u64();
    return {address, in.u64()};
}

void write_function(ByteWriter& out, const FunctionInfo& function) {
    out.text(function.name, kMaxNameBytes);
    write_attributes(out, function.attributes);
    write_list(out, function.parameters, [](ByteWriter& to, const ParameterInfo& parameter) {
        to.u32(parameter.offset);
        to.u32(parameter.size_bytes);
    });
}

FunctionInfo read_function(ByteReader& in) {
    FunctionInfo function;
    function.name = in.text(kMaxNameBytes);
    function.attributes = read_attributes(in);
    function.parameters = read_list<ParameterInfo>(in, kMaxParameters, 8, [](ByteReader& from) {
        const std::uint32_t offset = from.u32();
        return ParameterInfo{offset, from.u32()};
    });
    return function;
}

void write_options(ByteWriter& out, const JitOptions& options) {
    write_list(out, options, [](ByteWriter& to, const JitOption& option) {
        to.u32(option.option);
        to.u64(option.value);
    });
}

JitOptions read_options(ByteReader& in) {
    return read_list<JitOption>(in, kMaxJitOptions, 12, [](ByteReader& from) {
        const std::uint32_t option = from.u32();
        return JitOption{option, from.u64()};
    });
}

void write_input(ByteWriter& out, const LinkInput& input) {
    out.u32(input.type);
    out.value(input.hash);
    out.u64(input.size_bytes);
    out.text(input.name, kMaxNameBytes);
    write_options(out, input.options);
}

LinkInput read_input(ByteReader& in) {
    LinkInput input;
    input.type = in.u32();
    input.hash = read_array<32>(in);
    input.size_bytes = in.u64();
    input.name = in.text(kMaxNameBytes);
    input.options = read_options(in);
    return input;
}

// The value if all was read and no more than padding is left.
template <typename T>
Result<T> finished(const ByteReader& in, std::string_view what, T value) {
    if (!in.is_ok()) return Status::error(ErrorCode::protocol, std::string(what) + " is cut off or out of bounds");
    if (in.left() >= 8) return Status::error(ErrorCode::protocol, std::string(what) + " has bytes behind its end");
    return value;
}

}  // namespace

void AttributeTable::set(std::size_t id, std::int32_t value) {
    if (id >= values_.size()) values_.resize(id + 1);
    values_[id] = value;
}

std::vector<std::byte> encode(const HelloReply& in) {
    ByteWriter out;
    out.u32(in.protocol);
    out.i32(in.driver_version);
    out.u64(in.features);
    out.text(in.executor_version, kMaxNameBytes);
    out.text(in.path, kMaxNameBytes);
    write_list(out, in.devices, write_device);
    return out.release();
}

Result<HelloReply> decode_hello_reply(std::span<const std::byte> bytes) {
    ByteReader in(bytes);
    HelloReply reply;
    reply.protocol = in.u32();
    reply.driver_version = in.i32();
    reply.features = in.u64();
    reply.executor_version = in.text(kMaxNameBytes);
    reply.path = in.text(kMaxNameBytes);
    reply.devices = read_list<DeviceInfo>(in, kMaxDevices, 64, read_device);
    return finished(in, "HELLO reply", std::move(reply));
}

std::vector<std::byte> encode(const ModuleReply& in) {
    ByteWriter out;
    out.u32(in.need_image ? 1 : 0);
    out.text(in.info_log, kMaxLogBytes);
    out.text(in.error_log, kMaxLogBytes);
    write_list(out, in.functions, write_function);
    write_list(out, in.globals, [](ByteWriter& to, const GlobalInfo& global) {
        to.text(global.name, kMaxNameBytes);
        write_range(to, global.range);
    });
    write_list(out, in.reserve, write_range);
    return out.release();
}

Result<ModuleReply> decode_module_reply(std::span<const std::byte> bytes) {
    ByteReader in(bytes);
    ModuleReply reply;
    reply.need_image = in.u32() != 0;
    reply.info_log = in.text(kMaxLogBytes);
    reply.error_log = in.text(kMaxLogBytes);
    reply.functions = read_list<FunctionInfo>(in, kMaxFunctions, 12, read_function);
    reply.globals = read_list<GlobalInfo>(in, kMaxGlobals, 20, [](ByteReader& from) {
        std::string name = from.text(kMaxNameBytes);
        return GlobalInfo{std::move(name), read_range(from)};
    });
    reply.reserve = read_list<AddressRange>(in, kMaxGlobals, 16, read_range);
    return finished(in, "module description", std::move(reply));
}

std::vector<std::byte> encode(const JitOptions& in) {
    ByteWriter out;
    write_options(out, in);
    return out.release();
}

Result<JitOptions> decode_jit_options(std::span<const std::byte> bytes) {
    ByteReader in(bytes);
    JitOptions options = read_options(in);
    return finished(in, "list of JIT options", std::move(options));
}

std::vector<std::byte> encode(const LinkRequest& in) {
    ByteWriter out;
    write_options(out, in.options);
    write_list(out, in.inputs, write_input);
    return out.release();
}

Result<LinkRequest> decode_link_request(std::span<const std::byte> bytes) {
    ByteReader in(bytes);
    LinkRequest request;
    request.options = read_options(in);
    request.inputs = read_list<LinkInput>(in, kMaxLinkInputs, 52, read_input);
    return finished(in, "link request", std::move(request));
}

std::vector<std::byte> encode(const LinkReply& in) {
    ByteWriter out;
    write_list(out, in.missing, [](ByteWriter& to, std::uint32_t index) { to.u32(index); });
    out.u64(in.image_bytes);
    out.value(in.hash);
    out.text(in.info_log, kMaxLogBytes);
    out.text(in.error_log, kMaxLogBytes);
    return out.release();
}

Result<LinkReply> decode_link_reply(std::span<const std::byte> bytes) {
    ByteReader in(bytes);
    LinkReply reply;
    reply.missing = read_list<std::uint32_t>(in, kMaxLinkInputs, 4, [](ByteReader& from) { return from.u32(); });
    reply.image_bytes = in.u64();
    reply.hash = read_array<32>(in);
    reply.info_log = in.text(kMaxLogBytes);
    reply.error_log = in.text(kMaxLogBytes);
    return finished(in, "link reply", std::move(reply));
}

}  // namespace weft::wire
