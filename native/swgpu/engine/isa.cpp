// Chooses the build of the handlers that fits this machine, once.
#include <cstdlib>
#include <string_view>

#include "swgpu/engine/query.h"

namespace weft::engine {

#define WEFT_DECLARE_SET(isa)                       \
    namespace isa {                                 \
    Handler select_integer(const ArithmeticQuery&); \
    Handler select_single(const ArithmeticQuery&);  \
    Handler select_half(const ArithmeticQuery&);    \
    Handler select_compare(const CompareQuery&);    \
    Handler select_convert(const ConvertQuery&);    \
    Handler select_memory(const MemoryQuery&);      \
    }
#define WEFT_SET(isa, name)                                                                                        \
    HandlerSet {                                                                                                   \
        name, isa::select_integer, isa::select_single, isa::select_half, isa::select_compare, isa::select_convert, \
            isa::select_memory                                                                                     \
    }

WEFT_DECLARE_SET(base)
#if defined(__x86_64__)
WEFT_DECLARE_SET(v3)
WEFT_DECLARE_SET(v4)
#endif

namespace {

HandlerSet choose() {
#if defined(__x86_64__)
    const char* wish = std::getenv("WEFT_SWGPU_ISA");
    std::string_view limit = wish ? wish : "v4";
    __builtin_cpu_init();
    bool has_v3 = __builtin_cpu_supports("avx2") && __builtin_cpu_supports("fma") && __builtin_cpu_supports("bmi2") &&
                  __builtin_cpu_supports("bmi") && __builtin_cpu_supports("f16c") && __builtin_cpu_supports("lzcnt") &&
                  __builtin_cpu_supports("movbe");
    bool has_v4 = has_v3 && __builtin_cpu_supports("avx512f") && __builtin_cpu_supports("avx512bw") &&
                  __builtin_cpu_supports("avx512cd") && __builtin_cpu_supports("avx512dq") &&
                  __builtin_cpu_supports("avx512vl");
    if (has_v4 && limit == "v4") return WEFT_SET(v4, "x86-64-v4");
    if (has_v3 && limit != "v2") return WEFT_SET(v3, "x86-64-v3");
    return WEFT_SET(base, "x86-64-v2");
#else
    return WEFT_SET(base, "generic");
#endif
}

}  // namespace

const HandlerSet& handler_set() {
    static const HandlerSet set = choose();
    return set;
}

std::string_view instruction_set() { return handler_set().name; }

}  // namespace weft::engine
