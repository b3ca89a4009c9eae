// The two ways to get a shm channel; see factory.h.
#include "transport/factory.h"
#include "transport/shm.h"

namespace weft::transport {

Result<std::unique_ptr<Channel>> open_shm_client(UniqueFd unix_socket, ChannelOptions options) {
    const ShmGeometry geometry{options.ring_bytes, options.slot_count, options.slot_bytes};
    if (!geometry.valid())
        return Status::error(ErrorCode::invalid_argument, "sizes of the shared memory are out of range");
    auto file = make_sealed_file("weft-channel", geometry.file_bytes());
    if (!file) return file.take_status();
    FileRecord record{};
    record.kind = kRingsRecord;
    record.version = kRecordVersion;
    record.slot_count = static_cast<std::uint16_t>(geometry.slot_count);
    record.size_bytes = geometry.file_bytes();
    record.ring_bytes = static_cast<std::uint32_t>(geometry.ring_bytes);
    record.slot_bytes = static_cast<std::uint32_t>(geometry.slot_bytes);
    auto socket = std::make_unique<LocalSocket>(std::move(unix_socket));
    Status sent = socket->send_file(record, file->get(), Clock::now() + options.liveness_timeout);
    if (!sent) return sent;
    return ShmChannel::make(ShmSide::client, geometry, file->get(), std::move(socket), options);
}

Result<std::unique_ptr<Channel>> accept_shm(UniqueFd unix_socket, ChannelOptions options) {
    auto socket = std::make_unique<LocalSocket>(std::move(unix_socket));
    auto file = socket->await_file(kRingsRecord, 0, Clock::now() + options.liveness_timeout);
    if (!file) return file.take_status();
    const ShmGeometry geometry{file->record.ring_bytes, file->record.slot_count, file->record.slot_bytes};
    if (!geometry.valid()) return Status::error(ErrorCode::protocol, "sizes of the shared memory are out of range");
    if (Status status = check_sealed_file(file->fd.get(), geometry.file_bytes()); !status) return status;
    return ShmChannel::make(ShmSide::executor, geometry, file->fd.get(), std::move(socket), options);
}

}  // namespace weft::transport
