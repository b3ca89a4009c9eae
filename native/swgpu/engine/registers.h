// Gives virtual registers their places in the frame: registers that are never alive together share a row, which keeps
// the register file of a warp in the processor's caches. Design: docs/design/software-gpu.md.
#pragma once

#include <vector>

#include "swgpu/engine/draft.h"
#include "swgpu/engine/flow_graph.h"

namespace weft::engine {

struct RowPlan {
    std::vector<uint32_t> offsets;  // by virtual register, in bytes
    uint32_t bytes = 0;
    uint32_t words = 0;  // most 32-bit registers alive at once, roughly
};

RowPlan plan_rows(const DraftFunction& function, const FlowGraph& graph, const std::vector<CallSite>& calls);

// Calls visit(reference, is_definition) for each reference of the draft.
template <class Visit>
void visit_references(Draft& draft, std::vector<CallSite>& calls, Visit&& visit) {
    Op& op = draft.op;
    visit(op.a, false);
    visit(op.b, false);
    visit(op.c, false);
    visit(op.guard, false);
    if (!draft.has_list) visit(op.e, !draft.e_is_source);
    for (size_t i = 0; i < draft.list.size(); ++i) visit(draft.list[i], i < draft.list_definitions);
    if ((draft.writes_imm_predicate || draft.reads_imm) && static_cast<Ref>(op.imm) != kNoRef) {
        Ref ref = static_cast<Ref>(op.imm);
        visit(ref, draft.writes_imm_predicate);
        op.imm = ref;
    }
    if (draft.call >= 0) {
        CallSite& call = calls[static_cast<size_t>(draft.call)];
        visit(call.target, false);
        for (Slot& slot : call.arguments) visit(slot.ref, false);
        for (Slot& slot : call.returns) visit(slot.ref, true);
    }
    visit(op.d, true);
}

}  // namespace weft::engine
