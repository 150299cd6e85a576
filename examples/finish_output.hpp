// SPDX-License-Identifier: MIT
// The last line of a program that prints: what was printed counts only where all of it could be written. A full device
// or a closed pipe shows at the end of a buffer, so main() asks once, after everything else, and returns the answer.
#pragma once
#include <cerrno>
#include <cstdio>
#include <cstring>

/// `status`, or 1 and a line on standard error where standard output could not be written.
inline int finish_output(char const* program, int status) {
  errno = 0;
  bool const flushed = std::fflush(stdout) == 0;
  if (flushed && !std::ferror(stdout)) return status;
  std::fprintf(stderr, "%s: standard output cannot be written%s%s\n", program, errno ? ": " : "",
               errno ? std::strerror(errno) : "; is the device full?");
  return status ? status : 1;
}
