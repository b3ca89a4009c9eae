// What remoting costs: measures the driver library that LD_LIBRARY_PATH leads to, against the null driver when run by
// benchmarks/run.py under `weft run`. One JSON line per figure. Design note: docs/design/benchmarks.md.
#include <dlfcn.h>
#include <fcntl.h>
#include <sys/mman.h>
#include <time.h>
#include <unistd.h>

#include <algorithm>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <string>
#include <vector>

#include "gen/cuda_abi.h"
#include "shim/stats_page.h"

namespace {

// The stamp kernel stores the time at which it runs; the null driver knows it by its name.
constexpr const char* kImage =
    ".version 7.0\n.target sm_80\n.address_size 64\n"
    ".visible .entry vector_add(.param .u64 a, .param .u64 b, .param .u64 c, .param .u32 n)\n{\n ret;\n}\n"
    ".visible .entry weft_bench_stamp(.param .u64 out)\n{\n .reg .b64 %rd<3>;\n ld.param.u64 %rd1, [out];\n"
    " mov.u64 %rd2, %globaltimer;\n st.global.u64 [%rd1], %rd2;\n ret;\n}\n";

struct Api {
    void* library = nullptr;
    template <typename Function>
    Function* get(const char* name) const {
        void* symbol = dlsym(library, name);
        if (symbol == nullptr) {
            std::fprintf(stderr, "remoting: the driver library lacks %s\n", name);
            std::exit(1);
        }
        return reinterpret_cast<Function*>(symbol);
    }
};

Api g_api;

#define CALL(name, ...)                                                           \
    do {                                                                          \
        static auto* call_ = g_api.get<decltype(::name)>(#name);                  \
        if (const CUresult result = call_(__VA_ARGS__); result != CUDA_SUCCESS) { \
            std::fprintf(stderr, "remoting: %s failed with %d\n", #name, result); \
            std::exit(1);                                                         \
        }                                                                         \
    } while (false)

std::int64_t now_ns() {
    timespec time;
    clock_gettime(CLOCK_MONOTONIC, &time);
    return std::int64_t{time.tv_sec} * 1'000'000'000 + time.tv_nsec;
}

void report(const char* name, const std::string& path, double value, const char* unit) {
    std::printf("{\"name\": \"%s.%s\", \"value\": %.4g, \"unit\": \"%s\"}\n", name, path.c_str(), value, unit);
    std::fflush(stdout);
}

double percentile(std::vector<std::int64_t>& samples, double fraction) {
    std::sort(samples.begin(), samples.end());
    return static_cast<double>(samples[static_cast<std::size_t>(fraction * static_cast<double>(samples.size() - 1))]);
}

// What the driver library has counted so far; zeros without `weft run`.
struct Counted {
    std::uint64_t round_trips = 0, frames_sent = 0;
};

Counted counted() {
    const char* path = std::getenv("WEFT_STATS");
    const int fd = path != nullptr ? ::open(path, O_RDONLY) : -1;
    if (fd < 0) return {};
    void* page = ::mmap(nullptr, weft::shim::kStatsPageBytes, PROT_READ, MAP_SHARED, fd, 0);
    ::close(fd);
    if (page == MAP_FAILED) return {};
    const auto* stats = static_cast<const weft::shim::StatsPage*>(page);
    const Counted count{stats->round_trips.load(), stats->frames_sent.load()};
    ::munmap(page, weft::shim::kStatsPageBytes);
    return count;
}

void sleep_us(long us) {
    const timespec time{0, us * 1000};
    nanosleep(&time, nullptr);
}

struct Bench {
    std::string path;
    CUcontext context = nullptr;
    CUmodule module = nullptr;
    CUfunction add = nullptr, stamp = nullptr;
    CUstream stream = nullptr;
    CUdeviceptr a = 0, b = 0, c = 0;

    void launch(CUfunction function, void** parameters) {
        CALL(cuLaunchKernel, function, 4, 1, 1, 256, 1, 1, 0, stream, parameters, nullptr);
    }

    void start() {
        CALL(cuInit, 0);
        CALL(cuDevicePrimaryCtxRetain, &context, 0);
        CALL(cuCtxSetCurrent, context);
        std::vector<float> host(1024, 1.0f);
        CALL(cuMemAlloc_v2, &a, 4096);
        CALL(cuMemAlloc_v2, &b, 4096);
        CALL(cuMemAlloc_v2, &c, 4096);
        CALL(cuMemcpyHtoD_v2, a, host.data(), 4096);
        CALL(cuMemcpyHtoD_v2, b, host.data(), 4096);
        CALL(cuModuleLoadData, &module, kImage);
        CALL(cuModuleGetFunction, &add, module, "vector_add");
        CALL(cuModuleGetFunction, &stamp, module, "weft_bench_stamp");
        unsigned n = 1024;
        void* parameters[] = {&a, &b, &c, &n};
        launch(add, parameters);
        report("remoting.round_trips_to_first_launch", path, static_cast<double>(counted().round_trips), "waits");
        CALL(cuStreamCreate, &stream, CU_STREAM_NON_BLOCKING);
        CALL(cuCtxSynchronize);
    }

    void launches() {
        unsigned n = 1024;
        void* parameters[] = {&a, &b, &c, &n};
        std::vector<std::int64_t> samples;
        constexpr int kCount = 1'000'000;
        for (int i = 0; i < 20'000; ++i) launch(add, parameters);
        CALL(cuStreamSynchronize, stream);
        const std::int64_t start = now_ns();
        for (int i = 0; i < kCount; ++i) launch(add, parameters);
        CALL(cuStreamSynchronize, stream);
        report("remoting.launches_per_s", path, kCount / (static_cast<double>(now_ns() - start) / 1e9), "1/s");
        // Bursts as a training step has them: some hundred launches, then a wait.
        samples.reserve(200'000);
        for (int step = 0; step < 400; ++step) {
            for (int i = 0; i < 500; ++i) {
                const std::int64_t before = now_ns();
                launch(add, parameters);
                samples.push_back(now_ns() - before);
            }
            CALL(cuStreamSynchronize, stream);
        }
        report("remoting.launch_p50_us", path, percentile(samples, 0.5) / 1e3, "us");
        report("remoting.launch_p99_us", path, percentile(samples, 0.99) / 1e3, "us");
    }

    void waits() {
        std::vector<std::int64_t> samples;
        for (int i = 0; i < 20'000; ++i) {
            const std::int64_t before = now_ns();
            CALL(cuStreamSynchronize, stream);
            samples.push_back(now_ns() - before);
        }
        report("remoting.call_us", path, percentile(samples, 0.5) / 1e3, "us");
        samples.clear();
        for (int i = 0; i < 500; ++i) {
            sleep_us(1000);
            const std::int64_t before = now_ns();
            CALL(cuStreamSynchronize, stream);
            samples.push_back(now_ns() - before);
        }
        report("remoting.sync_after_1ms_idle_us", path, percentile(samples, 0.5) / 1e3, "us");
    }

    // From the call to the executor: the stamp kernel tells when it ran. The program only computes meanwhile.
    void launch_to_executor() {
        std::vector<std::int64_t> samples;
        void* parameters[] = {&a};
        for (int i = 0; i < 500; ++i) {
            sleep_us(1000);
            const std::int64_t before = now_ns();
            launch(stamp, parameters);
            while (now_ns() - before < 300'000) {
            }
            std::int64_t stamped = 0;
            CALL(cuMemcpyDtoHAsync_v2, &stamped, a, sizeof stamped, stream);
            samples.push_back(stamped - before);
        }
        report("remoting.launch_to_executor_p50_us", path, percentile(samples, 0.5) / 1e3, "us");
    }

    // A chain of kernels as a graph: what a launch costs its caller, how many frames it is, and how fast they follow.
    void graphs() {
        constexpr int kNodes = 100, kLaunches = 5000;
        unsigned n = 1024;
        void* parameters[] = {&a, &b, &c, &n};
        CUgraph graph = nullptr;
        CUgraphExec exec = nullptr;
        CALL(cuGraphCreate, &graph, 0);
        CUDA_KERNEL_NODE_PARAMS kernel{};
        kernel.func = add;
        kernel.gridDimX = 4;
        kernel.blockDimX = 256;
        kernel.gridDimY = kernel.gridDimZ = kernel.blockDimY = kernel.blockDimZ = 1;
        kernel.kernelParams = parameters;
        CUgraphNode last = nullptr, first = nullptr;
        for (int i = 0; i < kNodes; ++i) {
            const CUgraphNode before = last;
            CALL(cuGraphAddKernelNode_v2, &last, graph, &before, i == 0 ? 0 : 1, &kernel);
            if (i == 0) first = last;
        }
        CALL(cuGraphInstantiateWithFlags, &exec, graph, 0);
        for (int i = 0; i < 200; ++i) CALL(cuGraphLaunch, exec, stream);
        CALL(cuStreamSynchronize, stream);
        const std::uint64_t frames = counted().frames_sent;
        const std::int64_t start = now_ns();
        for (int i = 0; i < kLaunches; ++i) CALL(cuGraphLaunch, exec, stream);
        CALL(cuStreamSynchronize, stream);
        report("remoting.graph_launches_per_s", path, kLaunches / (static_cast<double>(now_ns() - start) / 1e9), "1/s");
        const double sent = static_cast<double>(counted().frames_sent - frames);
        report("remoting.graph_launch_frames", path, std::max(0.0, sent - 1) / kLaunches, "frames");
        time_graph_calls(exec, first, kernel);
        CALL(cuGraphExecDestroy, exec);
        CALL(cuGraphDestroy, graph);
    }

    void time_graph_calls(CUgraphExec exec, CUgraphNode node, CUDA_KERNEL_NODE_PARAMS kernel) {
        std::vector<std::int64_t> launches, updates;
        for (int step = 0; step < 400; ++step) {
            for (int i = 0; i < 10; ++i) {
                kernel.gridDimX = static_cast<unsigned>(1 + (step + i) % 2);
                const std::int64_t before = now_ns();
                CALL(cuGraphExecKernelNodeSetParams_v2, exec, node, &kernel);
                const std::int64_t between = now_ns();
                CALL(cuGraphLaunch, exec, stream);
                updates.push_back(between - before);
                launches.push_back(now_ns() - between);
            }
            CALL(cuStreamSynchronize, stream);
        }
        report("remoting.graph_launch_p50_us", path, percentile(launches, 0.5) / 1e3, "us");
        report("remoting.graph_update_p50_us", path, percentile(updates, 0.5) / 1e3, "us");
    }

    // From the call to the host function, and to the end of the stream behind it.
    void callbacks() {
        std::vector<std::int64_t> called, done;
        std::int64_t at = 0;
        for (int i = 0; i < 2000; ++i) {
            const std::int64_t before = now_ns();
            CALL(cuLaunchHostFunc, stream, [](void* when) { *static_cast<std::int64_t*>(when) = now_ns(); }, &at);
            CALL(cuStreamSynchronize, stream);
            done.push_back(now_ns() - before);
            called.push_back(at - before);
        }
        report("remoting.callback_us", path, percentile(called, 0.5) / 1e3, "us");
        report("remoting.callback_and_sync_us", path, percentile(done, 0.5) / 1e3, "us");
    }

    double bandwidth(bool to_device, void* host, std::size_t bytes, CUdeviceptr device) {
        double best = 0;
        for (int i = 0; i < 5; ++i) {
            const std::int64_t before = now_ns();
            if (to_device)
                CALL(cuMemcpyHtoD_v2, device, host, bytes);
            else
                CALL(cuMemcpyDtoH_v2, host, device, bytes);
            CALL(cuCtxSynchronize);
            best = std::max(best, static_cast<double>(bytes) / static_cast<double>(now_ns() - before));
        }
        return best;
    }

    void bulk() {
        constexpr std::size_t kBytes = 256u << 20;
        CUdeviceptr device = 0;
        CALL(cuMemAlloc_v2, &device, kBytes);
        std::vector<char> pageable(kBytes, 1);
        void* pinned = nullptr;
        CALL(cuMemHostAlloc, &pinned, kBytes, 0);
        std::memset(pinned, 2, kBytes);
        report("remoting.h2d_gb_per_s.pageable", path, bandwidth(true, pageable.data(), kBytes, device), "GB/s");
        report("remoting.h2d_gb_per_s.pinned", path, bandwidth(true, pinned, kBytes, device), "GB/s");
        report("remoting.d2h_gb_per_s.pageable", path, bandwidth(false, pageable.data(), kBytes, device), "GB/s");
        report("remoting.d2h_gb_per_s.pinned", path, bandwidth(false, pinned, kBytes, device), "GB/s");
    }
};

}  // namespace

int main() {
    g_api.library = dlopen("libcuda.so.1", RTLD_NOW);
    if (g_api.library == nullptr) {
        std::fprintf(stderr, "remoting: %s\n", dlerror());
        return 1;
    }
    Bench bench;
    const char* path = std::getenv("WEFT_PATH");
    bench.path = path != nullptr ? path : "native";
    bench.start();
    bench.launches();
    bench.waits();
    bench.launch_to_executor();
    bench.graphs();
    bench.callbacks();
    bench.bulk();
    return 0;
}
