#include "fixture.h"

class Pointers : public ContextTest {
  protected:
    template <typename T>
    T get(CUpointer_attribute what, CUdeviceptr address) {
        T value{};
        EXPECT_OK(cu.cuPointerGetAttribute(&value, what, address)) << what;
        return value;
    }
};

TEST_F(Pointers, of_the_device_are_known) {
    const CUdeviceptr address = allocate(5000);
    EXPECT_EQ(get<unsigned>(CU_POINTER_ATTRIBUTE_MEMORY_TYPE, address + 100),
              static_cast<unsigned>(CU_MEMORYTYPE_DEVICE));
    EXPECT_EQ(get<CUcontext>(CU_POINTER_ATTRIBUTE_CONTEXT, address), context);
    EXPECT_EQ(get<CUdeviceptr>(CU_POINTER_ATTRIBUTE_DEVICE_POINTER, address + 100), address + 100);
    EXPECT_EQ(get<int>(CU_POINTER_ATTRIBUTE_DEVICE_ORDINAL, address), device);
    EXPECT_EQ(get<unsigned>(CU_POINTER_ATTRIBUTE_IS_MANAGED, address), 0u);
    EXPECT_EQ(get<CUdeviceptr>(CU_POINTER_ATTRIBUTE_RANGE_START_ADDR, address + 100), address);
    EXPECT_GE(get<size_t>(CU_POINTER_ATTRIBUTE_RANGE_SIZE, address), 5000u);
}

TEST_F(Pointers, of_page_locked_memory_are_known) {
    auto* words = pinned<std::uint32_t>(100);
    const auto address = reinterpret_cast<CUdeviceptr>(words);
    EXPECT_EQ(get<unsigned>(CU_POINTER_ATTRIBUTE_MEMORY_TYPE, address), static_cast<unsigned>(CU_MEMORYTYPE_HOST));
    EXPECT_EQ(get<void*>(CU_POINTER_ATTRIBUTE_HOST_POINTER, address), words);
}

TEST_F(Pointers, allocations_have_distinct_buffer_ids) {
    const CUdeviceptr first = allocate(100), second = allocate(100);
    EXPECT_NE(get<unsigned long long>(CU_POINTER_ATTRIBUTE_BUFFER_ID, first),
              get<unsigned long long>(CU_POINTER_ATTRIBUTE_BUFFER_ID, second));
}

TEST_F(Pointers, of_ordinary_memory_are_not) {
    int on_stack = 0;
    unsigned type = 77;
    EXPECT_EQ(CUDA_ERROR_INVALID_VALUE, cu.cuPointerGetAttribute(&type, CU_POINTER_ATTRIBUTE_MEMORY_TYPE,
                                                                 reinterpret_cast<CUdeviceptr>(&on_stack)));
    EXPECT_EQ(CUDA_ERROR_INVALID_VALUE,
              cu.cuPointerGetAttribute(nullptr, CU_POINTER_ATTRIBUTE_MEMORY_TYPE, allocate(16)));
}

TEST_F(Pointers, many_attributes_come_in_one_call) {
    const CUdeviceptr address = allocate(100);
    CUcontext of = nullptr;
    unsigned type = 0;
    CUpointer_attribute attributes[] = {CU_POINTER_ATTRIBUTE_CONTEXT, CU_POINTER_ATTRIBUTE_MEMORY_TYPE};
    void* data[] = {&of, &type};
    ASSERT_OK(cu.cuPointerGetAttributes(2, attributes, data, address));
    EXPECT_EQ(of, context);
    EXPECT_EQ(type, static_cast<unsigned>(CU_MEMORYTYPE_DEVICE));
    int on_stack = 0;
    ASSERT_OK(cu.cuPointerGetAttributes(2, attributes, data, reinterpret_cast<CUdeviceptr>(&on_stack)))
        << "no error for unknown addresses";
    EXPECT_EQ(of, nullptr);
    EXPECT_EQ(type, 0u);
}

TEST_F(Pointers, are_forgotten_when_freed) {
    const CUdeviceptr address = allocate(1 << 20);
    ASSERT_OK(cu.cuMemFree_v2(address));
    unsigned type = 0;
    EXPECT_NE(CUDA_SUCCESS, cu.cuPointerGetAttribute(&type, CU_POINTER_ATTRIBUTE_MEMORY_TYPE, address));
}
