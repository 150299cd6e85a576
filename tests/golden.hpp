// SPDX-License-Identifier: MIT
// Golden texts: tests/golden/NAME.txt, whose first lines begin with `#` and say what the text is of. With the
// environment variable DOVETAIL_UPDATE_GOLDEN set, a test writes the file instead; read the difference before it goes
// in.
#pragma once
#include <cstdlib>
#include <fstream>
#include <sstream>
#include <string>

namespace test {

struct Golden {
  std::string path;
  std::string expected;  ///< the file without its head; where it was just written, what was written

  Golden(std::string const& name, std::string const& head, std::string const& actual)
      : path(std::string(DOVETAIL_TESTS_DIR) + "/golden/" + name + ".txt"), expected(actual) {
    if (std::getenv("DOVETAIL_UPDATE_GOLDEN")) {
      std::ofstream file(path, std::ios::binary);
      file << "# " << head << "\n# Rewritten by DOVETAIL_UPDATE_GOLDEN=1; right where the text was meant to change.\n"
           << actual;
      if (file.flush()) return;
    }
    std::ifstream file(path, std::ios::binary);
    if (!file) {
      expected = "the file cannot be read: set DOVETAIL_UPDATE_GOLDEN=1 to write it";
      return;
    }
    std::ostringstream rest;
    while (file.peek() == '#') {
      std::string line;
      std::getline(file, line);
    }
    rest << file.rdbuf();
    expected = rest.str();
  }
};

}  // namespace test
