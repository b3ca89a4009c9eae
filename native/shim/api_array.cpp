// CUDA arrays, texture and surface objects. Arrays are numbered here; a texture's handle is the driver's, since kernels
// get it as a parameter.
#include <algorithm>
#include <cstring>

#include "gen/shim_api.h"
#include "shim/device_range.h"
#include "shim/submit.h"

namespace weft::shim::api {
namespace {

CUresult find_array(CUarray handle, const Array** array) {
    Context* context;
    if (const CUresult result = usable_context(&context); result != CUDA_SUCCESS) return result;
    *array = Runtime::get()->arrays.find(handle);
    return *array != nullptr ? CUDA_SUCCESS : CUDA_ERROR_INVALID_HANDLE;
}

CUresult create_array(CUarray* handle, const CUDA_ARRAY3D_DESCRIPTOR& descriptor) {
    Context* context;
    if (const CUresult result = usable_context(&context); result != CUDA_SUCCESS) return result;
    Runtime& runtime = *Runtime::get();
    auto array = std::make_shared<Array>();
    array->number = runtime.next_number();
    array->context = context;
    array->descriptor = descriptor;
    const Reply reply = runtime.session().call<wire::ArrayCreate>(context->number, 0, [&](auto& frame, std::byte*) {
        frame.array = array->number;
        frame.format = static_cast<std::uint32_t>(descriptor.Format);
        frame.width = descriptor.Width;
        frame.height = descriptor.Height;
        frame.depth = descriptor.Depth;
        frame.channels = descriptor.NumChannels;
        frame.flags = descriptor.Flags;
    });
    if (reply.status != CUDA_SUCCESS) return settle(*context, reply.status);
    if (reply.tail.size() >= sizeof array->charged_bytes)
        std::memcpy(&array->charged_bytes, reply.tail.data(), sizeof array->charged_bytes);
    context->device->memory->add_module_bytes(static_cast<std::int64_t>(array->charged_bytes));
    array->handle = runtime.arrays.insert(array);
    if (array->handle == 0) return CUDA_ERROR_OUT_OF_MEMORY;
    std::lock_guard lock(context->mutex);
    context->arrays.push_back(array->handle);
    *handle = reinterpret_cast<CUarray>(array->handle);
    return CUDA_SUCCESS;
}

// What the resource is, for the other side.
CUresult fill_resource(const CUDA_RESOURCE_DESC& resource, wire::TextureCreate* frame) {
    frame->resource = static_cast<std::uint32_t>(resource.resType);
    switch (resource.resType) {
        case CU_RESOURCE_TYPE_ARRAY: {
            const Array* array = Runtime::get()->arrays.find(resource.res.array.hArray);
            if (array == nullptr) return CUDA_ERROR_INVALID_HANDLE;
            frame->place = array->number;
            return CUDA_SUCCESS;
        }
        case CU_RESOURCE_TYPE_LINEAR: {
            const auto& linear = resource.res.linear;
            if (!is_device_range(linear.devPtr, linear.sizeInBytes)) return CUDA_ERROR_INVALID_VALUE;
            frame->place = linear.devPtr;
            frame->format = static_cast<std::uint32_t>(linear.format);
            frame->channels = linear.numChannels;
            frame->width = linear.sizeInBytes;
            return CUDA_SUCCESS;
        }
        case CU_RESOURCE_TYPE_PITCH2D: {
            const auto& plane = resource.res.pitch2D;
            if (!is_device_range(plane.devPtr, 1)) return CUDA_ERROR_INVALID_VALUE;
            frame->place = plane.devPtr;
            frame->format = static_cast<std::uint32_t>(plane.format);
            frame->channels = plane.numChannels;
            frame->width = plane.width;
            frame->height = plane.height;
            frame->pitch = plane.pitchInBytes;
            return CUDA_SUCCESS;
        }
        case CU_RESOURCE_TYPE_MIPMAPPED_ARRAY: return CUDA_ERROR_NOT_SUPPORTED;
        default: return CUDA_ERROR_INVALID_VALUE;
    }
}

void fill_description(const CUDA_TEXTURE_DESC& description, wire::TextureCreate* frame) {
    frame->address_x = static_cast<std::uint32_t>(description.addressMode[0]);
    frame->address_y = static_cast<std::uint32_t>(description.addressMode[1]);
    frame->address_z = static_cast<std::uint32_t>(description.addressMode[2]);
    frame->filter = static_cast<std::uint32_t>(description.filterMode);
    frame->flags = description.flags;
    frame->anisotropy = description.maxAnisotropy;
    frame->border_r = description.borderColor[0];
    frame->border_g = description.borderColor[1];
    frame->border_b = description.borderColor[2];
    frame->border_a = description.borderColor[3];
}

CUresult create_texture(std::uint64_t* handle, const Texture& wanted) {
    Context* context;
    if (const CUresult result = usable_context(&context); result != CUDA_SUCCESS) return result;
    wire::TextureCreate fields{};
    if (const CUresult result = fill_resource(wanted.resource, &fields); result != CUDA_SUCCESS) return result;
    fill_description(wanted.description, &fields);
    fields.is_surface = wanted.is_surface ? 1 : 0;
    Runtime& runtime = *Runtime::get();
    const Reply reply = runtime.session().call<wire::TextureCreate>(context->number, 0,
                                                                    [&](auto& frame, std::byte*) { frame = fields; });
    if (reply.status != CUDA_SUCCESS) return settle(*context, reply.status);
    if (reply.tail.size() < sizeof *handle) return CUDA_ERROR_UNKNOWN;
    std::memcpy(handle, reply.tail.data(), sizeof *handle);
    Texture texture = wanted;
    texture.context = context;
    runtime.textures.insert(*handle, texture);
    return CUDA_SUCCESS;
}

CUresult destroy_texture(std::uint64_t handle, bool is_surface) {
    Context* current;
    if (const CUresult result = usable_context(&current); result != CUDA_SUCCESS) return result;
    Runtime& runtime = *Runtime::get();
    const auto texture = runtime.textures.remove(handle, is_surface);
    if (!texture) return CUDA_ERROR_INVALID_VALUE;
    return runtime.session().send<wire::TextureDestroy>(texture->context->number, 0, [&](auto& frame, std::byte*) {
        frame.handle = handle;
        frame.is_surface = is_surface ? 1 : 0;
    });
}

}  // namespace

CUresult cuArray3DCreate_v2(CUarray* handle, const CUDA_ARRAY3D_DESCRIPTOR* descriptor) {
    return create_array(handle, *descriptor);
}

CUresult cuArrayCreate_v2(CUarray* handle, const CUDA_ARRAY_DESCRIPTOR* descriptor) {
    CUDA_ARRAY3D_DESCRIPTOR whole{};
    whole.Width = descriptor->Width;
    whole.Height = descriptor->Height;
    whole.Format = descriptor->Format;
    whole.NumChannels = descriptor->NumChannels;
    return create_array(handle, whole);
}

CUresult cuArray3DGetDescriptor_v2(CUDA_ARRAY3D_DESCRIPTOR* descriptor, CUarray handle) {
    const Array* array;
    const CUresult found = find_array(handle, &array);
    if (found == CUDA_SUCCESS) *descriptor = array->descriptor;
    return found;
}

CUresult cuArrayGetDescriptor_v2(CUDA_ARRAY_DESCRIPTOR* descriptor, CUarray handle) {
    const Array* array;
    if (const CUresult found = find_array(handle, &array); found != CUDA_SUCCESS) return found;
    *descriptor = {array->descriptor.Width, array->descriptor.Height, array->descriptor.Format,
                   array->descriptor.NumChannels};
    return CUDA_SUCCESS;
}

CUresult cuArrayDestroy(CUarray handle) {
    const Array* found;
    if (const CUresult result = find_array(handle, &found); result != CUDA_SUCCESS) return result;
    Runtime& runtime = *Runtime::get();
    const std::shared_ptr<Array> array = runtime.arrays.remove(handle);
    if (array == nullptr) return CUDA_ERROR_INVALID_HANDLE;
    Context& context = *array->context;
    context.device->memory->add_module_bytes(-static_cast<std::int64_t>(array->charged_bytes));
    {
        std::lock_guard lock(context.mutex);
        std::erase(context.arrays, array->handle);
    }
    return runtime.session().send<wire::ArrayDestroy>(context.number, 0,
                                                      [&](auto& frame, std::byte*) { frame.array = array->number; });
}

CUresult cuTexObjectCreate(CUtexObject* handle, const CUDA_RESOURCE_DESC* resource,
                           const CUDA_TEXTURE_DESC* description, const CUDA_RESOURCE_VIEW_DESC* view) {
    if (view != nullptr) return CUDA_ERROR_NOT_SUPPORTED;
    std::uint64_t made = 0;
    const CUresult result = create_texture(&made, {nullptr, false, *resource, *description});
    if (result == CUDA_SUCCESS) *handle = made;
    return result;
}

CUresult cuTexObjectDestroy(CUtexObject handle) { return destroy_texture(handle, false); }

CUresult cuTexObjectGetResourceDesc(CUDA_RESOURCE_DESC* resource, CUtexObject handle) {
    const auto texture = Runtime::get()->textures.find(handle, false);
    if (texture) *resource = texture->resource;
    return texture ? CUDA_SUCCESS : CUDA_ERROR_INVALID_VALUE;
}

CUresult cuTexObjectGetTextureDesc(CUDA_TEXTURE_DESC* description, CUtexObject handle) {
    const auto texture = Runtime::get()->textures.find(handle, false);
    if (texture) *description = texture->description;
    return texture ? CUDA_SUCCESS : CUDA_ERROR_INVALID_VALUE;
}

CUresult cuSurfObjectCreate(CUsurfObject* handle, const CUDA_RESOURCE_DESC* resource) {
    if (resource->resType != CU_RESOURCE_TYPE_ARRAY) return CUDA_ERROR_INVALID_VALUE;
    std::uint64_t made = 0;
    const CUresult result = create_texture(&made, {nullptr, true, *resource, {}});
    if (result == CUDA_SUCCESS) *handle = made;
    return result;
}

CUresult cuSurfObjectDestroy(CUsurfObject handle) { return destroy_texture(handle, true); }

CUresult cuSurfObjectGetResourceDesc(CUDA_RESOURCE_DESC* resource, CUsurfObject handle) {
    const auto texture = Runtime::get()->textures.find(handle, true);
    if (texture) *resource = texture->resource;
    return texture ? CUDA_SUCCESS : CUDA_ERROR_INVALID_VALUE;
}

}  // namespace weft::shim::api
