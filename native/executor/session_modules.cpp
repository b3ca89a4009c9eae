// Module images, modules and links of a session; the driver's part runs on the helper thread (module_loader.h). See
// session.h.
#include <algorithm>
#include <cstring>

#include "base/clock.h"
#include "executor/session.h"

namespace weft::executor {

std::optional<std::vector<std::byte>> Session::take_upload(const wire::Hash& hash) {
    const auto found = uploads_.find(hash);
    if (found == uploads_.end()) return std::nullopt;
    std::vector<std::byte> bytes = std::move(found->second.bytes);
    upload_bytes_ -= bytes.size();
    uploads_.erase(found);
    return bytes;
}

Outcome Session::on_image(Arrival& arrival) {
    const auto image = fields_of<wire::Image>(arrival);
    std::span<const std::byte> bytes = arrival.payload;
    if ((arrival.header.flags & wire::kFlagPayload) == 0) {
        const auto tail = tail_of<wire::Image>(arrival);
        if (image.size_bytes > tail.size()) return bad_frame(arrival, "inline bytes are cut off");
        bytes = tail.first(image.size_bytes);
    }
    // The first piece begins anew: the upload of a client that gave up may lie here.
    if (image.offset == 0) (void)take_upload(image.hash);
    if (uploads_.size() >= kMaxUploads && !uploads_.contains(image.hash))
        return bad_frame(arrival, "too many images at once");
    Upload& upload = uploads_[image.hash];
    if (image.offset != upload.bytes.size()) return bad_frame(arrival, "not the next piece of the image");
    if (upload.bytes.size() + bytes.size() > ImageCache::kMaxImageBytes ||
        upload_bytes_ + bytes.size() > kMaxUploadBytes) {
        return bad_frame(arrival, "image too large");
    }
    upload.bytes.insert(upload.bytes.end(), bytes.begin(), bytes.end());
    upload_bytes_ += bytes.size();
    return Outcome::submitted;
}

Outcome Session::on_module_load(Arrival& arrival) {
    const auto fields = fields_of<wire::ModuleLoad>(arrival);
    Result<wire::JitOptions> options = wire::decode_jit_options(tail_of<wire::ModuleLoad>(arrival));
    if (!options) return bad_frame(arrival, options.status().text());
    if (fields.size_bytes == 0 || fields.size_bytes > ImageCache::kMaxImageBytes)
        return bad_frame(arrival, "image of an impossible size");
    if (modules_.find(fields.module) != nullptr) return bad_frame(arrival, "module number in use");
    if (modules_.size() >= kMaxModules) {
        reply(arrival, CUDA_ERROR_OUT_OF_MEMORY, wire::encode(wire::ModuleReply{}));
        return Outcome::submitted;
    }
    auto request = std::make_shared<LoadRequest>();
    request->hash = fields.hash;
    request->size_bytes = fields.size_bytes;
    request->options = std::move(*options);
    request->uploaded = take_upload(fields.hash);
    auto loaded = std::make_shared<LoadedModule>();
    const auto context = contexts_[arrival.header.context];
    helper_->submit([this, request, loaded, context] { *loaded = loader_->load(context->handle, std::move(*request)); },
                    [this, header = arrival.header, loaded, context, number = fields.module] {
                        finish_load(header, number, context, *loaded);
                    });
    return Outcome::submitted;
}

void Session::finish_load(const wire::FrameHeader& header, std::uint32_t number,
                          const std::shared_ptr<ContextState>& context, LoadedModule& loaded) {
    const auto answer = [&](CUresult status) {
        outbox_.reply(header.context, header.request, status, wire::encode(loaded.reply));
    };
    if (loaded.module == nullptr || loaded.status != CUDA_SUCCESS) return answer(loaded.status);
    MemoryAccount& account = devices_[context->device].account;
    // With its context the module is gone, too.
    if (find_context(header.context) != context.get()) return answer(CUDA_ERROR_INVALID_CONTEXT);
    const bool is_new = modules_.find(number) == nullptr;
    if (!is_new || !account.take(loaded.global_bytes)) {
        helper_->submit(
            [this, context, module = loaded.module] {
                if (driver_.cuCtxSetCurrent(context->handle) == CUDA_SUCCESS) (void)driver_.cuModuleUnload(module);
            },
            [] {});
        loaded.reply.functions.clear();
        loaded.reply.globals.clear();
        loaded.reply.reserve.clear();
        return answer(is_new ? CUDA_ERROR_OUT_OF_MEMORY : CUDA_ERROR_INVALID_HANDLE);
    }
    auto module = std::make_unique<ModuleState>();
    module->context = context.get();
    module->number = number;
    module->handle = loaded.module;
    module->global_bytes = loaded.global_bytes;
    for (std::size_t i = 0; i < loaded.functions.size(); ++i) {
        const wire::FunctionInfo& info = loaded.reply.functions[i];
        FunctionState function{loaded.functions[i], 0, info.name};
        for (const wire::ParameterInfo& parameter : info.parameters) {
            function.parameter_bytes = std::max(function.parameter_bytes, parameter.offset + parameter.size_bytes);
        }
        module->functions.push_back(std::move(function));
    }
    if (loaded.may_print) start_output(*context);
    modules_.insert(number, std::move(module));
    answer(CUDA_SUCCESS);
}

Outcome Session::on_module_unload(Arrival& arrival) {
    const auto fields = fields_of<wire::ModuleUnload>(arrival);
    const ModuleState* found = modules_.find(fields.module);
    if (found == nullptr || found->context != arrival.context) {
        refuse(arrival, CUDA_ERROR_INVALID_HANDLE);
        return Outcome::submitted;
    }
    std::shared_ptr<ModuleState> module = modules_.remove(fields.module);
    const auto context = contexts_[arrival.header.context];
    when_all_complete([this, module, context] {
        devices_[context->device].account.give(module->global_bytes);
        if (find_context(context->number) != context.get()) return;  // with its context the module is gone, too
        run_memory_job(
            [this, module, context] {
                if (driver_.cuCtxSetCurrent(context->handle) == CUDA_SUCCESS)
                    (void)driver_.cuModuleUnload(module->handle);
            },
            [] {});
    });
    return Outcome::submitted;
}

Outcome Session::on_link(Arrival& arrival) {
    const auto fields = fields_of<wire::Link>(arrival);
    Result<wire::LinkRequest> request = wire::decode_link_request(tail_of<wire::Link>(arrival));
    if (!request) return bad_frame(arrival, request.status().text());
    auto uploaded = std::make_shared<std::vector<UploadedImage>>();
    for (const wire::LinkInput& input : request->inputs) {
        if (auto bytes = take_upload(input.hash)) uploaded->emplace_back(input.hash, std::move(*bytes));
    }
    auto shared = std::make_shared<wire::LinkRequest>(std::move(*request));
    auto linked = std::make_shared<LinkedImage>();
    const auto context = contexts_[arrival.header.context];
    helper_->submit([this, shared, uploaded, linked,
                     context] { *linked = loader_->link(context->handle, *shared, std::move(*uploaded)); },
                    [this, header = arrival.header, linked, transfer = fields.transfer] {
                        outbox_.reply(header.context, header.request, linked->status, wire::encode(linked->reply));
                        if (linked->image == nullptr) return;
                        // The image lives until its last byte has left.
                        outbox_.send_transfer(header.context, transfer, linked->image->span(), [linked] {});
                    });
    return Outcome::submitted;
}

}  // namespace weft::executor
