#include <sys/mman.h>

#include <set>

#include "fixture.h"

class Memory : public ContextTest {};

TEST_F(Memory, allocations_are_aligned_and_disjoint) {
    std::set<CUdeviceptr> addresses;
    const size_t sizes[] = {1, 3, 255, 256, 257, 4096, 65537, 1 << 20};
    std::vector<std::pair<CUdeviceptr, size_t>> made;
    for (size_t size : sizes) {
        const CUdeviceptr address = allocate(size);
        EXPECT_EQ(address % 256, 0u);
        for (const auto& [other, bytes] : made) EXPECT_TRUE(address + size <= other || other + bytes <= address);
        made.emplace_back(address, size);
    }
    for (const auto& [address, size] : made) EXPECT_OK(cu.cuMemFree_v2(address));
}

TEST_F(Memory, bad_arguments_are_refused) {
    CUdeviceptr address = 0;
    EXPECT_EQ(CUDA_ERROR_INVALID_VALUE, cu.cuMemAlloc_v2(&address, 0));
    EXPECT_EQ(CUDA_ERROR_INVALID_VALUE, cu.cuMemAlloc_v2(nullptr, 16));
    EXPECT_EQ(CUDA_ERROR_INVALID_VALUE, cu.cuMemFree_v2(0x123456789000ull));
    EXPECT_OK(cu.cuMemFree_v2(0)) << "like free(NULL)";
    address = allocate(4096);
    EXPECT_EQ(CUDA_ERROR_INVALID_VALUE, cu.cuMemFree_v2(address + 256));
    EXPECT_OK(cu.cuMemFree_v2(address));
    EXPECT_EQ(CUDA_ERROR_INVALID_VALUE, cu.cuMemFree_v2(address)) << "freed twice";
}

TEST_F(Memory, free_and_total_follow_allocations) {
    size_t before = 0, during = 0, after = 0, total = 0, device_total = 0;
    ASSERT_OK(cu.cuMemGetInfo_v2(&before, &total));
    ASSERT_OK(cu.cuDeviceTotalMem_v2(&device_total, device));
    EXPECT_LE(before, total);
    EXPECT_EQ(total, device_total);
    constexpr size_t kSize = 64 << 20, kSlack = 4 << 20;
    const CUdeviceptr address = allocate(kSize);
    ASSERT_OK(cu.cuMemGetInfo_v2(&during, &total));
    EXPECT_LE(during, before - kSize);
    EXPECT_GE(during + kSize + kSlack, before);
    ASSERT_OK(cu.cuMemFree_v2(address));
    ASSERT_OK(cu.cuMemGetInfo_v2(&after, &total));
    EXPECT_GE(after + kSlack, before);
}

TEST_F(Memory, running_out_is_an_error_to_go_on_from) {
    size_t free = 0, total = 0;
    ASSERT_OK(cu.cuMemGetInfo_v2(&free, &total));
    CUdeviceptr address = 0;
    EXPECT_EQ(CUDA_ERROR_OUT_OF_MEMORY, cu.cuMemAlloc_v2(&address, total + (1 << 20)));
    EXPECT_EQ(CUDA_ERROR_OUT_OF_MEMORY, cu.cuMemAlloc_v2(&address, size_t{1} << 60));
    address = allocate(1 << 20);
    ASSERT_OK(cu.cuMemsetD8_v2(address, 0x5a, 1 << 20));
    EXPECT_EQ(read<std::uint8_t>(address + (1 << 20) - 4, 4), std::vector<std::uint8_t>(4, 0x5a));
}

TEST_F(Memory, all_of_it_can_be_used) {
    std::vector<CUdeviceptr> pieces;
    constexpr size_t kPiece = 256 << 20;
    CUdeviceptr address = 0;
    CUresult result = CUDA_SUCCESS;
    while (pieces.size() < 4096 && (result = cu.cuMemAlloc_v2(&address, kPiece)) == CUDA_SUCCESS)
        pieces.push_back(address);
    EXPECT_EQ(result, CUDA_ERROR_OUT_OF_MEMORY);
    EXPECT_LE(free_bytes(), 2 * kPiece);
    ASSERT_FALSE(pieces.empty());
    EXPECT_OK(cu.cuMemFree_v2(pieces[pieces.size() / 2]));
    EXPECT_OK(cu.cuMemAlloc_v2(&address, kPiece)) << "what was freed can be had again";
    for (size_t i = 0; i < pieces.size(); ++i) {
        if (i != pieces.size() / 2) {
            EXPECT_OK(cu.cuMemFree_v2(pieces[i]));
        }
    }
    EXPECT_OK(cu.cuMemFree_v2(address));
}

TEST_F(Memory, fragments_are_joined_again) {
    const size_t before = free_bytes();
    std::vector<CUdeviceptr> pieces;
    for (int i = 0; i < 512; ++i) pieces.push_back(allocate(64 << 10));
    for (size_t i = 0; i < pieces.size(); i += 2) EXPECT_OK(cu.cuMemFree_v2(pieces[i]));
    for (size_t i = 1; i < pieces.size(); i += 2) EXPECT_OK(cu.cuMemFree_v2(pieces[i]));
    CUdeviceptr whole = 0;
    EXPECT_OK(cu.cuMemAlloc_v2(&whole, before / 2));
    EXPECT_OK(cu.cuMemFree_v2(whole));
}

TEST_F(Memory, pitched_allocations_have_aligned_rows) {
    CUdeviceptr address = 0;
    size_t pitch = 0;
    ASSERT_OK(cu.cuMemAllocPitch_v2(&address, &pitch, 1000, 37, 4));
    EXPECT_GE(pitch, 1000u);
    EXPECT_EQ(pitch % 32, 0u);
    EXPECT_OK(cu.cuMemsetD2D8_v2(address, pitch, 3, 1000, 37));
    EXPECT_EQ(read<std::uint8_t>(address + pitch * 36 + 999, 1)[0], 3);
    EXPECT_OK(cu.cuMemFree_v2(address));
    EXPECT_EQ(CUDA_ERROR_INVALID_VALUE, cu.cuMemAllocPitch_v2(&address, &pitch, 0, 37, 4));
}

TEST_F(Memory, address_ranges_are_those_of_the_allocation) {
    const CUdeviceptr address = allocate(10000);
    CUdeviceptr base = 0;
    size_t size = 0;
    ASSERT_OK(cu.cuMemGetAddressRange_v2(&base, &size, address + 5000));
    EXPECT_EQ(base, address);
    EXPECT_GE(size, 10000u);
    EXPECT_OK(cu.cuMemGetAddressRange_v2(nullptr, &size, address));
    EXPECT_OK(cu.cuMemGetAddressRange_v2(&base, nullptr, address));
    int on_stack = 0;
    EXPECT_NE(CUDA_SUCCESS, cu.cuMemGetAddressRange_v2(&base, &size, reinterpret_cast<CUdeviceptr>(&on_stack)));
}

TEST_F(Memory, device_addresses_are_never_host_addresses) {
    SOFTWARE_GPU_ONLY();
    const CUdeviceptr address = allocate(1 << 20);
    // A mapping of the program's own can never be put where device memory lies.
    void* wanted = reinterpret_cast<void*>(address & ~size_t{4095});
    void* got = mmap(wanted, 4096, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    EXPECT_NE(got, wanted);
    munmap(got, 4096);
}

TEST_F(Memory, can_be_allocated_and_freed_in_stream_order) {
    SKIP_WITHOUT(cuMemAllocAsync);
    const CUstream own = stream();
    CUdeviceptr address = 0;
    SKIP_IF_UNSUPPORTED(cu.cuMemAllocAsync(&address, 1 << 20, own));
    EXPECT_OK(cu.cuMemsetD32Async(address, 0x01020304, 1 << 18, own));
    std::uint32_t* result = pinned<std::uint32_t>(1);
    EXPECT_OK(cu.cuMemcpyDtoHAsync_v2(result, address + (1 << 20) - 4, 4, own));
    EXPECT_OK(cu.cuMemFreeAsync(address, own));
    EXPECT_OK(cu.cuStreamSynchronize(own));
    EXPECT_EQ(*result, 0x01020304u);
    EXPECT_EQ(CUDA_ERROR_INVALID_VALUE, cu.cuMemAllocAsync(&address, 0, own));
}

TEST_F(Memory, freed_in_stream_order_can_be_had_again_in_the_same_stream) {
    SKIP_WITHOUT(cuMemAllocAsync);
    const CUstream own = stream();
    const size_t most = free_bytes() / 4 * 3;
    for (int round = 0; round < 3; ++round) {
        CUdeviceptr address = 0;
        SKIP_IF_UNSUPPORTED(cu.cuMemAllocAsync(&address, most, own));
        EXPECT_OK(cu.cuMemsetD8Async(address, 1, 4096, own));
        EXPECT_OK(cu.cuMemFreeAsync(address, own));
    }
    EXPECT_OK(cu.cuStreamSynchronize(own));
}

TEST_F(Memory, of_a_pool_is_counted_there) {
    SKIP_WITHOUT(cuMemAllocFromPoolAsync);
    CUmemoryPool pool = nullptr, current = nullptr;
    SKIP_IF_UNSUPPORTED(cu.cuDeviceGetDefaultMemPool(&pool, device));
    ASSERT_OK(cu.cuDeviceGetMemPool(&current, device));
    EXPECT_EQ(pool, current);
    const auto used = [&] {
        cuuint64_t bytes = 0;
        EXPECT_OK(cu.cuMemPoolGetAttribute(pool, CU_MEMPOOL_ATTR_USED_MEM_CURRENT, &bytes));
        return bytes;
    };
    cuuint64_t threshold = 1 << 20;
    EXPECT_OK(cu.cuMemPoolSetAttribute(pool, CU_MEMPOOL_ATTR_RELEASE_THRESHOLD, &threshold));
    const cuuint64_t before = used();
    const CUstream own = stream();
    CUdeviceptr address = 0;
    ASSERT_OK(cu.cuMemAllocFromPoolAsync(&address, 1 << 20, pool, own));
    EXPECT_GE(used(), before + (1 << 20));
    EXPECT_OK(cu.cuMemFreeAsync(address, own));
    EXPECT_OK(cu.cuStreamSynchronize(own));
    EXPECT_EQ(used(), before);
    EXPECT_OK(cu.cuMemPoolTrimTo(pool, 0));
}

class HostMemory : public ContextTest {};

TEST_F(HostMemory, page_locked_is_ordinary_memory_to_the_cpu) {
    auto* words = pinned<std::uint32_t>(1000);
    for (int i = 0; i < 1000; ++i) words[i] = static_cast<std::uint32_t>(i);
    EXPECT_EQ(words[999], 999u);
    unsigned flags = 0;
    EXPECT_OK(cu.cuMemHostGetFlags(&flags, words));
    EXPECT_OK(cu.cuMemFreeHost(words));
    EXPECT_EQ(CUDA_ERROR_INVALID_VALUE, cu.cuMemFreeHost(words));
}

TEST_F(HostMemory, bad_arguments_are_refused) {
    void* memory = nullptr;
    EXPECT_EQ(CUDA_ERROR_INVALID_VALUE, cu.cuMemHostAlloc(&memory, 16, 0x100));
    EXPECT_EQ(CUDA_ERROR_INVALID_VALUE, cu.cuMemHostAlloc(nullptr, 16, 0));
    int on_stack = 0;
    EXPECT_NE(CUDA_SUCCESS, cu.cuMemFreeHost(&on_stack));
    EXPECT_NE(CUDA_SUCCESS, cu.cuMemHostUnregister(&on_stack));
}

TEST_F(HostMemory, registered_memory_can_be_copied_from_and_to) {
    constexpr size_t kSize = 1 << 20;
    void* memory = mmap(nullptr, kSize, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    ASSERT_NE(memory, MAP_FAILED);
    ASSERT_OK(cu.cuMemHostRegister_v2(memory, kSize, 0));
    EXPECT_EQ(CUDA_ERROR_HOST_MEMORY_ALREADY_REGISTERED, cu.cuMemHostRegister_v2(memory, kSize, 0));
    auto* bytes = static_cast<std::uint8_t*>(memory);
    const auto values = pattern(kSize, 1);
    std::copy(values.begin(), values.end(), bytes);
    const CUdeviceptr address = allocate(kSize);
    const CUstream own = stream();
    EXPECT_OK(cu.cuMemcpyHtoDAsync_v2(address, memory, kSize, own));
    EXPECT_OK(cu.cuStreamSynchronize(own));
    std::fill(bytes, bytes + kSize, 0);
    EXPECT_OK(cu.cuMemcpyDtoHAsync_v2(memory, address, kSize, own));
    EXPECT_OK(cu.cuStreamSynchronize(own));
    EXPECT_TRUE(std::equal(values.begin(), values.end(), bytes));
    EXPECT_OK(cu.cuMemHostUnregister(memory));
    EXPECT_EQ(CUDA_ERROR_HOST_MEMORY_NOT_REGISTERED, cu.cuMemHostUnregister(memory));
    munmap(memory, kSize);
}

TEST_F(HostMemory, has_a_device_address) {
    auto* words = pinned<std::uint32_t>(16);
    CUdeviceptr address = 0;
    SKIP_IF_UNSUPPORTED(cu.cuMemHostGetDevicePointer_v2(&address, words, 0));
    EXPECT_NE(address, 0u);
    int on_stack = 0;
    EXPECT_NE(CUDA_SUCCESS, cu.cuMemHostGetDevicePointer_v2(&address, &on_stack, 0));
}
