// CUDA arrays, and texture and surface objects. See session.h. They are few and made rarely, so their calls wait.
#include <cstring>

#include "base/clock.h"
#include "executor/session.h"

namespace weft::executor {

namespace {

constexpr std::uint64_t kMaxArrayBytes = 1ull << 40;
constexpr std::uint64_t kArrayGranularity = 64u << 10;  // what a driver gives an array at least

// What an array is counted with: its texels. A driver may take somewhat more. 0: an impossible array.
std::uint64_t array_bytes(const wire::ArrayCreate& create) {
    constexpr std::uint64_t kMostPerChannel = 4;
    std::uint64_t bytes = create.width;
    for (const std::uint64_t factor : {create.height, create.depth, std::uint64_t{create.channels} * kMostPerChannel}) {
        if (factor != 0 && __builtin_mul_overflow(bytes, factor, &bytes)) return 0;
    }
    if (bytes == 0 || bytes > kMaxArrayBytes) return 0;
    return (bytes + kArrayGranularity - 1) / kArrayGranularity * kArrayGranularity;
}

}  // namespace

Outcome Session::on_array_create(Arrival& arrival) {
    const auto create = fields_of<wire::ArrayCreate>(arrival);
    if (create.array == 0 || arrays_.contains(create.array)) return bad_frame(arrival, "array number in use");
    const auto answer = [&](CUresult status, std::uint64_t bytes) {
        completion_.tell_implied();
        reply(arrival, status, bytes_of(bytes));
        return Outcome::submitted;
    };
    if (driver_.cuArray3DCreate_v2 == nullptr) return answer(CUDA_ERROR_NOT_SUPPORTED, 0);
    const std::uint64_t bytes = array_bytes(create);
    if (bytes == 0) return answer(CUDA_ERROR_INVALID_VALUE, 0);
    MemoryAccount& account = devices_[arrival.context->device].account;
    if (arrays_.size() >= kMaxArrays || !account.take(bytes)) return answer(CUDA_ERROR_OUT_OF_MEMORY, 0);
    set_current(*arrival.context);
    CUDA_ARRAY3D_DESCRIPTOR descriptor{};
    descriptor.Width = create.width;
    descriptor.Height = create.height;
    descriptor.Depth = create.depth;
    descriptor.Format = static_cast<CUarray_format>(create.format);
    descriptor.NumChannels = create.channels;
    descriptor.Flags = create.flags;
    ArrayState array{arrival.context, nullptr, bytes};
    const CUresult result = driver_.cuArray3DCreate_v2(&array.handle, &descriptor);
    if (result != CUDA_SUCCESS) {
        account.give(bytes);
        return answer(result, 0);
    }
    arrays_.emplace(create.array, array);
    return answer(CUDA_SUCCESS, bytes);
}

// Copies from and to the array that are with the driver end first.
Outcome Session::on_array_destroy(Arrival& arrival) {
    const auto destroy = fields_of<wire::ArrayDestroy>(arrival);
    const auto found = arrays_.find(destroy.array);
    if (found == arrays_.end() || found->second.context != arrival.context) return bad_frame(arrival, "no such array");
    const ArrayState array = found->second;
    arrays_.erase(found);
    when_all_complete([this, array, device = arrival.context->device, number = arrival.header.context] {
        // With its context the array is gone, too.
        devices_[device].account.give(array.bytes);
        if (find_context(number) != array.context) return;
        set_current(*array.context);
        (void)driver_.cuArrayDestroy(array.handle);
    });
    return Outcome::submitted;
}

bool Session::describe_resource(const wire::TextureCreate& create, const ContextState& context,
                                CUDA_RESOURCE_DESC* resource) {
    resource->resType = static_cast<CUresourcetype>(create.resource);
    const auto format = static_cast<CUarray_format>(create.format);
    switch (resource->resType) {
        case CU_RESOURCE_TYPE_ARRAY: {
            const auto found = arrays_.find(static_cast<std::uint32_t>(create.place));
            if (found == arrays_.end() || found->second.context->device != context.device) return false;
            resource->res.array.hArray = found->second.handle;
            return true;
        }
        case CU_RESOURCE_TYPE_LINEAR:
            resource->res.linear.devPtr = create.place;
            resource->res.linear.format = format;
            resource->res.linear.numChannels = create.channels;
            resource->res.linear.sizeInBytes = create.width;
            return true;
        case CU_RESOURCE_TYPE_PITCH2D:
            resource->res.pitch2D.devPtr = create.place;
            resource->res.pitch2D.format = format;
            resource->res.pitch2D.numChannels = create.channels;
            resource->res.pitch2D.width = create.width;
            resource->res.pitch2D.height = create.height;
            resource->res.pitch2D.pitchInBytes = create.pitch;
            return true;
        default: return false;
    }
}

Outcome Session::on_texture_create(Arrival& arrival) {
    const auto create = fields_of<wire::TextureCreate>(arrival);
    CUDA_RESOURCE_DESC resource{};
    CUDA_TEXTURE_DESC description{};
    description.addressMode[0] = static_cast<CUaddress_mode>(create.address_x);
    description.addressMode[1] = static_cast<CUaddress_mode>(create.address_y);
    description.addressMode[2] = static_cast<CUaddress_mode>(create.address_z);
    description.filterMode = static_cast<CUfilter_mode>(create.filter);
    description.flags = create.flags;
    description.maxAnisotropy = create.anisotropy;
    description.borderColor[0] = create.border_r;
    description.borderColor[1] = create.border_g;
    description.borderColor[2] = create.border_b;
    description.borderColor[3] = create.border_a;
    const bool is_surface = create.is_surface != 0;
    const bool can = is_surface ? driver_.cuSurfObjectCreate != nullptr : driver_.cuTexObjectCreate != nullptr;
    std::uint64_t handle = 0;
    CUresult result = CUDA_ERROR_NOT_SUPPORTED;
    if (textures_.size() >= kMaxTextures) {
        result = CUDA_ERROR_OUT_OF_MEMORY;
    } else if (!describe_resource(create, *arrival.context, &resource)) {
        result = CUDA_ERROR_INVALID_VALUE;
    } else if (can) {
        set_current(*arrival.context);
        CUtexObject made = 0;
        result = is_surface ? driver_.cuSurfObjectCreate(&made, &resource)
                            : driver_.cuTexObjectCreate(&made, &resource, &description, nullptr);
        handle = made;
    }
    if (result == CUDA_SUCCESS) textures_[handle] = {arrival.context, is_surface};
    completion_.tell_implied();
    reply(arrival, result, bytes_of(handle));
    return Outcome::submitted;
}

Outcome Session::on_texture_destroy(Arrival& arrival) {
    const auto destroy = fields_of<wire::TextureDestroy>(arrival);
    const auto found = textures_.find(destroy.handle);
    if (found == textures_.end() || found->second.context != arrival.context ||
        found->second.is_surface != (destroy.is_surface != 0))
        return bad_frame(arrival, "no such object");
    textures_.erase(found);
    when_all_complete([this, destroy, context = arrival.context, number = arrival.header.context] {
        if (find_context(number) != context) return;
        set_current(*context);
        if (destroy.is_surface != 0) {
            (void)driver_.cuSurfObjectDestroy(destroy.handle);
        } else {
            (void)driver_.cuTexObjectDestroy(destroy.handle);
        }
    });
    return Outcome::submitted;
}

// With their context the driver takes them down itself.
void Session::forget_arrays(const ContextState& context) {
    std::erase_if(textures_, [&](const auto& entry) { return entry.second.context == &context; });
    std::erase_if(arrays_, [&](const auto& entry) {
        if (entry.second.context != &context) return false;
        devices_[context.device].account.give(entry.second.bytes);
        return true;
    });
}

}  // namespace weft::executor
