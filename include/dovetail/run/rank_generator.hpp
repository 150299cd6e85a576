// SPDX-License-Identifier: MIT
// One rank's part of a generation: prefill of ragged prompts, then one token a sequence and pass. After a pass the
// ranks of a serving group agree on the new tokens with one small all-reduce, so that end tokens, stop requests and
// cancellation reach all of them at the same step. Replicas go their own way, and wait for each other only at the end.
#pragma once
#include <chrono>
#include <dovetail/run/executor.hpp>
#include <dovetail/run/generate_cost.hpp>
#include <dovetail/run/generate_request.hpp>
#include <dovetail/run/generate_result.hpp>
#include <dovetail/run/serving_group.hpp>

namespace dovetail {

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
    world_.emplace(world_group(comm));
    speaks_ = speaks(plan, choice_, executor_.place());
    for (auto const& p : request.prompts) tokens_.emplace_back(p);
    now_.resize(count_), shape_.resize(count_), rules_.resize(count_), news_.resize(count_),
        done_.assign(count_, false);
    i64 const passes = (std::min)(request.max_new_tokens, capacity_) + 1;  // so that no pass allocates
    for (auto& t : tokens_) t.reserve(t.size() + static_cast<std::size_t>(passes));
    history_.reserve(static_cast<std::size_t>(passes + 1) * count_);
  }

  /// Runs to the end of all ranks. `result` is shared by all ranks: each writes its own sequences and its own report.
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
    comm_.barrier(*world_).wait();  // a rank without more to do hears here of one that fails
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
  std::optional<typename C::Group> group_{}, world_{};  ///< that serves its sequences; all ranks
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
    if (!view || !speaks(plan_, plan_.result, executor_.place())) return;
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
  void report(RankReport& r) const {
    r.counted = comm_.counters();
    r.weight_bytes = executor_.weight_bytes(), r.packed_bytes = executor_.packed_bytes();
    r.state_bytes = executor_.state_bytes(), r.arena_bytes = executor_.arena_bytes();
    r.predicted = generation_cost(plan_, comm_, *group_, request_.sampling, std::span<SequenceRun const>(history_),
                                  count_, Executor<D, C>::storage_bytes());
  }
};

}  // namespace dovetail
