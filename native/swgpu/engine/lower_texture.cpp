// tex, tld4, suld, sust, txq, suq: by objects (64-bit handles) only. Levels and gradients choose a mipmap level, of
// which there is one.
#include "swgpu/engine/lowering.h"
#include "swgpu/engine/texture.h"

namespace weft::engine {

using ptx::Operand;
using ptx::Type;
using Kind = Operand::Kind;

bool Lowering::take_shape(uint32_t& aux, size_t& coordinates) {
    struct Shape {
        std::string_view name;
        TextureShape shape;
        size_t coordinates;
    };
    static constexpr Shape kShapes[] = {{"1d", TextureShape::one, 1},
                                        {"2d", TextureShape::two, 2},
                                        {"3d", TextureShape::three, 3},
                                        {"a1d", TextureShape::one_layered, 2},
                                        {"a2d", TextureShape::two_layered, 3}};
    for (const Shape& shape : kShapes) {
        if (!take(shape.name)) continue;
        aux |= static_cast<uint32_t>(shape.shape);
        coordinates = shape.coordinates;
        return true;
    }
    return unsupported();
}

// [handle, {coordinates}], appended to the list. A vector may have an element more, which says nothing.
bool Lowering::texture_address(const Operand& operand, size_t coordinates, Draft& draft) {
    if (operand.kind != Kind::address || operand.elements.size() != 2) return fail("expected a handle and coordinates");
    const Operand& handle = operand.elements[0];
    if (handle.kind != Kind::reg) return fail("unsupported: a texture or surface reference; use objects");
    Ref ref = kNoRef;
    if (!source(handle, Type::b64, ref)) return false;
    draft.list.push_back(ref);
    const Operand& given = operand.elements[1];
    std::vector<Operand> single(1, given);
    const std::vector<Operand>& elements = given.kind == Kind::vector ? given.elements : single;
    if (elements.size() < coordinates || elements.size() > 4) return fail("the wrong number of coordinates");
    for (size_t i = 0; i < coordinates; ++i) {
        if (!source(elements[i], Type::b32, ref)) return false;
        draft.list.push_back(ref);
    }
    return true;
}

bool Lowering::texture_results(const Operand& operand, Draft& draft) {
    if (operand.kind != Kind::vector || operand.elements.size() != 4) return fail("the vector has the wrong length");
    draft.has_list = true;
    draft.list_definitions = 4;
    for (const Operand& element : operand.elements) {
        Ref ref = kNoRef;
        if (element.kind != Kind::sink && !destination(element, Type::b32, ref)) return false;
        draft.list.push_back(ref);
    }
    return true;
}

// tex.2d.v4.f32.f32 {d}, [handle, {x, y}] {, lod or gradients}
bool Lowering::lower_tex() {
    Draft draft = this->draft(texture_handler());
    size_t coordinates = 0;
    const bool has_level = take("level"), has_gradients = take("grad");
    take("base");
    if (!take_shape(draft.op.aux, coordinates)) return false;
    const bool four = take("v4");
    const Type result = take_type(), coordinate = take_type();
    const bool results = result == Type::f32 || result == Type::u32 || result == Type::s32;
    if (!four || !results || (coordinate != Type::f32 && coordinate != Type::s32)) return unsupported();
    if (coordinate == Type::s32) draft.op.aux |= texture_flags::kIntegers;
    if (!done() || !operands(has_level ? 3 : has_gradients ? 4 : 2)) return false;
    if (!texture_results(operand(0), draft) || !texture_address(operand(1), coordinates, draft)) return false;
    emit(std::move(draft));
    return true;
}

// tld4.r.2d.v4.f32.f32 {d}, [handle, {x, y}]
bool Lowering::lower_tld4() {
    Draft draft = this->draft(gather_handler());
    size_t coordinates = 0;
    const std::string_view component = take_any({"r", "g", "b", "a"});
    if (component.empty()) return unsupported();
    if (!take_shape(draft.op.aux, coordinates)) return false;
    const bool four = take("v4");
    const Type result = take_type(), coordinate = take_type();
    const bool results = result == Type::f32 || result == Type::u32 || result == Type::s32;
    if (!four || !results || coordinate != Type::f32 || coordinates < 2) return unsupported();
    if (!done() || !operands(2)) return false;
    draft.op.aux |= static_cast<uint32_t>(std::string_view("rgba").find(component)) << texture_flags::kComponentShift;
    if (!texture_results(operand(0), draft) || !texture_address(operand(1), coordinates, draft)) return false;
    emit(std::move(draft));
    return true;
}

bool Lowering::take_surface(uint32_t& aux, size_t& coordinates, Type& type, size_t& count) {
    if (!take("b")) return unsupported();
    take_any({"ca", "cg", "cs", "cv", "wb", "wt"});
    if (!take_shape(aux, coordinates)) return false;
    const std::string_view vector = take_any({"v2", "v4"});
    count = vector.empty() ? 1 : static_cast<size_t>(vector[1] - '0');
    type = take_type();
    const std::string_view bounds = take_any({"trap", "clamp", "zero"});
    const uint32_t bytes = type == Type::none ? 0 : ptx::size_of(type);
    if (bounds.empty() || bytes == 0 || bytes > 8 || bytes * count > 16) return unsupported();
    const auto mode = bounds == "trap"    ? SurfaceBounds::trap
                      : bounds == "clamp" ? SurfaceBounds::clamp
                                          : SurfaceBounds::zero;
    aux |= bytes << texture_flags::kBytesShift | static_cast<uint32_t>(count) << texture_flags::kCountShift |
           static_cast<uint32_t>(mode) << texture_flags::kBoundsShift;
    return done();
}

// suld.b.2d.v2.b32.trap {d}, [handle, {x, y}]
bool Lowering::lower_suld() {
    Draft draft = this->draft(surface_load_handler());
    size_t coordinates = 0, count = 0;
    Type type = Type::none;
    if (!take_surface(draft.op.aux, coordinates, type, count) || !operands(2)) return false;
    std::vector<Operand> single(1, operand(0));
    const std::vector<Operand>& elements = operand(0).kind == Kind::vector ? operand(0).elements : single;
    if (elements.size() != count) return fail("the vector has the wrong length");
    draft.has_list = true;
    draft.list_definitions = static_cast<uint8_t>(count);
    for (const Operand& element : elements) {
        Ref ref = kNoRef;
        if (element.kind != Kind::sink && !destination(element, type, ref)) return false;
        draft.list.push_back(ref);
    }
    if (!texture_address(operand(1), coordinates, draft)) return false;
    emit(std::move(draft));
    return true;
}

// sust.b.2d.v2.b32.trap [handle, {x, y}], {a}
bool Lowering::lower_sust() {
    Draft draft = this->draft(surface_store_handler());
    size_t coordinates = 0, count = 0;
    Type type = Type::none;
    if (!take_surface(draft.op.aux, coordinates, type, count) || !operands(2)) return false;
    std::vector<Operand> single(1, operand(1));
    const std::vector<Operand>& elements = operand(1).kind == Kind::vector ? operand(1).elements : single;
    if (elements.size() != count) return fail("the vector has the wrong length");
    draft.has_list = true;
    for (const Operand& element : elements) {
        Ref ref = kNoRef;
        if (!source(element, type, ref)) return false;
        draft.list.push_back(ref);
    }
    if (!texture_address(operand(0), coordinates, draft)) return false;
    emit(std::move(draft));
    return true;
}

// txq.width.b32 d, [handle]
bool Lowering::lower_txq() {
    static constexpr std::pair<std::string_view, TextureQuery> kQueries[] = {
        {"width", TextureQuery::width},
        {"height", TextureQuery::height},
        {"depth", TextureQuery::depth},
        {"array_size", TextureQuery::array_size},
        {"num_mipmap_levels", TextureQuery::mipmap_levels},
        {"num_samples", TextureQuery::samples}};
    Draft draft = this->draft(texture_query_handler());
    bool found = false;
    for (auto [name, query] : kQueries) {
        if (found || !take(name)) continue;
        found = true;
        draft.op.imm = static_cast<uint64_t>(query);
    }
    if (!found || take_type() != Type::b32) return unsupported();
    if (!done() || !operands(2) || !destination(operand(0), Type::b32, draft.op.d)) return false;
    const Operand& address = operand(1);
    if (address.kind != Kind::address || address.elements.size() != 1 || address.elements[0].kind != Kind::reg)
        return fail("unsupported: a texture or surface reference; use objects");
    if (!source(address.elements[0], Type::b64, draft.op.a)) return false;
    emit(std::move(draft));
    return true;
}

}  // namespace weft::engine
