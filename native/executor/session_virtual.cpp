// Virtual memory management of the client: reservations, memory without an address, mappings. See session.h. Driver
// calls run on the helper thread in the order of their frames; tables and the account are kept on the loop's thread.
#include <cstring>

#include "base/clock.h"
#include "executor/session.h"

namespace weft::executor {

namespace {

constexpr std::uint64_t kMaxEnd = 1ull << 47;

CUmemLocation location_of(CUdevice device) {
    CUmemLocation location{};
    location.type = CU_MEM_LOCATION_TYPE_DEVICE;
    location.id = device;
    return location;
}

}  // namespace

// Runs `work` on the helper thread, then `finished`, then answers with its result.
void Session::answer_job(const Arrival& arrival, std::function<CUresult()> work,
                         std::function<void(CUresult)> finished) {
    auto status = std::make_shared<CUresult>(CUDA_SUCCESS);
    run_memory_job([status, work = std::move(work)] { *status = work(); },
                   [this, status, header = arrival.header, finished = std::move(finished)] {
                       finished(*status);
                       if ((header.flags & wire::kFlagWaiting) != 0) return answer(header, *status);
                       if (*status != CUDA_SUCCESS) push_error(header.context, *status, header.opcode, {});
                   });
}

Outcome Session::on_address_reserve(Arrival& arrival) {
    const auto reserve = fields_of<wire::AddressReserve>(arrival);
    const std::uint64_t unit = devices_.front().granularity;
    if (reserve.address == 0 || reserve.size_bytes == 0 || reserve.address % unit != 0 ||
        reserve.size_bytes % unit != 0 || reserve.address >= kMaxEnd || reserve.size_bytes > kMaxEnd - reserve.address)
        return bad_frame(arrival, "an impossible reservation");
    CUresult result = CUDA_ERROR_OUT_OF_MEMORY;
    if (reservations_.size() < kMaxMappings) {
        CUdeviceptr got = 0;
        result = driver_.cuMemAddressReserve(&got, reserve.size_bytes, 0, reserve.address, 0);
        if (result == CUDA_SUCCESS && got != reserve.address) driver_.cuMemAddressFree(got, reserve.size_bytes);
        if (result != CUDA_SUCCESS || got != reserve.address) result = CUDA_ERROR_INVALID_ADDRESS_SPACE;
    }
    if (result == CUDA_SUCCESS) reservations_[reserve.address] = reserve.size_bytes;
    reply(arrival, result);
    return Outcome::submitted;
}

Outcome Session::on_address_free(Arrival& arrival) {
    const auto free = fields_of<wire::AddressFree>(arrival);
    const auto found = reservations_.find(free.address);
    if (found == reservations_.end() || found->second != free.size_bytes)
        return bad_frame(arrival, "no such reservation");
    const auto mapping = mappings_.lower_bound(free.address);
    if (mapping != mappings_.end() && mapping->first < free.address + free.size_bytes)
        return bad_frame(arrival, "something is mapped in the reservation");
    reservations_.erase(found);
    answer_job(
        arrival, [this, free] { return driver_.cuMemAddressFree(free.address, free.size_bytes); }, [](CUresult) {});
    return Outcome::submitted;
}

Outcome Session::on_physical_create(Arrival& arrival) {
    const auto create = fields_of<wire::PhysicalCreate>(arrival);
    if (create.device >= devices_.size()) return bad_frame(arrival, "no such device");
    if (create.physical == 0 || physical_.contains(create.physical)) return bad_frame(arrival, "number in use");
    DeviceState& device = devices_[create.device];
    if (create.size_bytes == 0 || create.size_bytes % device.granularity != 0 || create.size_bytes > kMaxEnd)
        return bad_frame(arrival, "an impossible size");
    if (physical_.size() >= kMaxMappings || !device.account.take(create.size_bytes)) {
        reply(arrival, CUDA_ERROR_OUT_OF_MEMORY);
        return Outcome::submitted;
    }
    physical_[create.physical] = {create.device, create.size_bytes, 0, false, 0};
    auto handle = std::make_shared<CUmemGenericAllocationHandle>(0);
    answer_job(
        arrival,
        [this, handle, create, cuda_device = device.device] {
            CUmemAllocationProp property{};
            property.type = CU_MEM_ALLOCATION_TYPE_PINNED;
            property.location = location_of(cuda_device);
            return driver_.cuMemCreate(handle.get(), create.size_bytes, &property, 0);
        },
        [this, handle, create](CUresult status) {
            if (status == CUDA_SUCCESS) {
                physical_[create.physical].handle = *handle;
                return;
            }
            devices_[create.device].account.give(create.size_bytes);
            physical_.erase(create.physical);
        });
    return Outcome::submitted;
}

Outcome Session::on_physical_release(Arrival& arrival) {
    const auto release = fields_of<wire::PhysicalRelease>(arrival);
    const auto found = physical_.find(release.physical);
    if (found == physical_.end() || found->second.is_released || found->second.handle == 0)
        return bad_frame(arrival, "no such memory");
    found->second.is_released = true;
    release_if_gone(release.physical);
    return Outcome::submitted;
}

// Memory that the client has let go of, and that is mapped nowhere.
void Session::release_if_gone(std::uint32_t number) {
    const auto found = physical_.find(number);
    if (found == physical_.end() || !found->second.is_released || found->second.mappings != 0) return;
    const PhysicalState memory = found->second;
    physical_.erase(found);
    // Jobs run in order, so whoever is given these bytes takes them after they are free.
    devices_[memory.device].account.give(memory.size_bytes);
    run_memory_job([this, memory] { (void)driver_.cuMemRelease(memory.handle); }, [] {});
}

Outcome Session::on_physical_map(Arrival& arrival) {
    const auto map = fields_of<wire::PhysicalMap>(arrival);
    const auto found = physical_.find(map.physical);
    if (found == physical_.end() || found->second.is_released || found->second.handle == 0)
        return bad_frame(arrival, "no such memory");
    PhysicalState& memory = found->second;
    auto reservation = reservations_.upper_bound(map.address);
    const bool is_reserved = reservation != reservations_.begin() &&
                             map.address - (--reservation)->first < reservation->second &&
                             memory.size_bytes <= reservation->second - (map.address - reservation->first);
    if (!is_reserved || map.address % devices_[memory.device].granularity != 0 || mappings_.contains(map.address))
        return bad_frame(arrival, "not in a reservation");
    if (mappings_.size() >= kMaxMappings) {
        reply(arrival, CUDA_ERROR_OUT_OF_MEMORY);
        return Outcome::submitted;
    }
    mappings_[map.address] = map.physical;
    ++memory.mappings;
    answer_job(
        arrival,
        [this, map, handle = memory.handle, size = memory.size_bytes] {
            return driver_.cuMemMap(map.address, size, 0, handle, 0);
        },
        [this, map](CUresult status) {
            if (status == CUDA_SUCCESS) return;
            mappings_.erase(map.address);
            --physical_[map.physical].mappings;
            release_if_gone(map.physical);
        });
    return Outcome::submitted;
}

Outcome Session::on_physical_unmap(Arrival& arrival) {
    const auto unmap = fields_of<wire::PhysicalUnmap>(arrival);
    const auto found = mappings_.find(unmap.address);
    if (found == mappings_.end()) return bad_frame(arrival, "no such mapping");
    const std::uint32_t number = found->second;
    const std::uint64_t size = physical_[number].size_bytes;
    mappings_.erase(found);
    when_all_complete([this, header = arrival.header, unmap, number, size] {
        Arrival again;
        again.header = header;
        answer_job(
            again, [this, unmap, size] { return driver_.cuMemUnmap(unmap.address, size); },
            [this, number](CUresult) {
                --physical_[number].mappings;
                release_if_gone(number);
            });
    });
    return Outcome::submitted;
}

Outcome Session::on_physical_access(Arrival& arrival) {
    const auto access = fields_of<wire::PhysicalAccess>(arrival);
    const auto found = mappings_.find(access.address);
    if (found == mappings_.end()) return bad_frame(arrival, "no such mapping");
    if (access.device >= devices_.size()) return bad_frame(arrival, "no such device");
    CUmemAccessDesc description{};
    description.location = location_of(devices_[access.device].device);
    description.flags = static_cast<CUmemAccess_flags>(access.flags);
    answer_job(
        arrival,
        [this, access, description, size = physical_[found->second].size_bytes] {
            return driver_.cuMemSetAccess(access.address, size, &description, 1);
        },
        [](CUresult) {});
    return Outcome::submitted;
}

void Session::release_virtual_memory() {
    for (const auto& [address, number] : mappings_) (void)driver_.cuMemUnmap(address, physical_[number].size_bytes);
    for (const auto& [number, memory] : physical_) {
        devices_[memory.device].account.give(memory.size_bytes);
        if (memory.handle != 0) (void)driver_.cuMemRelease(memory.handle);
    }
    for (const auto& [address, size] : reservations_) (void)driver_.cuMemAddressFree(address, size);
    mappings_.clear();
    physical_.clear();
    reservations_.clear();
}

}  // namespace weft::executor
