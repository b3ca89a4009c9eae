#include <set>

#include "fixture.h"

// Memory pools and stream-ordered allocation.
class Pools : public ContextTest {
  protected:
    void SetUp() override {
        ContextTest::SetUp();
        if (attribute(CU_DEVICE_ATTRIBUTE_MEMORY_POOLS_SUPPORTED) == 0) GTEST_SKIP() << "no memory pools";
        properties.allocType = CU_MEM_ALLOCATION_TYPE_PINNED;
        properties.location.type = CU_MEM_LOCATION_TYPE_DEVICE;
        properties.location.id = device;
    }
    CUmemoryPool pool() {
        CUmemoryPool made = nullptr;
        EXPECT_OK(cu.cuMemPoolCreate(&made, &properties));
        return made;
    }
    static cuuint64_t get(CUmemoryPool of, CUmemPool_attribute what) {
        cuuint64_t value = 0;
        EXPECT_OK(cu.cuMemPoolGetAttribute(of, what, &value));
        return value;
    }
    CUmemPoolProps properties{};
};

TEST_F(Pools, the_default_one_serves_until_another_is_set) {
    CUmemoryPool standard = nullptr, current = nullptr;
    ASSERT_OK(cu.cuDeviceGetDefaultMemPool(&standard, device));
    ASSERT_OK(cu.cuDeviceGetMemPool(&current, device));
    EXPECT_EQ(standard, current);
    const CUmemoryPool own = pool();
    ASSERT_OK(cu.cuDeviceSetMemPool(device, own));
    ASSERT_OK(cu.cuDeviceGetMemPool(&current, device));
    EXPECT_EQ(current, own);
    const CUstream in = stream();
    CUdeviceptr address = 0;
    ASSERT_OK(cu.cuMemAllocAsync(&address, 5000, in));
    EXPECT_GE(get(own, CU_MEMPOOL_ATTR_USED_MEM_CURRENT), 5000u);
    ASSERT_OK(cu.cuMemFreeAsync(address, in));
    ASSERT_OK(cu.cuStreamSynchronize(in));
    EXPECT_EQ(get(own, CU_MEMPOOL_ATTR_USED_MEM_CURRENT), 0u);
    EXPECT_OK(cu.cuMemPoolDestroy(own));
    ASSERT_OK(cu.cuDeviceGetMemPool(&current, device));
    EXPECT_EQ(current, standard) << "a pool that is gone serves nobody";
    EXPECT_EQ(CUDA_ERROR_INVALID_VALUE, cu.cuMemPoolDestroy(own));
    EXPECT_NE(CUDA_SUCCESS, cu.cuMemPoolDestroy(standard));
}

TEST_F(Pools, attributes_are_counted_and_kept) {
    const CUmemoryPool own = pool();
    const CUstream in = stream();
    CUdeviceptr first = 0, second = 0;
    ASSERT_OK(cu.cuMemAllocFromPoolAsync(&first, 1 << 20, own, in));
    ASSERT_OK(cu.cuMemAllocFromPoolAsync(&second, 1 << 20, own, in));
    ASSERT_OK(cu.cuMemFreeAsync(first, in));
    ASSERT_OK(cu.cuStreamSynchronize(in));
    EXPECT_GE(get(own, CU_MEMPOOL_ATTR_USED_MEM_HIGH), 2u << 20);
    EXPECT_EQ(get(own, CU_MEMPOOL_ATTR_USED_MEM_CURRENT), 1u << 20);
    EXPECT_GE(get(own, CU_MEMPOOL_ATTR_RESERVED_MEM_CURRENT), 1u << 20);
    cuuint64_t zero = 0, one = 1;
    EXPECT_OK(cu.cuMemPoolSetAttribute(own, CU_MEMPOOL_ATTR_USED_MEM_HIGH, &zero));
    EXPECT_EQ(get(own, CU_MEMPOOL_ATTR_USED_MEM_HIGH), 1u << 20);
    EXPECT_EQ(CUDA_ERROR_INVALID_VALUE, cu.cuMemPoolSetAttribute(own, CU_MEMPOOL_ATTR_USED_MEM_HIGH, &one));
    cuuint64_t threshold = 123456;
    EXPECT_OK(cu.cuMemPoolSetAttribute(own, CU_MEMPOOL_ATTR_RELEASE_THRESHOLD, &threshold));
    EXPECT_EQ(get(own, CU_MEMPOOL_ATTR_RELEASE_THRESHOLD), 123456u);
    int off = 0, reuse = 7;
    EXPECT_OK(cu.cuMemPoolGetAttribute(own, CU_MEMPOOL_ATTR_REUSE_ALLOW_OPPORTUNISTIC, &reuse));
    EXPECT_EQ(reuse, 1);
    EXPECT_OK(cu.cuMemPoolSetAttribute(own, CU_MEMPOOL_ATTR_REUSE_ALLOW_OPPORTUNISTIC, &off));
    EXPECT_OK(cu.cuMemPoolGetAttribute(own, CU_MEMPOOL_ATTR_REUSE_ALLOW_OPPORTUNISTIC, &reuse));
    EXPECT_EQ(reuse, 0);
    EXPECT_OK(cu.cuMemFreeAsync(second, in));
    EXPECT_OK(cu.cuMemPoolTrimTo(own, 0));
    EXPECT_OK(cu.cuMemPoolDestroy(own));
}

TEST_F(Pools, a_limit_is_kept) {
    properties.maxSize = 4 << 20;
    const CUmemoryPool own = pool();
    const CUstream in = stream();
    CUdeviceptr address = 0, more = 0;
    ASSERT_OK(cu.cuMemAllocFromPoolAsync(&address, 3 << 20, own, in));
    EXPECT_EQ(CUDA_ERROR_OUT_OF_MEMORY, cu.cuMemAllocFromPoolAsync(&more, 3 << 20, own, in));
    ASSERT_OK(cu.cuMemFreeAsync(address, in));
    ASSERT_OK(cu.cuStreamSynchronize(in));
    EXPECT_OK(cu.cuMemAllocFromPoolAsync(&more, 3 << 20, own, in));
    EXPECT_OK(cu.cuMemFreeAsync(more, in));
    EXPECT_OK(cu.cuMemPoolDestroy(own));
    size_t free = 0, total = 0;
    ASSERT_OK(cu.cuMemGetInfo_v2(&free, &total));
    EXPECT_EQ(CUDA_ERROR_OUT_OF_MEMORY, cu.cuMemAllocAsync(&address, total + (64 << 20), in))
        << "nor that of the device";
}

// What a kernel still writes must not be given to another stream, and may be given to the same one.
TEST_F(Pools, memory_is_reused_in_stream_order_only) {
    const CUstream first = stream(), second = stream();
    constexpr size_t kSize = 1 << 16;
    CUdeviceptr address = 0, same = 0, other = 0;
    ASSERT_OK(cu.cuMemAllocAsync(&address, kSize, first));
    Spinner spinner(kernel("spin"), first);
    ASSERT_OK(cu.cuMemsetD8Async(address, 1, kSize, first));
    ASSERT_OK(cu.cuMemFreeAsync(address, first));
    ASSERT_OK(cu.cuMemAllocAsync(&other, kSize, second));
    EXPECT_NE(other, address);
    ASSERT_OK(cu.cuMemsetD8Async(other, 2, kSize, second));
    ASSERT_OK(cu.cuMemAllocAsync(&same, kSize, first));
    ASSERT_OK(cu.cuMemsetD8Async(same, 3, kSize, first));
    ASSERT_OK(cu.cuStreamSynchronize(second));
    spinner.release();
    ASSERT_OK(cu.cuStreamSynchronize(first));
    EXPECT_EQ(read<std::uint8_t>(other, kSize), std::vector<std::uint8_t>(kSize, 2));
    EXPECT_EQ(read<std::uint8_t>(same, kSize), std::vector<std::uint8_t>(kSize, 3));
    EXPECT_OK(cu.cuMemFreeAsync(same, first));
    EXPECT_OK(cu.cuMemFree_v2(other)) << "an ordinary free will do";
    EXPECT_EQ(CUDA_ERROR_INVALID_VALUE, cu.cuMemFreeAsync(other, first));
}

TEST_F(Pools, a_loop_of_allocations_needs_no_more_memory_than_one) {
    const CUstream in = stream();
    const size_t most = free_bytes() / 4 * 3;
    std::set<CUdeviceptr> addresses;
    for (int i = 0; i < 100; ++i) {
        CUdeviceptr address = 0;
        ASSERT_OK(cu.cuMemAllocAsync(&address, most, in));
        ASSERT_OK(cu.cuMemsetD8Async(address, 1, 4096, in));
        ASSERT_OK(cu.cuMemFreeAsync(address, in));
        addresses.insert(address);
    }
    ASSERT_OK(cu.cuStreamSynchronize(in));
    CUdeviceptr whole = 0;
    EXPECT_OK(cu.cuMemAlloc_v2(&whole, most)) << "nothing stays behind";
    EXPECT_OK(cu.cuMemFree_v2(whole));
}

TEST_F(Pools, access_is_that_of_the_own_device) {
    const CUmemoryPool own = pool();
    CUmemAccess_flags flags = CU_MEM_ACCESS_FLAGS_PROT_NONE;
    CUmemLocation here = properties.location;
    ASSERT_OK(cu.cuMemPoolGetAccess(&flags, own, &here));
    EXPECT_EQ(flags, CU_MEM_ACCESS_FLAGS_PROT_READWRITE);
    CUmemAccessDesc wanted{};
    wanted.location = here;
    wanted.flags = CU_MEM_ACCESS_FLAGS_PROT_READWRITE;
    EXPECT_OK(cu.cuMemPoolSetAccess(own, &wanted, 1));
    EXPECT_OK(cu.cuMemPoolDestroy(own));
}

TEST_F(Pools, bad_arguments_are_refused) {
    CUmemoryPool made = nullptr;
    properties.handleTypes = CU_MEM_HANDLE_TYPE_POSIX_FILE_DESCRIPTOR;
    if (attribute(CU_DEVICE_ATTRIBUTE_MEMPOOL_SUPPORTED_HANDLE_TYPES) == 0) {
        EXPECT_EQ(CUDA_ERROR_NOT_SUPPORTED, cu.cuMemPoolCreate(&made, &properties)) << "a descriptor cannot travel";
    }
    properties.handleTypes = CU_MEM_HANDLE_TYPE_NONE;
    properties.location.id = 4711;
    EXPECT_NE(CUDA_SUCCESS, cu.cuMemPoolCreate(&made, &properties));
    EXPECT_EQ(CUDA_ERROR_INVALID_VALUE, cu.cuMemPoolCreate(nullptr, &properties));
    EXPECT_EQ(CUDA_ERROR_INVALID_DEVICE, cu.cuDeviceGetMemPool(&made, 4711));
    CUdeviceptr address = 0;
    EXPECT_EQ(CUDA_ERROR_INVALID_VALUE, cu.cuMemAllocFromPoolAsync(&address, 16, nullptr, nullptr));
}
