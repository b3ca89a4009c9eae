#include <dlfcn.h>

#include "fixture.h"

namespace {

void* address(const char* name, int version, cuuint64_t flags = 0, CUdriverProcAddressQueryResult* status = nullptr) {
    void* function = nullptr;
    cu.cuGetProcAddress_v2(name, &function, version, flags, status);
    return function;
}

void* exported(const char* name) { return dlsym(cu.library, name); }

}  // namespace

class ProcAddress : public DriverTest {};

TEST_F(ProcAddress, gives_the_variant_of_the_asked_version) {
    EXPECT_EQ(address("cuMemAlloc", 12000), exported("cuMemAlloc_v2"));
    EXPECT_EQ(address("cuMemAlloc", 3020), exported("cuMemAlloc_v2"));
    EXPECT_EQ(address("cuCtxCreate", 11000), exported("cuCtxCreate_v2"));
    EXPECT_EQ(address("cuCtxGetDevice", 12000), exported("cuCtxGetDevice"));
    EXPECT_EQ(address("cuLaunchKernel", 12000), exported("cuLaunchKernel"));
}

TEST_F(ProcAddress, gives_the_per_thread_variant_on_request) {
    const cuuint64_t flags = CU_GET_PROC_ADDRESS_PER_THREAD_DEFAULT_STREAM;
    EXPECT_EQ(address("cuLaunchKernel", 12000, flags), exported("cuLaunchKernel_ptsz"));
    EXPECT_EQ(address("cuMemcpyHtoD", 12000, flags), exported("cuMemcpyHtoD_v2_ptds"));
    EXPECT_EQ(address("cuMemAlloc", 12000, flags), exported("cuMemAlloc_v2")) << "has no per-thread variant";
}

TEST_F(ProcAddress, tells_why_there_is_none) {
    CUdriverProcAddressQueryResult status = CU_GET_PROC_ADDRESS_SUCCESS;
    EXPECT_EQ(address("cuNoSuchFunction", 12000, 0, &status), nullptr);
    EXPECT_EQ(status, CU_GET_PROC_ADDRESS_SYMBOL_NOT_FOUND);
    EXPECT_EQ(address("cuLaunchKernelEx", 11000, 0, &status), nullptr);
    EXPECT_EQ(status, CU_GET_PROC_ADDRESS_VERSION_NOT_SUFFICIENT);
    EXPECT_NE(address("cuLaunchKernelEx", 12000, 0, &status), nullptr);
    EXPECT_EQ(status, CU_GET_PROC_ADDRESS_SUCCESS);
}

TEST_F(ProcAddress, refuses_bad_arguments) {
    void* function = nullptr;
    EXPECT_EQ(CUDA_ERROR_INVALID_VALUE, cu.cuGetProcAddress_v2(nullptr, &function, 12000, 0, nullptr));
    EXPECT_EQ(CUDA_ERROR_INVALID_VALUE, cu.cuGetProcAddress_v2("cuInit", nullptr, 12000, 0, nullptr));
}

TEST_F(ProcAddress, finds_itself_and_cuInit) {
    EXPECT_NE(address("cuGetProcAddress", 12000), nullptr);
    EXPECT_EQ(address("cuInit", 12000), exported("cuInit"));
}

// Programs that resolve hundreds of names at start fail when one is missing.
TEST_F(ProcAddress, resolves_names_that_nobody_calls) {
    for (const char* name : {"cuMulticastCreate", "cuGreenCtxCreate", "cuMemPoolCreate", "cuGraphInstantiate",
                             "cuTexObjectCreate", "cuArrayCreate", "cuStreamWriteValue32", "cuMemAllocManaged",
                             "cuIpcGetMemHandle", "cuImportExternalMemory"}) {
        EXPECT_NE(address(name, 12040), nullptr) << name;
    }
}

TEST_F(ProcAddress, unsupported_calls_say_so) {
    SOFTWARE_GPU_ONLY();
    const auto create =
        reinterpret_cast<decltype(&::cuMipmappedArrayDestroy)>(address("cuMipmappedArrayDestroy", 12000));
    ASSERT_NE(create, nullptr);
    EXPECT_EQ(CUDA_ERROR_NOT_SUPPORTED, create(nullptr));
    EXPECT_EQ(CUDA_ERROR_NOT_SUPPORTED, create(nullptr)) << "and say it every time";
}
