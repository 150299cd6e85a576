// SPDX-License-Identifier: MIT
// config.json and generation_config.json with one field changed: what is out of its range, of another kind or
// contradicts another field is refused with file, field, value and what is legal; what is legal is read.
#include <dovetail/run/model_config.hpp>

#include "catch.hpp"
#include "scratch.hpp"

using namespace dovetail;
using test::Scratch;

namespace {

Json const base = parse_json(
    R"({"model_type": "llama", "hidden_size": 36, "num_hidden_layers": 3, "num_attention_heads": 9,
        "num_key_value_heads": 3, "head_dim": 4, "intermediate_size": 50, "vocab_size": 61, "rms_norm_eps": 1e-6,
        "rope_theta": 10000.0, "bos_token_id": 1, "eos_token_id": 2, "pad_token_id": 0,
        "max_position_embeddings": 64})",
    "base");

Json const llama3 = parse_json(
    R"({"rope_type": "llama3", "factor": 8.0, "low_freq_factor": 1.0, "high_freq_factor": 4.0,
        "original_max_position_embeddings": 32})",
    "base");

Json with(Json config, char const* field, std::string const& value) {
  config[field] = parse_json(value, field);
  return config;
}

Model model_of(Json const& config, std::string const& generation = "") {
  Scratch const scratch;
  scratch.write("config.json", config.dump());
  if (!generation.empty()) scratch.write("generation_config.json", generation);
  return read_model(scratch.path());
}

std::string refusal(Json const& config, std::string const& generation = "") {
  return test::refusal<IoError>([&] { model_of(config, generation); });
}

/// A message that names the file, the field and the value, and says what is legal.
void check_named(std::string const& message, std::string const& file, std::string const& field,
                 std::string const& shown, std::string const& legal) {
  INFO(field << ": " << message);
  CHECK_THAT(message, Catch::Contains(file + ": ") && Catch::Contains("field '" + field + "' must be " + legal) &&
                          Catch::EndsWith("it is " + shown));
}

}  // namespace

TEST_CASE("the unchanged configuration is read") {
  Model const m = model_of(base);
  CHECK(m.vocab_size == 61);
  CHECK(m.context_limit == 64);
  CHECK(m.end_tokens == std::vector<i32>{2});
}

TEST_CASE("a field outside its range or of another kind is refused by name") {
  std::string const count = "at least 1 and at most ", ids = "at least 0 and at most 60, and whole";
  struct Case {
    char const *field, *value;
    std::string legal, shown;
  };
  for (auto const& [field, value, legal, shown] : std::vector<Case>{
           {"hidden_size", "0", count, "0"},
           {"hidden_size", "1099511627776", count + "16777216, and whole", "1099511627776"},
           {"hidden_size", "36.0", count, "the decimal number 36.0"},
           {"hidden_size", "true", count, "true"},
           {"num_hidden_layers", "-1", count + "10000", "-1"},
           {"num_hidden_layers", "10001", count + "10000", "10001"},
           {"num_attention_heads", "\"9\"", count + "65536", "the string '9'"},
           {"num_key_value_heads", "0", count + "9", "0"},
           {"num_key_value_heads", "10", count + "9", "10"},
           {"head_dim", "0", "at least 2", "0"},
           {"head_dim", "-4", "at least 2", "-4"},
           {"intermediate_size", "[50]", count, "a list of 1"},
           {"vocab_size", "2147483648", count + "2147483647", "2147483648"},
           {"rms_norm_eps", "0", "a number of at least 1.2e-38 and at most 1", "0"},
           {"rms_norm_eps", "-1e-6", "a number of at least 1.2e-38", "the decimal number -1e-06"},
           {"rms_norm_eps", "1e30", "a number of at least 1.2e-38", "the decimal number 1e+30"},
           {"rms_norm_eps", "1e-300", "a number of at least 1.2e-38", "the decimal number 1e-300"},
           {"rms_norm_eps", "\"1e-6\"", "a number of at least 1.2e-38", "the string '1e-6'"},
           {"rms_norm_eps", "true", "a number of at least 1.2e-38", "true"},
           {"rope_theta", "0", "a number of at least 1 and at most 1e+30", "0"},
           {"rope_theta", "-10000.0", "a number of at least 1", "the decimal number -10000.0"},
           {"rope_theta", "1e300", "a number of at least 1", "the decimal number 1e+300"},
           {"rope_theta", "\"10000\"", "a number of at least 1", "the string '10000'"},
           {"rope_scaling", "[]", "an object, or null", "a list of 0"},
           {"rope_scaling", "\"linear\"", "an object, or null", "the string 'linear'"},
           {"rope_scaling", "false", "an object, or null", "false"},
           {"rope_parameters", "10000.0", "an object, or null", "the decimal number 10000.0"},
           {"max_position_embeddings", "-1", count + "1099511627776", "-1"},
           {"max_position_embeddings", "0", count, "0"},
           {"max_position_embeddings", "true", count, "true"},
           {"eos_token_id", "61", ids, "61"},
           {"eos_token_id", "-1", ids, "-1"},
           {"eos_token_id", "\"</s>\"", ids, "the string '</s>'"},
           {"bos_token_id", "61", ids, "61"},
           {"pad_token_id", "-2", "at least -1 and at most 60", "-2"},
           {"unk_token_id", "99999999999", ids, "99999999999"},
           {"tie_word_embeddings", "1", "true or false", "1"},
           {"attention_bias", "0", "true or false", "0"},
           {"mlp_bias", "\"true\"", "true or false", "the string 'true'"},
           {"hidden_act", "1", "a string", "1"},
           {"model_type", "null", "", ""},
           {"pretraining_tp", "2", "at least 1 and at most 1", "2"},
       }) {
    std::string const message = refusal(with(base, field, value));
    if (shown.empty()) CHECK_THAT(message, Catch::EndsWith("config.json: field 'model_type' is missing"));
    else check_named(message, "config.json", field, shown, legal);
  }
  Json const mistral = with(base, "model_type", "\"mistral\"");
  std::string const window = "at least 0 and at most 1099511627776, and whole";
  check_named(refusal(with(mistral, "sliding_window", "-1")), "config.json", "sliding_window", "-1", window);
  check_named(refusal(with(mistral, "sliding_window", "4096.0")), "config.json", "sliding_window",
              "the decimal number 4096.0", window);
  check_named(refusal(with(mistral, "sliding_window", "false")), "config.json", "sliding_window", "false", window);
  for (char const* value : {"0", "4096"}) CHECK(refusal(with(mistral, "sliding_window", value)) == "");
  check_named(refusal(with(base, "eos_token_id", "[2, 61]")), "config.json", "eos_token_id[1]", "61", ids);
}

TEST_CASE("what JSON has no word for is refused with its place") {
  Scratch const scratch;
  for (std::string const number : {"NaN", "Infinity", "-Infinity", "1e999"}) {
    std::string text = base.dump();
    text.replace(text.find("10000.0"), 7, number);
    scratch.write("config.json", text);
    std::string const message = test::refusal<IoError>([&] { read_model(scratch.path()); });
    CHECK_THAT(message, Catch::Contains("config.json") && Catch::Contains("JSON"));
  }
}

TEST_CASE("null is absent, and fields at the ends of their ranges are read") {
  for (char const* field : {"num_key_value_heads", "head_dim", "rope_theta", "rope_scaling", "rope_parameters",
                            "sliding_window", "max_position_embeddings", "bos_token_id", "eos_token_id", "pad_token_id",
                            "tie_word_embeddings", "attention_bias", "hidden_act", "pretraining_tp"})
    CHECK(refusal(with(base, field, "null")) == "");
  for (auto const& [field, value] : std::vector<std::pair<char const*, char const*>>{{"eos_token_id", "[0, 60]"},
                                                                                     {"rms_norm_eps", "1"},
                                                                                     {"rope_theta", "1"},
                                                                                     {"max_position_embeddings", "1"},
                                                                                     {"num_key_value_heads", "9"},
                                                                                     {"pad_token_id", "60"},
                                                                                     {"pad_token_id", "-1"}})
    CHECK(refusal(with(base, field, value)) == "");
}

TEST_CASE("rotary settings are checked where they stand, and may not contradict each other") {
  auto const theta = [](Json const& config) { return model_config::read_rope(config, "c").theta; };
  Json const none = parse_json("{}", "c");
  CHECK(theta(none) == 10000);
  CHECK(theta(with(none, "rope_theta", "5e5")) == 5e5);
  CHECK(theta(with(none, "rope_parameters", R"({"rope_theta": 5e5})")) == 5e5);
  CHECK(theta(with(with(none, "rope_theta", "5e5"), "rope_parameters", R"({"rope_type": "default"})")) == 5e5);
  CHECK_THAT(refusal(with(base, "rope_parameters", R"({"rope_theta": 5e5})")),
             Catch::EndsWith("field 'rope_theta' is 10000 but 500000 in rope_parameters; one of them must go"));
  CHECK_THAT(refusal(with(with(base, "rope_parameters", llama3.dump()), "rope_scaling", R"({"type": "default"})")),
             Catch::EndsWith("fields 'rope_parameters' and 'rope_scaling' differ; one of them must go"));

  for (char const* where : {"rope_scaling", "rope_parameters"}) {
    auto const scaled = [&](char const* field, char const* value) {
      return refusal(with(base, where, with(llama3, field, value).dump()));
    };
    std::string const file = std::string("config.json: ") + where;
    CHECK(refusal(with(base, where, llama3.dump())) == "");
    check_named(scaled("factor", "0"), file, "factor", "0", "a number of at least 1");
    check_named(scaled("factor", "\"8\""), file, "factor", "the string '8'", "a number of at least 1");
    check_named(scaled("low_freq_factor", "-1"), file, "low_freq_factor", "-1", "a number of at least 0");
    check_named(scaled("high_freq_factor", "1.0"), file, "high_freq_factor", "1", "above low_freq_factor (1)");
    check_named(scaled("original_max_position_embeddings", "-1"), file, "original_max_position_embeddings", "-1",
                "at least 1");
    check_named(scaled("rope_theta", "\"x\""), file, "rope_theta", "the string 'x'", "a number of at least 1");
    check_named(scaled("rope_type", "1"), file, "rope_type", "1", "a string");
    CHECK_THAT(scaled("rope_type", "\"yarn\""),
               Catch::EndsWith("type 'yarn' is not known; known are default, linear and llama3"));
    CHECK_THAT(scaled("type", "\"linear\""), Catch::Contains("'type' is 'linear'; one of them must go"));
    CHECK_THAT(scaled("partial_rotary_factor", "0.5"),
               Catch::Contains("field 'partial_rotary_factor' is 0.5, which models of this family do not have"));
  }
}

TEST_CASE("sizes that contradict each other are refused") {
  CHECK_THAT(refusal(with(base, "num_key_value_heads", "2")),
             Catch::EndsWith("field 'num_key_value_heads' must divide the number of heads (9); it is 2"));
  CHECK_THAT(refusal(with(with(base, "head_dim", "null"), "hidden_size", "37")),
             Catch::Contains("the hidden size (37) is not a multiple of the number of heads (9)"));
  CHECK_THAT(refusal(with(base, "head_dim", "5")),
             Catch::Contains("5 elements of a head of 5 are rotated; rotary positions need an even number"));
}

TEST_CASE("generation_config.json overrides the end tokens and is held to the same vocabulary") {
  CHECK(model_of(base, R"({"eos_token_id": [3, 4]})").end_tokens == std::vector<i32>{3, 4});
  CHECK(model_of(base, R"({"eos_token_id": null, "top_k": 5})").end_tokens == std::vector<i32>{2});
  std::string const ids = "at least 0 and at most 60, and whole";
  check_named(refusal(base, R"({"eos_token_id": [3, 61]})"), "generation_config.json", "eos_token_id[1]", "61", ids);
  check_named(refusal(base, R"({"bos_token_id": -1})"), "generation_config.json", "bos_token_id", "-1", ids);
  CHECK_THAT(refusal(base, "[1]"), Catch::EndsWith("generation_config.json: an object is expected; it is a list of 1"));
}

TEST_CASE("what would change the computation and is not known is refused, whatever it holds") {
  CHECK_THAT(refusal(with(base, "surprise", "3")), Catch::Contains("field 'surprise' is 3 and not known"));
  CHECK_THAT(refusal(with(base, "rope_interleaved", "true")), Catch::Contains("must be false, null or absent"));
  std::string const longest = '"' + std::string(100000, 'x') + '"';
  CHECK(refusal(with(base, "surprise", longest)).size() < 400);
  CHECK(refusal(with(base, "quantization_config", longest)).size() < 400);
}
