// SPDX-License-Identifier: MIT
// Generation on a world of any kind: the request is checked, every rank runs its part, and what they made is gathered
// into one result. The world and the device are the caller's.
#pragma once
#include <dovetail/run/rank_generator.hpp>

namespace dovetail {

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
