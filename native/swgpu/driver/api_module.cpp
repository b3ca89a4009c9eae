// Modules and the link API.
#include <fcntl.h>
#include <unistd.h>

#include <cstdio>

#include "swgpu/driver/api.h"
#include "swgpu/driver/log.h"
#include "swgpu/driver/module.h"

using namespace weft::swdriver;

namespace {

unsigned device_sm(const Device& device) {
    return static_cast<unsigned>(device.capability_major * 10 + device.capability_minor);
}

CUresult load(const Entry& entry, CUmodule* out, const void* image, std::size_t size, JitOptions options) {
    if (out == nullptr || image == nullptr) return CUDA_ERROR_INVALID_VALUE;
    WEFT_TRY(options.check());
    Loaded loaded = load_image(image, size, device_sm(entry.device()));
    Ref<Module> module;
    if (loaded.result == CUDA_SUCCESS)
        loaded.result = Module::create(*entry.context, loaded.program, &module, &loaded.log);
    options.report(loaded.result, loaded.log);
    log_failed_load(loaded, options);
    WEFT_TRY(loaded.result);
    HandleTable::instance().insert(module.get());
    entry->add_object(*module);
    *out = module->handle_as<CUmodule>();
    return CUDA_SUCCESS;
}

}  // namespace

namespace weft::swdriver {

// The file with a NUL after it, so that text is terminated.
CUresult read_image_file(const char* path, std::string* content) {
    FILE* file = std::fopen(path, "re");
    if (file == nullptr) return CUDA_ERROR_FILE_NOT_FOUND;
    char buffer[65536];
    for (std::size_t got = 0; (got = std::fread(buffer, 1, sizeof buffer, file)) > 0;) content->append(buffer, got);
    const bool failed = std::ferror(file) != 0;
    std::fclose(file);
    return failed ? CUDA_ERROR_FILE_NOT_FOUND : CUDA_SUCCESS;
}

}  // namespace weft::swdriver

WEFT_API CUresult cuModuleLoadDataEx(CUmodule* out, const void* image, unsigned int count, CUjit_option* options,
                                     void** values) {
    WEFT_ENTER(entry);
    return load(entry, out, image, 0, JitOptions(count, options, values));
}

WEFT_API CUresult cuModuleLoadData(CUmodule* out, const void* image) {
    return cuModuleLoadDataEx(out, image, 0, nullptr, nullptr);
}
WEFT_API CUresult cuModuleLoadFatBinary(CUmodule* out, const void* image) { return cuModuleLoadData(out, image); }

WEFT_API CUresult cuModuleLoad(CUmodule* out, const char* path) {
    WEFT_ENTER(entry);
    if (path == nullptr) return CUDA_ERROR_INVALID_VALUE;
    std::string content;
    WEFT_TRY(read_image_file(path, &content));
    return load(entry, out, content.c_str(), content.size() + 1, JitOptions(0, nullptr, nullptr));
}

WEFT_API CUresult cuModuleUnload(CUmodule handle) {
    WEFT_ENTER(entry);
    const Ref<Module> module = HandleTable::instance().remove<Module>(handle);
    if (!module) return CUDA_ERROR_INVALID_HANDLE;
    synchronize(module->context());
    module->close();
    module->context().forget_object(*module);
    return CUDA_SUCCESS;
}

WEFT_API CUresult cuModuleGetFunction(CUfunction* out, CUmodule handle, const char* name) {
    WEFT_ENTER(entry);
    if (out == nullptr || name == nullptr) return CUDA_ERROR_INVALID_VALUE;
    const Ref<Module> module = find<Module>(handle);
    if (!module) return CUDA_ERROR_INVALID_HANDLE;
    const Ref<Function> function = module->function(name);
    if (!function) return CUDA_ERROR_NOT_FOUND;
    *out = function->handle_as<CUfunction>();
    return CUDA_SUCCESS;
}

WEFT_API CUresult cuModuleGetFunctionCount(unsigned int* count, CUmodule handle) {
    WEFT_ENTER(entry);
    const Ref<Module> module = find<Module>(handle);
    if (!module) return CUDA_ERROR_INVALID_HANDLE;
    if (count == nullptr) return CUDA_ERROR_INVALID_VALUE;
    *count = static_cast<unsigned>(module->functions().size());
    return CUDA_SUCCESS;
}

WEFT_API CUresult cuModuleEnumerateFunctions(CUfunction* functions, unsigned int room, CUmodule handle) {
    WEFT_ENTER(entry);
    const Ref<Module> module = find<Module>(handle);
    if (!module) return CUDA_ERROR_INVALID_HANDLE;
    if (functions == nullptr || room == 0) return CUDA_ERROR_INVALID_VALUE;
    unsigned i = 0;
    for (const Ref<Function>& function : module->functions()) {
        if (i < room) functions[i++] = function->handle_as<CUfunction>();
    }
    return CUDA_SUCCESS;
}

WEFT_API CUresult cuModuleGetGlobal_v2(CUdeviceptr* address, size_t* size, CUmodule handle, const char* name) {
    WEFT_ENTER(entry);
    const Ref<Module> module = find<Module>(handle);
    if (!module) return CUDA_ERROR_INVALID_HANDLE;
    if (name == nullptr || (address == nullptr && size == nullptr)) return CUDA_ERROR_INVALID_VALUE;
    return module->global(name, address, size) ? CUDA_SUCCESS : CUDA_ERROR_NOT_FOUND;
}

WEFT_API CUresult cuModuleGetLoadingMode(CUmoduleLoadingMode* mode) {
    if (mode == nullptr) return CUDA_ERROR_INVALID_VALUE;
    *mode = CU_MODULE_LAZY_LOADING;
    return CUDA_SUCCESS;
}

// The link API.

namespace {

// The options are kept by address: their log buffers are filled as the link goes on.
struct LinkState final : Object {
    static constexpr Kind kKind = Kind::link;
    LinkState(unsigned sm, JitOptions jit) : Object(kKind), device_sm(sm), options(jit) {}
    const unsigned device_sm;
    JitOptions options;
    std::mutex mutex;
    std::vector<std::string> texts;
    std::vector<ProgramPtr> programs;
    std::string image;  // once complete
};

CUresult fail(LinkState& state, CUresult result, const std::string& log) {
    state.options.report(result, log);
    log_failed_load({result, nullptr, log}, state.options);
    return result;
}

CUresult add(LinkState& state, CUjitInputType type, const void* data, std::size_t size) {
    if (type == CU_JIT_INPUT_OBJECT || type == CU_JIT_INPUT_LIBRARY || type == CU_JIT_INPUT_NVVM) {
        return fail(state, CUDA_ERROR_NO_BINARY_FOR_GPU, "link: only PTX can be linked for a software GPU");
    }
    if (type != CU_JIT_INPUT_PTX && type != CU_JIT_INPUT_FATBINARY && type != CU_JIT_INPUT_CUBIN)
        return CUDA_ERROR_INVALID_VALUE;
    Texts found = find_texts(data, size, state.device_sm);
    if (found.result != CUDA_SUCCESS) return fail(state, found.result, found.log);
    for (std::string_view text : found.texts) {
        Loaded compiled = compile_text(text, state.device_sm);
        if (compiled.result != CUDA_SUCCESS) return fail(state, compiled.result, compiled.log);
        state.texts.emplace_back(text);
        state.programs.push_back(std::move(compiled.program));
    }
    return CUDA_SUCCESS;
}

}  // namespace

WEFT_API CUresult cuLinkCreate_v2(unsigned int count, CUjit_option* options, void** values, CUlinkState* out) {
    WEFT_ENTER(entry);
    if (out == nullptr) return CUDA_ERROR_INVALID_VALUE;
    const JitOptions jit(count, options, values);
    WEFT_TRY(jit.check());
    Ref<LinkState> state(new LinkState(device_sm(entry.device()), jit));
    HandleTable::instance().insert(state.get());
    *out = state->handle_as<CUlinkState>();
    return CUDA_SUCCESS;
}

WEFT_API CUresult cuLinkAddData_v2(CUlinkState handle, CUjitInputType type, void* data, size_t size, const char*,
                                   unsigned int count, CUjit_option* options, void** values) {
    WEFT_ENTER(entry);
    const Ref<LinkState> state = find<LinkState>(handle);
    if (!state) return CUDA_ERROR_INVALID_HANDLE;
    if (data == nullptr || size == 0) return CUDA_ERROR_INVALID_VALUE;
    WEFT_TRY(JitOptions(count, options, values).check());
    std::lock_guard lock(state->mutex);
    return add(*state, type, data, size);
}

WEFT_API CUresult cuLinkAddFile_v2(CUlinkState handle, CUjitInputType type, const char* path, unsigned int count,
                                   CUjit_option* options, void** values) {
    WEFT_ENTER(entry);
    const Ref<LinkState> state = find<LinkState>(handle);
    if (!state) return CUDA_ERROR_INVALID_HANDLE;
    if (path == nullptr) return CUDA_ERROR_INVALID_VALUE;
    WEFT_TRY(JitOptions(count, options, values).check());
    std::string content;
    WEFT_TRY(read_image_file(path, &content));
    std::lock_guard lock(state->mutex);
    return add(*state, type, content.c_str(), content.size() + 1);
}

// The image belongs to the state and dies with it.
WEFT_API CUresult cuLinkComplete(CUlinkState handle, void** image, size_t* size) {
    WEFT_ENTER(entry);
    const Ref<LinkState> state = find<LinkState>(handle);
    if (!state) return CUDA_ERROR_INVALID_HANDLE;
    if (image == nullptr) return CUDA_ERROR_INVALID_VALUE;
    std::lock_guard lock(state->mutex);
    if (state->programs.empty()) return fail(*state, CUDA_ERROR_INVALID_IMAGE, "link: nothing was added");
    const Loaded linked = link_programs(state->programs);
    if (linked.result != CUDA_SUCCESS) return fail(*state, linked.result, linked.log);
    state->image = pack_linked(state->texts);
    state->options.report(CUDA_SUCCESS, {});
    *image = state->image.data();
    if (size != nullptr) *size = state->image.size() + 1;
    return CUDA_SUCCESS;
}

WEFT_API CUresult cuLinkDestroy(CUlinkState handle) {
    WEFT_TRY(check_ready());
    return HandleTable::instance().remove<LinkState>(handle) ? CUDA_SUCCESS : CUDA_ERROR_INVALID_HANDLE;
}
