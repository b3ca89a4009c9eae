// Loads, links and describes modules. Everything here runs on the helper thread, with the context made current for each
// job. Design note: docs/design/executor.md, "Modules".
#pragma once

#include <optional>
#include <utility>
#include <vector>

#include "executor/image_cache.h"
#include "executor/symbols.h"
#include "gen/driver_table.h"
#include "wire/describe.h"

namespace weft::executor {

// An image that the client has just sent, by the hash it named.
using UploadedImage = std::pair<wire::Hash, std::vector<std::byte>>;

struct LoadRequest {
    wire::Hash hash{};
    std::uint64_t size_bytes = 0;
    wire::JitOptions options;
    std::optional<std::vector<std::byte>> uploaded;
};

struct LoadedModule {
    CUresult status = CUDA_SUCCESS;
    wire::ModuleReply reply;
    CUmodule module = nullptr;
    std::vector<CUfunction> functions;  // parallel to reply.functions
    std::uint64_t global_bytes = 0;
    bool may_print = false;
};

struct LinkedImage {
    CUresult status = CUDA_SUCCESS;
    wire::LinkReply reply;
    ImageRef image;
};

class ModuleLoader {
  public:
    ModuleLoader(const driver::DriverTable& driver, std::string cache_directory, std::uint64_t cache_bytes)
        : driver_(driver), cache_(std::move(cache_directory), cache_bytes) {}

    LoadedModule load(CUcontext context, LoadRequest request);
    LinkedImage link(CUcontext context, const wire::LinkRequest& request, std::vector<UploadedImage> uploaded);

  private:
    struct Logs;
    CUresult load_image(const ImageRef& image, const wire::JitOptions& options, LoadedModule* out);
    void describe(const ImageRef& image, LoadedModule* out);
    bool enumerate_functions(LoadedModule* out);
    void find_functions(const ImageSymbols& symbols, LoadedModule* out);
    void find_globals(const ImageSymbols& symbols, LoadedModule* out);
    void describe_function(CUfunction function, wire::FunctionInfo* info);
    CUresult link_images(const wire::LinkRequest& request, const std::vector<ImageRef>& images, LinkedImage* out);

    const driver::DriverTable& driver_;
    ImageCache cache_;
};

// Pages of the globals that the client has to keep free, joined. Pure.
std::vector<wire::AddressRange> pages_of(const std::vector<wire::GlobalInfo>& globals);
// Options that the client may set, without those that hold pointers. Pure.
bool is_forwarded_option(std::uint32_t option);

}  // namespace weft::executor
