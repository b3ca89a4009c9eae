// Host functions and stream callbacks: what the program wants called when a stream gets somewhere. The executor asks
// (HOST_CALL) when the stream is there and waits for the answer (HOST_DONE); one thread of this process, started at
// first use, runs them in the order they are asked for. CUDA calls inside them answer NOT_PERMITTED. Design note:
// docs/design/shim.md.
#pragma once

#include <atomic>
#include <condition_variable>
#include <cstdint>
#include <deque>
#include <mutex>
#include <unordered_map>

#include "gen/cuda_abi.h"

namespace weft::shim {

class Output;
class Session;

extern bool g_calls_back;  // the callback thread has been started
extern thread_local constinit bool t_is_callback_thread;

// True on the thread that runs host functions, which must not make CUDA calls.
inline bool is_callback_thread() { return g_calls_back && t_is_callback_thread; }

struct HostCall {
    CUhostFn function = nullptr;  // run if the work before it succeeded
    void* data = nullptr;
    CUstreamCallback callback = nullptr;  // instead of function: always run, and told the status
    CUstream stream = nullptr;
    bool stays = false;  // of a graph: asked for again and again, until drop()
};

class Callbacks {
  public:
    Callbacks(Session& session, Output& output) : session_(session), output_(output) {}

    // Makes the function known under this number. Fails when the thread cannot be started.
    CUresult add(std::uint32_t number, const HostCall& call);
    void drop(std::uint32_t number);
    // One more HOST_CALL is going to come: somebody has to receive.
    void expect();
    // True while host functions are outstanding, which may write any host memory of the program.
    bool is_outstanding() const { return outstanding_.load() != 0; }
    // The executor asks for it. Called by whoever receives.
    void on_call(std::uint32_t number, CUresult status);

  private:
    struct Due {
        std::uint32_t number;
        HostCall call;
        CUresult status;
    };
    CUresult start();
    static void* main(void* self);
    void run();
    bool spin();
    static void invoke(const Due& due);

    Session& session_;
    Output& output_;
    std::atomic<int> outstanding_{0};
    std::atomic<std::size_t> due_count_{0};
    std::mutex mutex_;  // a leaf: never held while sending or calling back
    std::condition_variable wake_;
    bool is_started_ = false;
    std::unordered_map<std::uint32_t, HostCall> known_;
    std::deque<Due> due_;
};

}  // namespace weft::shim
