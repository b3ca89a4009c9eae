// See module_loader.h.
#include "executor/module_loader.h"

#include <algorithm>
#include <array>
#include <cstring>
#include <map>

#include "base/sha256.h"

namespace weft::executor {

namespace {

constexpr std::uint64_t kPageBytes = 4096;
constexpr std::size_t kMaxLinkedBytes = ImageCache::kMaxImageBytes;

void* as_pointer(std::uint64_t value) { return reinterpret_cast<void*>(static_cast<std::uintptr_t>(value)); }

}  // namespace

bool is_forwarded_option(std::uint32_t option) {
    switch (option) {
        case CU_JIT_MAX_REGISTERS:
        case CU_JIT_THREADS_PER_BLOCK:
        case CU_JIT_OPTIMIZATION_LEVEL:
        case CU_JIT_TARGET_FROM_CUCONTEXT:
        case CU_JIT_TARGET:
        case CU_JIT_FALLBACK_STRATEGY:
        case CU_JIT_GENERATE_DEBUG_INFO:
        case CU_JIT_LOG_VERBOSE:
        case CU_JIT_GENERATE_LINE_INFO:
        case CU_JIT_CACHE_MODE:
        case CU_JIT_LTO:
        case CU_JIT_FTZ:
        case CU_JIT_PREC_DIV:
        case CU_JIT_PREC_SQRT:
        case CU_JIT_FMA:
        case CU_JIT_OPTIMIZE_UNUSED_DEVICE_VARIABLES:
        case CU_JIT_POSITION_INDEPENDENT_CODE:
        case CU_JIT_MIN_CTA_PER_SM:
        case CU_JIT_MAX_THREADS_PER_BLOCK:
        case CU_JIT_OVERRIDE_DIRECTIVE_VALUES: return true;
        default: return false;
    }
}

// The options of the client, and our own buffers for what the compiler says.
struct ModuleLoader::Logs {
    explicit Logs(const wire::JitOptions& requested) {
        for (const wire::JitOption& option : requested) {
            if (is_forwarded_option(option.option)) add(option.option, as_pointer(option.value));
        }
        add(CU_JIT_INFO_LOG_BUFFER, info.data());
        info_size = values.size();
        add(CU_JIT_INFO_LOG_BUFFER_SIZE_BYTES, as_pointer(info.size()));
        add(CU_JIT_ERROR_LOG_BUFFER, error.data());
        error_size = values.size();
        add(CU_JIT_ERROR_LOG_BUFFER_SIZE_BYTES, as_pointer(error.size()));
    }
    void add(std::uint32_t option, void* value) {
        options.push_back(static_cast<CUjit_option>(option));
        values.push_back(value);
    }
    unsigned count() const { return static_cast<unsigned>(options.size()); }
    static std::string text(const std::array<char, wire::kMaxLogBytes>& buffer) {
        return std::string(buffer.data(), strnlen(buffer.data(), buffer.size() - 1));
    }

    std::vector<CUjit_option> options;
    std::vector<void*> values;
    std::size_t info_size = 0, error_size = 0;
    std::array<char, wire::kMaxLogBytes> info{};
    std::array<char, wire::kMaxLogBytes> error{};
};

LoadedModule ModuleLoader::load(CUcontext context, LoadRequest request) {
    LoadedModule out;
    ImageRef image;
    if (request.uploaded && request.uploaded->size() == request.size_bytes) {
        Result<ImageRef> stored = cache_.store(request.hash, std::move(*request.uploaded));
        if (!stored) {
            out.status = CUDA_ERROR_INVALID_IMAGE;
            out.reply.error_log = stored.status().text();
            return out;
        }
        image = *stored;
    } else {
        image = cache_.find(request.hash, request.size_bytes);
    }
    if (image == nullptr) {
        out.reply.need_image = true;
        return out;
    }
    out.status = driver_.cuCtxSetCurrent(context);
    if (out.status == CUDA_SUCCESS) out.status = load_image(image, request.options, &out);
    if (out.status == CUDA_SUCCESS) describe(image, &out);
    return out;
}

CUresult ModuleLoader::load_image(const ImageRef& image, const wire::JitOptions& options, LoadedModule* out) {
    Logs logs(options);
    const CUresult result =
        driver_.cuModuleLoadDataEx(&out->module, image->data(), logs.count(), logs.options.data(), logs.values.data());
    out->reply.info_log = Logs::text(logs.info);
    out->reply.error_log = Logs::text(logs.error);
    return result;
}

void ModuleLoader::describe(const ImageRef& image, LoadedModule* out) {
    const ImageSymbols symbols = scan_image(image->span());
    if (!enumerate_functions(out)) find_functions(symbols, out);
    find_globals(symbols, out);
    out->may_print = may_print(image->span());
    out->reply.reserve = pages_of(out->reply.globals);
}

bool ModuleLoader::enumerate_functions(LoadedModule* out) {
    if (driver_.cuModuleGetFunctionCount == nullptr || driver_.cuModuleEnumerateFunctions == nullptr ||
        driver_.cuFuncGetName == nullptr || driver_.cuFuncGetParamInfo == nullptr) {
        return false;
    }
    unsigned count = 0;
    if (driver_.cuModuleGetFunctionCount(&count, out->module) != CUDA_SUCCESS || count > wire::kMaxFunctions)
        return false;
    std::vector<CUfunction> functions(count);
    if (count != 0 && driver_.cuModuleEnumerateFunctions(functions.data(), count, out->module) != CUDA_SUCCESS)
        return false;
    for (const CUfunction function : functions) {
        const char* name = nullptr;
        if (driver_.cuFuncGetName(&name, function) != CUDA_SUCCESS || name == nullptr) continue;
        wire::FunctionInfo info;
        info.name = name;
        for (std::size_t i = 0; i < wire::kMaxParameters; ++i) {
            std::size_t offset = 0, size = 0;
            if (driver_.cuFuncGetParamInfo(function, i, &offset, &size) != CUDA_SUCCESS) break;
            info.parameters.push_back({static_cast<std::uint32_t>(offset), static_cast<std::uint32_t>(size)});
        }
        describe_function(function, &info);
        out->functions.push_back(function);
        out->reply.functions.push_back(std::move(info));
    }
    return true;
}

void ModuleLoader::find_functions(const ImageSymbols& symbols, LoadedModule* out) {
    for (const KernelSymbol& kernel : symbols.kernels) {
        CUfunction function = nullptr;
        if (driver_.cuModuleGetFunction(&function, out->module, kernel.name.c_str()) != CUDA_SUCCESS) continue;
        wire::FunctionInfo info;
        info.name = kernel.name;
        info.parameters = kernel.parameters;
        describe_function(function, &info);
        out->functions.push_back(function);
        out->reply.functions.push_back(std::move(info));
    }
}

void ModuleLoader::describe_function(CUfunction function, wire::FunctionInfo* info) {
    for (int attribute = 0; attribute < CU_FUNC_ATTRIBUTE_MAX; ++attribute) {
        int value = 0;
        if (driver_.cuFuncGetAttribute(&value, static_cast<CUfunction_attribute>(attribute), function) ==
            CUDA_SUCCESS) {
            info->attributes.set(static_cast<std::size_t>(attribute), value);
        }
    }
}

void ModuleLoader::find_globals(const ImageSymbols& symbols, LoadedModule* out) {
    for (const std::string& name : symbols.globals) {
        CUdeviceptr address = 0;
        std::size_t size = 0;
        if (driver_.cuModuleGetGlobal_v2(&address, &size, out->module, name.c_str()) != CUDA_SUCCESS || size == 0)
            continue;
        out->reply.globals.push_back({name, {address, size}});
        out->global_bytes += size;
    }
}

LinkedImage ModuleLoader::link(CUcontext context, const wire::LinkRequest& request,
                               std::vector<UploadedImage> uploaded) {
    LinkedImage out;
    std::map<wire::Hash, ImageRef> fresh;
    for (UploadedImage& image : uploaded) {
        if (Result<ImageRef> stored = cache_.store(image.first, std::move(image.second))) fresh[image.first] = *stored;
    }
    std::vector<ImageRef> images;
    for (std::size_t i = 0; i < request.inputs.size(); ++i) {
        const wire::LinkInput& input = request.inputs[i];
        const auto found = fresh.find(input.hash);
        ImageRef image = found != fresh.end() ? found->second : cache_.find(input.hash, input.size_bytes);
        if (image == nullptr) out.reply.missing.push_back(static_cast<std::uint32_t>(i));
        images.push_back(std::move(image));
    }
    if (!out.reply.missing.empty()) return out;
    out.status = driver_.cuCtxSetCurrent(context);
    if (out.status == CUDA_SUCCESS) out.status = link_images(request, images, &out);
    return out;
}

CUresult ModuleLoader::link_images(const wire::LinkRequest& request, const std::vector<ImageRef>& images,
                                   LinkedImage* out) {
    Logs logs(request.options);
    CUlinkState state = nullptr;
    CUresult result = driver_.cuLinkCreate_v2(logs.count(), logs.options.data(), logs.values.data(), &state);
    if (result != CUDA_SUCCESS) return result;
    for (std::size_t i = 0; i < images.size() && result == CUDA_SUCCESS; ++i) {
        const wire::LinkInput& input = request.inputs[i];
        std::vector<CUjit_option> options;
        std::vector<void*> values;
        for (const wire::JitOption& option : input.options) {
            if (!is_forwarded_option(option.option)) continue;
            options.push_back(static_cast<CUjit_option>(option.option));
            values.push_back(as_pointer(option.value));
        }
        result =
            driver_.cuLinkAddData_v2(state, static_cast<CUjitInputType>(input.type),
                                     const_cast<void*>(images[i]->data()), images[i]->span().size(), input.name.c_str(),
                                     static_cast<unsigned>(options.size()), options.data(), values.data());
    }
    void* cubin = nullptr;
    std::size_t size = 0;
    if (result == CUDA_SUCCESS) result = driver_.cuLinkComplete(state, &cubin, &size);
    if (result == CUDA_SUCCESS && (size == 0 || size > kMaxLinkedBytes)) result = CUDA_ERROR_NOT_SUPPORTED;
    if (result == CUDA_SUCCESS) {
        const auto* bytes = static_cast<const std::byte*>(cubin);
        std::vector<std::byte> copy(bytes, bytes + size);
        out->reply.image_bytes = size;
        out->reply.hash = sha256(copy);
        // Known from now on: the client's MODULE_LOAD of it needs no upload.
        if (Result<ImageRef> stored = cache_.store(out->reply.hash, std::move(copy))) out->image = *stored;
    }
    driver_.cuLinkDestroy(state);
    out->reply.info_log = Logs::text(logs.info);
    out->reply.error_log = Logs::text(logs.error);
    return result;
}

std::vector<wire::AddressRange> pages_of(const std::vector<wire::GlobalInfo>& globals) {
    std::vector<wire::AddressRange> pages;
    for (const wire::GlobalInfo& global : globals) {
        const std::uint64_t first = global.range.address / kPageBytes * kPageBytes;
        const std::uint64_t end =
            (global.range.address + global.range.size_bytes + kPageBytes - 1) / kPageBytes * kPageBytes;
        pages.push_back({first, end - first});
    }
    std::sort(pages.begin(), pages.end(), [](const auto& a, const auto& b) { return a.address < b.address; });
    std::vector<wire::AddressRange> joined;
    for (const wire::AddressRange& page : pages) {
        if (!joined.empty() && page.address <= joined.back().address + joined.back().size_bytes) {
            const std::uint64_t end =
                std::max(joined.back().address + joined.back().size_bytes, page.address + page.size_bytes);
            joined.back().size_bytes = end - joined.back().address;
        } else {
            joined.push_back(page);
        }
    }
    return joined;
}

}  // namespace weft::executor
