// SPDX-License-Identifier: MIT
// Families of models as types: parameter totals equal the published ones, at compile time; the plan of a type is the
// plan of its function; the largest plans split within clang's default number of constexpr steps (the tests are held to
// half of it); a config.json gives the same configuration as the type.
#include "catch.hpp"

#include <dovetail/dovetail.hpp>
#include <dovetail/policy/layout_text.hpp>
#include <dovetail/run/model_config.hpp>

namespace dt = dovetail;

namespace {

template <dt::LlamaConfig C>
constexpr dt::i64 parameters = dt::total_parameters(dt::plan_of<dt::Llama<C>>);

static_assert(parameters<dt::models::llama2_7b> == 6'738'415'616);
static_assert(parameters<dt::models::llama2_70b> == 68'976'648'192);
static_assert(parameters<dt::models::tinyllama_1b> == 1'100'048'384);
static_assert(parameters<dt::models::llama31_8b> == 8'030'261'248);
static_assert(parameters<dt::models::llama31_405b> == 405'853'388'800);
static_assert(parameters<dt::models::llama32_1b> == 1'235'814'400);
static_assert(parameters<dt::models::smollm2_135m> == 134'515'008);
static_assert(parameters<dt::models::smollm2_360m> == 361'821'120);
static_assert(parameters<dt::models::mistral_7b_v03> == 7'248'023'552);
static_assert(parameters<dt::models::qwen25_0_5b> == 494'032'768);
static_assert(parameters<dt::models::qwen25_7b> == 7'615'616'512);
static_assert(parameters<dt::models::qwen3_0_6b> == 596'049'920);

template <class Model>
constexpr dt::i64 parameters_of = dt::total_parameters(dt::plan_of<Model>);

static_assert(parameters_of<dt::Gpt2<dt::models::gpt2_small>> == 124'439'808);
static_assert(parameters_of<dt::Falcon<dt::models::falcon_7b>> == 6'921'720'704);
static_assert(parameters_of<dt::Falcon<dt::models::falcon_7b_of(false)>> == 7'217'189'760);
// Counted elsewhere with a pooler of 384 x 384 + 384, which sentence embeddings do not use.
static_assert(parameters_of<dt::Bert<dt::models::minilm_l6_v2>> + 384 * 385 == 22'713'216);
// What their publishers state of these, in thousands of millions: 2.6, 7.3 and 3.8.
static_assert(parameters_of<dt::Gemma2<dt::models::gemma2_2b>> == 2'614'341'888);
static_assert(parameters_of<dt::Olmo2<dt::models::olmo2_7b>> == 7'298'617'344);
static_assert(parameters<dt::models::phi3_mini_4k> == 3'821'079'552);

/// A type and a function make one plan, split and whole.
template <class Model, class Split>
bool same_as(auto const& function) {
  auto const text =
      dt::try_layout(dt::read_layout("dp2 pp2 tp2"), dt::plan_of<Split>.stages() ? Model::depth : 0, function);
  auto const whole = dt::build(function);
  return dt::same_plan(dt::plan_of<Model>, whole.view()) && dt::same_plan(dt::plan_of<Split>, text.view());
}
struct Dp2 : dt::Axis<"dp", 2> {};
struct Pp2 : dt::Axis<"pp", 2> {};
struct Tp2 : dt::Axis<"tp", 2> {};
template <class Model>
using Split = dt::Replicated<Dp2, dt::Pipelined<Pp2, dt::TensorSharded<Tp2, Model>>>;

struct Dp : dt::Axis<"dp", 128> {};
struct Pp : dt::Axis<"pp", 16> {};
struct Tp : dt::Axis<"tp", 8> {};
struct Llama405B : dt::Llama<dt::models::llama31_405b> {};
struct Largest : dt::Replicated<Dp, dt::Pipelined<Pp, dt::TensorSharded<Tp, Llama405B>>> {};
static_assert(dt::plan_of<Largest>.ranks() == 16384);
static_assert(dt::plan_of<Largest>.executed(dt::step::all_reduce) == 2 * 126 + 2);
static_assert(dt::plan_of<Largest>.stage(0).layers == 8 && dt::plan_of<Largest>.stage(15).layers == 7);

dt::LlamaConfig read(std::string const& text) {
  return dt::model_config::read_llama_sizes(dt::parse_json(text, "config.json"), "config.json");
}

}  // namespace

TEST_CASE("a split leaves the model's parameters what they are") {
  CHECK(dt::total_parameters(dt::plan_of<Largest>) == parameters<dt::models::llama31_405b>);
}

TEST_CASE("the plan of a type is the plan of its function") {
  using namespace dt::models;
  auto const of = [](auto const& function, auto const& config) {
    return [&](dt::Builder& b, dt::Value ids) { return function(b, ids, config); };
  };
  auto const llama = [](dt::Builder& b, dt::Value x, dt::LlamaConfig const& c) { return dt::llama(b, x, c); };
  auto const gemma2 = [](dt::Builder& b, dt::Value x, dt::Gemma2Config const& c) { return dt::gemma2(b, x, c); };
  CHECK(same_as<dt::Llama<mistral_7b_v01>, Split<dt::Llama<mistral_7b_v01>>>(of(llama, mistral_7b_v01)));
  CHECK(same_as<dt::Llama<qwen25_0_5b>, Split<dt::Llama<qwen25_0_5b>>>(of(llama, qwen25_0_5b)));
  CHECK(same_as<dt::Llama<qwen3_0_6b>, Split<dt::Llama<qwen3_0_6b>>>(of(llama, qwen3_0_6b)));
  CHECK(same_as<dt::Gpt2<gpt2_small>, Split<dt::Gpt2<gpt2_small>>>(of(&dt::gpt2, gpt2_small)));
  CHECK(same_as<dt::Falcon<falcon_7b>, Split<dt::Falcon<falcon_7b>>>(of(&dt::falcon, falcon_7b)));
  CHECK(same_as<dt::Gemma2<gemma2_2b>, Split<dt::Gemma2<gemma2_2b>>>(of(gemma2, gemma2_2b)));
  CHECK(same_as<dt::Bert<minilm_l6_v2>, Split<dt::Bert<minilm_l6_v2>>>(of(&dt::bert, minilm_l6_v2)));
  CHECK(same_as<dt::Olmo2<olmo2_7b>, Split<dt::Olmo2<olmo2_7b>>>(of(&dt::olmo2, olmo2_7b)));
}

TEST_CASE("config.json gives the configuration that the type has") {
  auto const base = std::string(R"({"model_type": "llama", "hidden_size": 2048, "num_hidden_layers": 16,
    "num_attention_heads": 32, "num_key_value_heads": 8, "head_dim": 64, "intermediate_size": 8192,
    "vocab_size": 128256,
    "rms_norm_eps": 1e-05, "tie_word_embeddings": true, )");
  std::string const scaling = R"({"factor": 32.0, "high_freq_factor": 4.0, "low_freq_factor": 1.0,
    "original_max_position_embeddings": 8192, "rope_type": "llama3")";
  std::string const both[] = {R"("rope_theta": 500000.0, "rope_scaling": )" + scaling + "}}",
                              R"("rope_parameters": )" + scaling + R"(, "rope_theta": 500000.0}})"};
  for (auto const& rope : both) {
    auto const c = read(base + rope);
    auto const& expected = dt::models::llama32_1b;
    CHECK(c.embed_size == expected.embed_size);
    CHECK(c.layers == expected.layers);
    CHECK(c.head_count == expected.head_count);
    CHECK(c.kv_head_count == expected.kv_head_count);
    CHECK(c.head_size == expected.head_size);
    CHECK(c.ffn_size == expected.ffn_size);
    CHECK(c.vocab_size == expected.vocab_size);
    CHECK(c.tied == expected.tied);
    CHECK(c.rope.theta == expected.rope.theta);
    CHECK(c.rope.factor == expected.rope.factor);
    CHECK(c.rope.original_context == expected.rope.original_context);
    auto const planned = dt::build([&](dt::Builder& b, dt::Value ids) { return dt::llama(b, ids, c); });
    CHECK(dt::total_parameters(planned.view()) == 1'235'814'400);
  }
}
