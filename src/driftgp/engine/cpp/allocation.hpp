// The operators new and delete, hidden in the library. Needed for linkers that cannot hide the operators of the linked
// C++ standard library (Zig's for macOS). Without it, every other library of the process would use them.

#pragma once

#include <cstddef>
#include <cstdlib>
#include <new>

namespace driftgp {

inline void *allocated(std::size_t bytes, std::size_t alignment = 0) {
    void *memory = nullptr;
    if (alignment <= alignof(std::max_align_t)) memory = std::malloc(bytes ? bytes : 1);
    else if (posix_memalign(&memory, alignment, bytes ? bytes : 1)) memory = nullptr;
    if (!memory) throw std::bad_alloc();
    return memory;
}

}  // namespace driftgp

void *operator new(std::size_t n) { return driftgp::allocated(n); }
void *operator new[](std::size_t n) { return driftgp::allocated(n); }
void *operator new(std::size_t n, std::align_val_t a) { return driftgp::allocated(n, std::size_t(a)); }
void *operator new[](std::size_t n, std::align_val_t a) { return driftgp::allocated(n, std::size_t(a)); }
void operator delete(void *p) noexcept { std::free(p); }
void operator delete[](void *p) noexcept { std::free(p); }
void operator delete(void *p, std::size_t) noexcept { std::free(p); }
void operator delete[](void *p, std::size_t) noexcept { std::free(p); }
void operator delete(void *p, std::align_val_t) noexcept { std::free(p); }
void operator delete[](void *p, std::align_val_t) noexcept { std::free(p); }
void operator delete(void *p, std::size_t, std::align_val_t) noexcept { std::free(p); }
void operator delete[](void *p, std::size_t, std::align_val_t) noexcept { std::free(p); }
