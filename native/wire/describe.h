// The variable parts of replies and requests: descriptions of devices, modules and links. Encoded and decoded by hand,
// with every count and length checked against a bound and against what is left. Grammar: docs/design/wire.md.
#pragma once

#include <array>
#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "base/status.h"

namespace weft::wire {

using Hash = std::array<std::uint8_t, 32>;  // SHA-256

// Bounds of the decoders; encoders cut texts and refuse nothing, so keep within them.
inline constexpr std::size_t kMaxDevices = 64;
inline constexpr std::size_t kMaxAttributes = 1024;
inline constexpr std::size_t kMaxNameBytes = 16 * 1024;  // of a device, a mangled function, a path
inline constexpr std::size_t kMaxLogBytes = 16 * 1024;
inline constexpr std::size_t kMaxFunctions = 16 * 1024;
inline constexpr std::size_t kMaxParameters = 4096;
inline constexpr std::size_t kMaxGlobals = 16 * 1024;
inline constexpr std::size_t kMaxJitOptions = 64;
inline constexpr std::size_t kMaxLinkInputs = 1024;

// Values by the number of an enumerator (CUdevice_attribute, CUfunction_attribute); absent where the driver has none.
class AttributeTable {
  public:
    void set(std::size_t id, std::int32_t value);
    std::optional<std::int32_t> get(std::size_t id) const { return id < values_.size() ? values_[id] : std::nullopt; }
    std::size_t size() const { return values_.size(); }
    bool operator==(const AttributeTable&) const = default;

  private:
    std::vector<std::optional<std::int32_t>> values_;
};

struct DeviceInfo {
    std::uint32_t ordinal = 0;  // of the executor's driver
    std::string name;
    std::array<std::uint8_t, 16> uuid{};
    std::uint64_t total_memory_bytes = 0;  // the cap of the lease
    std::uint64_t granularity_bytes = 0;   // of MEM_MAP
    AttributeTable attributes;
    std::string pci_bus_id;  // "0000:01:00.0"
    std::int32_t stream_priority_least = 0;
    std::int32_t stream_priority_greatest = 0;
    std::uint32_t primary_flags = 0;
    bool operator==(const DeviceInfo&) const = default;
};

// Reply to HELLO and WINDOW.
struct HelloReply {
    std::uint32_t protocol = 0;
    std::int32_t driver_version = 0;
    std::uint64_t features = 0;
    std::string executor_version;
    std::string path;  // where the GPUs are, for people: "software GPU on host"
    std::vector<DeviceInfo> devices;
    bool operator==(const HelloReply&) const = default;
};

struct ParameterInfo {
    std::uint32_t offset = 0;
    std::uint32_t size_bytes = 0;
    bool operator==(const ParameterInfo&) const = default;
};

struct FunctionInfo {
    std::string name;
    AttributeTable attributes;
    std::vector<ParameterInfo> parameters;
    bool operator==(const FunctionInfo&) const = default;
};

struct AddressRange {
    std::uint64_t address = 0;
    std::uint64_t size_bytes = 0;
    bool operator==(const AddressRange&) const = default;
};

struct GlobalInfo {
    std::string name;
    AddressRange range;
    bool operator==(const GlobalInfo&) const = default;
};

// Reply to MODULE_LOAD. need_image: nothing else is filled; send the image and ask again.
struct ModuleReply {
    bool need_image = false;
    std::string info_log;
    std::string error_log;
    std::vector<FunctionInfo> functions;  // their index is the number that LAUNCH names
    std::vector<GlobalInfo> globals;
    std::vector<AddressRange> reserve;  // the client must reserve these addresses or unload the module
    bool operator==(const ModuleReply&) const = default;
};

struct JitOption {
    std::uint32_t option = 0;  // CUjit_option
    std::uint64_t value = 0;   // as an integer; buffers stay with the client
    bool operator==(const JitOption&) const = default;
};
using JitOptions = std::vector<JitOption>;

struct LinkInput {
    std::uint32_t type = 0;  // CUjitInputType
    Hash hash{};
    std::uint64_t size_bytes = 0;
    std::string name;
    JitOptions options;
    bool operator==(const LinkInput&) const = default;
};

struct LinkRequest {
    JitOptions options;
    std::vector<LinkInput> inputs;
    bool operator==(const LinkRequest&) const = default;
};

// Reply to LINK. The image itself follows as DATA of the transfer that LINK names; hash is the executor's own of it.
// missing: numbers of inputs whose images must be sent first, after which LINK is sent again.
struct LinkReply {
    std::vector<std::uint32_t> missing;
    std::uint64_t image_bytes = 0;
    Hash hash{};
    std::string info_log;
    std::string error_log;
    bool operator==(const LinkReply&) const = default;
};

std::vector<std::byte> encode(const HelloReply& in);
std::vector<std::byte> encode(const ModuleReply& in);
std::vector<std::byte> encode(const JitOptions& in);
std::vector<std::byte> encode(const LinkRequest& in);
std::vector<std::byte> encode(const LinkReply& in);

// `bytes` may have up to 7 bytes of padding at its end. Error: protocol.
Result<HelloReply> decode_hello_reply(std::span<const std::byte> bytes);
Result<ModuleReply> decode_module_reply(std::span<const std::byte> bytes);
Result<JitOptions> decode_jit_options(std::span<const std::byte> bytes);
Result<LinkRequest> decode_link_request(std::span<const std::byte> bytes);
Result<LinkReply> decode_link_reply(std::span<const std::byte> bytes);

}  // namespace weft::wire
