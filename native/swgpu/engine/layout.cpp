#include "swgpu/engine/layout.h"

#include <algorithm>

#include "swgpu/engine/control.h"
#include "swgpu/engine/flow_graph.h"
#include "swgpu/engine/registers.h"

namespace weft::engine {
namespace {

class Layout {
  public:
    Layout(DraftFunction& function, FunctionCode& code)
        : function_(function),
          code_(code),
          graph_(build_flow_graph(function.drafts)),
          plan_(plan_rows(function, graph_, code.calls)) {}

    void run() {
        place_blocks();
        for (size_t b = 0; b < graph_.blocks.size(); ++b) emit_block(b);
        for (Slot& slot : code_.formals) patch(slot.ref);
        for (Slot& slot : code_.returns) patch(slot.ref);
        code_.rows_bytes = plan_.bytes;
        code_.register_estimate = std::clamp(plan_.words + 4, 16u, 255u);
    }

  private:
    // A block where diverged lanes meet begins with a join.
    void place_blocks() {
        std::vector<bool> is_meeting(graph_.blocks.size(), false);
        for (const BasicBlock& block : graph_.blocks) {
            if (block.meeting >= 0) is_meeting[static_cast<size_t>(block.meeting)] = true;
        }
        uint32_t at = 0;
        for (size_t b = 0; b < graph_.blocks.size(); ++b) {
            start_.push_back(at);
            has_join_.push_back(is_meeting[b]);
            at += graph_.blocks[b].end - graph_.blocks[b].begin + is_meeting[b];
        }
        code_.ops.reserve(at);
    }

    void patch(Ref& ref) const {
        if (ref == kNoRef) return;
        uint32_t negated = ref & kVirtualNegated ? kNegatedBit : 0;
        uint32_t index = ref & kVirtualIndex;
        if (ref & kVirtualConstant) {
            ref = function_.constant_offsets[index] | kConstantBit | negated;
        } else {
            ref = plan_.offsets[index] | negated;
        }
    }

    void emit_block(size_t b) {
        const BasicBlock& block = graph_.blocks[b];
        if (has_join_[b]) {
            Op join;
            join.run = control_handler(ControlOp::join);
            join.line = function_.drafts[block.begin].op.line;
            code_.ops.push_back(join);
        }
        for (uint32_t at = block.begin; at < block.end; ++at) emit(function_.drafts[at], block);
    }

    void emit(Draft& draft, const BasicBlock& block) {
        uint32_t index = static_cast<uint32_t>(code_.ops.size());
        visit_references(draft, code_.calls, [this](Ref& ref, bool) { patch(ref); });
        auto distance = [&](int32_t target) {
            return static_cast<int64_t>(start_[static_cast<size_t>(target)]) - static_cast<int64_t>(index);
        };
        if (draft.flow == Flow::branch || draft.flow == Flow::indexed_branch) {
            draft.op.aux = block.meeting < 0 ? 0 : static_cast<uint32_t>(distance(block.meeting));
        }
        if (draft.flow == Flow::branch) {
            draft.op.imm = static_cast<uint64_t>(distance(block_of(draft.targets[0])));
        } else if (draft.flow == Flow::indexed_branch) {
            draft.has_list = true;
            draft.list.push_back(static_cast<uint32_t>(draft.targets.size()) << 2);
            for (int32_t target : draft.targets)
                draft.list.push_back(static_cast<uint32_t>(distance(block_of(target))) << 2);
        }
        if (draft.has_list) {
            draft.op.e = static_cast<uint32_t>(code_.lists.size()) * 4;
            code_.lists.insert(code_.lists.end(), draft.list.begin(), draft.list.end());
            code_.fixups.push_back({index, FixupKind::list, 0});
        }
        if (draft.call >= 0) {
            draft.op.imm = static_cast<uint64_t>(draft.call);
            code_.fixups.push_back({index, FixupKind::call, 0});
        }
        if (draft.reads_imm) code_.fixups.push_back({index, FixupKind::reference, 0});
        if (draft.symbol_in_imm) code_.fixups.push_back({index, FixupKind::symbol, draft.symbol});
        code_.ops.push_back(draft.op);
    }

    int32_t block_of(int32_t draft) const { return graph_.block_of_draft[static_cast<size_t>(draft)]; }

    DraftFunction& function_;
    FunctionCode& code_;
    FlowGraph graph_;
    RowPlan plan_;
    std::vector<uint32_t> start_;
    std::vector<bool> has_join_;
};

}  // namespace

void lay_out(DraftFunction& function, FunctionCode& code) { Layout(function, code).run(); }

}  // namespace weft::engine
