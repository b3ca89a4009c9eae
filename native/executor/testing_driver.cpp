// See testing_driver.h.
#include "base/log.h"
#include "executor/testing_driver.h"

#include <sys/mman.h>

#include <cstring>
#include <string_view>

#include "base/box.h"

namespace weft::executor::testing {

namespace {

constexpr std::string_view kFunctionNames[] = {"add", "noop"};
struct FakeFunction {
    std::size_t index;
};
FakeFunction functions[] = {{0}, {1}};

void add(const AddParameters& p) {
    const auto floats = [](std::uint64_t address) { return reinterpret_cast<float*>(address); };
    for (std::uint32_t i = 0; i < p.n; ++i) floats(p.c)[i] = floats(p.a)[i] + floats(p.b)[i];
}

thread_local CUcontext current_context = nullptr;

std::size_t index_of(CUfunction function) { return reinterpret_cast<FakeFunction*>(function)->index; }

}  // namespace

FakeDriver& FakeDriver::get() {
    static FakeDriver driver;
    return driver;
}

void FakeDriver::reset(bool direct_access) {
    std::lock_guard lock(mutex_);
    for (const auto& [address, size] : windows_) ::munmap(reinterpret_cast<void*>(address), size);
    for (Event* event : live_events_) delete event;
    automatic = true;
    busy = false;
    next_launch = CUDA_SUCCESS;
    memory_bytes = 64u << 20;
    taken.clear();
    log.clear();
    live_contexts_ = 0;
    live_modules_ = 0;
    next_stream_ = 1;
    direct_access_ = direct_access;
    streams_.clear();
    streams_[nullptr];
    live_events_.clear();
    extents_.clear();
    windows_.clear();
}

FakeDriver::Stream& FakeDriver::stream(CUstream handle) { return streams_[handle]; }

CUresult FakeDriver::submit(CUstream handle, std::string name, std::function<void()> work) {
    std::lock_guard lock(mutex_);
    Stream& to = stream(handle);
    log.push_back(name + "@" + std::to_string(to.number));
    to.work.push_back(std::move(work));
    if (automatic) run(to);
    return CUDA_SUCCESS;
}

void FakeDriver::run(Stream& stream) {
    while (!stream.work.empty()) {
        const auto work = std::move(stream.work.front());
        stream.work.pop_front();
        work();
    }
}

bool FakeDriver::run_one(int number) {
    std::lock_guard lock(mutex_);
    for (auto& [handle, stream] : streams_) {
        if (stream.number != number || stream.work.empty()) continue;
        const auto work = std::move(stream.work.front());
        stream.work.pop_front();
        work();
        return true;
    }
    return false;
}

CUstream FakeDriver::new_stream() {
    std::lock_guard lock(mutex_);
    const int number = next_stream_++;
    const auto handle = reinterpret_cast<CUstream>(std::uintptr_t{0x4000} + static_cast<unsigned>(number));
    streams_[handle].number = number;
    return handle;
}

void FakeDriver::run_all() {
    std::lock_guard lock(mutex_);
    for (auto& [handle, stream] : streams_) run(stream);
}

std::size_t FakeDriver::pending() const {
    std::lock_guard lock(mutex_);
    std::size_t sum = 0;
    for (const auto& [handle, stream] : streams_) sum += stream.work.size();
    return sum;
}

std::uint64_t FakeDriver::mapped_bytes() const {
    std::lock_guard lock(mutex_);
    std::uint64_t sum = 0;
    for (const auto& [address, size] : extents_) sum += size;
    return sum;
}

bool FakeDriver::is_mapped(std::uint64_t address, std::uint64_t size) const {
    std::lock_guard lock(mutex_);
    auto next = extents_.upper_bound(address);
    if (next == extents_.begin()) return false;
    --next;
    return size <= next->second && address - next->first <= next->second - size;
}

// The driver's functions. A friend, as it needs the driver's insides.
struct Calls {
    static FakeDriver& d() { return FakeDriver::get(); }
    static FakeDriver::Event* of(CUevent event) { return reinterpret_cast<FakeDriver::Event*>(event); }

    static void set_devices(driver::DriverTable& t) {
        t.cuInit = [](unsigned) { return CUDA_SUCCESS; };
        t.cuDriverGetVersion = [](int* version) { return *version = 13000, CUDA_SUCCESS; };
        t.cuDeviceGetCount = [](int* count) { return *count = 2, CUDA_SUCCESS; };
        t.cuDeviceGet = [](CUdevice* device, int ordinal) {
            return *device = ordinal, ordinal < 2 ? CUDA_SUCCESS : CUDA_ERROR_INVALID_DEVICE;
        };
        t.cuDeviceGetName = [](char* name, int size, CUdevice) {
            return std::strncpy(name, "Fake GPU", static_cast<std::size_t>(size)), CUDA_SUCCESS;
        };
        t.cuDeviceGetAttribute = [](int* value, CUdevice_attribute id, CUdevice) {
            *value = static_cast<int>(id);
            return id < CU_DEVICE_ATTRIBUTE_MAX / 2 ? CUDA_SUCCESS : CUDA_ERROR_INVALID_VALUE;
        };
        t.cuDeviceTotalMem_v2 = [](std::size_t* bytes, CUdevice) { return *bytes = d().memory_bytes, CUDA_SUCCESS; };
        t.cuDeviceGetUuid = [](CUuuid* uuid, CUdevice device) {
            return std::memset(uuid, 0x10 + device, sizeof *uuid), CUDA_SUCCESS;
        };
        t.cuDeviceGetPCIBusId = [](char* id, int size, CUdevice) {
            return std::strncpy(id, "0000:01:00.0", static_cast<std::size_t>(size)), CUDA_SUCCESS;
        };
        t.cuDevicePrimaryCtxRetain = [](CUcontext* context, CUdevice device) {
            ++d().live_contexts_;
            return *context = reinterpret_cast<CUcontext>(std::uintptr_t{0x1000} + static_cast<unsigned>(device)),
                   CUDA_SUCCESS;
        };
        t.cuDevicePrimaryCtxRelease_v2 = [](CUdevice) { return --d().live_contexts_, CUDA_SUCCESS; };
        t.cuDevicePrimaryCtxReset_v2 = [](CUdevice) { return CUDA_SUCCESS; };
        t.cuDevicePrimaryCtxGetState = [](CUdevice, unsigned* flags, int* active) {
            return *flags = 0, *active = 0, CUDA_SUCCESS;
        };
        t.cuDevicePrimaryCtxSetFlags_v2 = [](CUdevice, unsigned) { return CUDA_SUCCESS; };
    }

    static void set_contexts(driver::DriverTable& t) {
        t.cuCtxCreate_v2 = [](CUcontext* context, unsigned flags, CUdevice) {
            if (flags == CU_CTX_SCHED_YIELD) return CUDA_ERROR_OUT_OF_MEMORY;  // how tests make it fail
            return *context = reinterpret_cast<CUcontext>(std::uintptr_t{0x2000} +
                                                          static_cast<unsigned>(++d().live_contexts_)),
                   CUDA_SUCCESS;
        };
        t.cuCtxDestroy_v2 = [](CUcontext) { return --d().live_contexts_, CUDA_SUCCESS; };
        t.cuCtxSetCurrent = [](CUcontext context) { return current_context = context, CUDA_SUCCESS; };
        t.cuCtxGetCurrent = [](CUcontext* context) { return *context = current_context, CUDA_SUCCESS; };
        t.cuCtxSynchronize = [] { return d().run_all(), CUDA_SUCCESS; };
        t.cuCtxGetStreamPriorityRange = [](int* least, int* greatest) {
            return *least = 0, *greatest = -2, CUDA_SUCCESS;
        };
        t.cuCtxGetLimit = [](std::size_t* value, CUlimit) { return *value = 4096, CUDA_SUCCESS; };
        t.cuCtxSetLimit = [](CUlimit, std::size_t) { return CUDA_SUCCESS; };
        t.cuMemGetInfo_v2 = [](std::size_t* left, std::size_t* total) {
            return *left = *total = d().memory_bytes, CUDA_SUCCESS;
        };
    }

    static void set_memory(driver::DriverTable& t) {
        t.cuMemAddressReserve = [](CUdeviceptr* out, std::size_t size, std::size_t, CUdeviceptr wanted,
                                   unsigned long long) {
            std::lock_guard lock(d().mutex_);
            const int flags = MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE | MAP_FIXED_NOREPLACE;
            if (d().taken.contains(wanted)) return *out = wanted + size, CUDA_SUCCESS;
            void* at = ::mmap(reinterpret_cast<void*>(wanted), size, PROT_NONE, flags, -1, 0);
            if (at == MAP_FAILED) return CUDA_ERROR_OUT_OF_MEMORY;
            *out = reinterpret_cast<CUdeviceptr>(at);
            d().windows_[*out] = size;
            return CUDA_SUCCESS;
        };
        t.cuMemAddressFree = [](CUdeviceptr address, std::size_t size) {
            std::lock_guard lock(d().mutex_);
            if (d().windows_.erase(address) != 0) ::munmap(reinterpret_cast<void*>(address), size);
            return CUDA_SUCCESS;
        };
        t.cuMemCreate = [](CUmemGenericAllocationHandle* handle, std::size_t size, const CUmemAllocationProp*,
                           unsigned long long) {
            if (d().mapped_bytes() + size > d().memory_bytes) return CUDA_ERROR_OUT_OF_MEMORY;
            return *handle = size, CUDA_SUCCESS;
        };
        t.cuMemRelease = [](CUmemGenericAllocationHandle) { return CUDA_SUCCESS; };
        t.cuMemMap = [](CUdeviceptr address, std::size_t size, std::size_t, CUmemGenericAllocationHandle,
                        unsigned long long) {
            std::lock_guard lock(d().mutex_);
            return d().extents_[address] = size, CUDA_SUCCESS;
        };
        t.cuMemSetAccess = [](CUdeviceptr address, std::size_t size, const CUmemAccessDesc*, std::size_t) {
            return ::mprotect(reinterpret_cast<void*>(address), size, PROT_READ | PROT_WRITE) == 0
                       ? CUDA_SUCCESS
                       : CUDA_ERROR_INVALID_VALUE;
        };
        t.cuMemUnmap = [](CUdeviceptr address, std::size_t size) {
            std::lock_guard lock(d().mutex_);
            d().extents_.erase(address);
            return ::mprotect(reinterpret_cast<void*>(address), size, PROT_NONE) == 0 ? CUDA_SUCCESS
                                                                                      : CUDA_ERROR_INVALID_VALUE;
        };
        t.cuMemGetAllocationGranularity = [](std::size_t* size, const CUmemAllocationProp*,
                                             CUmemAllocationGranularity_flags) {
            return *size = 2u << 20, CUDA_SUCCESS;
        };
        t.cuMemHostAlloc = [](void** out, std::size_t size, unsigned) {
            return *out = std::malloc(size), CUDA_SUCCESS;
        };
        t.cuMemFreeHost = [](void* address) { return std::free(address), CUDA_SUCCESS; };
        t.cuMemHostRegister_v2 = [](void*, std::size_t, unsigned) { return CUDA_SUCCESS; };
        t.cuMemHostUnregister = [](void*) { return CUDA_SUCCESS; };
        t.cuMemcpyHtoDAsync_v2 = [](CUdeviceptr to, const void* from, std::size_t size, CUstream stream) {
            if (!d().is_mapped(to, size)) return CUDA_ERROR_INVALID_VALUE;
            return d().submit(stream, "h2d", [=] { std::memcpy(reinterpret_cast<void*>(to), from, size); });
        };
        t.cuMemcpyDtoHAsync_v2 = [](void* to, CUdeviceptr from, std::size_t size, CUstream stream) {
            if (!d().is_mapped(from, size)) return CUDA_ERROR_INVALID_VALUE;
            return d().submit(stream, "d2h", [=] { std::memcpy(to, reinterpret_cast<void*>(from), size); });
        };
        t.cuMemcpyDtoDAsync_v2 = [](CUdeviceptr to, CUdeviceptr from, std::size_t size, CUstream stream) {
            if (!d().is_mapped(from, size) || !d().is_mapped(to, size)) return CUDA_ERROR_INVALID_VALUE;
            return d().submit(stream, "d2d",
                              [=] { std::memmove(reinterpret_cast<void*>(to), reinterpret_cast<void*>(from), size); });
        };
        t.cuMemcpy3DAsync_v2 = [](const CUDA_MEMCPY3D* box, CUstream stream) {
            const auto copy = *box;
            const bool in = copy.srcMemoryType == CU_MEMORYTYPE_HOST, out = copy.dstMemoryType == CU_MEMORYTYPE_HOST;
            const Box size{copy.WidthInBytes, copy.Height, copy.Depth};
            const Pitches to{copy.dstPitch, copy.dstPitch * copy.dstHeight};
            const Pitches from{copy.srcPitch, copy.srcPitch * copy.srcHeight};
            if (!in && !d().is_mapped(copy.srcDevice, *from.span(size))) return CUDA_ERROR_INVALID_VALUE;
            if (!out && !d().is_mapped(copy.dstDevice, *to.span(size))) return CUDA_ERROR_INVALID_VALUE;
            return d().submit(stream,
                              in    ? "box in"
                              : out ? "box out"
                                    : "box",
                              [=] {
                                  std::vector<std::byte> packed(*size.bytes());
                                  const auto* source = static_cast<const std::byte*>(
                                      in ? copy.srcHost : reinterpret_cast<const void*>(copy.srcDevice));
                                  pack(packed.data(), source, from, size, 0, packed.size());
                                  auto* target = static_cast<std::byte*>(out ? copy.dstHost
                                                                             : reinterpret_cast<void*>(copy.dstDevice));
                                  unpack(target, to, size, 0, packed.data(), packed.size());
                              });
        };
        t.cuMemsetD8Async = [](CUdeviceptr to, unsigned char value, std::size_t size, CUstream stream) {
            if (!d().is_mapped(to, size)) return CUDA_ERROR_INVALID_VALUE;
            return d().submit(stream, "memset", [=] { std::memset(reinterpret_cast<void*>(to), value, size); });
        };
    }

    static void set_modules(driver::DriverTable& t) {
        t.cuModuleLoadDataEx = [](CUmodule* module, const void* image, unsigned count, CUjit_option* options,
                                  void** values) {
            if (std::strncmp(static_cast<const char*>(image), "bad", 3) == 0) {
                for (unsigned i = 0; i < count; ++i) {
                    if (options[i] == CU_JIT_ERROR_LOG_BUFFER)
                        std::strcpy(static_cast<char*>(values[i]), "line 1: bad");
                }
                return CUDA_ERROR_INVALID_PTX;
            }
            ++d().live_modules_;
            return *module = reinterpret_cast<CUmodule>(0x3000), CUDA_SUCCESS;
        };
        t.cuModuleUnload = [](CUmodule) { return --d().live_modules_, CUDA_SUCCESS; };
        t.cuModuleGetFunctionCount = [](unsigned* count, CUmodule) { return *count = 2, CUDA_SUCCESS; };
        t.cuModuleEnumerateFunctions = [](CUfunction* out, unsigned count, CUmodule) {
            for (unsigned i = 0; i < count; ++i) out[i] = reinterpret_cast<CUfunction>(&functions[i]);
            return CUDA_SUCCESS;
        };
        t.cuFuncGetName = [](const char** name, CUfunction function) {
            return *name = kFunctionNames[index_of(function)].data(), CUDA_SUCCESS;
        };
        t.cuFuncGetParamInfo = [](CUfunction function, std::size_t index, std::size_t* offset, std::size_t* size) {
            if (index_of(function) != 0 || index > 3) return CUDA_ERROR_INVALID_VALUE;
            return *offset = index * 8, *size = index == 3 ? 4 : 8, CUDA_SUCCESS;
        };
        t.cuFuncGetAttribute = [](int* value, CUfunction_attribute, CUfunction) { return *value = 1, CUDA_SUCCESS; };
        t.cuFuncSetAttribute = [](CUfunction, CUfunction_attribute, int) { return CUDA_SUCCESS; };
        t.cuModuleGetGlobal_v2 = [](CUdeviceptr* address, std::size_t* size, CUmodule, const char* name) {
            if (std::strcmp(name, "counter") != 0) return CUDA_ERROR_NOT_FOUND;
            return *address = 0x70001000, *size = 5000, CUDA_SUCCESS;
        };
        t.cuLinkCreate_v2 = [](unsigned, CUjit_option*, void**, CUlinkState* state) {
            return *state = reinterpret_cast<CUlinkState>(new std::string), CUDA_SUCCESS;
        };
        t.cuLinkAddData_v2 = [](CUlinkState state, CUjitInputType, void* data, std::size_t size, const char*, unsigned,
                                CUjit_option*, void**) {
            reinterpret_cast<std::string*>(state)->append(static_cast<char*>(data), size);
            return CUDA_SUCCESS;
        };
        t.cuLinkComplete = [](CUlinkState state, void** image, std::size_t* size) {
            auto* text = reinterpret_cast<std::string*>(state);
            return *image = text->data(), *size = text->size(), CUDA_SUCCESS;
        };
        t.cuLinkDestroy = [](CUlinkState state) { return delete reinterpret_cast<std::string*>(state), CUDA_SUCCESS; };
        t.cuLaunchKernel = [](CUfunction function, unsigned, unsigned, unsigned, unsigned, unsigned, unsigned, unsigned,
                              CUstream stream, void**, void** extra) {
            if (d().next_launch != CUDA_SUCCESS) return d().next_launch;
            AddParameters parameters{};
            if (extra != nullptr) std::memcpy(&parameters, extra[1], *static_cast<std::size_t*>(extra[3]));
            const bool is_add = index_of(function) == 0;
            for (const std::uint64_t array : {parameters.a, parameters.b, parameters.c}) {
                if (is_add && !d().is_mapped(array, std::uint64_t{4} * parameters.n)) return CUDA_ERROR_INVALID_VALUE;
            }
            return d().submit(stream, std::string(kFunctionNames[index_of(function)]), [=] {
                if (is_add) add(parameters);
            });
        };
    }

    static void set_streams(driver::DriverTable& t) {
        t.cuStreamCreateWithPriority = [](CUstream* out, unsigned, int) {
            return *out = d().new_stream(), CUDA_SUCCESS;
        };
        t.cuStreamCreate = [](CUstream* out, unsigned) { return *out = d().new_stream(), CUDA_SUCCESS; };
        t.cuStreamSynchronize = [](CUstream stream) {
            std::lock_guard lock(d().mutex_);
            return d().run(d().stream(stream)), CUDA_SUCCESS;
        };
        t.cuStreamDestroy_v2 = [](CUstream stream) {
            std::lock_guard lock(d().mutex_);
            d().run(d().stream(stream));
            return d().streams_.erase(stream), CUDA_SUCCESS;
        };
        t.cuStreamQuery = [](CUstream stream) {
            std::lock_guard lock(d().mutex_);
            return d().busy || !d().stream(stream).work.empty() ? CUDA_ERROR_NOT_READY : CUDA_SUCCESS;
        };
        t.cuStreamWaitEvent = [](CUstream stream, CUevent, unsigned) { return d().submit(stream, "wait", [] {}); };
        t.cuEventCreate = [](CUevent* out, unsigned) {
            std::lock_guard lock(d().mutex_);
            auto* event = new FakeDriver::Event;
            d().live_events_.insert(event);
            return *out = reinterpret_cast<CUevent>(event), CUDA_SUCCESS;
        };
        t.cuEventDestroy_v2 = [](CUevent event) {
            std::lock_guard lock(d().mutex_);
            if (d().live_events_.erase(of(event)) == 0) return CUDA_ERROR_INVALID_HANDLE;
            return delete of(event), CUDA_SUCCESS;
        };
        t.cuEventRecord = [](CUevent event, CUstream stream) {
            std::lock_guard lock(d().mutex_);
            of(event)->complete = false;
            d().stream(stream).work.push_back([event] {
                if (d().live_events_.contains(of(event))) of(event)->complete = true;
            });
            if (d().automatic) d().run(d().stream(stream));
            return CUDA_SUCCESS;
        };
        t.cuEventQuery = [](CUevent event) {
            std::lock_guard lock(d().mutex_);
            if (current_context == nullptr) return CUDA_ERROR_INVALID_CONTEXT;
            return of(event)->complete ? CUDA_SUCCESS : CUDA_ERROR_NOT_READY;
        };
        t.cuEventElapsedTime = [](float* out, CUevent, CUevent) { return *out = 1.5f, CUDA_SUCCESS; };
    }
};

driver::DriverTable FakeDriver::table() {
    driver::DriverTable table;
    Calls::set_devices(table);
    Calls::set_contexts(table);
    Calls::set_memory(table);
    Calls::set_modules(table);
    Calls::set_streams(table);
    if (direct_access_) {
        table.weftHostAccess = [](CUdeviceptr address, std::size_t size) -> void* {
            return get().is_mapped(address, size) ? reinterpret_cast<void*>(address) : nullptr;
        };
    }
    return table;
}

void DriverTest::SetUp() {
    set_log_level(LogLevel::error);
    FakeDriver::get().reset();
}

}  // namespace weft::executor::testing
