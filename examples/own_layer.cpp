// SPDX-License-Identifier: MIT
// A layer of one's own: an MLP with squared ReLU whose hidden channels are scaled by the largest of them. It brings a
// dim, three ops and their kernels; what its ops say of their dims is all that the policies need, the user's own policy
// on the user's own dim among them. Every layout runs on threads and must give the logits of the unsplit model, bit for
// bit. Returns 0 where all do.
#include "finish_output.hpp"

#include <bit>
#include <cmath>
#include <cstdio>
#include <dovetail/comm/threads.hpp>
#include <dovetail/device/reference.hpp>
#include <dovetail/dovetail.hpp>
#include <dovetail/policy/layout_text.hpp>
#include <dovetail/run/executor.hpp>
#include <limits>
namespace dt = dovetail;
using dt::i64;

// ---- the layer

/// The hidden dim has a name of its own; its extent is the layer's business.
struct channels : dt::Dim<"channels"> {};

/// max(0, x) squared. Elementwise: every dim is mapped, so a part of x gives that part of the result.
inline constexpr dt::Op squared_relu{.name = "squared_relu", .elementwise = true};
/// The largest of a token's channels. What it contracts is a maximum: parts of it meet in a maximum, not in a sum.
inline constexpr dt::Op peak{.name = "peak", .maximum = true};
/// gain * x / (1 + peak). Elementwise in x and gain; the peak, which lacks the channels, is read whole.
inline constexpr dt::Op damp{.name = "damp", .elementwise = true};

struct PeakMlpConfig {
  i64 embed_size = 0, channel_count = 0;
};

/// [.., embed] -> [.., embed]; parameters {up,down}.weight and gain.
constexpr dt::Value peak_mlp(dt::Builder& b, dt::Value x, PeakMlpConfig const& c) {
  dt::Dims const outer = dt::dims(dt::extent<dt::embed>(c.embed_size));
  dt::Dims const hidden = dt::dims(dt::extent<channels>(c.channel_count));
  dt::Value h = dt::linear(b, x, dt::LinearConfig{outer, hidden, false, dt::Name{"up"}});
  h = b.apply(dt::Call(squared_relu).reads(h).yields(b.dims(h)));
  dt::Value const most =
      b.apply(dt::Call(peak).reads(h).contracts<channels>().maps_rest().yields(dt::without(b.dims(h), hidden)));
  h = b.apply(dt::Call(damp).reads(h).reads(most).holds(b.parameter(hidden, "gain")).yields(b.dims(h)));
  return dt::linear(b, h, dt::LinearConfig{hidden, outer, false, dt::Name{"down"}});
}

template <PeakMlpConfig C>
struct PeakMlp {
  static constexpr dt::Value apply(dt::Builder& b, dt::Value x) { return peak_mlp(b, x, C); }
};

// ---- its kernels: local tensors of rows x width, whatever the layout; what is not exact is rounded to the grid

void run_squared_relu(dt::KernelCall<dt::Reference> const& call) {
  dt::View const &x = call.operands[0], &y = call.results[0];
  for (i64 i = 0; i < x.rows * x.width; ++i) {
    double const v = x.as<double>()[i] > 0 ? x.as<double>()[i] : 0;
    y.as<double>()[i] = dt::grid::product(v, v);
  }
  dt::grid::check_values("squared_relu", y.as<double>(), y.rows, y.width);
}
/// A rank without channels has a peak of 0, which changes no maximum of squares.
void run_peak(dt::KernelCall<dt::Reference> const& call) {
  dt::View const &x = call.operands[0], &y = call.results[0];
  for (i64 r = 0; r < x.rows; ++r) {
    double most = 0;
    for (i64 i = 0; i < x.width; ++i) most = std::max(most, x.as<double>()[r * x.width + i]);
    y.as<double>()[r] = most;
  }
}
void run_damp(dt::KernelCall<dt::Reference> const& call) {
  dt::View const &x = call.operands[0], &most = call.operands[1], &y = call.results[0];
  double const* const gain = call.parameters[0].as<double>();  // of the channels that this rank holds
  for (i64 r = 0; r < x.rows; ++r)
    for (i64 c = 0, i = r * x.width; c < x.width; ++c, ++i)
      y.as<double>()[i] = dt::grid::round(gain[c] * x.as<double>()[i] / (1 + most.as<double>()[r]));
}
constexpr dt::KernelRow<dt::Reference> kernels[] = {
    {&squared_relu, &run_squared_relu}, {&peak, &run_peak}, {&damp, &run_damp}};

// ---- a small model with it, and a policy of one's own

constexpr i64 width = 18, vocab_size = 47;
constexpr dt::AttentionConfig attention{.embed_size = width, .head_count = 9, .kv_head_count = 3, .head_size = 4};
constexpr dt::RmsNormConfig norm(char const* role) {
  return dt::RmsNormConfig{dt::dims(dt::extent<dt::embed>(width)), 1e-5, dt::name(role)};
}
struct Mlp : PeakMlp<PeakMlpConfig{width, 26}> {};
/// `OwnMlp` is Mlp, or Mlp inside policies of its own.
template <dt::Layer OwnMlp>
struct BlockOf : dt::Sequential<dt::Residual<dt::RmsNorm<norm("attention_norm")>, dt::Attention<attention>>,
                                dt::Residual<dt::RmsNorm<norm("mlp_norm")>, OwnMlp>> {};
template <dt::Layer OwnMlp>
struct ModelOf
    : dt::Sequential<dt::TokenEmbedding<dt::EmbeddingConfig{vocab_size, width}>, dt::Repeat<4, BlockOf<OwnMlp>>,
                     dt::RmsNorm<norm("final_norm")>, dt::LmHead<dt::LmHeadConfig{vocab_size, width}>> {};
struct Model : ModelOf<Mlp> {};

/// The user's own policies: they map the user's own dim, alone or with others.
template <class A, class L>
struct ChannelSharded : dt::Mapped<A, L, channels> {};
template <class A, class L>
struct AllSharded : dt::Mapped<A, L, dt::heads, channels, dt::vocab> {};

struct Dp2 : dt::Axis<"dp", 2> {};
struct Pp2 : dt::Axis<"pp", 2> {};
struct Cp5 : dt::Axis<"cp", 5> {};
struct Tp3 : dt::Axis<"tp", 3> {};
struct Uneven : dt::Axis<"tp", dt::Shares<3, 0, 1>{}> {};

struct Channels : ChannelSharded<Cp5, Model> {};
struct All : AllSharded<Tp3, Model> {};
struct Unequal : AllSharded<Uneven, Model> {};
struct Staged : dt::Replicated<Dp2, dt::Pipelined<Pp2, ChannelSharded<Tp3, Model>>> {};
struct TwoAxes : ChannelSharded<Dp2, AllSharded<Tp3, Model>> {};
struct Sequence : dt::TensorSharded<Tp3, ModelOf<dt::SequenceSharded<Tp3, Mlp>>> {};

// The maximum is one all-reduce; the sum of `down` leaves the layer Partial and is settled by the block around it.
static_assert(dt::plan_of<Channels>.within<Mlp>().count(dt::step::all_reduce) == 1);
static_assert(dt::plan_of<Channels>.within<BlockOf<Mlp>>().count(dt::step::all_reduce) == 2);
static_assert(dt::plan_of<Staged>.ranks() == 12 && dt::coverage(dt::plan_of<Staged>).ok());
// On parts of the sequence the layer needs nobody.
static_assert(dt::plan_of<Sequence>.within<Mlp>().count(dt::step::all_reduce) == 0);

// ---- running

/// Weights as a function of name and global index, so that any rank can fill its part alone.
void fill(std::string const& name, dt::WeightShape const& shape, std::span<double> room) {
  i64 at[dt::max_dims]{};
  for (double& weight : room) {
    std::uint64_t hash = std::hash<std::string>{}(name);
    for (dt::i32 k = 0; k < shape.dims.size(); ++k) {
      hash ^= static_cast<std::uint64_t>(shape.ranges[k].lo + at[k] + 1);
      hash *= 0x9e3779b97f4a7c15u;
      hash ^= hash >> 31;
    }
    double const unit = static_cast<double>(hash >> 11) * 0x1p-52 - 1;
    weight = shape.dims.size() == 1 ? 1 + 0.3 * unit : 0.4 * unit;
    for (dt::i32 k = shape.dims.size() - 1; k >= 0 && ++at[k] == shape.ranges[k].size(); --k) at[k] = 0;
  }
}

constexpr i64 capacity = 12;
/// Logits of all positions, by sequence, position and token id.
using Logits = std::vector<double>;
constexpr std::size_t index_of(i64 sequence, i64 position, i64 id) {
  return static_cast<std::size_t>((sequence * capacity + position) * vocab_size + id);
}

/// Two prompts of different lengths, then one more token of each. What each rank held; NaN where it held nothing.
std::vector<Logits> run(dt::Plan const& plan) {
  std::vector<dt::i32> const prompts[] = {{5, 3, 46, 12, 0, 7, 31}, {9, 2, 21}};
  Logits const nothing(index_of(2, 0, 0), std::numeric_limits<double>::quiet_NaN());
  std::vector<Logits> held(static_cast<std::size_t>(plan.ranks()), nothing);
  dt::ThreadWorld world(static_cast<int>(plan.ranks()));
  world.run([&](dt::ThreadCommunicator& comm) {
    dt::Reference device;
    dt::Executor<dt::Reference, dt::ThreadCommunicator> executor(plan, device, comm, &fill, {2, capacity}, kernels);
    auto const pass = [&](std::vector<dt::SequenceRun> const& shape, auto const& tokens) {
      executor.forward({shape.data(), static_cast<dt::i32>(shape.size())}, tokens);
      auto const view = executor.view(plan.result);
      if (!view) return;  // on another stage
      dt::Range const ids = view->range(dt::dim_of<dt::vocab>);
      for (dt::Segment const& s : view->segments)
        for (i64 p = s.range.lo; p < s.range.hi; ++p)
          for (i64 id = ids.lo; id < ids.hi; ++id)
            held[static_cast<std::size_t>(comm.rank())]
                [index_of(s.sequence, shape[static_cast<std::size_t>(s.sequence)].past + p, id)] =
                    view->as<double>()[(s.row + p - s.range.lo) * view->width + id - ids.lo];
    };
    dt::i32 const next[] = {17, 40};
    pass({{0, 7, 7}, {0, 3, 3}}, std::vector<std::span<dt::i32 const>>{prompts[0], prompts[1]});
    pass({{7, 1, 1}, {3, 1, 1}}, std::vector<std::span<dt::i32 const>>{{&next[0], 1}, {&next[1], 1}});
  });
  return held;
}

bool same_bits(double a, double b) { return std::bit_cast<std::uint64_t>(a) == std::bit_cast<std::uint64_t>(b); }

/// True where every number that a rank held is the whole model's, and every number of the whole is held by some rank.
bool equals_whole(char const* name, dt::Plan const& plan, Logits const& whole) {
  std::vector<Logits> const parts = run(plan);
  i64 differing = 0, missing = 0, logits = 0;
  for (std::size_t i = 0; i < whole.size(); ++i) {
    if (std::isnan(whole[i])) continue;
    bool found = false;
    for (Logits const& part : parts) {
      if (std::isnan(part[i])) continue;
      found = true;
      differing += !same_bits(part[i], whole[i]);
    }
    missing += !found;
    ++logits;
  }
  std::printf("%-40s %2d ranks: ", name, static_cast<int>(plan.ranks()));
  if (differing || missing) std::printf("%d logits DIFFER, %d are missing\n", int(differing), int(missing));
  else std::printf("%d logits, all equal to the unsplit model's, bit for bit\n", int(logits));
  return !differing && !missing && logits == (7 + 3 + 2) * vocab_size;
}

/// Layout texts know the dims that they are told.
bool text_equals_whole(char const* text, Logits const& whole) {
  std::vector<dt::DimInfo const*> dims = dt::layout_text::known_dims();
  dims.push_back(dt::dim_of<channels>);
  dt::LayoutPlan const planned = dt::plan_layout(dt::read_layout(text, dims), 4, &Model::apply);
  return equals_whole(text, planned.view(), whole);
}

int main() {
  try {
    Logits const whole = run(dt::plan_of<Model>)[0];
    bool all = equals_whole("Channels: cp5 on channels", dt::plan_of<Channels>, whole);
    all &= equals_whole("All: tp3 on heads, channels, vocab", dt::plan_of<All>, whole);
    all &= equals_whole("Unequal: shares 3, 0 and 1", dt::plan_of<Unequal>, whole);
    all &= equals_whole("Staged: dp2 pp2, channels on tp3", dt::plan_of<Staged>, whole);
    all &= equals_whole("TwoAxes: channels on dp2 and tp3", dt::plan_of<TwoAxes>, whole);
    all &= equals_whole("Sequence: the layer on parts of it", dt::plan_of<Sequence>, whole);
    all &= text_equals_whole("pp4=1,1,1,1 cp2(channels,heads)", whole);
    all &= text_equals_whole("pp2[tp3(heads,channels)|cp2(channels)]", whole);
    return finish_output("own_layer", all ? 0 : 1);
  } catch (std::exception const& error) {
    std::fprintf(stderr, "own_layer: %s\n", error.what());
    return 1;
  }
}
