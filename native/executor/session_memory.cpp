// Extents of device memory, fences and shared segments of a session. See session.h.
#include <cstring>

#include "base/clock.h"
#include "executor/session.h"

namespace weft::executor {

namespace {

constexpr std::uint64_t kMaxSegmentBytes = 1ull << 40;

}  // namespace

// A job that takes memory away: meanwhile nobody touches device memory directly.
void Session::run_memory_job(std::function<void()> work, std::function<void()> finished) {
    ++memory_jobs_;
    helper_->submit(std::move(work), [this, finished = std::move(finished)] {
        --memory_jobs_;
        finished();
    });
}

Outcome Session::on_mem_map(Arrival& arrival) {
    const auto map = fields_of<wire::MemMap>(arrival);
    if (map.device >= devices_.size()) return bad_frame(arrival, "no such device");
    DeviceState& device = devices_[map.device];
    if (const char* wrong = device.extents.check(map.address, map.size_bytes, device.granularity))
        return bad_frame(arrival, wrong);
    const auto answer = [this, header = arrival.header](DeviceState& of, CUresult status) {
        const std::uint64_t left = of.account.free_bytes();
        outbox_.reply(header.context, header.request, status, bytes_of(left));
    };
    if (!device.account.take(map.size_bytes)) {
        answer(device, CUDA_ERROR_OUT_OF_MEMORY);
        return Outcome::submitted;
    }
    device.extents.add(map.address, map.size_bytes, 0);
    struct Job {
        CUresult status = CUDA_SUCCESS;
        CUmemGenericAllocationHandle handle = 0;
    };
    auto job = std::make_shared<Job>();
    helper_->submit(
        [this, job, map, cuda_device = device.device] {
            job->status = map_extent(driver_, cuda_device, map.address, map.size_bytes, &job->handle);
        },
        [this, job, map, answer, &device] {
            if (job->status == CUDA_SUCCESS) {
                device.extents.set_handle(map.address, job->handle);
            } else {
                CUmemGenericAllocationHandle none = 0;
                device.extents.remove(map.address, map.size_bytes, &none);
                device.account.give(map.size_bytes);
            }
            answer(device, job->status);
        });
    return Outcome::submitted;
}

Outcome Session::on_mem_unmap(Arrival& arrival) {
    const auto unmap = fields_of<wire::MemUnmap>(arrival);
    if (unmap.device >= devices_.size()) return bad_frame(arrival, "no such device");
    DeviceState& device = devices_[unmap.device];
    CUmemGenericAllocationHandle handle = 0;
    if (!device.extents.remove(unmap.address, unmap.size_bytes, &handle)) return bad_frame(arrival, "no such extent");
    if (handle == 0) return bad_frame(arrival, "extent is still being mapped");
    // Jobs run in order, so whoever is given these bytes maps them after they are free.
    device.account.give(unmap.size_bytes);
    auto status = std::make_shared<CUresult>(CUDA_SUCCESS);
    run_memory_job(
        [this, unmap, handle, status] { *status = unmap_extent(driver_, unmap.address, unmap.size_bytes, handle); },
        [this, status, header = arrival.header] {
            if (*status != CUDA_SUCCESS) push_error(header.context, *status, header.opcode, {});
        });
    return Outcome::submitted;
}

Outcome Session::on_note_alloc(Arrival& arrival) {
    const auto note = fields_of<wire::MemNoteAlloc>(arrival);
    if (driver_.weftMemoryNote != nullptr) (void)driver_.weftMemoryNote(note.address, note.size_bytes, 1);
    return Outcome::submitted;
}

Outcome Session::on_note_free(Arrival& arrival) {
    const auto note = fields_of<wire::MemNoteFree>(arrival);
    if (driver_.weftMemoryNote != nullptr) (void)driver_.weftMemoryNote(note.address, 0, 0);
    return Outcome::submitted;
}

void Session::when_all_complete(std::function<void()> then) {
    std::vector<EventRef> pending;
    for (auto& [number, context] : contexts_) (void)collect_pending(*context, &pending);
    if (pending.empty()) {
        completion_.tell_implied();
        return then();
    }
    completion_.add_wait(std::move(pending), [then = std::move(then)](CUresult) { then(); }, Clock::now());
}

Outcome Session::on_fence(Arrival& arrival) {
    const auto fence = fields_of<wire::Fence>(arrival);
    when_all_complete([this, token = fence.token] {
        outbox_.send<wire::FenceDone>(0, 0, {}, [&](wire::FenceDone& done) { done.token = token; });
    });
    return Outcome::submitted;
}

Outcome Session::on_segment_open(Arrival& arrival) {
    const auto open = fields_of<wire::SegmentOpen>(arrival);
    if (segments_.contains(open.segment)) return bad_frame(arrival, "segment number in use");
    if (open.size_bytes == 0 || open.size_bytes > kMaxSegmentBytes)
        return bad_frame(arrival, "segment of an impossible size");
    if (segments_.size() >= kMaxSegments) return bad_frame(arrival, "too many segments");
    Result<std::span<std::byte>> segment = channel_.receive_segment(open.segment, open.size_bytes);
    if (!segment) {
        if (segment.status().code() != ErrorCode::protocol && segment.status().code() != ErrorCode::unsupported) {
            refuse(arrival, CUDA_ERROR_OUT_OF_MEMORY, segment.status().text());
            return Outcome::submitted;
        }
        return bad_frame(arrival, segment.status().text());
    }
    segments_[open.segment] = {*segment};
    if (make_any_current()) host_memory_.pin(segment->data(), segment->size());
    return Outcome::submitted;
}

Outcome Session::on_segment_close(Arrival& arrival) {
    const auto close = fields_of<wire::SegmentClose>(arrival);
    const auto found = segments_.find(close.segment);
    if (found == segments_.end()) return bad_frame(arrival, "no such segment");
    const std::span<std::byte> bytes = found->second.bytes;
    segments_.erase(found);
    when_all_complete([this, bytes, number = close.segment] {
        host_memory_.unpin(bytes.data());
        channel_.release_segment(number);
    });
    return Outcome::submitted;
}

}  // namespace weft::executor
