// mma, ldmatrix, stmatrix.
#include "swgpu/engine/lowering.h"
#include "swgpu/engine/matrix.h"

namespace weft::engine {

using ptx::Operand;
using ptx::Type;
using Kind = Operand::Kind;

namespace {

// The type of the registers that hold elements of `type`.
Type register_type(Type type) { return type == Type::f64 ? Type::f64 : type == Type::s32 ? Type::s32 : Type::b32; }

uint32_t registers_for(uint32_t elements, Type type) {
    uint32_t bits = type == Type::tf32 ? 32 : ptx::size_of(type) * 8;
    return type == Type::f64 ? elements : elements * bits / 32;
}

const std::vector<Operand>& elements_of(const Operand& operand, std::vector<Operand>& single) {
    if (operand.kind == Kind::vector) return operand.elements;
    single.assign(1, operand);
    return single;
}

}  // namespace

// mma.sync.aligned.m16n8k16.row.col.d.a.b.c {d}, {a}, {b}, {c}
bool Lowering::lower_mma() {
    static constexpr std::pair<std::string_view, std::pair<uint32_t, uint32_t>> kShapes[] = {
        {"m16n8k4", {16, 4}}, {"m16n8k8", {16, 8}}, {"m16n8k16", {16, 16}}, {"m16n8k32", {16, 32}}, {"m8n8k4", {8, 4}}};
    MatrixShape shape;
    bool found = false, layout = take("sync") && take("aligned");
    for (auto [name, size] : kShapes) {
        if (!take(name)) continue;
        shape.m = size.first;
        shape.k = size.second;
        found = true;
        break;
    }
    layout = layout && take("row") && take("col");
    bool saturate = take("satfinite");
    shape.d = take_type();
    shape.a = take_type();
    shape.b = take_type();
    shape.c = take_type();
    Handler handler = found && layout ? mma_handler(shape) : nullptr;
    if (handler == nullptr || (saturate && shape.d != Type::s32)) return unsupported();
    if (!done() || !operands(4)) return false;
    Draft draft = this->draft(handler);
    draft.has_list = true;
    draft.op.aux = saturate;
    uint32_t results = shape.m * 8 / kWarpLanes;
    const std::pair<Type, uint32_t> parts[] = {{shape.d, registers_for(results, shape.d)},
                                               {shape.a, registers_for(shape.m * shape.k / kWarpLanes, shape.a)},
                                               {shape.b, registers_for(8 * shape.k / kWarpLanes, shape.b)},
                                               {shape.c, registers_for(results, shape.c)}};
    for (size_t i = 0; i < 4; ++i) {
        std::vector<Operand> single;
        const std::vector<Operand>& elements = elements_of(operand(i), single);
        if (elements.size() != parts[i].second) return fail("a fragment has the wrong number of registers");
        for (const Operand& element : elements) {
            Ref ref = kNoRef;
            Type type = register_type(parts[i].first);
            if (i == 0 ? !destination(element, type, ref) : !source(element, type, ref)) return false;
            draft.list.push_back(ref);
        }
        if (i == 0) draft.list_definitions = static_cast<uint8_t>(elements.size());
    }
    emit(std::move(draft));
    return true;
}

bool Lowering::lower_ldmatrix() {
    bool good = take("sync") && take("aligned") && take("m8n8");
    std::string_view number = take_any({"x1", "x2", "x4"});
    bool transposed = take("trans");
    take_any({"shared", "shared::cta"});
    Type type = take_type();
    if (!good || number.empty() || type != Type::b16) return unsupported();
    if (!done() || !operands(2)) return false;
    uint32_t count = static_cast<uint32_t>(number[1] - '0');
    Draft draft = this->draft(matrix_load_handler(transposed));
    std::vector<Operand> single;
    const std::vector<Operand>& elements = elements_of(operand(0), single);
    if (elements.size() != count) return fail("the vector has the wrong length");
    draft.has_list = true;
    draft.list_definitions = static_cast<uint8_t>(count);
    for (const Operand& element : elements) {
        Ref ref = kNoRef;
        if (!destination(element, Type::b32, ref)) return false;
        draft.list.push_back(ref);
    }
    draft.op.aux = count << memory_flags::kVectorShift;
    if (!address(operand(1), AddressSpace::shared, draft)) return false;
    emit(std::move(draft));
    return true;
}

bool Lowering::lower_stmatrix() {
    bool good = take("sync") && take("aligned") && take("m8n8");
    std::string_view number = take_any({"x1", "x2", "x4"});
    bool transposed = take("trans");
    take_any({"shared", "shared::cta"});
    Type type = take_type();
    if (!good || number.empty() || type != Type::b16) return unsupported();
    if (!done() || !operands(2)) return false;
    uint32_t count = static_cast<uint32_t>(number[1] - '0');
    Draft draft = this->draft(matrix_store_handler(transposed));
    std::vector<Operand> single;
    const std::vector<Operand>& elements = elements_of(operand(1), single);
    if (elements.size() != count) return fail("the vector has the wrong length");
    draft.has_list = true;
    for (const Operand& element : elements) {
        Ref ref = kNoRef;
        if (!source(element, Type::b32, ref)) return false;
        draft.list.push_back(ref);
    }
    draft.op.aux = count << memory_flags::kVectorShift;
    if (!address(operand(0), AddressSpace::shared, draft)) return false;
    emit(std::move(draft));
    return true;
}

}  // namespace weft::engine
