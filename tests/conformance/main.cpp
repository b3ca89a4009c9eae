#include <gtest/gtest.h>

#include "api.h"

int main(int argc, char** argv) {
    testing::InitGoogleTest(&argc, argv);
    if (!GTEST_FLAG_GET(list_tests) && !load_api()) return 1;
    return RUN_ALL_TESTS();
}
