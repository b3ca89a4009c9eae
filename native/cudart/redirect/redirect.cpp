// A preload library for programs that carry NVIDIA's runtime inside (nvcc's default): before the program's constructors
// run, the entry points of that runtime get jumps to Weft's. A program without device code is left alone after a look
// at its section names. Design note: docs/design/cudart.md.
#include <dlfcn.h>
#include <fcntl.h>
#include <link.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cstdarg>
#include <cstdio>
#include <cstdlib>
#include <cstring>

#include "cudart/redirect/program_file.h"

namespace weft::redirect {
namespace {

constexpr int kRefused = 125;  // what `weft run` uses for its own failures
constexpr std::size_t kPathBytes = 4096;

char g_program[kPathBytes];

[[noreturn]] void refuse(const char* format, ...) __attribute__((format(printf, 1, 2)));

void refuse(const char* format, ...) {
    char line[2 * kPathBytes];
    int length = std::snprintf(line, sizeof line, "weft: %s: ", g_program);
    va_list arguments;
    va_start(arguments, format);
    length += std::vsnprintf(line + length, sizeof line - static_cast<std::size_t>(length) - 1, format, arguments);
    va_end(arguments);
    const std::size_t end = std::min<std::size_t>(static_cast<std::size_t>(length), sizeof line - 2);
    line[end] = '\n';
    (void)!write(STDERR_FILENO, line, end + 1);
    _exit(kRefused);
}

// The jump fits into one aligned slot of a function.
#if defined(__x86_64__)
struct __attribute__((packed)) Jump {
    unsigned char code[6] = {0xff, 0x25, 0, 0, 0, 0};  // jmp *0(%rip)
    const void* target;
};
static_assert(sizeof(Jump) == 14);
#elif defined(__aarch64__)
struct Jump {
    std::uint32_t code[2] = {0x58000050, 0xd61f0200};  // ldr x16, #8; br x16
    const void* target;
};
static_assert(sizeof(Jump) == 16);
#endif

struct Mapping {
    const void* data = nullptr;
    std::size_t size = 0;
};

Mapping map_program() {
    Mapping mapping;
    const int fd = open("/proc/self/exe", O_RDONLY | O_CLOEXEC);
    if (fd < 0) return mapping;
    struct stat about;
    if (fstat(fd, &about) == 0 && about.st_size > 0) {
        void* data = mmap(nullptr, static_cast<std::size_t>(about.st_size), PROT_READ, MAP_PRIVATE, fd, 0);
        if (data != MAP_FAILED) mapping = {data, static_cast<std::size_t>(about.st_size)};
    }
    close(fd);
    return mapping;
}

// The executable comes first.
int take_load_offset(dl_phdr_info* info, std::size_t, void* offset) {
    *static_cast<std::uint64_t*>(offset) = info->dlpi_addr;
    return 1;
}

// Weft's runtimes lie beside this library.
void* open_runtime(int major) {
    Dl_info self;
    if (dladdr(reinterpret_cast<void*>(&open_runtime), &self) == 0 || self.dli_fname == nullptr) return nullptr;
    const char* slash = std::strrchr(self.dli_fname, '/');
    char path[kPathBytes];
    const int folder = slash != nullptr ? static_cast<int>(slash - self.dli_fname + 1) : 0;
    std::snprintf(path, sizeof path, "%.*slibcudart.so.%d", folder, self.dli_fname, major);
    return dlopen(path, RTLD_NOW | RTLD_GLOBAL);
}

int read_major(const ProgramFile& program, std::uint64_t offset) {
    int (*get_version)(int*) = nullptr;
    program.for_each_runtime_name([&](const ProgramFile::Function& function) {
        if (std::strcmp(function.name, "cudaRuntimeGetVersion") == 0)
            get_version = reinterpret_cast<int (*)(int*)>(function.address + offset);
    });
    int version = 0;
    if (get_version == nullptr || get_version(&version) != 0) return 0;
    return version / 1000;
}

struct Pages {
    std::uint64_t first = UINT64_MAX, last = 0;

    bool protect(int protection) const {
        return mprotect(reinterpret_cast<void*>(first), last - first, protection) == 0;
    }
};

Pages pages_of(const ProgramFile& program, std::uint64_t offset) {
    const auto page = static_cast<std::uint64_t>(sysconf(_SC_PAGESIZE));
    Pages pages;
    program.for_each_runtime_name([&](const ProgramFile::Function& function) {
        pages.first = std::min(pages.first, (function.address + offset) / page * page);
        pages.last = std::max(pages.last, (function.address + offset + sizeof(Jump) + page - 1) / page * page);
    });
    return pages;
}

void write_jumps(const ProgramFile& program, std::uint64_t offset, void* runtime) {
    program.for_each_runtime_name([&](const ProgramFile::Function& function) {
        // The program has functions of its own with such names (__cudaUnregisterBinaryUtil): the library does not know
        // them.
        const void* target = dlsym(runtime, function.name);
        if (target == nullptr) return;
        if (function.size < sizeof(Jump) && program.room_at(function) < sizeof(Jump))
            refuse("its %s is too small to be redirected: relink with -cudart shared", function.name);
        Jump jump;
        jump.target = target;
        auto* at = reinterpret_cast<char*>(function.address + offset);
        std::memcpy(at, &jump, sizeof jump);
        __builtin___clear_cache(at, at + sizeof jump);
    });
}

void redirect(const ProgramFile& program) {
    std::uint64_t offset = 0;
    dl_iterate_phdr(&take_load_offset, &offset);
    const int major = read_major(program, offset);
    if (major == 0) return;  // device code, but no runtime of its own: some library's
    void* runtime = major == 12 || major == 13 ? open_runtime(major) : nullptr;
    if (runtime == nullptr)
        refuse("carries the CUDA runtime of release %d, which Weft does not have: build it with CUDA 12 or 13 (%s)",
               major, major == 12 || major == 13 ? dlerror() : "or with -cudart shared");
    const Pages pages = pages_of(program, offset);
    if (!pages.protect(PROT_READ | PROT_WRITE | PROT_EXEC))
        refuse(
            "its code cannot be redirected to Weft's CUDA runtime (mprotect is not permitted): relink with -cudart "
            "shared");
    write_jumps(program, offset, runtime);
    (void)pages.protect(PROT_READ | PROT_EXEC);
}

__attribute__((constructor)) void start() {
    const Mapping mapping = map_program();
    if (mapping.data == nullptr) return;
    {
        const ProgramFile program(mapping.data, mapping.size);
        if (program.has_device_code() && !program.imports_runtime()) {
            const ssize_t length = readlink("/proc/self/exe", g_program, sizeof g_program - 1);
            g_program[length > 0 ? length : 0] = '\0';
            if (!program.has_symbols())
                refuse(
                    "is stripped and carries NVIDIA's CUDA runtime inside, which cannot be redirected: relink it with "
                    "`nvcc -cudart shared`, or without stripping (no -s, no strip)");
            redirect(program);
        }
    }
    munmap(const_cast<void*>(mapping.data), mapping.size);
}

}  // namespace
}  // namespace weft::redirect
