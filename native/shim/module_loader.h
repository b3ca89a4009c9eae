// Loads a module image into a context: one wait when the server knows the image by its hash, two when it must be
// uploaded first. Design note: docs/design/modules.md.
#pragma once

#include <memory>

#include "base/status.h"
#include "shim/image.h"
#include "shim/jit.h"
#include "shim/objects.h"

namespace weft::shim {

// An image and its SHA-256.
struct HashedImage {
    Image image;
    wire::Hash hash{};
};
HashedImage hash_image(const Image& image);

// Sends the image to the server, for loads and links that asked for it.
CUresult upload_image(const HashedImage& image);

CUresult load_module(Context& context, const HashedImage& image, JitRequest& jit, std::shared_ptr<Module>* module);
void unload_module(Module& module);

// The function of a module by name, or null.
Function* find_function(Module& module, const char* name);
// The handle of a function, made on first use.
CUfunction function_handle(Function& function);

}  // namespace weft::shim
