#include "swgpu/ptx/types.h"

#include <array>

namespace weft::ptx {
namespace {

struct Entry {
    std::string_view name;
    uint32_t size;
};

// In the order of the enumeration.
constexpr std::array<Entry, 24> kTypes{{
    {"none", 0}, {"b8", 1},     {"b16", 2},  {"b32", 4}, {"b64", 8}, {"b128", 16}, {"u8", 1},    {"u16", 2},
    {"u32", 4},  {"u64", 8},    {"s8", 1},   {"s16", 2}, {"s32", 4}, {"s64", 8},   {"f16", 2},   {"f16x2", 4},
    {"bf16", 2}, {"bf16x2", 4}, {"tf32", 4}, {"f32", 4}, {"f64", 8}, {"u16x2", 4}, {"s16x2", 4}, {"pred", 0},
}};

}  // namespace

std::optional<Type> type_from_name(std::string_view name) {
    for (size_t i = 1; i < kTypes.size(); ++i) {
        if (kTypes[i].name == name) return static_cast<Type>(i);
    }
    return std::nullopt;
}

std::string_view name_of(Type type) { return kTypes[static_cast<size_t>(type)].name; }

uint32_t size_of(Type type) { return kTypes[static_cast<size_t>(type)].size; }

}  // namespace weft::ptx
