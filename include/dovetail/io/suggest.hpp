// SPDX-License-Identifier: MIT
// The names closest to one that was not found, for errors that say "did you mean".
// Distance is the number of characters to insert, delete or replace; names that share less than half are left out.
#pragma once
#include <algorithm>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace dovetail {

/// Characters to insert, delete or replace to get from `a` to `b`.
inline std::size_t edit_distance(std::string_view a, std::string_view b) {
  std::vector<std::size_t> row(b.size() + 1);
  for (std::size_t j = 0; j <= b.size(); ++j) row[j] = j;
  for (std::size_t i = 0; i < a.size(); ++i) {
    std::size_t diagonal = std::exchange(row[0], i + 1);
    for (std::size_t j = 0; j < b.size(); ++j) {
      std::size_t const replaced = diagonal + (a[i] != b[j]);
      diagonal = row[j + 1];
      row[j + 1] = (std::min)({replaced, row[j] + 1, diagonal + 1});
    }
  }
  return row.back();
}

/// At most `most` of `names`, closest first. Of very many long names the first are looked at: an error must not take
/// minutes.
inline std::vector<std::string> closest(std::string_view wanted, std::vector<std::string> const& names,
                                        std::size_t most = 3) {
  std::size_t budget = std::size_t{1} << 27;  // of pairs of characters: less than a second
  std::vector<std::pair<std::size_t, std::string>> near;
  for (auto const& name : names) {
    std::size_t const longer = (std::max)(wanted.size(), name.size()), shorter = (std::min)(wanted.size(), name.size());
    if (2 * (longer - shorter) > longer) continue;  // too far apart by their lengths alone
    std::size_t const pairs = longer * (shorter + 1);
    if (longer > 512 || pairs > budget) continue;  // no checkpoint has such names, and the distance costs their product
    budget -= pairs;
    if (std::size_t const d = edit_distance(wanted, name); 2 * d <= longer) near.emplace_back(d, name);
  }
  std::sort(near.begin(), near.end());
  if (near.size() > most) near.resize(most);
  std::vector<std::string> found;
  for (auto& [d, name] : near) found.push_back(std::move(name));
  return found;
}

}  // namespace dovetail
