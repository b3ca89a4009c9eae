#include "driver/proc_address.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <string>
#include <vector>

#include "gen/cuda_names.h"

namespace weft::driver {
namespace {

// A library whose symbol number i lies at address i + 1.
class ProcAddressTest : public testing::Test {
  protected:
    ProcAddressTest() {
        for (std::size_t i = 0; i < kSymbolCount; ++i) addresses_.push_back(reinterpret_cast<void*>(i + 1));
    }

    std::string symbol_of(const ProcAddress& found) const {
        return found.address == nullptr ? "" : kSymbolNames[reinterpret_cast<std::uintptr_t>(found.address) - 1];
    }
    std::string find(const char* name, int version, cuuint64_t flags = 0) const {
        return symbol_of(find_proc_address(addresses_, name, version, flags));
    }

    std::vector<void*> addresses_;
};

TEST_F(ProcAddressTest, VersionChoosesTheVariant) {
    EXPECT_EQ(find("cuMemAlloc", 2000), "cuMemAlloc");
    EXPECT_EQ(find("cuMemAlloc", 3010), "cuMemAlloc");
    EXPECT_EQ(find("cuMemAlloc", 3020), "cuMemAlloc_v2");
    EXPECT_EQ(find("cuMemAlloc", 13050), "cuMemAlloc_v2");
    EXPECT_EQ(find("cuCtxGetDevice", 2000), "cuCtxGetDevice");
    EXPECT_EQ(find("cuCtxGetDevice", 12090), "cuCtxGetDevice");
    EXPECT_EQ(find("cuCtxGetDevice", 13000), "cuCtxGetDevice_v2");
    EXPECT_EQ(find("cuGetProcAddress", 11030), "cuGetProcAddress");
    EXPECT_EQ(find("cuGetProcAddress", 12000), "cuGetProcAddress_v2");
    EXPECT_EQ(find("cuGraphInstantiate", 12000), "cuGraphInstantiateWithFlags");
}

TEST_F(ProcAddressTest, PerThreadFlagPrefersThePerThreadVariant) {
    constexpr cuuint64_t kPerThread = CU_GET_PROC_ADDRESS_PER_THREAD_DEFAULT_STREAM;
    EXPECT_EQ(find("cuMemcpyHtoD", 7000, kPerThread), "cuMemcpyHtoD_v2_ptds");
    EXPECT_EQ(find("cuLaunchKernel", 7000, kPerThread), "cuLaunchKernel_ptsz");
    EXPECT_EQ(find("cuLaunchKernel", 7000, CU_GET_PROC_ADDRESS_LEGACY_STREAM), "cuLaunchKernel");
    EXPECT_EQ(find("cuLaunchKernel", 4000, kPerThread), "cuLaunchKernel") << "older than the per-thread variant";
    EXPECT_EQ(find("cuMemAlloc", 7000, kPerThread), "cuMemAlloc_v2") << "has no per-thread variant";
}

TEST_F(ProcAddressTest, UnknownNamesAndOldVersionsAreToldApart) {
    EXPECT_EQ(find_proc_address(addresses_, "cuNoSuchCall", 13000, 0).query, CU_GET_PROC_ADDRESS_SYMBOL_NOT_FOUND);
    EXPECT_EQ(find_proc_address(addresses_, "cuMemAlloc_v2", 13000, 0).query, CU_GET_PROC_ADDRESS_SYMBOL_NOT_FOUND);
    EXPECT_EQ(find_proc_address(addresses_, "", 13000, 0).query, CU_GET_PROC_ADDRESS_SYMBOL_NOT_FOUND);
    EXPECT_EQ(find_proc_address(addresses_, "cuLibraryLoadData", 11000, 0).query,
              CU_GET_PROC_ADDRESS_VERSION_NOT_SUFFICIENT);
}

TEST_F(ProcAddressTest, EveryNameIsFoundAtTheNewestVersionAndTablesAreSorted) {
    for (std::size_t i = 0; i < kNameCount; ++i) {
        EXPECT_NE(find(kNames[i].name, CUDA_VERSION), "") << kNames[i].name;
    }
    const auto sorted = [](const NameEntry& a, const NameEntry& b) { return std::string_view(a.name) < b.name; };
    EXPECT_TRUE(std::is_sorted(kNames, kNames + kNameCount, sorted));
}

TEST_F(ProcAddressTest, CallAnswersAsTheManualSays) {
    void* function = this;
    CUdriverProcAddressQueryResult status{};
    EXPECT_EQ(get_proc_address(addresses_, 13000, "cuInit", &function, 13000, 0, &status), CUDA_SUCCESS);
    EXPECT_EQ(status, CU_GET_PROC_ADDRESS_SUCCESS);
    EXPECT_EQ(get_proc_address(addresses_, 13000, "cuNoSuchCall", &function, 13000, 0, &status), CUDA_SUCCESS);
    EXPECT_EQ(function, nullptr);
    EXPECT_EQ(status, CU_GET_PROC_ADDRESS_SYMBOL_NOT_FOUND);
    EXPECT_EQ(get_proc_address(addresses_, 13000, "cuNoSuchCall", &function, 13000, 0, nullptr), CUDA_ERROR_NOT_FOUND);
    EXPECT_EQ(get_proc_address(addresses_, 13000, nullptr, &function, 13000, 0, &status), CUDA_ERROR_INVALID_VALUE);
    EXPECT_EQ(get_proc_address(addresses_, 13000, "cuInit", nullptr, 13000, 0, &status), CUDA_ERROR_INVALID_VALUE);
    EXPECT_EQ(get_proc_address(addresses_, 13000, "cuInit", &function, 13010, 0, &status), CUDA_ERROR_INVALID_VALUE);
    EXPECT_EQ(get_proc_address(addresses_, 13000, "cuInit", &function, 13000, 8, &status), CUDA_ERROR_INVALID_VALUE);
}

TEST(ErrorNames, EveryResultHasANameAndADescription) {
    EXPECT_STREQ(error_name(CUDA_ERROR_OUT_OF_MEMORY), "CUDA_ERROR_OUT_OF_MEMORY");
    EXPECT_STREQ(error_description(CUDA_SUCCESS), "no error");
    EXPECT_EQ(error_name(static_cast<CUresult>(12345)), nullptr);
    EXPECT_TRUE(is_sticky(CUDA_ERROR_ILLEGAL_ADDRESS));
    EXPECT_FALSE(is_sticky(CUDA_ERROR_OUT_OF_MEMORY));
}

}  // namespace
}  // namespace weft::driver
