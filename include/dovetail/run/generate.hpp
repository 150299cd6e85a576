// SPDX-License-Identifier: MIT
// Generation: prefill of ragged prompts, then one token a sequence and pass, on every rank of a world of any kind.
// Each rank keeps an executor; after a pass the ranks of a serving group agree on the new tokens with one small
// all-reduce, so that end tokens, stop requests and cancellation reach all of them at the same step. Replicas go their
// own way. The world and the device are the caller's; results are gathered here.
#pragma once
#include <atomic>
#include <chrono>
#include <dovetail/plan/traffic.hpp>
#include <dovetail/run/executor.hpp>
#include <dovetail/run/model.hpp>
#include <dovetail/run/sampling.hpp>
#include <dovetail/run/serving_group.hpp>

namespace dovetail {

/// Why a sequence ended.
enum class Ended : std::uint8_t { length, end_token, stopped, context, cancelled };

constexpr char const* name_of(Ended e) {
  constexpr char const* names[] = {"length", "end_token", "stopped", "context", "cancelled"};
  return names[static_cast<int>(e)];
}

struct GenerateRequest {
  std::vector<std::vector<i32>> prompts{};  ///< token ids, one list a sequence
  i64 max_new_tokens = 32;
  Sampling sampling{};
  std::vector<i32> end_tokens{};  ///< a sequence ends after any of them
  i64 capacity = 0;               ///< tokens a sequence that the caches hold; 0: what the request needs
  bool all_logits = false;        ///< logits of every computed position, whole, in the result
  /// Called for each new token, sequence by sequence, by the one rank that speaks for the sequence; other sequences
  /// may be on other threads. Returning false ends the sequence.
  std::function<bool(i64 sequence, i32 token)> on_token{};
  std::atomic<bool> const* cancel = nullptr;  ///< true ends all sequences at the next token
};

struct SequenceResult {
  std::vector<i32> tokens{};
  Ended ended = Ended::length;
  std::vector<std::vector<double>> logits{};  ///< by position, prompt first, then by token id, where asked for
};

/// What one rank sent, held and did.
struct RankReport {
  TrafficCounters counted{};
  Cost predicted{};
  i64 weight_bytes = 0, packed_bytes = 0, state_bytes = 0, arena_bytes = 0;
};

struct GenerateResult {
  std::vector<SequenceResult> sequences{};
  std::vector<RankReport> ranks{};
  double prefill_seconds = 0, decode_seconds = 0;
  i64 prompt_tokens = 0, new_tokens = 0;
  i64 decoded_tokens = 0;  ///< new tokens without the first of each sequence, which prefill gives

  double prefill_tokens_per_second() const {
    return prefill_seconds > 0 ? static_cast<double>(prompt_tokens) / prefill_seconds : 0;
  }
  double tokens_per_second() const {
    return decode_seconds > 0 ? static_cast<double>(decoded_tokens) / decode_seconds : 0;
  }
};

/// Refuses what no run could serve. @throws std::invalid_argument naming prompt, position, number and limit
inline void check_request(GenerateRequest const& request, Model const& model) {
  request.sampling.check();
  auto const refuse = [](std::string const& what) { throw std::invalid_argument(what); };
  if (request.prompts.empty()) refuse("there is no prompt: at least one is needed");
  if (request.max_new_tokens < 0)
    refuse("max-new-tokens is " + std::to_string(request.max_new_tokens) + "; 0 or more is expected");
  constexpr i64 most = i64{1} << 40;  // far above any context, far below where sums overflow
  if (request.max_new_tokens > most || request.capacity < 0 || request.capacity > most)
    refuse("max-new-tokens is " + std::to_string(request.max_new_tokens) + " and the capacity " +
           std::to_string(request.capacity) + "; 0 to " + std::to_string(most) + " is expected");
  for (std::size_t s = 0; s < request.prompts.size(); ++s) {
    auto const& prompt = request.prompts[s];
    std::string const which = "prompt " + std::to_string(s);
    if (prompt.empty()) refuse(which + " is empty: at least one token is needed");
    for (std::size_t i = 0; i < prompt.size(); ++i)
      if (prompt[i] < 0 || prompt[i] >= model.vocab_size)
        refuse(which + ": token " + std::to_string(prompt[i]) + " at position " + std::to_string(i) +
               " is outside the vocabulary; legal are 0 to " + std::to_string(model.vocab_size - 1));
    i64 const length = static_cast<i64>(prompt.size());
    if (model.context_limit && length > model.context_limit)
      refuse(which + " has " + std::to_string(length) + " tokens, the model's context limit is " +
             std::to_string(model.context_limit));
    if (request.capacity && length > request.capacity)
      refuse(which + " has " + std::to_string(length) + " tokens, the caches were given a capacity of " +
             std::to_string(request.capacity) + ": it does not fit");
  }
}

/// Tokens of a sequence that the caches must hold.
inline i64 needed_capacity(GenerateRequest const& request, Model const& model) {
  i64 longest = 0;
  for (auto const& p : request.prompts) longest = (std::max)(longest, static_cast<i64>(p.size()));
  i64 capacity = request.capacity ? request.capacity : longest + (std::max<i64>)(request.max_new_tokens - 1, 0);
  if (model.context_limit) capacity = (std::min)(capacity, model.context_limit);
  return capacity;
}

/// One rank's part of a generation.
template <Device D, Communicator C>
class RankGenerator {
 public:
  RankGenerator(Plan const& plan, Model const& model, GenerateRequest const& request, D& device, C& comm,
                WeightSource<typename D::Scalar> const& source, std::span<KernelRow<D> const> kernels = {})
      : plan_(plan),
        request_(request),
        comm_(comm),
        choice_(plan.output("choice")),
        count_(request.prompts.size()),
        capacity_(needed_capacity(request, model)),
        executor_(plan, device, comm, source, {static_cast<i64>(count_), capacity_}, kernels),
        search_(static_cast<i64>(count_)) {
    if (choice_ < 0) throw std::invalid_argument("the model has no output 'choice': its last layer is not a head");
    group_.emplace(comm.group(serving_group(plan, choice_, comm.rank())));
    speaks_ = speaks(plan, choice_, executor_.place());
    for (auto const& p : request.prompts) tokens_.emplace_back(p);
    now_.resize(count_), shape_.resize(count_), rules_.resize(count_), news_.resize(count_),
        done_.assign(count_, false);
    i64 const passes = (std::min)(request.max_new_tokens, capacity_) + 1;  // so that no pass allocates
    for (auto& t : tokens_) t.reserve(t.size() + static_cast<std::size_t>(passes));
    history_.reserve(static_cast<std::size_t>(passes + 1) * count_);
  }

  /// Runs to the end. `result` is shared by all ranks: each writes its own sequences and its own report.
  void run(GenerateResult& result) {
    using Clock = std::chrono::steady_clock;
    auto const start = Clock::now();
    prefill(result);
    auto const prefilled = Clock::now();
    while (decode(result)) {}
    auto const end = Clock::now();
    seconds_[0] = std::chrono::duration<double>(prefilled - start).count();
    seconds_[1] = std::chrono::duration<double>(end - prefilled).count();
    for (std::size_t s = 0; s < count_; ++s) {
      if (!speaks_for_[s]) continue;
      auto const from = static_cast<std::ptrdiff_t>(request_.prompts[s].size());
      result.sequences[s].tokens.assign(tokens_[s].begin() + from, tokens_[s].end());
      result.sequences[s].ended = ended_[s];
    }
    report(result.ranks[static_cast<std::size_t>(comm_.rank())]);
  }
  double prefill_seconds() const { return seconds_[0]; }
  double decode_seconds() const { return seconds_[1]; }
  Executor<D, C>& executor() { return executor_; }

 private:
  static constexpr i32 not_mine = (std::numeric_limits<i32>::min)();

  Plan plan_;
  GenerateRequest const& request_;
  C& comm_;
  i32 choice_;
  std::size_t count_;
  i64 capacity_;
  Executor<D, C> executor_;
  ThresholdSearch<C> search_;
  std::optional<typename C::Group> group_{};
  bool speaks_ = false;
  std::vector<std::vector<i32>> tokens_{};   ///< prompt and new tokens
  std::vector<std::span<i32 const>> now_{};  ///< new tokens of the next pass
  std::vector<SequenceRun> shape_{};
  std::vector<ChoiceRule> rules_{};
  std::vector<i32> news_{};  ///< 2 token + ended, exchanged after each pass
  std::vector<bool> done_{};
  std::vector<Ended> ended_ = std::vector<Ended>(count_, Ended::length);
  std::vector<bool> mine_ = std::vector<bool>(count_, false);        ///< of this serving group
  std::vector<bool> speaks_for_ = std::vector<bool>(count_, false);  ///< it is this rank that tells its tokens
  std::vector<SequenceRun> history_{};                               ///< shapes of all passes, for the prediction
  double seconds_[2]{};

  void prefill(GenerateResult& result) {
    for (std::size_t s = 0; s < count_; ++s) {
      i64 const length = static_cast<i64>(tokens_[s].size());
      shape_[s] = {0, length, request_.all_logits ? length : 1};
      now_[s] = tokens_[s];
    }
    pass();
    keep_logits(result);
    agree();
  }
  /// One more token of every sequence that goes on. @return false where none does
  bool decode(GenerateResult& result) {
    bool any = false;
    for (std::size_t s = 0; s < count_; ++s) {
      i64 const length = static_cast<i64>(tokens_[s].size());
      bool const on = mine_[s] && !done_[s];
      any = any || on;
      shape_[s] = on ? SequenceRun{length - 1, 1, 1} : SequenceRun{shape_[s].past + shape_[s].tokens, 0, 0};
      now_[s] = on ? std::span<i32 const>(tokens_[s]).last(1) : std::span<i32 const>();
    }
    if (!any) return false;
    pass();
    keep_logits(result);
    agree();
    return true;
  }

  void pass() {
    for (std::size_t s = 0; s < count_; ++s) {
      rules_[s] = {};
      rules_[s].temperature = request_.sampling.temperature;
      rules_[s].seed = position_seed(request_.sampling.seed, static_cast<i64>(s), shape_[s].past + shape_[s].tokens);
    }
    RunShape const run{shape_.data(), static_cast<i32>(count_)};
    history_.insert(history_.end(), shape_.begin(), shape_.end());
    executor_.forward(run, now_, rules_, [this](auto&, Step const& s, auto& call) {
      if (s.op == &choose && request_.sampling.has_threshold()) find_thresholds(s, call);
    });
  }
  void find_thresholds(Step const& s, KernelCall<D>& call) {
    Vec<typename C::Group, max_axes> groups;
    Places const& places = plan_.values[s.operands[0].value].places;
    for (i32 a = 0; a < plan_.mesh(s.stage).size(); ++a)
      if (places[a].cut() && places[a].dim == dim_of<vocab>) groups.push(executor_.axis_group(a));
    search_.template find<typename D::Scalar>(
        comm_, std::span<typename C::Group const>(groups.begin(), static_cast<std::size_t>(groups.size())),
        call.operands[0], request_.sampling, rules_);
  }

  /// New tokens and endings, the same on every rank of the serving group.
  void agree() {
    std::fill(news_.begin(), news_.end(), not_mine);
    if (auto const view = executor_.view(choice_)) {
      for (Segment const& s : view->segments) {
        if (!s.range.size()) continue;
        auto const i = static_cast<std::size_t>(s.sequence);
        i64 const id = view->template as<Choice>()[s.row + s.range.size() - 1].index;
        if (id < 0)
          throw std::runtime_error("sequence " + std::to_string(i) + " has no next token: no logit is above -inf");
        i32 const token = static_cast<i32>(id);
        bool end = request_.max_new_tokens == 0;
        speaks_for_[i] = speaks_;
        if (speaks_ && !end) {
          if (request_.on_token && !request_.on_token(s.sequence, token)) ended_[i] = Ended::stopped, end = true;
          if (request_.cancel && request_.cancel->load(std::memory_order_relaxed))
            ended_[i] = Ended::cancelled, end = true;
        }
        news_[i] = 2 * token + end;
      }
    }
    comm_.all_reduce(*group_, news_.data(), static_cast<i64>(count_), Element::i32, Reduction::maximum).wait();
    for (std::size_t s = 0; s < count_; ++s) {
      if (news_[s] == not_mine) continue;
      mine_[s] = true;
      i32 const token = news_[s] >> 1;
      done_[s] = news_[s] & 1;
      if (request_.max_new_tokens == 0) continue;
      tokens_[s].push_back(token);
      i64 const made = static_cast<i64>(tokens_[s].size() - request_.prompts[s].size());
      auto const ends = [&](bool when, Ended why) {
        if (when && !done_[s]) done_[s] = true, ended_[s] = why;
      };
      ends(std::find(request_.end_tokens.begin(), request_.end_tokens.end(), token) != request_.end_tokens.end(),
           Ended::end_token);
      ends(made >= request_.max_new_tokens, Ended::length);
      ends(static_cast<i64>(tokens_[s].size()) > capacity_, Ended::context);
    }
  }

  void keep_logits(GenerateResult& result) {
    if (!request_.all_logits) return;
    auto const view = executor_.view(plan_.result);
    if (!view || !speaks_logits()) return;
    Range const part = view->range(dim_of<vocab>);
    for (Segment const& s : view->segments) {
      auto& logits =
          result.sequences[static_cast<std::size_t>(s.sequence)].logits;  // sized by generate(), part by part
      for (i64 p = s.range.lo; p < s.range.hi; ++p) {
        auto& row = logits[static_cast<std::size_t>(shape_[static_cast<std::size_t>(s.sequence)].past + p)];
        auto const* from = view->template as<typename D::Scalar>() + (s.row + p - s.range.lo) * view->width;
        for (i64 v = part.lo; v < part.hi; ++v)
          row[static_cast<std::size_t>(v)] = static_cast<double>(from[v - part.lo]);
      }
    }
  }
  bool speaks_logits() const {
    RankPlace const& place = executor_.place();
    for (i32 a = 0; a < plan_.mesh(place.stage).size(); ++a)
      if (!plan_.values[plan_.result].places[a].cut() && place.at[a] != 0) return false;
    return true;
  }

  void report(RankReport& r) const {
    r.counted = comm_.counters();
    r.weight_bytes = executor_.weight_bytes(), r.packed_bytes = executor_.packed_bytes();
    r.state_bytes = executor_.state_bytes(), r.arena_bytes = executor_.arena_bytes();
    // Set-up compares plan hashes; every pass runs the plan, agrees on thresholds where asked, then on tokens.
    r.predicted = all_gather_cost([](int) { return i64{1}; }, 8, comm_.size(), comm_.rank());
    for (std::size_t at = 0; at < history_.size(); at += count_) {
      RunShape const run{history_.data() + at, static_cast<i32>(count_)};
      r.predicted += traffic(plan_, comm_.rank(), run, Executor<D, C>::storage_bytes()).total;
      r.predicted += threshold_cost(run);
      r.predicted += all_reduce_cost(static_cast<i64>(count_), 4, group_->size(), group_->rank());
    }
  }
  Cost threshold_cost(RunShape run) const {
    Cost c;
    Tensor const& logits = plan_.values[plan_.result];
    RankPlace const& place = executor_.place();
    if (logits.stage != place.stage) return c;
    Mesh const& mesh = plan_.mesh(place.stage);
    i64 rows = 0;
    Range const mine = sequences_of(logits.dims, logits.places, mesh, place.at, run);
    for (i64 s = mine.lo; s < mine.hi; ++s) rows += run[s].rows > 0;
    for (i32 a = 0; a < mesh.size(); ++a)
      if (logits.places[a].cut() && logits.places[a].dim == dim_of<vocab>)
        c += ThresholdSearch<C>::cost(request_.sampling, rows, mesh[a]->size, place.at[a]);
    return c;
  }
};

/// Generates on a world: `world.run(f)` calls f(communicator) on every rank and rethrows the first failure.
/// @param make_device  (rank) -> a device for it
/// @param source       fills weights on every rank; called by all of them at once
/// @param kernels      rows of the user's own ops
/// @throws std::invalid_argument for a request that cannot be served; RunError, WorldFailed for a run that failed
template <class World, class MakeDevice, class Source>
GenerateResult generate(World& world, Plan const& plan, Model const& model, GenerateRequest const& request,
                        MakeDevice const& make_device, Source const& source,
                        std::span<KernelRow<std::invoke_result_t<MakeDevice, int>> const> kernels = {}) {
  check_request(request, model);
  GenerateResult result;
  result.sequences.resize(request.prompts.size());
  result.ranks.resize(static_cast<std::size_t>(world.size()));
  for (std::size_t s = 0; s < request.prompts.size() && request.all_logits; ++s)
    result.sequences[s].logits.assign(
        request.prompts[s].size() + static_cast<std::size_t>(std::max<i64>(request.max_new_tokens - 1, 0)),
        std::vector<double>(static_cast<std::size_t>(model.vocab_size)));
  std::vector<std::pair<double, double>> seconds(result.ranks.size());
  world.run([&](auto& comm) {
    auto device = make_device(comm.rank());
    using Generator = RankGenerator<decltype(device), std::remove_reference_t<decltype(comm)>>;
    Generator generator(plan, model, request, device, comm, std::cref(source), kernels);
    generator.run(result);
    seconds[static_cast<std::size_t>(comm.rank())] = {generator.prefill_seconds(), generator.decode_seconds()};
  });
  for (auto const& [prefill, decode] : seconds) {
    result.prefill_seconds = (std::max)(result.prefill_seconds, prefill);
    result.decode_seconds = (std::max)(result.decode_seconds, decode);
  }
  for (std::size_t s = 0; s < result.sequences.size() && request.all_logits; ++s)  // only what was computed
    result.sequences[s].logits.resize(request.prompts[s].size() +
                                      (result.sequences[s].tokens.empty() ? 0 : result.sequences[s].tokens.size() - 1));
  for (auto const& p : request.prompts) result.prompt_tokens += static_cast<i64>(p.size());
  for (auto const& s : result.sequences) {
    i64 const made = static_cast<i64>(s.tokens.size());
    result.new_tokens += made;
    result.decoded_tokens += (std::max<i64>)(made - 1, 0);
  }
  return result;
}

}  // namespace dovetail
