// See inventory.h.
#include "executor/inventory.h"

#include <algorithm>
#include <cstdio>
#include <cstring>

#include "executor/memory.h"
#include "gen/cuda_names.h"

namespace weft::executor {

namespace {

constexpr std::size_t kMaxName = 256;
constexpr std::uint64_t kMiB = 1u << 20;
constexpr std::uint64_t kMaxContextCost = 1024 * kMiB;

Status failed(std::string_view call, CUresult result) {
    return Status::error(ErrorCode::unavailable, std::string(call) + ": " + name_of(result));
}

std::int32_t attribute_of(const wire::DeviceInfo& info, CUdevice_attribute id) {
    return info.attributes.get(id).value_or(0);
}

// What a context costs here: free memory before and after, each seen from inside a context of its own where the driver
// needs one.
std::uint64_t context_cost(const driver::DriverTable& driver, CUdevice device, std::uint64_t total_bytes) {
    CUcontext first = nullptr, second = nullptr;
    std::size_t before = 0, after = 0, total = 0;
    if (driver.cuCtxCreate_v2(&first, 0, device) != CUDA_SUCCESS) return 0;
    std::uint64_t cost = 0;
    if (driver.cuMemGetInfo_v2(&before, &total) == CUDA_SUCCESS &&
        driver.cuCtxCreate_v2(&second, 0, device) == CUDA_SUCCESS) {
        // The first context of a process costs more than a second one: both together are an upper bound of one
        // executor.
        if (driver.cuMemGetInfo_v2(&after, &total) == CUDA_SUCCESS && before >= after) cost = before - after;
        driver.cuCtxDestroy_v2(second);
    }
    driver.cuCtxDestroy_v2(first);
    // What other processes hold is in there, too: no context costs more than kMaxContextCost.
    const std::uint64_t used_by_first = std::min(total_bytes > before ? total_bytes - before : 0, kMaxContextCost);
    return std::min(std::max(cost, used_by_first), total_bytes);
}

std::string device_json(const driver::DriverTable& driver, const wire::DeviceInfo& info, CUdevice device) {
    const std::uint64_t cost = context_cost(driver, device, info.total_memory_bytes);
    const std::uint64_t reserve = (cost + 2 * kMiB - 1) / (2 * kMiB) * (2 * kMiB);
    return "{\"ordinal\":" + std::to_string(info.ordinal) + ",\"name\":" + json_string(info.name) +
           ",\"uuid\":" + json_string(format_uuid(info.uuid)) +
           ",\"total_bytes\":" + std::to_string(info.total_memory_bytes) + ",\"compute_capability\":[" +
           std::to_string(attribute_of(info, CU_DEVICE_ATTRIBUTE_COMPUTE_CAPABILITY_MAJOR)) + "," +
           std::to_string(attribute_of(info, CU_DEVICE_ATTRIBUTE_COMPUTE_CAPABILITY_MINOR)) +
           "],\"reserve_bytes\":" + std::to_string(reserve) + ",\"pci_bus_id\":" + json_string(info.pci_bus_id) + "}";
}

}  // namespace

std::string name_of(CUresult result) {
    const char* name = driver::error_name(result);
    return name != nullptr ? name : "CUresult " + std::to_string(static_cast<int>(result));
}

std::string json_string(std::string_view text) {
    std::string out = "\"";
    for (const char c : text) {
        if (c == '"' || c == '\\') {
            out += '\\';
            out += c;
        } else if (static_cast<unsigned char>(c) < 0x20) {
            char escape[8];
            std::snprintf(escape, sizeof escape, "\\u%04x", static_cast<unsigned>(c));
            out += escape;
        } else {
            out += c;
        }
    }
    return out + "\"";
}

std::string format_uuid(const std::array<std::uint8_t, 16>& uuid) {
    std::string out = "GPU-";
    for (std::size_t i = 0; i < uuid.size(); ++i) {
        char digits[4];
        std::snprintf(digits, sizeof digits, "%02x", uuid[i]);
        if (i == 4 || i == 6 || i == 8 || i == 10) out += '-';
        out += digits;
    }
    return out;
}

Result<wire::DeviceInfo> describe_device(const driver::DriverTable& driver, int ordinal) {
    CUdevice device = 0;
    if (const CUresult result = driver.cuDeviceGet(&device, ordinal); result != CUDA_SUCCESS)
        return failed("cuDeviceGet", result);
    wire::DeviceInfo info;
    info.ordinal = static_cast<std::uint32_t>(ordinal);
    char name[kMaxName] = {};
    if (const CUresult result = driver.cuDeviceGetName(name, kMaxName - 1, device); result != CUDA_SUCCESS)
        return failed("cuDeviceGetName", result);
    info.name = name;
    std::size_t total = 0;
    if (const CUresult result = driver.cuDeviceTotalMem_v2(&total, device); result != CUDA_SUCCESS)
        return failed("cuDeviceTotalMem", result);
    info.total_memory_bytes = total;
    CUuuid uuid{};
    const auto get_uuid = driver.cuDeviceGetUuid_v2 != nullptr ? driver.cuDeviceGetUuid_v2 : driver.cuDeviceGetUuid;
    if (get_uuid(&uuid, device) == CUDA_SUCCESS) std::memcpy(info.uuid.data(), &uuid, info.uuid.size());
    for (int id = 1; id < CU_DEVICE_ATTRIBUTE_MAX; ++id) {
        int value = 0;
        if (driver.cuDeviceGetAttribute(&value, static_cast<CUdevice_attribute>(id), device) == CUDA_SUCCESS) {
            info.attributes.set(static_cast<std::size_t>(id), value);
        }
    }
    char bus_id[32] = {};
    if (driver.cuDeviceGetPCIBusId(bus_id, sizeof bus_id - 1, device) == CUDA_SUCCESS) info.pci_bus_id = bus_id;
    info.granularity_bytes = mapping_granularity(driver, device);
    unsigned flags = 0;
    int active = 0;
    if (driver.cuDevicePrimaryCtxGetState(device, &flags, &active) == CUDA_SUCCESS) info.primary_flags = flags;
    // Asking needs a context on NVIDIA, whose devices all have the same range.
    if (driver.cuCtxGetStreamPriorityRange(&info.stream_priority_least, &info.stream_priority_greatest) !=
        CUDA_SUCCESS) {
        info.stream_priority_least = 0;
        info.stream_priority_greatest =
            attribute_of(info, CU_DEVICE_ATTRIBUTE_STREAM_PRIORITIES_SUPPORTED) != 0 ? -5 : 0;
    }
    return info;
}

Result<std::string> probe(const driver::DriverTable& driver) {
    int version = 0, count = 0;
    if (const CUresult result = driver.cuInit(0); result != CUDA_SUCCESS) return failed("cuInit", result);
    if (const CUresult result = driver.cuDriverGetVersion(&version); result != CUDA_SUCCESS)
        return failed("cuDriverGetVersion", result);
    if (const CUresult result = driver.cuDeviceGetCount(&count); result != CUDA_SUCCESS)
        return failed("cuDeviceGetCount", result);
    std::string out = "{\"driver_version\":" + std::to_string(version) + ",\"devices\":[";
    for (int ordinal = 0; ordinal < count; ++ordinal) {
        Result<wire::DeviceInfo> info = describe_device(driver, ordinal);
        if (!info) return info.take_status();
        CUdevice device = 0;
        driver.cuDeviceGet(&device, ordinal);
        out += (ordinal == 0 ? "" : ",") + device_json(driver, *info, device);
    }
    return out + "]}";
}

}  // namespace weft::executor
