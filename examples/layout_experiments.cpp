// SPDX-License-Identifier: MIT
// Experiments with layouts, done by the compiler: Llama 3.1 with 8B and 405B parameters under several layouts, compared
// by what a rank stores and receives. Each claim is a static_assert on the plans, so the build is the experiment; the
// program prints the same numbers as a table. A layout of your own takes three lines: its type, its row, your claim.
#include "finish_output.hpp"

#include <cstdio>
#include <dovetail/dovetail.hpp>
namespace dt = dovetail;

struct Llama8B : dt::Llama<dt::models::llama31_8b> {};
struct Llama405B : dt::Llama<dt::models::llama31_405b> {};

struct Dp2 : dt::Axis<"dp", 2> {};
struct Pp2 : dt::Axis<"pp", 2> {};
struct Pp16 : dt::Axis<"pp", 16> {};
struct Tp4 : dt::Axis<"tp", 4> {};
struct Tp8 : dt::Axis<"tp", 8> {};
struct Tp16 : dt::Axis<"tp", 16> {};

// ---- layouts: the first of the three lines

struct Small1 : Llama8B {};
struct Small8 : dt::TensorSharded<Tp8, Llama8B> {};
struct Small4 : dt::TensorSharded<Tp4, Llama8B> {};
struct Small2x4 : dt::Pipelined<Pp2, Small4> {};
struct SmallTwice4 : dt::Replicated<Dp2, Small4> {};

struct Large8 : dt::TensorSharded<Tp8, Llama405B> {};
struct Large16 : dt::TensorSharded<Tp16, Llama405B> {};
struct Large2x8 : dt::Pipelined<Pp2, Large8> {};
struct Large16x8 : dt::Pipelined<Pp16, Large8> {};

/// Llama whose norms work on parts of the sequence: a policy around single layers, inside one around the model.
template <auto C>
struct SequenceBlock
    : dt::Sequential<
          dt::Residual<dt::SequenceSharded<Tp8, dt::RmsNorm<C.norm("attention_norm")>>, dt::Attention<C.attention()>>,
          dt::Residual<dt::SequenceSharded<Tp8, dt::RmsNorm<C.norm("mlp_norm")>>, dt::GatedMlp<C.mlp()>>> {};
template <auto C>
struct SequenceLlama : dt::Sequential<dt::TokenEmbedding<C.embedding()>, dt::Repeat<C.layers, SequenceBlock<C>>,
                                      dt::RmsNorm<C.norm("final_norm")>, dt::LmHead<C.head()>> {};
struct SmallSequence8 : dt::TensorSharded<Tp8, SequenceLlama<dt::models::llama31_8b>> {};

// ---- what is compared, for devices that keep activations, weights and caches in bf16

constexpr dt::StorageBytes bf16{{2, 2, 2, 4, 16, 8}};
constexpr dt::SequenceRun decoding{512, 1, 1}, prompt{0, 512, 1};

struct Figures {
  dt::i64 ranks = 0;
  dt::i64 weights = 0;      ///< bytes that a rank stores, at most
  dt::i64 cache = 0;        ///< bytes a token of context that a rank stores, at most
  dt::i64 all_reduces = 0;  ///< that a token passes, on all stages
  dt::i64 exchanges = 0;    ///< the same for every step that communicates along an axis
  dt::i64 decode = 0;       ///< bytes that the first rank of a stage receives for a new token, at most
  dt::i64 prefill = 0;      ///< for a prompt of 512
};

/// What a rank receives where each replica works on one sequence.
constexpr dt::TrafficReport received(dt::Plan const& plan, dt::i64 rank, dt::SequenceRun const& each) {
  dt::Vec<dt::SequenceRun, 8> batch;
  for (dt::i64 r = 0; r < plan.replicas(); ++r) batch.push(each);
  return dt::traffic(plan, rank, {batch.begin(), batch.size()}, bf16);
}
/// What it receives within one layer of those that repeat.
constexpr dt::i64 received_in_layer(dt::Plan const& plan, dt::i64 rank, dt::SequenceRun const& each) {
  dt::i64 bytes = 0;
  for (dt::i32 s = 0; s < plan.steps.size(); ++s)
    if (plan.steps[s].loop >= 0) bytes += dt::step_traffic(plan, s, rank, {&each, 1}, bf16).bytes;
  return bytes;
}

constexpr Figures measured(dt::Plan const& plan) {
  Figures f;
  auto const at_least = [](dt::i64& most, dt::i64 here) { most = here > most ? here : most; };
  f.ranks = plan.ranks(), f.weights = dt::weight_bytes_per_rank(plan, bf16);
  f.all_reduces = plan.executed(dt::step::all_reduce);
  for (auto const& s : plan.steps)
    if (dt::communicates(s.kind)) f.exchanges += plan.executions(s.loop);
  for (dt::i32 s = 0; s < plan.stages(); ++s) {
    dt::i64 const rank = plan.stage(s).base;
    at_least(f.cache, dt::kv_bytes_per_token(plan, rank, bf16));
    at_least(f.decode, received(plan, rank, decoding).total.bytes);
    at_least(f.prefill, received(plan, rank, prompt).total.bytes);
  }
  return f;
}
template <class Layout>
constexpr Figures of = measured(dt::plan_of<Layout>);

// ---- the table: the second line

constexpr struct {
  char const* name;
  Figures const& figures;
} rows[] = {
    {"8B single", of<Small1>},        {"8B tp8", of<Small8>},     {"8B tp8, norms on sequence", of<SmallSequence8>},
    {"8B pp2 tp4", of<Small2x4>},     {"8B tp4", of<Small4>},     {"8B dp2 tp4", of<SmallTwice4>},
    {"405B tp8", of<Large8>},         {"405B tp16", of<Large16>}, {"405B pp2 tp8", of<Large2x8>},
    {"405B pp16 tp8", of<Large16x8>},
};

// ---- claims: the third line

// One rank stores every parameter, in two bytes, and talks to nobody.
static_assert(of<Small1>.weights == 2 * dt::total_parameters(dt::plan_of<Small1>));
static_assert(of<Small1>.exchanges == 0 && of<Small1>.prefill == 0);

// Eight ranks as tp8 or as pp2 tp4 store the same, to 1 %. A token passes the same all-reduces, two a layer, one of the
// embedding and one of the choice; but a rank takes part in half of them, among four, and receives less than half.
static_assert(100 * of<Small8>.weights < 101 * of<Small2x4>.weights);
static_assert(100 * of<Small2x4>.weights < 101 * of<Small8>.weights);
static_assert(of<Small8>.cache == of<Small2x4>.cache && of<Small8>.cache == of<Small1>.cache / 8);
static_assert(of<Small8>.all_reduces == 2 * 32 + 2 && of<Small2x4>.all_reduces == of<Small8>.all_reduces);
static_assert(2 * of<Small2x4>.decode < of<Small8>.decode && 2 * of<Small2x4>.prefill < of<Small8>.prefill);

// A stage boundary costs each rank of the next stage one activation, and nothing else.
static_assert(received(dt::plan_of<Small2x4>, 4, prompt).of(dt::step::send) == dt::Cost{1, 512 * 4096 * 2});

// Replicas serve other sequences: they double the ranks and add no traffic.
static_assert(of<SmallTwice4>.ranks == 2 * of<Small4>.ranks && of<SmallTwice4>.weights == of<Small4>.weights);
static_assert(of<SmallTwice4>.decode == of<Small4>.decode && of<SmallTwice4>.prefill == of<Small4>.prefill);
static_assert(received(dt::plan_of<SmallTwice4>, 0, prompt).along("dp") == dt::Cost{});

// Norms on parts of the sequence turn the all-reduces of a layer into reduce-scatters and all-gathers of the same
// bytes. A single new token cannot be parted: its rank receives the part of every other one.
constexpr auto layer_of_sequence = dt::plan_of<SmallSequence8>.within<SequenceBlock<dt::models::llama31_8b>>();
static_assert(layer_of_sequence.count(dt::step::reduce_scatter) == 2);
static_assert(layer_of_sequence.count(dt::step::all_gather) == 2 && layer_of_sequence.count(dt::step::all_reduce) == 0);
static_assert(received_in_layer(dt::plan_of<SmallSequence8>, 0, prompt) ==
              received_in_layer(dt::plan_of<Small8>, 0, prompt));
static_assert(received_in_layer(dt::plan_of<SmallSequence8>, 0, decoding) ==
              4 * received_in_layer(dt::plan_of<Small8>, 0, decoding));

// 405B does not fit eight ranks of 80 GiB. On sixteen, tp16 stores each of the eight KV heads twice; pp2 tp8 needs half
// the cache and less than half the traffic. More stages divide weights, cache and traffic, and add no all-reduce.
static_assert(of<Large8>.weights > 80 * dt::GiB && of<Large2x8>.weights < 80 * dt::GiB);
static_assert(of<Large16>.cache == 2 * of<Large2x8>.cache && of<Large16>.ranks == of<Large2x8>.ranks);
static_assert(2 * of<Large2x8>.decode < of<Large16>.decode);
static_assert(of<Large16x8>.ranks == 128 && of<Large16x8>.all_reduces == of<Large8>.all_reduces);
static_assert(7 * of<Large16x8>.weights < of<Large2x8>.weights && 7 * of<Large16x8>.decode < of<Large2x8>.decode);

int main() {
  std::puts("                             ranks  weights a rank  cache a token  exchanges  received a rank, for");
  std::puts("                                               GiB            KiB               a token   512 tokens");
  std::puts("                                                                                    KiB          MiB");
  for (auto const& [name, f] : rows)
    std::printf("%-27s %6d %15.2f %14.1f %10d %9.1f %12.1f\n", name, int(f.ranks), double(f.weights) / dt::GiB,
                double(f.cache) / dt::KiB, int(f.exchanges), double(f.decode) / dt::KiB, double(f.prefill) / dt::MiB);
  return finish_output("layout_experiments", 0);
}
