#include <unistd.h>

#include <cstring>
#include <filesystem>
#include <fstream>

#include "fixture.h"

class Modules : public ContextTest {
  protected:
    CUresult load(const std::string& text) {
        CUmodule loaded = nullptr;
        const CUresult result = cu.cuModuleLoadData(&loaded, text.c_str());
        if (result == CUDA_SUCCESS) {
            EXPECT_OK(cu.cuModuleUnload(loaded));
        }
        return result;
    }
};

TEST_F(Modules, of_ptx_have_functions) {
    CUmodule loaded = nullptr;
    ASSERT_OK(cu.cuModuleLoadData(&loaded, kKernels));
    CUfunction first = nullptr, again = nullptr, none = nullptr;
    ASSERT_OK(cu.cuModuleGetFunction(&first, loaded, "step"));
    ASSERT_OK(cu.cuModuleGetFunction(&again, loaded, "step"));
    EXPECT_EQ(first, again);
    EXPECT_EQ(CUDA_ERROR_NOT_FOUND, cu.cuModuleGetFunction(&none, loaded, "no_such_kernel"));
    EXPECT_EQ(CUDA_ERROR_NOT_FOUND, cu.cuModuleGetFunction(&none, loaded, "counter")) << "a variable is no function";
    EXPECT_OK(cu.cuModuleUnload(loaded));
}

TEST_F(Modules, list_their_functions) {
    SKIP_WITHOUT(cuModuleGetFunctionCount);
    CUmodule loaded = nullptr;
    ASSERT_OK(cu.cuModuleLoadData(&loaded, kKernels));
    unsigned count = 0;
    ASSERT_OK(cu.cuModuleGetFunctionCount(&count, loaded));
    EXPECT_EQ(count, 12u);
    std::vector<CUfunction> functions(count);
    ASSERT_OK(cu.cuModuleEnumerateFunctions(functions.data(), count, loaded));
    for (CUfunction function : functions) EXPECT_NE(function, nullptr);
    EXPECT_OK(cu.cuModuleUnload(loaded));
}

TEST_F(Modules, come_from_files_too) {
    const auto path =
        std::filesystem::temp_directory_path() / ("weft-conformance-" + std::to_string(::getpid()) + ".ptx");
    std::ofstream(path) << kKernels;
    CUmodule loaded = nullptr;
    EXPECT_OK(cu.cuModuleLoad(&loaded, path.c_str()));
    EXPECT_OK(cu.cuModuleUnload(loaded));
    std::filesystem::remove(path);
    EXPECT_EQ(CUDA_ERROR_FILE_NOT_FOUND, cu.cuModuleLoad(&loaded, "/no/such/file"));
}

TEST_F(Modules, of_broken_text_are_refused) {
    EXPECT_EQ(
        CUDA_ERROR_INVALID_PTX,
        load(".version 7.0\n.target sm_50\n.address_size 64\n.visible .entry k() { no.such.instruction; ret; }\n"));
    EXPECT_EQ(CUDA_ERROR_INVALID_PTX, load(".version 7.0\n.target sm_50\n.address_size 64\n.visible .entry k( {\n"));
    EXPECT_NE(CUDA_SUCCESS, load("this is not PTX at all\n"));
    EXPECT_EQ(CUDA_ERROR_INVALID_VALUE, cu.cuModuleLoadData(nullptr, kKernels));
}

TEST_F(Modules, of_machine_code_are_refused_by_a_software_gpu) {
    SOFTWARE_GPU_ONLY();
    std::vector<char> elf(4096);
    std::memcpy(elf.data(),
                "\x7f"
                "ELF\x02\x01\x01",
                7);
    elf[52] = 64;  // e_ehsize
    CUmodule loaded = nullptr;
    EXPECT_EQ(CUDA_ERROR_NO_BINARY_FOR_GPU, cu.cuModuleLoadData(&loaded, elf.data()));
}

TEST_F(Modules, of_garbage_are_refused) {
    SOFTWARE_GPU_ONLY();
    unsigned char garbage[256];
    for (unsigned i = 0; i < sizeof garbage; ++i) garbage[i] = static_cast<unsigned char>(i * 37 + 1);
    CUmodule loaded = nullptr;
    EXPECT_EQ(CUDA_ERROR_INVALID_IMAGE, cu.cuModuleLoadData(&loaded, garbage));
}

namespace {

struct FatbinEntry {
    std::uint16_t kind, version;
    std::uint32_t header_bytes;
    std::uint64_t payload_bytes;
    std::uint32_t compressed_bytes, options_offset;
    std::uint16_t minor, major;
    std::uint32_t sm, name_offset, name_bytes;
    std::uint64_t flags, reserved, uncompressed_bytes;
};

// A fat binary with one uncompressed PTX entry.
std::string fatbin(std::string text, std::uint32_t sm, std::uint64_t flags) {
    text.resize((text.size() + 8) / 8 * 8);
    FatbinEntry entry{};
    entry.kind = 1;
    entry.version = 0x0101;
    entry.header_bytes = sizeof entry;
    entry.payload_bytes = text.size();
    entry.minor = 0;
    entry.major = 7;
    entry.sm = sm;
    entry.flags = 0x11 | flags;
    const struct {
        std::uint32_t magic;
        std::uint16_t version, header_bytes;
        std::uint64_t payload_bytes;
    } header{0xba55ed50, 1, 16, sizeof entry + text.size()};
    std::string image(reinterpret_cast<const char*>(&header), sizeof header);
    image.append(reinterpret_cast<const char*>(&entry), sizeof entry);
    return image + text;
}

}  // namespace

TEST_F(Modules, of_fat_binaries_use_their_ptx) {
    const std::string image = fatbin(kKernels, 50, 0);
    CUmodule loaded = nullptr;
    ASSERT_OK(cu.cuModuleLoadFatBinary(&loaded, image.data()));
    CUfunction function = nullptr;
    EXPECT_OK(cu.cuModuleGetFunction(&function, loaded, "step"));
    EXPECT_OK(cu.cuModuleUnload(loaded));
    const struct {
        std::uint32_t magic, version;
        const void *data, *prelinked;
    } wrapper{0x466243b1, 1, image.data(), nullptr};
    ASSERT_OK(cu.cuModuleLoadData(&loaded, &wrapper));
    EXPECT_OK(cu.cuModuleUnload(loaded));
}

TEST_F(Modules, of_fat_binaries_for_newer_devices_are_refused) {
    SOFTWARE_GPU_ONLY();
    const std::string image = fatbin(kKernels, 200, 0);
    CUmodule loaded = nullptr;
    EXPECT_EQ(CUDA_ERROR_NO_BINARY_FOR_GPU, cu.cuModuleLoadData(&loaded, image.data()));
}

TEST_F(Modules, jit_errors_are_written_to_the_log) {
    char errors[4096] = "";
    const CUjit_option wanted[] = {CU_JIT_ERROR_LOG_BUFFER, CU_JIT_ERROR_LOG_BUFFER_SIZE_BYTES};
    CUjit_option options[] = {wanted[0], wanted[1]};
    void* values[] = {errors, reinterpret_cast<void*>(sizeof errors)};
    CUmodule loaded = nullptr;
    const char* text =
        ".version 7.0\n.target sm_50\n.address_size 64\n.visible .entry k() {\n  bogus.instruction;\n  ret;\n}\n";
    EXPECT_EQ(CUDA_ERROR_INVALID_PTX, cu.cuModuleLoadDataEx(&loaded, text, 2, options, values));
    EXPECT_NE(std::strstr(errors, "line 5"), nullptr) << errors;
    EXPECT_NE(std::strstr(errors, "bogus"), nullptr) << errors;
}

TEST_F(Modules, jit_logs_are_cut_to_their_buffers) {
    char errors[8];
    std::memset(errors, 'x', sizeof errors);
    CUjit_option options[] = {CU_JIT_ERROR_LOG_BUFFER, CU_JIT_ERROR_LOG_BUFFER_SIZE_BYTES};
    void* values[] = {errors, reinterpret_cast<void*>(size_t{5})};
    CUmodule loaded = nullptr;
    const char* text =
        ".version 7.0\n.target sm_50\n.address_size 64\n.visible .entry k() { bogus.instruction; ret; }\n";
    EXPECT_NE(CUDA_SUCCESS, cu.cuModuleLoadDataEx(&loaded, text, 2, options, values));
    EXPECT_LT(strnlen(errors, sizeof errors), 5u);
    EXPECT_EQ(errors[6], 'x');
}

TEST_F(Modules, unloading_gives_everything_back) {
    EXPECT_NE(CUDA_SUCCESS, cu.cuModuleUnload(nullptr));
    CUmodule warm = nullptr;
    ASSERT_OK(cu.cuModuleLoadData(&warm, kKernels));
    EXPECT_OK(cu.cuModuleUnload(warm));
    const size_t before = free_bytes();
    const CUdeviceptr out = allocate(4);
    for (int round = 0; round < 500; ++round) {
        CUmodule loaded = nullptr;
        ASSERT_OK(cu.cuModuleLoadData(&loaded, kKernels));
        CUfunction function = nullptr;
        ASSERT_OK(cu.cuModuleGetFunction(&function, loaded, "set_value"));
        ASSERT_OK(launch(function, 1, 1, nullptr, out, round));
        ASSERT_OK(cu.cuModuleUnload(loaded)) << "work in flight is waited for";
    }
    EXPECT_EQ(read<int>(out, 1)[0], 499);
    EXPECT_OK(cu.cuMemFree_v2(out));
    EXPECT_GE(free_bytes() + (4 << 20), before);
}

TEST_F(Modules, handles_end_with_the_module) {
    SOFTWARE_GPU_ONLY();
    CUmodule loaded = nullptr;
    ASSERT_OK(cu.cuModuleLoadData(&loaded, kKernels));
    CUfunction function = nullptr;
    ASSERT_OK(cu.cuModuleGetFunction(&function, loaded, "nothing"));
    ASSERT_OK(cu.cuModuleUnload(loaded));
    EXPECT_EQ(CUDA_ERROR_INVALID_HANDLE, cu.cuModuleUnload(loaded));
    EXPECT_EQ(CUDA_ERROR_INVALID_HANDLE, launch(function, 1, 1, nullptr));
    EXPECT_EQ(CUDA_ERROR_INVALID_HANDLE, cu.cuModuleGetFunction(&function, loaded, "nothing"));
}

TEST_F(Modules, have_a_loading_mode) {
    CUmoduleLoadingMode mode{};
    ASSERT_OK(cu.cuModuleGetLoadingMode(&mode));
    EXPECT_TRUE(mode == CU_MODULE_EAGER_LOADING || mode == CU_MODULE_LAZY_LOADING);
}
