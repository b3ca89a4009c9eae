#include <cstring>
#include <set>

#include "fixture.h"

class Devices : public DriverTest {};

TEST_F(Devices, are_counted_and_numbered) {
    int count = 0;
    ASSERT_OK(cu.cuDeviceGetCount(&count));
    ASSERT_GE(count, 1);
    for (int i = 0; i < count; ++i) {
        CUdevice found = -1;
        ASSERT_OK(cu.cuDeviceGet(&found, i));
        EXPECT_EQ(found, i);
    }
    CUdevice none = -1;
    EXPECT_EQ(CUDA_ERROR_INVALID_DEVICE, cu.cuDeviceGet(&none, count));
    EXPECT_EQ(CUDA_ERROR_INVALID_DEVICE, cu.cuDeviceGet(&none, -1));
    EXPECT_EQ(CUDA_ERROR_INVALID_VALUE, cu.cuDeviceGet(nullptr, 0));
}

TEST_F(Devices, have_names_cut_to_the_buffer) {
    char name[256];
    ASSERT_OK(cu.cuDeviceGetName(name, sizeof name, device));
    EXPECT_GT(std::strlen(name), 0u);
    char cut[4];
    ASSERT_OK(cu.cuDeviceGetName(cut, sizeof cut, device));
    EXPECT_EQ(std::string(cut), std::string(name).substr(0, 3));
}

TEST_F(Devices, have_distinct_uuids) {
    int count = 0;
    ASSERT_OK(cu.cuDeviceGetCount(&count));
    std::set<std::string> uuids;
    for (int i = 0; i < count; ++i) {
        CUuuid uuid{};
        ASSERT_OK(cu.cuDeviceGetUuid(&uuid, i));
        uuids.insert(std::string(uuid.bytes, sizeof uuid.bytes));
        CUuuid second{};
        ASSERT_OK(cu.cuDeviceGetUuid_v2(&second, i));
    }
    EXPECT_EQ(uuids.size(), static_cast<size_t>(count));
    EXPECT_FALSE(uuids.contains(std::string(16, '\0')));
}

TEST_F(Devices, have_sane_attributes) {
    EXPECT_EQ(attribute(CU_DEVICE_ATTRIBUTE_WARP_SIZE), 32);
    EXPECT_GE(attribute(CU_DEVICE_ATTRIBUTE_MAX_THREADS_PER_BLOCK), 1024);
    EXPECT_EQ(attribute(CU_DEVICE_ATTRIBUTE_MAX_BLOCK_DIM_X), 1024);
    EXPECT_EQ(attribute(CU_DEVICE_ATTRIBUTE_MAX_BLOCK_DIM_Z), 64);
    EXPECT_EQ(attribute(CU_DEVICE_ATTRIBUTE_MAX_GRID_DIM_X), 2147483647);
    EXPECT_GE(attribute(CU_DEVICE_ATTRIBUTE_MAX_SHARED_MEMORY_PER_BLOCK), 48 * 1024);
    EXPECT_GE(attribute(CU_DEVICE_ATTRIBUTE_MAX_SHARED_MEMORY_PER_BLOCK_OPTIN),
              attribute(CU_DEVICE_ATTRIBUTE_MAX_SHARED_MEMORY_PER_BLOCK));
    EXPECT_GE(attribute(CU_DEVICE_ATTRIBUTE_MULTIPROCESSOR_COUNT), 1);
    EXPECT_GE(attribute(CU_DEVICE_ATTRIBUTE_CLOCK_RATE), 1000);
    EXPECT_EQ(attribute(CU_DEVICE_ATTRIBUTE_UNIFIED_ADDRESSING), 1);
    EXPECT_GE(attribute(CU_DEVICE_ATTRIBUTE_COMPUTE_CAPABILITY_MAJOR), 5);
}

TEST_F(Devices, answer_every_attribute_that_runtimes_ask_for) {
    for (int id = 1; id <= 120; ++id) {
        int value = -12345;
        EXPECT_OK(cu.cuDeviceGetAttribute(&value, static_cast<CUdevice_attribute>(id), device)) << id;
        EXPECT_NE(value, -12345) << id;
    }
    int value = 0;
    EXPECT_EQ(CUDA_ERROR_INVALID_VALUE, cu.cuDeviceGetAttribute(&value, static_cast<CUdevice_attribute>(0), device));
    EXPECT_EQ(CUDA_ERROR_INVALID_VALUE,
              cu.cuDeviceGetAttribute(&value, static_cast<CUdevice_attribute>(100000), device));
    EXPECT_EQ(CUDA_ERROR_INVALID_DEVICE, cu.cuDeviceGetAttribute(&value, CU_DEVICE_ATTRIBUTE_WARP_SIZE, 999));
}

TEST_F(Devices, say_the_same_in_every_form) {
    int major = 0, minor = 0;
    ASSERT_OK(cu.cuDeviceComputeCapability(&major, &minor, device));
    EXPECT_EQ(major, attribute(CU_DEVICE_ATTRIBUTE_COMPUTE_CAPABILITY_MAJOR));
    EXPECT_EQ(minor, attribute(CU_DEVICE_ATTRIBUTE_COMPUTE_CAPABILITY_MINOR));
    CUdevprop properties{};
    ASSERT_OK(cu.cuDeviceGetProperties(&properties, device));
    EXPECT_EQ(properties.maxThreadsPerBlock, attribute(CU_DEVICE_ATTRIBUTE_MAX_THREADS_PER_BLOCK));
    EXPECT_EQ(properties.SIMDWidth, 32);
}

TEST_F(Devices, are_found_by_their_bus_id) {
    char id[32] = "";
    ASSERT_OK(cu.cuDeviceGetPCIBusId(id, sizeof id, device));
    CUdevice found = -1;
    ASSERT_OK(cu.cuDeviceGetByPCIBusId(&found, id));
    EXPECT_EQ(found, device);
}

TEST_F(Devices, report_their_memory) {
    size_t bytes = 0;
    ASSERT_OK(cu.cuDeviceTotalMem_v2(&bytes, device));
    EXPECT_GE(bytes, 16u << 20);
    EXPECT_EQ(CUDA_ERROR_INVALID_DEVICE, cu.cuDeviceTotalMem_v2(&bytes, 999));
}
