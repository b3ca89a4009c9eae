// For tests and the benchmark: memory with exact bounds, and a launch that is run to its end by a few threads.
#pragma once

#include <cstdlib>
#include <map>
#include <mutex>
#include <string>
#include <thread>
#include <vector>

#include "swgpu/engine/engine.h"

namespace weft::engine {

class TestMemory : public MemoryMap {
  public:
    ~TestMemory() override {
        for (auto& [begin, range] : ranges_) std::free(reinterpret_cast<void*>(begin));
    }
    uint64_t allocate(size_t bytes) {
        uint64_t address = reinterpret_cast<uint64_t>(std::aligned_alloc(256, (bytes + 255) / 256 * 256));
        std::lock_guard lock(mutex_);
        ranges_[address] = {address, address + bytes, true};
        return address;
    }
    template <class T>
    uint64_t upload(const std::vector<T>& values) {
        uint64_t address = allocate(values.size() * sizeof(T));
        std::copy(values.begin(), values.end(), reinterpret_cast<T*>(address));
        return address;
    }
    template <class T>
    std::vector<T> download(uint64_t address, size_t count) const {
        const T* from = reinterpret_cast<const T*>(address);
        return std::vector<T>(from, from + count);
    }
    MemoryRange lookup(uint64_t address) const override {
        std::lock_guard lock(mutex_);
        auto at = ranges_.upper_bound(address);
        if (at == ranges_.begin()) return {};
        --at;
        return address < at->second.end ? at->second : MemoryRange{};
    }
    uint64_t epoch() const override { return 0; }

  private:
    mutable std::mutex mutex_;
    std::map<uint64_t, MemoryRange> ranges_;
};

class TextSink : public OutputSink {
  public:
    void write(std::string_view text) override {
        std::lock_guard lock(mutex_);
        text_ += text;
    }
    const std::string& text() const { return text_; }

  private:
    std::mutex mutex_;
    std::string text_;
};

// Packs arguments at multiples of their sizes.
class Arguments {
  public:
    template <class T>
    Arguments& add(T value) {
        bytes_.resize((bytes_.size() + sizeof(T) - 1) / sizeof(T) * sizeof(T));
        const uint8_t* from = reinterpret_cast<const uint8_t*>(&value);
        bytes_.insert(bytes_.end(), from, from + sizeof(T));
        return *this;
    }
    std::span<const uint8_t> bytes() const { return bytes_; }

  private:
    std::vector<uint8_t> bytes_;
};

// A loaded module whose variables lie in `memory`.
inline Result<std::shared_ptr<const Module>> load_module(std::shared_ptr<const Program> program, TestMemory& memory) {
    std::vector<uint64_t> addresses;
    for (const ptx::VariableInfo& variable : program->variables()) {
        addresses.push_back(variable.space == ptx::VariableSpace::shared ? 0 : memory.allocate(variable.size_bytes));
    }
    auto module = Module::load(program, addresses);
    if (!module) return module;
    for (size_t i = 0; i < addresses.size(); ++i) {
        if (addresses[i] == 0) continue;
        std::vector<uint8_t> image = (*module)->initial_image(i);
        std::copy(image.begin(), image.end(), reinterpret_cast<uint8_t*>(addresses[i]));
    }
    return module;
}

inline void run_to_end(Launch& launch, unsigned threads = 2, uint64_t quantum = 100'000) {
    auto work = [&] {
        Worker worker;
        while (launch.step(worker, quantum) != StepOutcome::finished) std::this_thread::yield();
    };
    std::vector<std::thread> others;
    for (unsigned i = 1; i < threads; ++i) others.emplace_back(work);
    work();
    for (std::thread& other : others) other.join();
}

// One text with one launch, for tests.
struct Outcome {
    std::string error;  // of compile, load or create; else empty
    Fault fault;
    std::string output;
    uint64_t thread_instructions = 0;
};

struct Shape {
    Dim3 grid, block;
    uint32_t dynamic_shared_bytes = 0;
    unsigned threads = 2;
    uint64_t quantum = 100'000;
};

inline Outcome run_kernel(TestMemory& memory, const std::string& text, std::string_view name, const Shape& shape,
                          const Arguments& arguments) {
    Outcome outcome;
    auto program = compile(text, {});
    if (!program) {
        outcome.error = program.status().text();
        return outcome;
    }
    auto module = load_module(*program, memory);
    if (!module) {
        outcome.error = module.status().text();
        return outcome;
    }
    auto kernel = (*module)->kernel(name);
    if (kernel == nullptr) {
        outcome.error = "no kernel";
        return outcome;
    }
    TextSink sink;
    LaunchConfig config;
    config.grid = shape.grid;
    config.block = shape.block;
    config.dynamic_shared_bytes = shape.dynamic_shared_bytes;
    config.parameters = arguments.bytes();
    config.memory = &memory;
    config.output = &sink;
    auto launch = Launch::create(kernel, config);
    if (!launch) {
        outcome.error = launch.status().text();
        return outcome;
    }
    run_to_end(**launch, shape.threads, shape.quantum);
    outcome.fault = (*launch)->fault();
    outcome.output = sink.text();
    outcome.thread_instructions = (*launch)->thread_instructions();
    return outcome;
}

inline std::string ptx_text(std::string_view body) {
    return ".version 7.8\n.target sm_80\n.address_size 64\n" + std::string(body);
}

// A kernel k(out): `body` computes %r9 for thread %r0 (linear in the block); it is stored to out[ctaid * ntid + tid].
inline std::string body_text(std::string_view body, std::string_view before = "") {
    return ptx_text(std::string(before) + R"(
.visible .entry k(.param .u64 out) {
  .reg .pred %p<10>; .reg .b32 %r<40>; .reg .b64 %rd<20>; .reg .f32 %f<10>; .reg .b32 %addr;
  mov.u32 %r0, %tid.x; mov.u32 %r9, 0;
)" + std::string(body) +
                    R"(
  { .reg .b64 %to, %off; .reg .b32 %c, %n;
    mov.u32 %c, %ctaid.x; mov.u32 %n, %ntid.x; mad.lo.u32 %c, %c, %n, %r0;
    ld.param.u64 %to, [out]; mul.wide.u32 %off, %c, 4; add.s64 %to, %to, %off; st.global.u32 [%to], %r9; }
  ret;
})");
}

}  // namespace weft::engine
