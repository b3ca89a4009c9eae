#include "driver/load.h"

#include <dlfcn.h>
#include <gtest/gtest.h>

namespace weft::driver {
namespace {

class Library {
  public:
    explicit Library(const char* path) : handle_(dlopen(path, RTLD_NOW | RTLD_LOCAL)) {}
    ~Library() { dlclose(handle_); }
    template <typename Function>
    Function* find(const char* name) {
        return reinterpret_cast<Function*>(dlsym(handle_, name));
    }

  private:
    void* handle_;
};

TEST(DriverShapedLibrary, DefinedCallsWinOverStubsEverywhere) {
    Library library(WEFT_TESTING_LIBRARY);
    auto* init = library.find<CUresult(unsigned)>("cuInit");
    ASSERT_NE(init, nullptr);
    EXPECT_EQ(init(0), CUDA_SUCCESS);
    auto* get_proc_address = library.find<decltype(cuGetProcAddress_v2)>("cuGetProcAddress_v2");
    ASSERT_NE(get_proc_address, nullptr);
    void* found = nullptr;
    ASSERT_EQ(get_proc_address("cuInit", &found, CUDA_VERSION, 0, nullptr), CUDA_SUCCESS);
    EXPECT_EQ(found, reinterpret_cast<void*>(init));
}

TEST(DriverShapedLibrary, EveryOtherKnownCallIsAStub) {
    Library library(WEFT_TESTING_LIBRARY);
    auto* alloc = library.find<decltype(cuMemAlloc_v2)>("cuMemAlloc_v2");
    auto* old_alloc = library.find<decltype(cuMemAlloc)>("cuMemAlloc");
    ASSERT_NE(alloc, nullptr);
    ASSERT_NE(old_alloc, nullptr);
    EXPECT_NE(reinterpret_cast<void*>(alloc), reinterpret_cast<void*>(old_alloc));
    CUdeviceptr address = 1;
    EXPECT_EQ(alloc(&address, 16), CUDA_ERROR_NOT_SUPPORTED);
    EXPECT_EQ(address, 1u);
    EXPECT_NE(library.find<void>("cuGLGetDevices_v2"), nullptr);
}

TEST(DriverShapedLibrary, ExportsNothingElse) {
    Library library(WEFT_TESTING_LIBRARY);
    EXPECT_EQ(library.find<void>("not_a_driver_symbol"), nullptr);
    EXPECT_EQ(library.find<void>("weft_unsupported"), nullptr);
}

TEST(LoadDriver, FillsTheTable) {
    DriverTable table;
    const Status status = load_driver_table(WEFT_TESTING_LIBRARY, &table);
    ASSERT_TRUE(status) << status.text();
    EXPECT_EQ(table.cuInit(0), CUDA_SUCCESS);
    EXPECT_EQ(table.cuDeviceGetCount(nullptr), CUDA_ERROR_NOT_SUPPORTED);
    EXPECT_EQ(table.weftMemoryNote, nullptr);
}

TEST(LoadDriver, RefusesWhatIsNoDriver) {
    DriverTable table;
    EXPECT_EQ(load_driver_table("/nonexistent/libcuda.so.1", &table).code(), ErrorCode::not_found);
    const Status other = load_driver_table("libm.so.6", &table);
    EXPECT_EQ(other.code(), ErrorCode::unsupported);
    EXPECT_NE(other.text().find("lacks cuInit"), std::string::npos);
    EXPECT_EQ(table.cuInit, nullptr);
}

TEST(LoadDriver, RefusesWeftsOwnShim) {
    DriverTable table;
    const Status status = load_driver_table(WEFT_TESTING_SHIM, &table);
    EXPECT_EQ(status.code(), ErrorCode::unsupported);
    EXPECT_NE(status.text().find("own client library"), std::string::npos);
}

}  // namespace
}  // namespace weft::driver
