#include "driver/load.h"

#include <dlfcn.h>

#include <cstring>
#include <string>

namespace weft::driver {
namespace {

// What dlerror last said; it may say nothing.
std::string loader_message() {
    const char* text = dlerror();
    return text != nullptr ? text : "no reason given";
}

// Stores the address through the type that the field has in memory: a pointer to a function.
void store_function(DriverTable* table, std::size_t offset, void* address) {
    std::memcpy(reinterpret_cast<std::byte*>(table) + offset, &address, sizeof(address));
}

Status resolve_all(const char* path, void* library, DriverTable* table) {
    for (std::size_t i = 0; i < kDriverSymbolCount; ++i) {
        const DriverSymbol& symbol = kDriverSymbols[i];
        void* address = dlsym(library, symbol.name);
        if (address == nullptr && symbol.required) {
            return Status::error(ErrorCode::unsupported,
                                 std::string(path) + " is no usable CUDA driver: it lacks " + symbol.name);
        }
        store_function(table, symbol.offset, address);
    }
    return Status::ok();
}

}  // namespace

Status load_driver_table(const char* path, DriverTable* table) {
    *table = DriverTable{};
    void* library = dlopen(path, RTLD_NOW | RTLD_LOCAL);
    if (library == nullptr) {
        return Status::error(ErrorCode::not_found,
                             "cannot load the driver " + std::string(path) + ": " + loader_message());
    }
    if (dlsym(library, "weftIsShim") != nullptr) {
        dlclose(library);
        return Status::error(
            ErrorCode::unsupported,
            std::string(path) + " is Weft's own client library, not a driver; set the path of the real one");
    }
    if (Status status = resolve_all(path, library, table); !status) {
        dlclose(library);
        *table = DriverTable{};
        return status;
    }
    void* note = dlsym(library, "weftMemoryNote");
    std::memcpy(&table->weftMemoryNote, &note, sizeof(note));
    void* access = dlsym(library, "weftHostAccess");
    std::memcpy(&table->weftHostAccess, &access, sizeof(access));
    table->library = library;
    return Status::ok();
}

}  // namespace weft::driver
