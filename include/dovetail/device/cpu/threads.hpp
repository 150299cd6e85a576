// SPDX-License-Identifier: MIT
// How many threads oneDNN uses for the calling thread. Where oneDNN was built with OpenMP, that is OpenMP's own setting
// of each thread; it is found by name at run time, so that nothing here needs OpenMP to compile or to link.
#pragma once
#include <dlfcn.h>

namespace dovetail::cpu {

/// Gives work that the calling thread starts `count` threads; nothing happens where oneDNN has no OpenMP.
inline void use_threads(int count) {
  using Set = void (*)(int);
  static Set const set = reinterpret_cast<Set>(dlsym(RTLD_DEFAULT, "omp_set_num_threads"));
  if (set) set(count);
}

}  // namespace dovetail::cpu
