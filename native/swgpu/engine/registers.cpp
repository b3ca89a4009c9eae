#include "swgpu/engine/registers.h"

#include <algorithm>

namespace weft::engine {
namespace {

constexpr size_t kMaxLivenessBits = size_t{1} << 28;

class BitSet {
  public:
    explicit BitSet(size_t bits) : words_((bits + 63) / 64) {}
    void set(size_t i) { words_[i / 64] |= uint64_t{1} << (i % 64); }
    bool test(size_t i) const { return words_[i / 64] >> (i % 64) & 1; }
    // this |= use | (out & ~def); whether it changed
    bool flow(const BitSet& use, const BitSet& out, const BitSet& def) {
        uint64_t changed = 0;
        for (size_t i = 0; i < words_.size(); ++i) {
            uint64_t next = words_[i] | use.words_[i] | (out.words_[i] & ~def.words_[i]);
            changed |= next ^ words_[i];
            words_[i] = next;
        }
        return changed != 0;
    }
    void add(const BitSet& other) {
        for (size_t i = 0; i < words_.size(); ++i) words_[i] |= other.words_[i];
    }
    template <class Visit>
    void each(Visit&& visit) const {
        for (size_t i = 0; i < words_.size(); ++i) {
            for (uint64_t left = words_[i]; left != 0; left &= left - 1) {
                visit(i * 64 + static_cast<size_t>(__builtin_ctzll(left)));
            }
        }
    }

  private:
    std::vector<uint64_t> words_;
};

struct Interval {
    uint32_t reg = 0;
    uint32_t begin = ~0u;
    uint32_t end = 0;
    void cover(uint32_t at) {
        begin = std::min(begin, at);
        end = std::max(end, at);
    }
};

bool is_register(Ref ref) { return ref != kNoRef && (ref & kVirtualConstant) == 0; }

struct BlockLiveness {
    BitSet use, def, in, out;
    explicit BlockLiveness(size_t bits) : use(bits), def(bits), in(bits), out(bits) {}
};

void solve(const FlowGraph& graph, std::vector<BlockLiveness>& live) {
    for (bool changed = true; changed;) {
        changed = false;
        for (size_t b = graph.blocks.size(); b-- > 0;) {
            for (int32_t to : graph.blocks[b].successors) live[b].out.add(live[static_cast<size_t>(to)].in);
            changed |= live[b].in.flow(live[b].use, live[b].out, live[b].def);
        }
    }
}

// One interval per register, from the first to the last draft at which it may be alive.
std::vector<Interval> intervals_of(const DraftFunction& function, const FlowGraph& graph,
                                   const std::vector<CallSite>& calls) {
    size_t count = function.registers.size();
    std::vector<Interval> intervals(count);
    for (size_t i = 0; i < count; ++i) intervals[i].reg = static_cast<uint32_t>(i);
    std::vector<BlockLiveness> live(graph.blocks.size(), BlockLiveness(count));
    std::vector<CallSite> scratch = calls;
    for (size_t b = 0; b < graph.blocks.size(); ++b) {
        for (uint32_t at = graph.blocks[b].begin; at < graph.blocks[b].end; ++at) {
            Draft draft = function.drafts[at];
            bool partial = draft.op.guard != kNoRef || draft.writes_imm_predicate;
            visit_references(draft, scratch, [&](Ref& ref, bool is_definition) {
                if (!is_register(ref)) return;
                size_t reg = ref & kVirtualIndex;
                intervals[reg].cover(at);
                if ((!is_definition || partial) && !live[b].def.test(reg)) live[b].use.set(reg);
                if (is_definition && !partial) live[b].def.set(reg);
            });
        }
    }
    solve(graph, live);
    for (size_t b = 0; b < graph.blocks.size(); ++b) {
        live[b].in.each([&](size_t reg) { intervals[reg].cover(graph.blocks[b].begin); });
        live[b].out.each([&](size_t reg) { intervals[reg].cover(graph.blocks[b].end - 1); });
    }
    return intervals;
}

// Free places per class; a place is handed out again once its last holder's interval is over.
struct Pool {
    std::vector<uint32_t> free;
    std::vector<std::pair<uint32_t, uint32_t>> busy;  // heap: end of interval, place
    uint32_t places = 0;

    uint32_t take(const Interval& interval) {
        auto later = [](auto& a, auto& b) { return a.first > b.first; };
        while (!busy.empty() && busy.front().first < interval.begin) {
            std::pop_heap(busy.begin(), busy.end(), later);
            free.push_back(busy.back().second);
            busy.pop_back();
        }
        uint32_t place = places;
        if (free.empty()) {
            ++places;
        } else {
            place = free.back();
            free.pop_back();
        }
        busy.emplace_back(interval.end, place);
        std::push_heap(busy.begin(), busy.end(), later);
        return place;
    }
};

}  // namespace

RowPlan plan_rows(const DraftFunction& function, const FlowGraph& graph, const std::vector<CallSite>& calls) {
    size_t count = function.registers.size();
    uint32_t last = static_cast<uint32_t>(function.drafts.size());
    std::vector<Interval> intervals;
    if (graph.blocks.size() * count <= kMaxLivenessBits) {
        intervals = intervals_of(function, graph, calls);
    } else {
        for (uint32_t i = 0; i < count; ++i) intervals.push_back({i, 0, last});
    }
    for (uint32_t reg : function.pinned) intervals[reg] = {reg, 0, last};
    std::erase_if(intervals, [](const Interval& interval) { return interval.begin == ~0u; });
    std::sort(intervals.begin(), intervals.end(),
              [](const Interval& a, const Interval& b) { return a.begin < b.begin; });

    Pool pools[4];
    RowPlan plan;
    plan.offsets.resize(count, 0);
    for (const Interval& interval : intervals) {
        plan.offsets[interval.reg] = pools[static_cast<size_t>(function.registers[interval.reg])].take(interval);
    }
    uint32_t base[4], at = 0;
    for (size_t c = 0; c < 4; ++c) {
        base[c] = at;
        at += (pools[c].places * bytes_of(static_cast<RowClass>(c)) + kRowBytes - 1) / kRowBytes * kRowBytes;
    }
    for (const Interval& interval : intervals) {
        size_t c = static_cast<size_t>(function.registers[interval.reg]);
        plan.offsets[interval.reg] = base[c] + plan.offsets[interval.reg] * bytes_of(static_cast<RowClass>(c));
    }
    plan.bytes = at;
    plan.words = pools[1].places + 2 * pools[2].places + 4 * pools[3].places;
    return plan;
}

}  // namespace weft::engine
