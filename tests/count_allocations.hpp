// SPDX-License-Identifier: MIT
// Replaces the allocation functions of a whole program by ones that count per thread, while a thread asks for it. With
// glibc that is malloc and its kin, so operator new and C libraries are counted too; elsewhere, and under sanitizers
// that bring their own malloc, operator new alone. Include it in one source of a program.
#pragma once
#include <cstdlib>
#include <new>

#include "sanitizers.hpp"

namespace counting {

inline thread_local bool on = false;
inline thread_local long allocations = 0;

inline void note() {
  if (on) ++allocations;
}

/// Allocations of this thread while f runs.
long of(auto const& f) {
  allocations = 0, on = true;
  f();
  on = false;
  return allocations;
}

}  // namespace counting

#if defined(__GLIBC__) && !defined(DOVETAIL_TEST_SANITIZED)
extern "C" {
void* __libc_malloc(std::size_t);
void* __libc_calloc(std::size_t, std::size_t);
void* __libc_realloc(void*, std::size_t);
void* __libc_memalign(std::size_t, std::size_t);

void* malloc(std::size_t n) noexcept { return counting::note(), __libc_malloc(n); }
void* calloc(std::size_t n, std::size_t size) noexcept { return counting::note(), __libc_calloc(n, size); }
void* realloc(void* p, std::size_t n) noexcept { return counting::note(), __libc_realloc(p, n); }
void* memalign(std::size_t to, std::size_t n) noexcept { return counting::note(), __libc_memalign(to, n); }
void* aligned_alloc(std::size_t to, std::size_t n) noexcept { return counting::note(), __libc_memalign(to, n); }
int posix_memalign(void** p, std::size_t to, std::size_t n) noexcept {
  counting::note();
  *p = __libc_memalign(to, n);
  return *p ? 0 : 12;  // ENOMEM
}
}
#else
void* operator new(std::size_t n, std::nothrow_t const&) noexcept { return counting::note(), std::malloc(n ? n : 1); }
void* operator new(std::size_t n) {
  if (void* p = operator new(n, std::nothrow)) return p;
  throw std::bad_alloc();
}
void* operator new[](std::size_t n, std::nothrow_t const&) noexcept { return operator new(n, std::nothrow); }
void* operator new[](std::size_t n) { return operator new(n); }
void operator delete(void* p) noexcept { std::free(p); }
void operator delete(void* p, std::size_t) noexcept { std::free(p); }
void operator delete(void* p, std::nothrow_t const&) noexcept { std::free(p); }
void operator delete[](void* p) noexcept { std::free(p); }
void operator delete[](void* p, std::size_t) noexcept { std::free(p); }
void operator delete[](void* p, std::nothrow_t const&) noexcept { std::free(p); }
#endif
