// Reads the entries, their parameters and the variables of a PTX text by a light scan: enough to load a module and to
// pack launches, without understanding the code. Lenient: what it does not recognise is skipped.
#pragma once

#include <string_view>
#include <vector>

#include "swgpu/ptx/program.h"

namespace weft::nulldriver {

struct Scan {
    std::vector<ptx::FunctionInfo> functions;
    std::vector<ptx::VariableInfo> variables;
};

Scan scan_ptx(std::string_view text);

}  // namespace weft::nulldriver
