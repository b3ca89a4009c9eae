#include "shim/module_loader.h"

#include <algorithm>
#include <cstring>

#include "base/sha256.h"
#include "gen/cuda_names.h"
#include "shim/log.h"
#include "shim/runtime.h"

namespace weft::shim {
namespace {

constexpr int kAddressTries = 8;

std::shared_ptr<Module> describe(Context& context, std::uint32_t number, wire::ModuleReply&& reply) {
    auto module = std::make_shared<Module>();
    module->number = number;
    module->context = &context;
    module->description = std::move(reply);
    std::uint32_t index = 0;
    for (const wire::FunctionInfo& info : module->description.functions) {
        auto function = std::make_shared<Function>();
        function->module = module.get();
        function->index = index++;
        function->info = &info;
        for (const wire::ParameterInfo& parameter : info.parameters)
            function->parameter_bytes = std::max(function->parameter_bytes, parameter.offset + parameter.size_bytes);
        function->max_dynamic_shared_bytes =
            info.attributes.get(CU_FUNC_ATTRIBUTE_MAX_DYNAMIC_SHARED_SIZE_BYTES).value_or(48 * 1024);
        module->by_name.emplace(info.name, function.get());
        module->functions.push_back(std::move(function));
    }
    for (const wire::GlobalInfo& global : module->description.globals) module->global_bytes += global.range.size_bytes;
    return module;
}

Reply request_load(Context& context, std::uint32_t number, const HashedImage& image,
                   const std::vector<std::byte>& options) {
    return Runtime::get()->session().call<wire::ModuleLoad>(
        context.number, options.size(), [&](auto& frame, std::byte* tail) {
            frame.module = number;
            frame.kind = static_cast<std::uint32_t>(image.image.kind);
            frame.size_bytes = image.image.bytes.size();
            std::memcpy(frame.hash.data(), image.hash.data(), image.hash.size());
            std::memcpy(tail, options.data(), options.size());
            (void)Runtime::get()->progress().next();
        });
}

void tell_failure(CUresult status, const std::string& error_log) {
    const char* name = driver::error_name(status);
    log_line("a module failed to load: " + std::string(name != nullptr ? name : "unknown error") +
             (error_log.empty() ? "" : ": " + error_log.substr(0, error_log.find('\n'))));
}

// One attempt. Uploads the image if the server lacks it.
CUresult try_load(Context& context, const HashedImage& image, JitRequest& jit, std::shared_ptr<Module>* module) {
    const std::vector<std::byte> options = wire::encode(jit.forwarded());
    const std::uint32_t number = Runtime::get()->next_number();
    // A recording must hold the image even if this server has it.
    const bool recorded = Runtime::get()->session().is_recorded();
    if (recorded)
        if (const CUresult sent = upload_image(image); sent != CUDA_SUCCESS) return sent;
    for (bool uploaded = recorded;; uploaded = true) {
        const Reply reply = request_load(context, number, image, options);
        if (reply.status == Session::kLost) return reply.status;
        auto description = wire::decode_module_reply(reply.tail);
        if (!description) return reply.status != CUDA_SUCCESS ? reply.status : CUDA_ERROR_UNKNOWN;
        if (description->need_image) {
            if (uploaded) return CUDA_ERROR_INVALID_IMAGE;
            if (const CUresult sent = upload_image(image); sent != CUDA_SUCCESS) return sent;
            continue;
        }
        jit.deliver(description->info_log, description->error_log);
        if (reply.status != CUDA_SUCCESS) {
            if (!jit.wants_error_log()) tell_failure(reply.status, description->error_log);
            return reply.status;
        }
        *module = describe(context, number, std::move(*description));
        return CUDA_SUCCESS;
    }
}

}  // namespace

HashedImage hash_image(const Image& image) {
    HashedImage hashed{image, {}};
    hashed.hash = sha256(image.bytes);
    return hashed;
}

CUresult upload_image(const HashedImage& image) {
    Session& session = Runtime::get()->session();
    const std::size_t piece = session.payload_piece_bytes();
    const auto bytes = image.image.bytes;
    for (std::size_t offset = 0; offset < bytes.size(); offset += piece) {
        const auto part = bytes.subspan(offset, std::min(piece, bytes.size() - offset));
        const CUresult sent = session.send_payload<wire::Image>(0, part, [&](auto& frame) {
            std::memcpy(frame.hash.data(), image.hash.data(), image.hash.size());
            frame.offset = offset;
            frame.size_bytes = static_cast<std::uint32_t>(part.size());
        });
        if (sent != CUDA_SUCCESS) return sent;
    }
    return CUDA_SUCCESS;
}

CUresult load_module(Context& context, const HashedImage& image, JitRequest& jit, std::shared_ptr<Module>* module) {
    Runtime& runtime = *Runtime::get();
    std::vector<std::shared_ptr<Module>>
        misplaced;  // kept until a try succeeds, so that the driver picks other addresses
    CUresult result = CUDA_ERROR_OUT_OF_MEMORY;
    for (int attempt = 0; attempt < kAddressTries; ++attempt) {
        result = try_load(context, image, jit, module);
        if (result == CUDA_ERROR_OUT_OF_MEMORY && context.device->memory->trim())
            continue;  // its variables need memory of the lease
        if (result != CUDA_SUCCESS || runtime.adopt_module(*module)) break;
        misplaced.push_back(std::move(*module));
        result = CUDA_ERROR_OUT_OF_MEMORY;
        if (attempt + 1 == kAddressTries)
            log_line("a module's variables lie at addresses that this process uses itself; giving up");
    }
    for (const auto& gone : misplaced)
        (void)runtime.session().send<wire::ModuleUnload>(context.number, 0,
                                                         [&](auto& frame, std::byte*) { frame.module = gone->number; });
    if (result != CUDA_SUCCESS) return result;
    std::lock_guard lock(context.mutex);
    context.modules[(*module)->number] = *module;
    return CUDA_SUCCESS;
}

void unload_module(Module& module) {
    Context& context = *module.context;
    Runtime& runtime = *Runtime::get();
    const std::uint32_t number = module.number;
    runtime.forget_module(module);
    std::shared_ptr<Module> keep;
    {
        std::lock_guard lock(context.mutex);
        if (const auto found = context.modules.find(number); found != context.modules.end()) {
            keep = std::move(found->second);
            context.modules.erase(found);
        }
    }
    if (!context.active) return;
    runtime.wait_for_output(context);
    (void)runtime.session().send<wire::ModuleUnload>(context.number, 0,
                                                     [&](auto& frame, std::byte*) { frame.module = number; });
}

Function* find_function(Module& module, const char* name) {
    const auto found = module.by_name.find(name);
    return found != module.by_name.end() ? found->second : nullptr;
}

CUfunction function_handle(Function& function) {
    std::uint64_t handle = function.handle.load(std::memory_order_acquire);
    if (handle == 0) {
        std::lock_guard lock(function.module->context->mutex);
        handle = function.handle.load();
        if (handle == 0) {
            handle = Runtime::get()->functions.insert(function.module->functions[function.index]);
            function.handle.store(handle, std::memory_order_release);
        }
    }
    return reinterpret_cast<CUfunction>(handle);
}

}  // namespace weft::shim
