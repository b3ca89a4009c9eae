// The link API: inputs are collected here and linked by the server's driver; the linked image comes back to this
// process.
#include <sys/mman.h>

#include <cstring>
#include <memory>
#include <numeric>
#include <vector>

#include "base/sha256.h"
#include "gen/shim_api.h"
#include "shim/module_loader.h"
#include "shim/read_file.h"
#include "shim/submit.h"

namespace weft::shim::api {
namespace {

constexpr std::size_t kMaxImageBytes = 512u << 20;

struct LinkState {
    Context* context = nullptr;
    JitRequest jit;
    std::vector<std::vector<std::byte>> images;
    wire::LinkRequest request;
    std::vector<std::byte> linked;  // handed to the program; lives until cuLinkDestroy
};

HandleTable<LinkState, HandleTag::link>& links() {
    static auto& table = *new HandleTable<LinkState, HandleTag::link>;
    return table;
}

// Address space for an image of unknown size: pages are taken only as bytes land.
class Landing {
  public:
    Landing()
        : memory_(::mmap(nullptr, kMaxImageBytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE,
                         -1, 0)) {}
    ~Landing() {
        if (memory_ != MAP_FAILED) ::munmap(memory_, kMaxImageBytes);
    }
    Landing(const Landing&) = delete;
    bool is_ok() const { return memory_ != MAP_FAILED; }
    std::span<std::byte> bytes() { return {static_cast<std::byte*>(memory_), kMaxImageBytes}; }

  private:
    void* memory_;
};

CUresult upload_missing(const LinkState& state, const std::vector<std::uint32_t>& missing) {
    for (const std::uint32_t index : missing) {
        if (index >= state.images.size()) return CUDA_ERROR_UNKNOWN;
        HashedImage image{{ImageKind::ptx, state.images[index]}, state.request.inputs[index].hash};
        if (const CUresult sent = upload_image(image); sent != CUDA_SUCCESS) return sent;
    }
    return CUDA_SUCCESS;
}

CUresult link(LinkState& state) {
    Session& session = Runtime::get()->session();
    const std::vector<std::byte> request = wire::encode(state.request);
    if (request.size() > wire::kMaxTailBytes<wire::Link>) return CUDA_ERROR_INVALID_VALUE;
    Landing landing;
    if (!landing.is_ok()) return CUDA_ERROR_OUT_OF_MEMORY;
    if (session.is_recorded()) {  // a recording must hold the inputs even if this server has them
        std::vector<std::uint32_t> all(state.images.size());
        std::iota(all.begin(), all.end(), 0);
        if (const CUresult sent = upload_missing(state, all); sent != CUDA_SUCCESS) return sent;
    }
    for (int attempt = 0; attempt < 2; ++attempt) {
        const std::uint32_t transfer = session.transfers().open(landing.bytes(), false);
        const Reply reply =
            session.call<wire::Link>(state.context->number, request.size(), [&](auto& frame, std::byte* tail) {
                frame.transfer = transfer;
                std::memcpy(tail, request.data(), request.size());
            });
        auto linked = wire::decode_link_reply(reply.tail);
        if (reply.status == Session::kLost || !linked) {
            session.transfers().close(transfer);
            return reply.status != CUDA_SUCCESS ? reply.status : CUDA_ERROR_UNKNOWN;
        }
        if (reply.status == CUDA_SUCCESS && linked->missing.empty()) {
            if (linked->image_bytes > kMaxImageBytes) return CUDA_ERROR_UNKNOWN;
            if (!session.wait_until([&] { return session.transfers().landed_bytes(transfer) >= linked->image_bytes; }))
                return Session::kLost;
            state.linked.assign(landing.bytes().begin(),
                                landing.bytes().begin() + static_cast<std::ptrdiff_t>(linked->image_bytes));
        }
        session.transfers().close(transfer);
        if (!linked->missing.empty()) {
            if (const CUresult sent = upload_missing(state, linked->missing); sent != CUDA_SUCCESS) return sent;
            continue;
        }
        state.jit.deliver(linked->info_log, linked->error_log);
        return reply.status;
    }
    return CUDA_ERROR_INVALID_IMAGE;
}

CUresult add(LinkState& state, CUjitInputType type, std::vector<std::byte> bytes, const char* name,
             JitRequest options) {
    if (state.images.size() == wire::kMaxLinkInputs) return CUDA_ERROR_OUT_OF_MEMORY;
    wire::LinkInput input;
    input.type = static_cast<std::uint32_t>(type);
    input.hash = sha256(bytes);
    input.size_bytes = bytes.size();
    input.name = name != nullptr ? name : "";
    input.options = options.forwarded();
    state.images.push_back(std::move(bytes));
    state.request.inputs.push_back(std::move(input));
    return CUDA_SUCCESS;
}

}  // namespace

CUresult cuLinkCreate_v2(unsigned int count, CUjit_option* options, void** values, CUlinkState* handle) {
    Context* context;
    if (const CUresult result = usable_context(&context); result != CUDA_SUCCESS) return result;
    auto state = std::make_shared<LinkState>(LinkState{context, JitRequest(count, options, values), {}, {}, {}});
    state->request.options = state->jit.forwarded();
    const std::uint64_t made = links().insert(state);
    *handle = reinterpret_cast<CUlinkState>(made);
    return made != 0 ? CUDA_SUCCESS : CUDA_ERROR_OUT_OF_MEMORY;
}

CUresult cuLinkAddData_v2(CUlinkState handle, CUjitInputType type, void* data, std::size_t size, const char* name,
                          unsigned int count, CUjit_option* options, void** values) {
    LinkState* state = links().find(handle);
    if (state == nullptr) return CUDA_ERROR_INVALID_HANDLE;
    if (data == nullptr || size == 0 || size > kMaxImageBytes || type >= CU_JIT_NUM_INPUT_TYPES)
        return CUDA_ERROR_INVALID_VALUE;
    const auto* bytes = static_cast<const std::byte*>(data);
    return add(*state, type, {bytes, bytes + size}, name, JitRequest(count, options, values));
}

CUresult cuLinkAddFile_v2(CUlinkState handle, CUjitInputType type, const char* path, unsigned int count,
                          CUjit_option* options, void** values) {
    LinkState* state = links().find(handle);
    if (state == nullptr) return CUDA_ERROR_INVALID_HANDLE;
    std::vector<char> file;
    if (const CUresult read = read_file(path, &file); read != CUDA_SUCCESS) return read;
    const auto* bytes = reinterpret_cast<const std::byte*>(file.data());
    const std::size_t size = type == CU_JIT_INPUT_PTX ? file.size() : file.size() - 1;  // PTX keeps its final zero byte
    return add(*state, type, {bytes, bytes + size}, path, JitRequest(count, options, values));
}

CUresult cuLinkComplete(CUlinkState handle, void** image, std::size_t* size) {
    LinkState* state = links().find(handle);
    if (state == nullptr) return CUDA_ERROR_INVALID_HANDLE;
    if (state->images.empty()) return CUDA_ERROR_INVALID_VALUE;
    if (const CUresult result = link(*state); result != CUDA_SUCCESS) return result;
    *image = state->linked.data();
    if (size != nullptr) *size = state->linked.size();
    return CUDA_SUCCESS;
}

CUresult cuLinkDestroy(CUlinkState handle) { return links().remove(handle) ? CUDA_SUCCESS : CUDA_ERROR_INVALID_HANDLE; }

}  // namespace weft::shim::api
