// SPDX-License-Identifier: MIT
// Weights in one file and in several: found in a directory, behind links, read slice by slice, and refused where index
// and files do not say the same or a name leads elsewhere. NaN and infinity are found wherever they stand.
#include <dovetail/io/checkpoint.hpp>
#include <dovetail/io/finite.hpp>
#include <dovetail/io/safetensors_writer.hpp>
#include <numeric>

#include "catch.hpp"
#include "scratch.hpp"

using namespace dovetail;
using Catch::Matchers::Contains;
using Catch::Matchers::EndsWith;
using test::Scratch;

namespace {

constexpr char const *single = "model.safetensors", *index_name = "model.safetensors.index.json";

std::string error_of(std::filesystem::path const& path) {
  return test::refusal<IoError>([&] { Checkpoint const checkpoint(path); });
}

/// A file of one-dimensional tensors: each name with its values.
void write_floats(std::filesystem::path const& path, std::map<std::string, std::vector<float>> const& tensors) {
  std::vector<TensorSource> sources;
  for (auto const& [name, values] : tensors)
    sources.push_back(tensor_source(name, {static_cast<i64>(values.size())}, values));
  write_safetensors(path, sources);
}

std::vector<float> values_of(TensorEntry const& entry) {
  std::vector<float> values(static_cast<std::size_t>(entry.elements()));
  std::vector<Range> box;
  for (i64 extent : entry.shape) box.push_back({0, extent});
  read_slice(entry, box, values.data());
  return values;
}

/// A directory with tensors 'a' and 'c' in one file, 'b' in another, and an index over both.
struct Sharded : Scratch {
  Sharded() {
    write_floats(*this / "one.safetensors", {{"a", {1, 2}}, {"c", {3}}});
    write_floats(*this / "two.safetensors", {{"b", {4, 5, 6}}});
    index(R"("a": "one.safetensors", "b": "two.safetensors", "c": "one.safetensors")");
  }
  void index(std::string const& places) const {
    write(index_name, R"({"metadata": {"total_size": 24}, "weight_map": {)" + places + "}}");
  }
};

}  // namespace

TEST_CASE("a checkpoint finds the weights of a directory and suggests names") {
  Scratch const scratch;
  CHECK_THAT(error_of(scratch / "none"), Contains("no such file or directory"));
  CHECK_THAT(error_of(scratch.path()), Contains("holds neither model.safetensors nor model.safetensors.index.json"));
  std::string const q = "model.layers.0.self_attn.q_proj.weight", norm = "model.norm.weight";
  write_floats(scratch / single, {{q, {1, 2}}, {norm, {3}}});
  for (auto const& path : {scratch.path(), scratch / single}) {
    Checkpoint const checkpoint(path);
    CHECK(checkpoint.names() == std::vector<std::string>{q, norm});
    CHECK(checkpoint.name() == (scratch / single).string());
    CHECK(checkpoint.find(norm) == &checkpoint.tensors()[1]);
    CHECK(checkpoint.find("norm.weight") == nullptr);
    CHECK_THAT(test::refusal<IoError>([&] { checkpoint.at("model.layers.0.attn.q_proj.weight"); }),
               Contains("has no tensor 'model.layers.0.attn.q_proj.weight' among its 2; did you mean '" + q + "'?"));
    CHECK_THAT(test::refusal<IoError>([&] { checkpoint.at("zzz"); }), !Contains("did you mean"));
  }
}

TEST_CASE("names are suggested in bounded time, of any file") {
  std::vector<std::string> names;
  for (int i = 0; i < 200'000; ++i) names.push_back(std::string(120, 'x') + std::to_string(i));
  CHECK(closest(std::string(120, 'x') + "17", names).size() == 3);
  CHECK(closest("x", {std::string(1000, 'x'), "xy", "abcdef"}) == std::vector<std::string>{"xy"});
}

TEST_CASE("weights in several files are read as if they were one") {
  Sharded const scratch;
  for (auto const& path : {scratch.path(), scratch / index_name}) {
    Checkpoint opened(path);
    Checkpoint const checkpoint = std::move(opened);  // entries stay valid
    CHECK(checkpoint.names() == std::vector<std::string>{"a", "b", "c"});
    CHECK(checkpoint.name() == (scratch / index_name).string());
    CHECK(checkpoint.files().size() == 2);
    CHECK(values_of(checkpoint.at("a")) == std::vector<float>{1, 2});
    CHECK(values_of(checkpoint.at("b")) == std::vector<float>{4, 5, 6});
    CHECK(values_of(checkpoint.at("c")) == std::vector<float>{3});
    float got[2] = {};
    Range const box[] = {{1, 3}};
    read_slice(checkpoint.at("b"), box, got);
    CHECK((got[0] == 5 && got[1] == 6));
    Range const beyond[] = {{1, 4}};
    CHECK_THAT(test::refusal<IoError>([&] { read_slice(checkpoint.at("b"), beyond, got); }),
               Contains("two.safetensors: tensor 'b', F32[3]: range [1, 4)"));
    CHECK_THAT(test::refusal<IoError>([&] { checkpoint.at("bb"); }),
               EndsWith("model.safetensors.index.json: has no tensor 'bb' among its 3; did you mean 'b'?"));
  }
}

TEST_CASE("the single file wins where a directory has both, whatever the index says") {
  Sharded const scratch;
  scratch.index("broken");
  write_floats(scratch / single, {{"a", {7}}});
  CHECK(Checkpoint(scratch.path()).names() == std::vector<std::string>{"a"});
}

TEST_CASE("files may be links to files, as caches keep them, and nothing else") {
  for (bool sharded : {false, true}) {
    INFO(sharded);
    Sharded const scratch;
    std::string const file = sharded ? "one.safetensors" : single;
    auto const link = scratch / file, blob = scratch.path() / "blobs" / "0123";
    std::filesystem::create_directory(scratch / "blobs");
    if (sharded) std::filesystem::rename(link, blob);
    else write_floats(blob, {{"a", {1, 2}}});
    std::filesystem::create_symlink("blobs/0123", link);
    {
      Checkpoint const checkpoint(scratch.path());
      CHECK(values_of(checkpoint.at("a")) == std::vector<float>{1, 2});
      CHECK(checkpoint.at("a").file == link.string());
    }
    std::filesystem::remove(blob);
    CHECK_THAT(error_of(scratch.path()),
               EndsWith(file + ": is a link to 'blobs/0123', where there is no file; get it again"));
    std::filesystem::create_directory(blob);
    CHECK_THAT(error_of(scratch.path()), EndsWith(file + ": is a directory; a file is expected"));
    std::filesystem::remove(link);
    std::filesystem::create_directory(link);
    CHECK_THAT(error_of(scratch.path()), EndsWith(file + ": is a directory; a file is expected"));
    std::filesystem::remove(link);
    std::filesystem::create_symlink(link, link);
    CHECK_THAT(error_of(scratch.path()), Contains(file + ": cannot be opened"));
    std::filesystem::remove(link);
    std::filesystem::create_symlink("/dev/zero", link);
    CHECK_THAT(error_of(scratch.path()), EndsWith(file + ": is not a regular file"));
  }
}

TEST_CASE("an index is refused by field where it is none") {
  struct Case {
    std::string text, expected;
  };
  Sharded const scratch;
  for (auto const& [text, expected] : std::vector<Case>{
           {"", ": is empty; JSON is expected"},
           {"[]", ": must be an object that has a 'weight_map'; it is a list of 0"},
           {"7", ": must be an object that has a 'weight_map'; it is 7"},
           {"{}", ": field 'weight_map' is missing; it names the file of each tensor"},
           {R"({"weight_map": null})", ": field 'weight_map' is missing"},
           {R"({"weight_map": []})", ": field 'weight_map' must be an object; it is a list of 0"},
           {R"({"weight_map": "one.safetensors"})", "must be an object; it is the string 'one.safetensors'"},
           {R"({"weight_map": {}})", ": field 'weight_map' is empty"},
           {R"({"weight_map": {"a": 1}})", ": field 'weight_map.a' must be a string; it is 1"},
           {R"({"weight_map": {"a": null}})", ": field 'weight_map.a' must be a string; it is null"},
           {R"({"weight_map": {"a": "one.safetensors", "a": "two.safetensors"}})", "key 'a' is given twice"},
           {R"({"metadata": [], "weight_map": {"a": "one.safetensors"}})",
            "field 'metadata' must be an object, or null"},
           {R"({"weight_map": {"a": "one.safetensors")", ": not JSON"},
       }) {
    INFO(text);
    scratch.write(index_name, text);
    CHECK_THAT(error_of(scratch.path()),
               Contains(index_name + expected.substr(0, expected[0] == ':' ? 1 : 0)) && Contains(expected));
  }
}

TEST_CASE("a name that leads out of the directory, or is no file's, opens nothing") {
  Sharded const scratch;
  std::filesystem::create_directory(scratch / "sub");
  std::filesystem::copy_file(scratch / "one.safetensors", scratch / "sub/one.safetensors");
  std::string const absolute = (scratch / "one.safetensors").string();
  for (std::string const& name :
       {std::string(), std::string("."), std::string(".."), absolute, std::string("../x.safetensors"),
        std::string("sub/one.safetensors"), std::string("./one.safetensors"), std::string("sub\\\\one.safetensors"),
        std::string("c:one.safetensors"), std::string("one.safetensors\\u0000"), std::string("one\\u0000.safetensors"),
        std::string("one\\n.safetensors"), std::string("\\u009b31m.safetensors"), std::string("one.bin"),
        std::string("/dev/zero"), std::string(300, 'n') + ".safetensors"}) {
    INFO(name);
    scratch.index(R"("a": ")" + name + '"');
    std::string const error = error_of(scratch.path());
    CHECK_THAT(error, Contains("field 'weight_map.a' must be the plain name of a .safetensors file"));
    CHECK(error.size() < 600);
  }
}

TEST_CASE("index and files must say the same of every tensor") {
  Sharded const scratch;
  auto const error = [&](std::string const& places) {
    scratch.index(places);
    return error_of(scratch.path());
  };
  std::string const a = R"("a": "one.safetensors", )", b = R"("b": "two.safetensors", )",
                    c = R"("c": "one.safetensors")";
  CHECK(error(a + b + c) == "");
  CHECK_THAT(error(a + b + c + R"(, "d": "two.safetensors")"),
             Contains(": places tensor 'd' in 'two.safetensors', which does not hold it"));
  CHECK_THAT(error(a + c + R"(, "b": "three.safetensors", "d": "three.safetensors")"),
             Contains(": places 2 tensors ('b', ...) in 'three.safetensors', which is not there; get all 2 files"));
  CHECK_THAT(error(b + c), Contains("one.safetensors: holds tensor 'a', which the index ") &&
                               Contains("model.safetensors.index.json does not name; get the files of one version"));
  CHECK_THAT(
      error(R"("a": "two.safetensors", )" + b + c),
      Contains("one.safetensors: holds tensor 'a', but the index places it in ") && Contains("two.safetensors;"));
  write_floats(scratch / "two.safetensors", {{"a", {9}}, {"b", {4}}});
  CHECK_THAT(error(a + b + c), Contains("two.safetensors: holds tensor 'a' and so does ") &&
                                   Contains("one.safetensors; each tensor must be in one file"));
  scratch.write("two.safetensors", "short");
  CHECK_THAT(error(a + b + c), Contains("two.safetensors: has 5 bytes"));
  std::string many;
  for (std::size_t i = 0; i <= checkpoint_file_limit; ++i)
    many += (i ? ", " : "") + ("\"" + std::to_string(i) + R"(": ")" + std::to_string(i) + ".safetensors\"");
  CHECK_THAT(error(many), EndsWith(": names 4097 files; at most 4096 are read"));
}

TEST_CASE("a slice of a file larger than memory is read without the rest") {
  Scratch const scratch;
  constexpr i64 large = 64 * GiB;
  std::string header = R"({"x":{"dtype":"U8","shape":[SIZE],"data_offsets":[0,SIZE]},)"
                       R"("y":{"dtype":"F32","shape":[2],"data_offsets":[SIZE,END]}})";
  for (auto const& [word, value] : {std::pair<std::string, i64>("SIZE", large), {"END", large + 8}})
    for (std::size_t at; (at = header.find(word)) != std::string::npos;)
      header.replace(at, word.size(), std::to_string(value));
  header.resize((header.size() + 7) / 8 * 8, ' ');
  std::string text(8, '\0');
  text[0] = static_cast<char>(header.size());
  auto const path = scratch.write("large.safetensors", text + header);
  std::filesystem::resize_file(path, 8 + header.size() + static_cast<std::uintmax_t>(large) + 8);  // takes no space
  scratch.write(index_name, R"({"weight_map": {"x": "large.safetensors", "y": "large.safetensors"}})");
  Checkpoint const checkpoint(scratch.path());
  CHECK(checkpoint.at("x").elements() == large);
  CHECK(values_of(checkpoint.at("y")) == std::vector<float>{0, 0});
}

namespace {

template <class T>
void check_finding() {
  using Limits = std::numeric_limits<T>;
  std::vector<T> numbers(3000);
  std::iota(numbers.begin(), numbers.end(), T(-1500));
  numbers[7] = Limits::lowest(), numbers[8] = (Limits::max)(), numbers[9] = Limits::denorm_min(), numbers[10] = -T(0);
  CHECK(!find_non_finite(std::span<T const>(numbers)));
  for (T bad :
       {Limits::quiet_NaN(), -Limits::quiet_NaN(), Limits::signaling_NaN(), Limits::infinity(), -Limits::infinity()})
    for (std::size_t at : {0u, 1u, 1023u, 1024u, 2047u, 2999u}) {
      auto damaged = numbers;
      damaged[at] = bad;
      if (at < 2999) damaged.back() = bad;  // the first one is found
      CHECK(find_non_finite(std::span<T const>(damaged)) == static_cast<i64>(at));
    }
  CHECK(!find_non_finite(std::span<T const>()));
}

}  // namespace

TEST_CASE("the first number that is none is found wherever it stands") {
  check_finding<float>();
  check_finding<double>();
}

TEST_CASE("a slice with a number that is none is refused with its index in the stored tensor") {
  Scratch const scratch;
  float const infinity = std::numeric_limits<float>::infinity();
  std::vector<float> values(12);
  values[7] = std::numeric_limits<float>::quiet_NaN(), values[11] = -infinity;
  write_safetensors(scratch / single, std::vector{tensor_source("t", {3, 4}, values)});
  Checkpoint const checkpoint(scratch.path());
  auto const error = [&](std::vector<Range> const& box) {
    std::vector<float> slice(static_cast<std::size_t>(box[0].size() * box[1].size()));
    read_slice(checkpoint.at("t"), box, slice.data());
    return test::refusal<IoError>([&] { check_finite<float>(checkpoint.at("t"), box, slice); });
  };
  CHECK(error({{0, 3}, {0, 3}}) == "");
  CHECK(error({{0, 0}, {0, 4}}) == "");
  CHECK_THAT(error({{0, 3}, {2, 4}}), Contains("model.safetensors: tensor 't', F32[3,4]: element [1,3] is NaN; "));
  CHECK_THAT(error({{2, 3}, {1, 4}}), Contains("tensor 't', F32[3,4]: element [2,3] is infinite; "));
}
