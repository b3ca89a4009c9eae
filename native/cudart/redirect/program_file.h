// What an executable says about the CUDA runtime inside it, read from its file. Every offset is checked. No allocation:
// this runs in every process of the user before its constructors.
#pragma once

#include <elf.h>

#include <cstddef>
#include <cstdint>

namespace weft::redirect {

class ProgramFile {
  public:
    ProgramFile(const void* data, std::size_t size);

    // Device code is registered by this program: nvcc left a .nvFatBinSegment, which strip keeps.
    bool has_device_code() const { return device_code_; }
    // The runtime comes from a shared library: a name of it is imported.
    bool imports_runtime() const;
    bool has_symbols() const { return symbols_ != nullptr; }

    struct Function {
        const char* name;
        std::uint64_t address;  // without the load offset
        std::uint64_t size;
    };
    // Calls visit for each function defined in the symbol table whose name begins with "cuda" or "__cuda".
    template <typename Visitor>
    void for_each_runtime_name(Visitor visit) const {
        for (std::size_t i = 0; i < symbol_count_; ++i)
            if (Function function; read_function(i, &function)) visit(function);
    }
    // Bytes that may be overwritten from the address on: up to the next function, or to the next 16-byte boundary.
    std::uint64_t room_at(const Function& function) const;

  private:
    const char* bytes_at(std::uint64_t offset, std::uint64_t size) const;
    const char* text_at(const Elf64_Shdr& table, std::uint32_t offset) const;
    void take_section(const Elf64_Shdr& section, const Elf64_Shdr& names);
    bool read_function(std::size_t index, Function* out) const;

    const char* data_;
    std::size_t size_;
    const Elf64_Shdr* sections_ = nullptr;
    std::size_t section_count_ = 0;
    const Elf64_Sym* symbols_ = nullptr;
    std::size_t symbol_count_ = 0;
    const Elf64_Shdr* symbol_names_ = nullptr;
    const Elf64_Sym* dynamic_symbols_ = nullptr;
    std::size_t dynamic_count_ = 0;
    const Elf64_Shdr* dynamic_names_ = nullptr;
    bool device_code_ = false;
};

}  // namespace weft::redirect
