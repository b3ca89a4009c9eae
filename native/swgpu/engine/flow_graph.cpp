#include "swgpu/engine/flow_graph.h"

#include <algorithm>

namespace weft::engine {
namespace {

void split_blocks(const std::vector<Draft>& drafts, FlowGraph& graph) {
    std::vector<bool> leads(drafts.size() + 1, false);
    leads[0] = true;
    for (size_t i = 0; i < drafts.size(); ++i) {
        for (int32_t target : drafts[i].targets) leads[static_cast<size_t>(target)] = true;
        if (drafts[i].flow != Flow::next) leads[i + 1] = true;
    }
    graph.block_of_draft.resize(drafts.size());
    for (size_t i = 0; i < drafts.size(); ++i) {
        if (leads[i]) {
            if (!graph.blocks.empty()) graph.blocks.back().end = static_cast<uint32_t>(i);
            graph.blocks.emplace_back();
            graph.blocks.back().begin = static_cast<uint32_t>(i);
        }
        graph.block_of_draft[i] = static_cast<int32_t>(graph.blocks.size()) - 1;
    }
    graph.blocks.back().end = static_cast<uint32_t>(drafts.size());
}

void connect(const std::vector<Draft>& drafts, FlowGraph& graph) {
    for (size_t b = 0; b < graph.blocks.size(); ++b) {
        BasicBlock& block = graph.blocks[b];
        const Draft& last = drafts[block.end - 1];
        for (int32_t target : last.targets)
            block.successors.push_back(graph.block_of_draft[static_cast<size_t>(target)]);
        bool falls_through = last.flow == Flow::next || last.op.guard != kNoRef;
        if (falls_through && b + 1 < graph.blocks.size()) block.successors.push_back(static_cast<int32_t>(b) + 1);
        std::sort(block.successors.begin(), block.successors.end());
        block.successors.erase(std::unique(block.successors.begin(), block.successors.end()), block.successors.end());
    }
}

// Orders the blocks that reach `exit` by a depth-first walk of the reversed graph; exit comes last.
std::vector<int32_t> reverse_post_order(const std::vector<std::vector<int32_t>>& predecessors, int32_t exit) {
    std::vector<int32_t> order;
    std::vector<bool> seen(predecessors.size(), false);
    std::vector<std::pair<int32_t, size_t>> stack{{exit, 0}};
    seen[static_cast<size_t>(exit)] = true;
    while (!stack.empty()) {
        auto& [block, next] = stack.back();
        const auto& from = predecessors[static_cast<size_t>(block)];
        if (next == from.size()) {
            order.push_back(block);
            stack.pop_back();
            continue;
        }
        int32_t candidate = from[next++];
        if (!seen[static_cast<size_t>(candidate)]) {
            seen[static_cast<size_t>(candidate)] = true;
            stack.emplace_back(candidate, 0);
        }
    }
    return order;
}

// Immediate post-dominators towards one exit. Lanes that leave by another end of the function are taken out of every
// meeting when they do, so those paths do not count. -1: the block does not reach the exit.
std::vector<int32_t> post_dominators(const FlowGraph& graph, int32_t exit) {
    size_t count = graph.blocks.size();
    std::vector<std::vector<int32_t>> predecessors(count);
    for (size_t b = 0; b < count; ++b) {
        for (int32_t to : graph.blocks[b].successors)
            predecessors[static_cast<size_t>(to)].push_back(static_cast<int32_t>(b));
    }
    std::vector<int32_t> order = reverse_post_order(predecessors, exit), rank(count, -1), dominator(count, -1);
    for (size_t i = 0; i < order.size(); ++i) rank[static_cast<size_t>(order[i])] = static_cast<int32_t>(i);
    dominator[static_cast<size_t>(exit)] = exit;
    auto meet = [&](int32_t a, int32_t b) {
        while (a != b) {
            while (rank[static_cast<size_t>(a)] < rank[static_cast<size_t>(b)]) a = dominator[static_cast<size_t>(a)];
            while (rank[static_cast<size_t>(b)] < rank[static_cast<size_t>(a)]) b = dominator[static_cast<size_t>(b)];
        }
        return a;
    };
    for (bool changed = true; changed;) {
        changed = false;
        for (size_t i = order.size() - 1; i-- > 0;) {
            int32_t block = order[i], best = -1;
            for (int32_t to : graph.blocks[static_cast<size_t>(block)].successors) {
                if (dominator[static_cast<size_t>(to)] < 0) continue;
                best = best < 0 ? to : meet(best, to);
            }
            if (best != dominator[static_cast<size_t>(block)]) {
                dominator[static_cast<size_t>(block)] = best;
                changed = true;
            }
        }
    }
    return dominator;
}

std::vector<bool> reachable_blocks(const FlowGraph& graph) {
    std::vector<bool> seen(graph.blocks.size(), false);
    std::vector<int32_t> stack{0};
    seen[0] = true;
    while (!stack.empty()) {
        int32_t block = stack.back();
        stack.pop_back();
        for (int32_t to : graph.blocks[static_cast<size_t>(block)].successors) {
            if (!seen[static_cast<size_t>(to)]) {
                seen[static_cast<size_t>(to)] = true;
                stack.push_back(to);
            }
        }
    }
    return seen;
}

}  // namespace

FlowGraph build_flow_graph(const std::vector<Draft>& drafts) {
    FlowGraph graph;
    split_blocks(drafts, graph);
    connect(drafts, graph);
    std::vector<bool> reachable = reachable_blocks(graph);
    int32_t exit = -1;
    for (size_t b = 0; b < graph.blocks.size(); ++b) {
        if (reachable[b] && graph.blocks[b].successors.empty()) exit = static_cast<int32_t>(b);
    }
    if (exit < 0) return graph;
    std::vector<int32_t> dominator = post_dominators(graph, exit);
    for (size_t b = 0; b < graph.blocks.size(); ++b) {
        BasicBlock& block = graph.blocks[b];
        if (block.successors.size() > 1 && static_cast<int32_t>(b) != exit) block.meeting = dominator[b];
    }
    return graph;
}

}  // namespace weft::engine
