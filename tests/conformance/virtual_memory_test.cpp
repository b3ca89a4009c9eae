#include "fixture.h"

class VirtualMemory : public ContextTest {
  protected:
    void SetUp() override {
        ContextTest::SetUp();
        properties.type = CU_MEM_ALLOCATION_TYPE_PINNED;
        properties.location.type = CU_MEM_LOCATION_TYPE_DEVICE;
        properties.location.id = device;
        access.location = properties.location;
        access.flags = CU_MEM_ACCESS_FLAGS_PROT_READWRITE;
        const CUresult result =
            cu.cuMemGetAllocationGranularity(&granularity, &properties, CU_MEM_ALLOC_GRANULARITY_MINIMUM);
        if (result == CUDA_ERROR_NOT_SUPPORTED) GTEST_SKIP() << "virtual memory management is not supported";
        ASSERT_OK(result);
        ASSERT_GT(granularity, 0u);
    }
    CUmemAllocationProp properties{};
    CUmemAccessDesc access{};
    size_t granularity = 0;
};

TEST_F(VirtualMemory, maps_memory_where_it_was_reserved) {
    const size_t size = 2 * granularity;
    CUdeviceptr address = 0;
    ASSERT_OK(cu.cuMemAddressReserve(&address, size, 0, 0, 0));
    EXPECT_EQ(address % granularity, 0u);
    const size_t before = free_bytes();
    CUmemGenericAllocationHandle handle = 0;
    ASSERT_OK(cu.cuMemCreate(&handle, size, &properties, 0));
    EXPECT_LE(free_bytes(), before - size);
    ASSERT_OK(cu.cuMemMap(address, size, 0, handle, 0));
    ASSERT_OK(cu.cuMemSetAccess(address, size, &access, 1));
    const auto values = pattern(size, 1);
    write(address, values);
    EXPECT_EQ(read<std::uint8_t>(address, size), values);
    ASSERT_OK(cu.cuMemRelease(handle));
    EXPECT_LE(free_bytes(), before - size) << "still mapped";
    ASSERT_OK(cu.cuMemUnmap(address, size));
    EXPECT_EQ(free_bytes(), before);
    ASSERT_OK(cu.cuMemAddressFree(address, size));
}

TEST_F(VirtualMemory, contents_survive_a_move) {
    CUdeviceptr address = 0;
    ASSERT_OK(cu.cuMemAddressReserve(&address, 2 * granularity, 0, 0, 0));
    CUmemGenericAllocationHandle handle = 0;
    ASSERT_OK(cu.cuMemCreate(&handle, granularity, &properties, 0));
    ASSERT_OK(cu.cuMemMap(address, granularity, 0, handle, 0));
    ASSERT_OK(cu.cuMemSetAccess(address, granularity, &access, 1));
    const auto values = pattern(granularity, 2);
    write(address, values);
    ASSERT_OK(cu.cuMemUnmap(address, granularity));
    ASSERT_OK(cu.cuMemMap(address + granularity, granularity, 0, handle, 0));
    ASSERT_OK(cu.cuMemSetAccess(address + granularity, granularity, &access, 1));
    EXPECT_EQ(read<std::uint8_t>(address + granularity, granularity), values);
    EXPECT_OK(cu.cuMemUnmap(address + granularity, granularity));
    EXPECT_OK(cu.cuMemRelease(handle));
    EXPECT_OK(cu.cuMemAddressFree(address, 2 * granularity));
}

TEST_F(VirtualMemory, two_mappings_show_the_same_memory) {
    CUdeviceptr address = 0;
    ASSERT_OK(cu.cuMemAddressReserve(&address, 2 * granularity, 0, 0, 0));
    CUmemGenericAllocationHandle handle = 0;
    ASSERT_OK(cu.cuMemCreate(&handle, granularity, &properties, 0));
    for (int i = 0; i < 2; ++i) {
        ASSERT_OK(cu.cuMemMap(address + granularity * static_cast<size_t>(i), granularity, 0, handle, 0));
        ASSERT_OK(cu.cuMemSetAccess(address + granularity * static_cast<size_t>(i), granularity, &access, 1));
        ASSERT_OK(cu.cuMemsetD32_v2(address, 0xabcd, 16));
    }
    ASSERT_OK(cu.cuCtxSynchronize());
    EXPECT_EQ(read<std::uint32_t>(address + granularity, 1)[0], 0xabcdu);
    EXPECT_OK(cu.cuMemUnmap(address, 2 * granularity));
    EXPECT_OK(cu.cuMemRelease(handle));
    EXPECT_OK(cu.cuMemAddressFree(address, 2 * granularity));
}

TEST_F(VirtualMemory, is_not_accessible_before_access_is_set) {
    CUdeviceptr address = 0;
    ASSERT_OK(cu.cuMemAddressReserve(&address, granularity, 0, 0, 0));
    std::uint32_t word = 0;
    EXPECT_NE(CUDA_SUCCESS, cu.cuMemcpyDtoH_v2(&word, address, 4));
    CUmemGenericAllocationHandle handle = 0, again = 0;
    ASSERT_OK(cu.cuMemCreate(&handle, granularity, &properties, 0));
    ASSERT_OK(cu.cuMemMap(address, granularity, 0, handle, 0));
    EXPECT_EQ(CUDA_ERROR_INVALID_VALUE, cu.cuMemMap(address, granularity, 0, handle, 0)) << "mapped already";
    ASSERT_OK(cu.cuMemSetAccess(address, granularity, &access, 1));
    EXPECT_OK(cu.cuMemcpyDtoH_v2(&word, address, 4));
    ASSERT_OK(cu.cuMemRetainAllocationHandle(&again, reinterpret_cast<void*>(address + 100)));
    EXPECT_EQ(again, handle);
    EXPECT_OK(cu.cuMemRelease(again));
    EXPECT_OK(cu.cuMemRelease(handle));
    EXPECT_OK(cu.cuMemUnmap(address, granularity));
    EXPECT_OK(cu.cuMemAddressFree(address, granularity));
}

TEST_F(VirtualMemory, neighbouring_mappings_are_one_space) {
    CUdeviceptr address = 0;
    ASSERT_OK(cu.cuMemAddressReserve(&address, 3 * granularity, 0, 0, 0));
    const size_t before = free_bytes();
    for (size_t i = 0; i < 3; ++i) {
        CUmemGenericAllocationHandle handle = 0;
        ASSERT_OK(cu.cuMemCreate(&handle, granularity, &properties, 0));
        ASSERT_OK(cu.cuMemMap(address + i * granularity, granularity, 0, handle, 0));
        ASSERT_OK(cu.cuMemRelease(handle));
    }
    ASSERT_OK(cu.cuMemSetAccess(address, 3 * granularity, &access, 1));
    const auto values = pattern(2 * granularity, 3);
    write(address + granularity / 2, values);
    EXPECT_EQ(read<std::uint8_t>(address + granularity / 2, values.size()), values);
    unsigned long long flags = 0;
    ASSERT_OK(cu.cuMemGetAccess(&flags, &properties.location, address + granularity));
    EXPECT_EQ(flags, static_cast<unsigned long long>(CU_MEM_ACCESS_FLAGS_PROT_READWRITE));
    CUmemGenericAllocationHandle again = 0;
    ASSERT_OK(cu.cuMemRetainAllocationHandle(&again, reinterpret_cast<void*>(address))) << "a mapping has it still";
    CUmemAllocationProp found{};
    EXPECT_OK(cu.cuMemGetAllocationPropertiesFromHandle(&found, again));
    EXPECT_EQ(found.location.id, device);
    EXPECT_OK(cu.cuMemRelease(again));
    EXPECT_EQ(CUDA_ERROR_INVALID_VALUE, cu.cuMemAddressFree(address, 3 * granularity)) << "something is mapped";
    EXPECT_OK(cu.cuMemUnmap(address, 3 * granularity));
    EXPECT_EQ(free_bytes(), before);
    EXPECT_OK(cu.cuMemAddressFree(address, 3 * granularity));
}

TEST_F(VirtualMemory, handles_of_the_operating_system_are_refused) {
    if (attribute(CU_DEVICE_ATTRIBUTE_HANDLE_TYPE_POSIX_FILE_DESCRIPTOR_SUPPORTED) != 0)
        GTEST_SKIP() << "this driver has them";
    properties.requestedHandleTypes = CU_MEM_HANDLE_TYPE_POSIX_FILE_DESCRIPTOR;
    CUmemGenericAllocationHandle handle = 0;
    EXPECT_EQ(CUDA_ERROR_NOT_SUPPORTED, cu.cuMemCreate(&handle, granularity, &properties, 0));
}

TEST_F(VirtualMemory, kernels_use_it) {
    CUdeviceptr address = 0;
    ASSERT_OK(cu.cuMemAddressReserve(&address, granularity, 0, 0, 0));
    CUmemGenericAllocationHandle handle = 0;
    ASSERT_OK(cu.cuMemCreate(&handle, granularity, &properties, 0));
    ASSERT_OK(cu.cuMemMap(address, granularity, 0, handle, 0));
    ASSERT_OK(cu.cuMemSetAccess(address, granularity, &access, 1));
    ASSERT_OK(cu.cuMemsetD32_v2(address, 5, 1000));
    ASSERT_OK(launch(kernel("step"), 8, 128, nullptr, address, 1000u));
    EXPECT_EQ(read<std::uint32_t>(address, 1000), std::vector<std::uint32_t>(1000, 16));
    unsigned type = 0;
    EXPECT_OK(cu.cuPointerGetAttribute(&type, CU_POINTER_ATTRIBUTE_MEMORY_TYPE, address + 8));
    EXPECT_EQ(type, static_cast<unsigned>(CU_MEMORYTYPE_DEVICE));
    EXPECT_OK(cu.cuMemUnmap(address, granularity));
    EXPECT_OK(cu.cuMemRelease(handle));
    EXPECT_OK(cu.cuMemAddressFree(address, granularity));
}

TEST_F(VirtualMemory, bad_arguments_are_refused) {
    CUdeviceptr address = 0;
    CUmemGenericAllocationHandle handle = 0;
    EXPECT_EQ(CUDA_ERROR_INVALID_VALUE, cu.cuMemAddressReserve(&address, granularity + 1, 0, 0, 0));
    EXPECT_EQ(CUDA_ERROR_INVALID_VALUE, cu.cuMemAddressReserve(&address, 0, 0, 0, 0));
    EXPECT_EQ(CUDA_ERROR_INVALID_VALUE, cu.cuMemCreate(&handle, granularity + 1, &properties, 0));
    EXPECT_EQ(CUDA_ERROR_INVALID_VALUE, cu.cuMemMap(0x100000000000ull, granularity, 0, 12345, 0));
    EXPECT_EQ(CUDA_ERROR_INVALID_VALUE, cu.cuMemUnmap(0x100000000000ull, granularity));
    size_t total = 0;
    ASSERT_OK(cu.cuDeviceTotalMem_v2(&total, device));
    EXPECT_EQ(CUDA_ERROR_OUT_OF_MEMORY,
              cu.cuMemCreate(&handle, (total / granularity + 1) * granularity, &properties, 0));
}

TEST_F(VirtualMemory, a_requested_address_is_honoured) {
    constexpr CUdeviceptr kWanted = 0x300000000000ull;
    CUdeviceptr address = 0;
    ASSERT_OK(cu.cuMemAddressReserve(&address, granularity, 0, kWanted, 0));
    EXPECT_EQ(address, kWanted);
    EXPECT_OK(cu.cuMemAddressFree(address, granularity));
}
