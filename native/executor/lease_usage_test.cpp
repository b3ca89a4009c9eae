#include "executor/lease_usage.h"

#include <gtest/gtest.h>
#include <sys/mman.h>
#include <unistd.h>

#include "executor/memory.h"

namespace weft::executor {
namespace {

class LeaseUsageTest : public testing::Test {
  protected:
    LeaseUsageTest() : fd_(::memfd_create("usage", MFD_CLOEXEC)) {
        EXPECT_EQ(::ftruncate(fd_, LeaseUsage::kPageBytes), 0);
    }
    ~LeaseUsageTest() override { ::close(fd_); }
    std::unique_ptr<LeaseUsage> open(std::size_t slot) { return std::move(*LeaseUsage::open(fd_, slot)); }
    int fd_;
};

TEST_F(LeaseUsageTest, TwoSessionsOfOneLeaseShareItsCap) {
    const auto first_usage = open(0), second_usage = open(7);
    MemoryAccount first(100), second(100);
    first.share(first_usage.get(), 1);
    second.share(second_usage.get(), 1);
    EXPECT_TRUE(first.take(60));
    EXPECT_EQ(second.free_bytes(), 40u);
    EXPECT_FALSE(second.take(41));
    EXPECT_TRUE(second.take(40));
    EXPECT_FALSE(first.take(1));
    second.give(40);
    EXPECT_TRUE(first.take(40));
}

TEST_F(LeaseUsageTest, WhatTheServerChargedBeforehandStaysCharged) {
    const std::uint64_t charge = 30;
    ASSERT_EQ(::pwrite(fd_, &charge, sizeof charge, 3 * LeaseUsage::kDevices * sizeof charge),
              static_cast<ssize_t>(sizeof charge));
    const auto usage = open(3);
    MemoryAccount account(100);
    account.share(usage.get(), 0);
    EXPECT_EQ(account.free_bytes(), 70u);
    EXPECT_TRUE(account.take(70));
    account.give(70);
    EXPECT_EQ(account.free_bytes(), 70u);
}

TEST_F(LeaseUsageTest, DevicesAreCountedApart) {
    const auto usage = open(0), other = open(1);
    usage->set(0, 10);
    EXPECT_EQ(other->others(0), 10u);
    EXPECT_EQ(other->others(1), 0u);
}

TEST_F(LeaseUsageTest, BadPagesAndSlotsAreRefused) {
    EXPECT_FALSE(LeaseUsage::open(fd_, LeaseUsage::kSlots));
    EXPECT_FALSE(LeaseUsage::open(-1, 0));
    ASSERT_EQ(::ftruncate(fd_, 8), 0);
    EXPECT_FALSE(LeaseUsage::open(fd_, 0));
}

}  // namespace
}  // namespace weft::executor
