// What the executor may tell the client without being asked, as events for the parts of the shim that keep the state.
// Called by whichever thread holds the receive role: must not send frames, wait, or take a lock that is held while
// sending.
#pragma once

#include <cstdint>
#include <string_view>

#include "gen/cuda_abi.h"

namespace weft::shim {

class InboundEvents {
  public:
    virtual ~InboundEvents() = default;
    virtual void on_error(std::uint32_t context, CUresult status, bool sticky, std::uint16_t opcode,
                          std::string_view text) = 0;
    virtual void on_event_done(std::uint32_t event, std::uint32_t record) = 0;
    virtual void on_stream_done(std::uint32_t stream, std::uint32_t watch) = 0;
    virtual void on_fence_done(std::uint64_t token) = 0;
    virtual void on_credit(std::uint32_t context, std::uint32_t stream, std::uint32_t frames,
                           std::uint64_t payload_bytes) = 0;
    virtual void on_pull(std::uint32_t pull) = 0;
    virtual void on_output(std::uint32_t context, std::uint32_t kind, std::string_view text) = 0;
    virtual void on_host_call(std::uint32_t call, CUresult status) = 0;
};

}  // namespace weft::shim
