// The whole driver of this process: settings, devices, memory, scheduler. Made by cuInit, never destroyed, since
// programs call the driver from exit handlers. Design note: docs/design/software-gpu-driver.md.
#pragma once

#include <array>
#include <memory>
#include <mutex>
#include <string>
#include <vector>

#include "gen/cuda_abi.h"
#include "swgpu/driver/address_space.h"
#include "swgpu/driver/config.h"
#include "swgpu/driver/context.h"
#include "swgpu/driver/device_memory.h"
#include "swgpu/driver/memory_pool.h"
#include "swgpu/driver/scheduler.h"
#include "swgpu/driver/virtual_memory.h"

namespace weft::swdriver {

inline constexpr int kDriverVersion = 13050;

class Device {
  public:
    Device(int ordinal, const Settings& settings);
    const int ordinal;
    const std::string name;
    const int capability_major, capability_minor;
    DeviceMemory memory;
    std::array<unsigned char, 16> uuid() const;  // the same in every process of this machine
    std::string pci_bus_id() const;
    bool attribute(int id, int* value) const;

    std::mutex primary_mutex;  // of what follows
    Ref<Context> primary;
    unsigned primary_retained = 0;
    unsigned primary_flags = 0;

    std::mutex pool_mutex;  // of what follows
    Ref<MemoryPool> default_pool, current_pool;
};

struct Driver {
    explicit Driver(Settings read);
    const Settings settings;
    AddressSpace space;
    VirtualMemory virtual_memory{space};
    Scheduler scheduler;
    std::vector<std::unique_ptr<Device>> devices;
};

// The driver, or null before cuInit and in a forked child.
Driver* driver_if_ready();
inline Driver& driver() { return *driver_if_ready(); }
CUresult initialize(unsigned flags);

// What most calls begin with: CUDA_SUCCESS and the current context, or the error to return.
struct Entry {
    CUresult error = CUDA_SUCCESS;
    Ref<Context> context;
    Context* operator->() const { return context.get(); }
    Device& device() const { return *driver().devices[static_cast<std::size_t>(context->device())]; }
};
CUresult check_ready();
// On the thread that runs host functions, which must not call the driver.
void forbid_calls_on_this_thread();
Entry enter();

// The stream that a handle means for the calling thread in the current context.
CUresult resolve_stream(const Entry& entry, CUstream handle, Ref<Stream>* stream);

// While something is captured: refuses a call that cannot be captured, or that would disturb a capture.
CUresult refuse_while_capturing(Stream& stream);
// The same for work that a capturing stream records: only the legacy default stream may disturb others.
CUresult check_captures(Stream& stream);

Device* find_device(CUdevice device);
// Takes everything of the context down, after its work has ended.
void destroy_context(Context& context);
void synchronize(Context& context);

}  // namespace weft::swdriver
