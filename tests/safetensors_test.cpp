// SPDX-License-Identifier: MIT
// Weight files: every stored type and every box of small tensors against plain references; files that are cut, damaged
// or hostile, which must end in IoError and in nothing else; what the writer writes, read back.
#include <cmath>
#include <dovetail/io/safetensors.hpp>
#include <dovetail/io/safetensors_writer.hpp>

#include "catch.hpp"
#include "scratch.hpp"

using namespace dovetail;
using test::Scratch;

namespace {

std::vector<std::byte> bytes_of_text(std::string_view text) {
  auto const raw = std::as_bytes(std::span(text));
  return {raw.begin(), raw.end()};
}

/// A file with this header and so many bytes of data: 0, 1, 2, ...
std::vector<std::byte> file_of(std::string const& header, std::size_t size) {
  std::vector<std::byte> file;
  for (std::size_t i = 0; i < 8; ++i) file.push_back(static_cast<std::byte>(header.size() >> 8 * i & 0xff));
  for (char c : header) file.push_back(static_cast<std::byte>(c));
  for (std::size_t i = 0; i < size; ++i) file.push_back(static_cast<std::byte>(i));
  return file;
}

/// The error that opening these bytes gives; "" where they open. The copy is exact, so that a sanitizer sees
/// over-reads.
std::string error_of(std::vector<std::byte> const& bytes) {
  std::vector<std::byte> const exact(bytes);
  return test::refusal<IoError>([&] { SafetensorsFile::from_memory(exact); });
}
std::string error_of(std::string const& header, std::size_t size) { return error_of(file_of(header, size)); }

/// "1,1,1"
std::string ones(int count) {
  std::string text = "1";
  while (--count > 0) text += ",1";
  return text;
}

bool contains(std::string const& text, std::string_view part) { return text.find(part) != std::string::npos; }

/// The value of IEEE binary16 bits by its definition.
double plain_f16(unsigned bits) {
  double const sign = bits & 0x8000u ? -1 : 1;
  int const exponent = static_cast<int>(bits >> 10 & 31u), fraction = static_cast<int>(bits & 1023u);
  if (exponent == 31) return fraction ? NAN : sign * INFINITY;
  return exponent ? sign * std::ldexp(1024 + fraction, exponent - 25) : sign * std::ldexp(fraction, -24);
}

template <class T>
bool same(T a, T b) {
  return std::isnan(a) ? std::isnan(b) : a == b && std::signbit(a) == std::signbit(b);
}

std::string const good = R"({"__metadata__":{"format":"pt"},"b":{"dtype":"F16","shape":[2,3],"data_offsets":[16,28]},)"
                         R"("a":{"dtype":"F32","shape":[2,2],"data_offsets":[0,16]},)"
                         R"("e":{"dtype":"BF16","shape":[0,5],"data_offsets":[28,28]}})";

}  // namespace

TEST_CASE("half precision numbers convert exactly, all of them") {
  i64 wrong = 0;
  for (unsigned bits = 0; bits < 0x10000u; ++bits) {
    wrong += !same<double>(float_of_f16(static_cast<std::uint16_t>(bits)), plain_f16(bits));
    wrong += !same(float_of_bf16(static_cast<std::uint16_t>(bits)), std::bit_cast<float>(bits << 16));
  }
  CHECK(wrong == 0);
  static_assert(float_of_f16(0x3c00) == 1.0f && float_of_f16(0xc000) == -2.0f && float_of_bf16(0x3f80) == 1.0f);
}

TEST_CASE("a good file lists its tensors by name, with views of its bytes") {
  auto const bytes = file_of(good, 28);
  auto const file = SafetensorsFile::from_memory(bytes);
  REQUIRE(file.tensors().size() == 3);
  CHECK(file.tensors()[0].name == "a");
  CHECK(file.tensors()[2].name == "e");
  CHECK(file.metadata().at("format") == "pt");
  auto const& b = file.at("b");
  CHECK(b.element == Element::f16);
  CHECK(b.shape == std::vector<i64>{2, 3});
  CHECK(b.elements() == 6);
  CHECK(b.bytes.data() == bytes.data() + (bytes.size() - 12));
  CHECK(file.at("e").bytes.empty());
  CHECK(file.find("c") == nullptr);
  auto moved = SafetensorsFile::from_memory(bytes, "first");
  SafetensorsFile const taken = std::move(moved);
  CHECK(taken.at("a").file == "first");
}

TEST_CASE("every box of small tensors of every type equals a plain copy") {
  std::vector<std::vector<i64>> const shapes = {{}, {1}, {5}, {3, 4}, {2, 3, 4}, {2, 1, 3, 2}, {3, 0, 2}};
  for (auto const& shape : shapes) {
    i64 count = 1;
    for (i64 extent : shape) count *= extent;
    for (std::string const type : {"F32", "F16", "BF16", "F64"}) {
      i64 const size = type == "F32" ? 4 : type == "F64" ? 8 : 2;
      std::string const extents = Json(shape).dump();
      auto bytes = file_of(R"({"t":{"dtype":")" + type + R"(","shape":)" + extents + R"(,"data_offsets":[0,)" +
                               std::to_string(count * size) + "]}}",
                           static_cast<std::size_t>(count * size));
      std::vector<double> whole(static_cast<std::size_t>(count));
      for (i64 i = 0; i < count; ++i) {  // i / 4 in each type
        auto const x = static_cast<float>(i) / 4;
        whole[static_cast<std::size_t>(i)] = x;
        auto* at = bytes.data() + (static_cast<i64>(bytes.size()) - (count - i) * size);
        auto const write = [&](auto bits) { std::memcpy(at, &bits, sizeof bits); };
        if (type == "F32") write(x);
        if (type == "F64") write(static_cast<double>(x));
        if (type == "BF16") write(static_cast<std::uint16_t>(std::bit_cast<std::uint32_t>(x) >> 16));
        if (type == "F16") {
          std::uint16_t half = 0;
          while (plain_f16(half) != static_cast<double>(x)) ++half;
          write(half);
        }
      }
      auto const file = SafetensorsFile::from_memory(bytes);
      auto const& entry = file.at("t");

      std::vector<Range> box(shape.size(), Range{0, 0});
      i64 boxes = 0, wrong = 0;
      auto const check = [&] {
        std::vector<double> expected, got;
        std::vector<i64> index;
        for (i64 i = 0; i < count; ++i) {
          bool inside = true;
          i64 rest = i;
          for (std::size_t d = shape.size(); d-- > 0; rest /= shape[d]) inside &= box[d].contains(rest % shape[d]);
          if (inside) expected.push_back(whole[static_cast<std::size_t>(i)]);
        }
        got.assign(expected.size() + 1, -1);
        read_slice(entry, box, got.data());
        wrong += got.back() != -1;  // nothing is written behind the box
        got.pop_back();
        wrong += got != expected;
        if (type != "F64") {
          std::vector<float> narrow(expected.size() + 1, -1);
          read_slice(entry, box, narrow.data());
          wrong += narrow.back() != -1;
          narrow.pop_back();
          wrong += !std::equal(narrow.begin(), narrow.end(), expected.begin(),
                               [](float a, double b) { return static_cast<double>(a) == b; });
        }
        ++boxes;
      };
      auto const each = [&](auto const& self, std::size_t d) -> void {
        if (d == shape.size()) return check();
        for (i64 lo = 0; lo <= shape[d]; ++lo)
          for (i64 hi = lo; hi <= shape[d]; ++hi) {
            box[d] = {lo, hi};
            self(self, d + 1);
          }
      };
      each(each, 0);
      INFO(type << extents << ", " << boxes << " boxes");
      CHECK(boxes > 0);
      CHECK(wrong == 0);
    }
  }
}

TEST_CASE("a box that does not fit, or a type that does not convert, is refused") {
  auto const bytes = file_of(R"({"t":{"dtype":"F32","shape":[2,2],"data_offsets":[0,16]},)"
                             R"("d":{"dtype":"F64","shape":[1],"data_offsets":[16,24]},)"
                             R"("q":{"dtype":"F8_E4M3","shape":[3],"data_offsets":[24,27]},)"
                             R"("n":{"dtype":"F4","shape":[2,3],"data_offsets":[27,30]}})",
                             30);
  auto const file = SafetensorsFile::from_memory(bytes, "f");
  float out[4];
  auto const error = [&](char const* name, std::vector<Range> box) {
    return test::refusal<IoError>([&] { read_slice(file.at(name), box, out); });
  };
  CHECK(error("t", {{0, 2}, {0, 2}}) == "");
  CHECK(error("t", {{0, 2}}) == "f: tensor 't', F32[2,2]: a box of 1 ranges was asked of 2 dims");
  CHECK(error("t", {{0, 2}, {0, 3}}) == "f: tensor 't', F32[2,2]: range [0, 3) was asked of dim 1, which has 2");
  CHECK(error("t", {{-1, 2}, {0, 2}}) != "");
  CHECK(error("t", {{2, 1}, {0, 2}}) != "");
  CHECK(contains(error("d", {{0, 1}}), "cannot be read as f32 without loss"));
  CHECK(contains(error("q", {{0, 3}}), "F8_E4M3[3]: cannot be read"));
  CHECK(!file.at("q").element);
  CHECK(file.at("n").stored_as == "F4");
}

TEST_CASE("a file cut at any byte is refused") {
  auto const whole = file_of(good, 28);
  CHECK(error_of(whole) == "");
  for (std::size_t size = 0; size < whole.size(); ++size) {
    INFO("cut after " << size << " of " << whole.size());
    CHECK(error_of({whole.begin(), whole.begin() + static_cast<std::ptrdiff_t>(size)}) != "");
  }
  auto longer = whole;
  longer.push_back(std::byte{0});
  CHECK(contains(error_of(longer), "bytes 28 to 29 after tensor 'e' belong to no tensor"));
}

TEST_CASE("a file with any bit turned opens with all ranges inside it, or is refused") {
  auto const whole = file_of(good, 28);
  std::size_t opened = 0, refused = 0;
  for (std::size_t bit = 0; bit < 8 * (whole.size() - 28); ++bit) {
    auto bytes = whole;
    bytes[bit / 8] ^= static_cast<std::byte>(1u << bit % 8);
    try {
      auto const file = SafetensorsFile::from_memory(bytes);
      ++opened;
      for (auto const& tensor : file.tensors()) {
        bool const inside = tensor.bytes.data() >= bytes.data() &&
                            tensor.bytes.data() + tensor.bytes.size() <= bytes.data() + bytes.size();
        if (!inside) FAIL("tensor outside the file with bit " << bit << " turned");
      }
    } catch (IoError const&) {
      ++refused;
    }
  }
  CHECK(opened > 0);  // a letter of a name may change
  CHECK(refused > opened);
}

TEST_CASE("numbers that are none, or cannot be, are refused in every field") {
  std::vector<std::string> const bad = {"-1",
                                        "-9223372036854775808",
                                        "9223372036854775807",
                                        "1.0",
                                        "18446744073709551615",
                                        "18446744073709551616",
                                        "1e2",
                                        "1e999",
                                        "\"2\"",
                                        "null",
                                        "true",
                                        "[]",
                                        "[2]",
                                        "{}",
                                        "340282366920938463463374607431768211456",
                                        "2305843009213693952",
                                        "4611686018427387904"};
  for (auto const& number : bad)
    for (std::string const field : {"S0", "S1", "B", "E"}) {
      std::string header = R"({"t":{"dtype":"F32","shape":[S0,S1],"data_offsets":[B,E]}})";
      for (auto const& [name, value] :
           {std::pair<std::string, std::string>("S0", "2"), {"S1", "2"}, {"B", "0"}, {"E", "16"}})
        header.replace(header.find(name), name.size(), name == field ? number : value);
      INFO(header);
      CHECK(error_of(header, 16) != "");
    }
  // Products that wrap to the right number of bytes.
  CHECK(contains(error_of(R"({"t":{"dtype":"F32","shape":[4611686018427387904,4],"data_offsets":[0,0]}})", 0),
                 "beyond 64 bits"));
  CHECK(error_of(R"({"t":{"dtype":"U8","shape":[4294967296,4294967296],"data_offsets":[0,0]}})", 0) != "");
  // Negative numbers that would agree with each other.
  CHECK(contains(error_of(R"({"t":{"dtype":"F32","shape":[-2,-2],"data_offsets":[0,16]}})", 16),
                 "'shape[0]' is negative"));
  CHECK(contains(error_of(R"({"t":{"dtype":"F32","shape":[2],"data_offsets":[-8,0]}})", 16),
                 "'data_offsets[0]' is negative"));
  // Three elements of four bits.
  CHECK(contains(error_of(R"({"t":{"dtype":"F4","shape":[3],"data_offsets":[0,1]}})", 1), "does not fill whole bytes"));
  CHECK(error_of(R"({"t":{"dtype":"F4","shape":[3],"data_offsets":[0,2]}})", 2) != "");
}

TEST_CASE("each kind of wrong header is refused by name and number") {
  struct Case {
    std::string header;
    std::size_t size;
    std::string expected;
  };
  std::string const a = R"("a":{"dtype":"F32","shape":[2],"data_offsets":[0,8]})";
  std::vector<Case> const cases = {
      {"{" + a + "," + a + "}", 8, "key 'a' is given twice"},
      {R"({"a":{"dtype":"F32","dtype":"F32","shape":[2],"data_offsets":[0,8]}})", 8, "key 'dtype' is given twice"},
      {R"({"__metadata__":{"x":"1","x":"2"}})", 0, "key 'x' is given twice"},
      {R"({"__metadata__":{"x":1}})", 0, "'__metadata__.x' must be a string; it is 1"},
      {R"({"__metadata__":[]})", 0, "__metadata__ must be an object"},
      {"{" + a + R"(,"b":{"dtype":"F32","shape":[2],"data_offsets":[4,12]}})", 12,
       "tensor 'b' begins at byte 4 and overlaps tensor 'a'"},
      {"{" + a + R"(,"b":{"dtype":"F32","shape":[2],"data_offsets":[0,8]}})", 8, "overlaps"},
      {"{" + a + R"(,"b":{"dtype":"F32","shape":[1],"data_offsets":[12,16]}})", 16,
       "bytes 8 to 12 between tensor 'a' and tensor 'b'"},
      {R"({"a":{"dtype":"F32","shape":[1],"data_offsets":[4,8]}})", 8, "bytes 0 to 4 between the start of the data"},
      {"{}", 1, "bytes 0 to 1 after the start of the data"},
      {R"({"a":{"dtype":"F32","shape":[2],"data_offsets":[0,4]}})", 4, "has 4 bytes, but F32[2] takes 8"},
      {R"({"a":{"dtype":"F16","shape":[2],"data_offsets":[0,8]}})", 8, "has 8 bytes, but F16[2] takes 4"},
      {R"({"a":{"dtype":"F32","shape":[2],"data_offsets":[8,0]}})", 8, "begins at byte 8, after its end at 0"},
      {"{" + a + "}", 4, "ends at byte 8 of the data, but the file holds 4"},
      {R"({"a":{"dtype":"F33","shape":[2],"data_offsets":[0,8]}})", 8, "unknown dtype 'F33'; known: F32"},
      {R"({"a":{"dtype":32,"shape":[2],"data_offsets":[0,8]}})", 8, "'dtype' must be a string; it is 32"},
      {R"({"a":{"shape":[2],"data_offsets":[0,8]}})", 8, "field 'dtype' is missing"},
      {R"({"a":{"dtype":"F32","data_offsets":[0,8]}})", 8, "field 'shape' is missing"},
      {R"({"a":{"dtype":"F32","shape":[2]}})", 8, "field 'data_offsets' is missing"},
      {R"({"a":{"dtype":"F32","shape":2,"data_offsets":[0,8]}})", 8, "field 'shape' must be a list; it is 2"},
      {R"({"a":{"dtype":"F32","shape":[2],"data_offsets":[0]}})", 8, "must be two numbers"},
      {R"({"a":{"dtype":"F32","shape":[2],"data_offsets":[0,4,8]}})", 8, "must be two numbers"},
      {R"({"a":7})", 0, "tensor 'a' must be an object; it is 7"},
      {R"({"a":{"dtype":"F32","shape":[)" + ones(65) + R"(],"data_offsets":[0,4]}})", 4,
       "field 'shape' has 65 numbers; at most 64 are read"},
      {R"([])", 0, "does not begin with '{'"},
      {R"( {})", 0, "does not begin with '{'"},
      {"", 0, "does not begin with '{'"},
      {R"({"a":)", 0, "not JSON"},
      {R"({} x)", 0, "not JSON"},
      {"{\"\xff\":{}}", 0, "not JSON"},
      {std::string("{\"a\0\":{}}", 9), 0, "not JSON"},
      {"{\"x\":" + std::string(200, '['), 0, "nested deeper than 64"},
  };
  for (auto const& c : cases) {
    std::string const error = error_of(c.header, c.size);
    INFO(c.header << "\n" << error);
    CHECK(contains(error, c.expected));
    CHECK(contains(error, "(memory)"));
  }
  CHECK(error_of("{}   ", 0) == "");  // padding after the header is part of the format
  auto const stated = [](std::uint64_t length) {
    std::vector<std::byte> bytes = bytes_of_text("        {}");
    std::memcpy(bytes.data(), &length, 8);
    return error_of(bytes);
  };
  CHECK(stated(2) == "");
  CHECK(contains(stated(3), "states a header of 3 bytes, but only 2 follow"));
  CHECK(contains(stated(100'000'001), "at most 100000000 are allowed"));
  CHECK(contains(stated(~std::uint64_t{0}), "states a header of 18446744073709551615 bytes"));
}

TEST_CASE("what is written is read back, and wrong tensors are refused") {
  Scratch const scratch;
  auto const path = scratch / "w.safetensors";
  std::vector<float> const floats = {1, 2, 3, 4, 5, 6};
  std::vector<std::uint16_t> const halves = {0x3c00, 0x4000, 0x4200};
  std::vector<TensorSource> const tensors = {
      {"z \"quoted\" \n\xc3\xa9", Element::bf16, {3}, std::as_bytes(std::span(halves))},
      tensor_source("floats", {2, 3}, floats),
      tensor_source("scalar", {}, std::span(floats).first(1)),
      tensor_source("empty", {0, 7}, {}),
  };
  write_safetensors(path, tensors, {{"format", "pt"}});
  write_safetensors(path, tensors, {{"format", "pt"}});  // replaces what is there
  CHECK(std::distance(std::filesystem::directory_iterator(scratch.path()), {}) == 1);
  for (Access access : {Access::map, Access::copy}) {
    SafetensorsFile const file(path, access);
    CHECK(file.tensors().size() == 4);
    CHECK(file.metadata().at("format") == "pt");
    for (auto const& source : tensors) {
      auto const& entry = file.at(source.name);
      CHECK(entry.element == source.element);
      CHECK(entry.shape == source.shape);
      CHECK(std::equal(entry.bytes.begin(), entry.bytes.end(), source.bytes.begin(), source.bytes.end()));
    }
    CHECK(reinterpret_cast<std::uintptr_t>(file.at("floats").bytes.data()) % 4 == 0);
  }

  auto const error = [&](std::vector<TensorSource> const& wrong, std::filesystem::path const& to) {
    return test::refusal<IoError>([&] { write_safetensors(to, wrong); });
  };
  CHECK(contains(error({tensors[1], tensors[1]}, path), "'floats' is reserved or given twice"));
  CHECK(contains(error({tensor_source("__metadata__", {6}, floats)}, path), "reserved"));
  CHECK(contains(error({tensor_source("t", {5}, floats)}, path), "has 24 bytes, but F32[5] takes 20"));
  CHECK(contains(error({tensor_source("t", {-6, -1}, floats)}, path), "negative extent -6"));
  CHECK(contains(error({{"t", Element::choice, {0}, {}}}, path), "no type for choice"));
  CHECK(contains(error({tensor_source("\xff", {6}, floats)}, path), "not valid UTF-8"));
  CHECK(contains(error(tensors, scratch / "no/such/place"), "cannot be written"));
  CHECK(SafetensorsFile(path).tensors().size() == 4);  // a write that fails leaves what was there
  CHECK(std::distance(std::filesystem::directory_iterator(scratch.path()), {}) == 1);
}

TEST_CASE("tensors beyond 4 GiB are found and read") {
  Scratch const scratch;
  constexpr i64 large = 5 * GiB;
  std::string const header = R"({"large":{"dtype":"U8","shape":[)" + std::to_string(large) + R"(],"data_offsets":[0,)" +
                             std::to_string(large) + R"(]},"last":{"dtype":"F32","shape":[2],"data_offsets":[)" +
                             std::to_string(large) + "," + std::to_string(large + 8) + "]}}";
  auto const head = file_of(header, 0);
  auto const path = scratch.write("large.safetensors", {reinterpret_cast<char const*>(head.data()), head.size()});
  std::filesystem::resize_file(path, head.size() + static_cast<std::uintmax_t>(large));  // sparse: takes no space
  float const values[2] = {3, 4};
  std::ofstream(path, std::ios::binary | std::ios::app).write(reinterpret_cast<char const*>(values), sizeof values);
  SafetensorsFile const file(path);
  CHECK(file.at("large").elements() == large);
  float got = 0;
  Range const box[] = {{1, 2}};
  read_slice(file.at("last"), box, &got);
  CHECK(got == 4);
}

TEST_CASE("files that cannot be opened are named with the reason") {
  Scratch const scratch;
  auto const error = [](std::filesystem::path const& path, Access access) {
    return test::refusal<IoError>([&] { MappedFile const file(path, access); });
  };
  for (Access access : {Access::map, Access::copy}) {
    CHECK(error(scratch / "none", access) == (scratch / "none").string() + ": no such file");
    CHECK(contains(error(scratch.path(), access), "is a directory"));
    CHECK(contains(error("/dev/null", access), "is not a regular file"));
    MappedFile const empty(scratch.write("empty", ""), access);
    CHECK(empty.bytes().empty());
    MappedFile text(scratch.write("text", "abc"), access);
    MappedFile const moved = std::move(text);
    CHECK(moved.text() == "abc");
    CHECK(text.bytes().empty());
    CHECK(moved.mapped() == (access == Access::map));
  }
  CHECK(contains(test::refusal<IoError>([&] { SafetensorsFile const file(scratch / "empty"); }), "has 0 bytes"));
  for (Access access : {Access::map, Access::copy}) {
    std::filesystem::create_symlink("gone", scratch / "link");
    CHECK(contains(error(scratch / "link", access), "link: is a link to 'gone', where there is no file"));
    std::filesystem::remove(scratch / "link");
    std::filesystem::create_symlink("link", scratch / "link");
    CHECK(contains(error(scratch / "link", access), "cannot be opened"));
    std::filesystem::remove(scratch / "link");
  }
}
