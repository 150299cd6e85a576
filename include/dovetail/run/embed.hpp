// SPDX-License-Identifier: MIT
// Embeddings of sequences by an encoder on a world of any kind: the sequences are checked, run as one ragged batch in
// one pass, and the parts that the ranks hold of each vector are put together. The world and the device are the
// caller's. Ranks that hold no sequence take part and write nothing.
#pragma once
#include <chrono>
#include <cmath>
#include <dovetail/plan/traffic.hpp>
#include <dovetail/run/executor.hpp>
#include <dovetail/run/generate_result.hpp>
#include <dovetail/run/model.hpp>
#include <dovetail/run/serving_group.hpp>

namespace dovetail {

/// What `embed_sequences` gives back.
struct EmbedResult {
  std::vector<std::vector<double>> embeddings{};  ///< of each sequence, whole
  std::vector<RankReport> ranks{};                ///< what each received, as counted and as predicted, and held
  double seconds = 0;                             ///< of the pass, on the slowest rank; weights were there before
  i64 tokens = 0;                                 ///< of all sequences
};

/// Elements of the vector that the plan's result is, for each sequence.
/// @throws std::invalid_argument where the model is no encoder, or the plan gives something else
inline i64 embedding_size(Plan const& plan, Model const& model) {
  if (!model.embeds)
    throw std::invalid_argument("the model generates tokens and embeds no sequence: " + model.family +
                                " is no encoder; bert is one");
  if (plan.result < 0) throw std::invalid_argument("the plan has no result: it was refused, or is empty");
  Dims const& dims = plan.values[plan.result].dims;
  if (dims.size() != 2 || leading_symbols(dims) != 1 || dims[0].symbol != Symbol::batch)
    throw std::invalid_argument("the result of the plan is no vector for each sequence: it has " +
                                counted(dims.size(), "dim") + ", [batch, one fixed dim] are expected");
  return dims[1].size;
}

/// Refuses what no run could serve. @throws std::invalid_argument naming sequence, position, number and limit
inline void check_sequences(std::span<std::vector<i32> const> sequences, Model const& model) {
  auto const refuse = [](std::string const& what) { throw std::invalid_argument(what); };
  if (sequences.empty()) refuse("there is no sequence to embed: at least one is needed");
  for (std::size_t s = 0; s < sequences.size(); ++s) {
    auto const& ids = sequences[s];
    std::string const which = "sequence " + std::to_string(s);
    if (ids.empty()) refuse(which + " is empty: at least one token is needed");
    if (model.context_limit && static_cast<i64>(ids.size()) > model.context_limit)
      refuse(which + " has " + std::to_string(ids.size()) + " tokens, the model has positions for " +
             std::to_string(model.context_limit) + ": shorten it, or embed its parts");
    for (std::size_t i = 0; i < ids.size(); ++i)
      if (ids[i] < 0 || ids[i] >= model.vocab_size)
        refuse(which + ": token " + std::to_string(ids[i]) + " at position " + std::to_string(i) +
               " is outside the vocabulary; legal are 0 to " + std::to_string(model.vocab_size - 1));
  }
}

/// What a rank receives, set-up and pass, predicted: the comparison of plans and the plan's own exchanges.
template <Communicator C>
Cost embedding_cost(Plan const& plan, C const& comm, RunShape run, StorageBytes const& bytes) {
  return all_gather_cost([](int) { return i64{1}; }, 8, comm.size(), comm.rank()) +
         traffic(plan, comm.rank(), run, bytes).total;
}

/// Copies what a rank holds of the vectors to its place in them. @throws std::runtime_error for what is no number
template <class Scalar>
void copy_embeddings(View const& part, std::vector<std::vector<double>>& embeddings) {
  for (Segment const& s : part.segments) {
    auto const* const from = part.as<Scalar>() + s.row * part.width;
    auto& to = embeddings[static_cast<std::size_t>(s.sequence)];
    for (i64 i = 0; i < part.width; ++i) {
      auto const value = static_cast<double>(from[i]);
      if (!std::isfinite(value))
        throw std::runtime_error("sequence " + std::to_string(s.sequence) + ": element " +
                                 std::to_string(part.ranges[1].lo + i) +
                                 " of its embedding is not finite; are the weights?");
      to[static_cast<std::size_t>(part.ranges[1].lo + i)] = value;
    }
  }
}

/// Embeds sequences of token ids: `world.run(f)` calls f(communicator) on every rank and rethrows the first failure.
/// @param make_device  (rank) -> a device for it
/// @param source       fills weights on every rank; called by all of them at once
/// @param kernels      rows of the user's own ops
/// @throws std::invalid_argument for what cannot be served; RunError, WorldFailed for a run that failed
template <class World, class MakeDevice, class Source>
EmbedResult embed_sequences(World& world, Plan const& plan, Model const& model,
                            std::span<std::vector<i32> const> sequences, MakeDevice const& make_device,
                            Source const& source,
                            std::span<KernelRow<std::invoke_result_t<MakeDevice, int>> const> kernels = {}) {
  i64 const size = embedding_size(plan, model);
  check_sequences(sequences, model);
  EmbedResult result;
  std::vector<SequenceRun> shape;
  i64 longest = 0;
  for (auto const& ids : sequences) {
    i64 const tokens = static_cast<i64>(ids.size());
    shape.push_back({0, tokens, 0});
    longest = (std::max)(longest, tokens), result.tokens += tokens;
  }
  result.embeddings.assign(sequences.size(), std::vector<double>(static_cast<std::size_t>(size)));
  result.ranks.resize(static_cast<std::size_t>(world.size()));
  std::vector<double> seconds(result.ranks.size());
  RunShape const run{shape.data(), static_cast<i32>(shape.size())};
  std::vector<std::span<i32 const>> const tokens(sequences.begin(), sequences.end());

  world.run([&](auto& comm) {
    comm.reset_counters();
    auto device = make_device(comm.rank());
    using Device = decltype(device);
    using Runner = Executor<Device, std::remove_reference_t<decltype(comm)>>;
    Runner executor(plan, device, comm, std::cref(source), {run.size(), longest}, kernels);
    auto const start = std::chrono::steady_clock::now();
    executor.forward(run, tokens);
    auto const rank = static_cast<std::size_t>(comm.rank());
    seconds[rank] = std::chrono::duration<double>(std::chrono::steady_clock::now() - start).count();
    if (auto const part = executor.view(plan.result); part && speaks(plan, plan.result, executor.place()))
      copy_embeddings<typename Device::Scalar>(*part, result.embeddings);
    RankReport& report = result.ranks[rank];
    report.counted = comm.counters();
    report.predicted = embedding_cost(plan, comm, run, Runner::storage_bytes());
    report.weight_bytes = executor.weight_bytes(), report.packed_bytes = executor.packed_bytes();
    report.state_bytes = executor.state_bytes(), report.arena_bytes = executor.arena_bytes();
    comm.barrier(world_group(comm)).wait();  // a rank without more to do hears here of one that fails
  });
  for (double s : seconds) result.seconds = (std::max)(result.seconds, s);
  return result;
}

}  // namespace dovetail
