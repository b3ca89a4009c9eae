// Texture and surface objects by the handles that the driver on the other side gave them. Thread-safe.
#pragma once

#include <cstdint>
#include <map>
#include <mutex>
#include <optional>

#include "shim/objects.h"

namespace weft::shim {

class TextureTable {
  public:
    void insert(std::uint64_t handle, const Texture& texture) {
        std::lock_guard lock(mutex_);
        textures_.insert_or_assign(handle, texture);
    }
    std::optional<Texture> find(std::uint64_t handle, bool is_surface) const {
        std::lock_guard lock(mutex_);
        const auto found = textures_.find(handle);
        if (found == textures_.end() || found->second.is_surface != is_surface) return std::nullopt;
        return found->second;
    }
    std::optional<Texture> remove(std::uint64_t handle, bool is_surface) {
        std::lock_guard lock(mutex_);
        const auto found = textures_.find(handle);
        if (found == textures_.end() || found->second.is_surface != is_surface) return std::nullopt;
        const Texture texture = found->second;
        textures_.erase(found);
        return texture;
    }
    void forget_all_of(const Context& context) {
        std::lock_guard lock(mutex_);
        std::erase_if(textures_, [&](const auto& entry) { return entry.second.context == &context; });
    }

  private:
    mutable std::mutex mutex_;
    std::map<std::uint64_t, Texture> textures_;
};

}  // namespace weft::shim
