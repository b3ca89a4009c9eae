#include "api.h"

#include <dlfcn.h>

#include <cstdio>
#include <cstring>

Api cu;

bool load_api() {
    cu.library = dlopen("libcuda.so.1", RTLD_NOW | RTLD_GLOBAL);
    if (cu.library == nullptr) {
        std::fprintf(stderr, "weft-conformance: %s\n", dlerror());
        return false;
    }
    const auto load = [](const char* name, auto* function) {
        void* symbol = dlsym(cu.library, name);
        std::memcpy(function, &symbol, sizeof symbol);
    };
#define X(name) load(#name, &cu.name);
    CONFORMANCE_FUNCTIONS(X)
#undef X
    return true;
}
