// SPDX-License-Identifier: MIT
// The plan: a view of finished steps and values, whether they were made at compile time (static storage) or at run
// time (lists), with the questions that need no sizes of a run. What is printed is what runs: printer, memory and
// traffic predictions and the executor all read this one value.
#pragma once
#include <dovetail/plan/step.hpp>
#include <dovetail/plan/storage_bytes.hpp>

namespace dovetail {

/// Where a rank stands: its stage and its coordinate on each axis of the stage's mesh.
struct RankPlace {
  i32 stage = 0;
  Coordinate at{};
};

/// What every rank stores, computes, sends and receives, as a view of lists that live elsewhere.
struct Plan {
  Span<Step> steps{};
  Span<Tensor> values{};
  Span<Parameter> parameters{};
  Span<State> states{};
  Span<Stage> stages_list{};
  Span<Loop> loops{};
  Span<Scope> scopes{};
  Span<Edge> edges{};
  Span<Tie> ties{};
  Span<i32> inputs{};
  Span<Output> outputs{};
  i32 result = -1;
  i32 above = 0;  ///< mesh axes outside the pipeline, common to all stages
  Verdict verdict{};

  constexpr bool ok() const { return verdict.ok(); }
  constexpr i32 stages() const { return stages_list.size(); }
  constexpr Stage const& stage(i32 s) const { return stages_list[s]; }
  constexpr Mesh const& mesh(i32 s) const { return stages_list[s].mesh; }

  /// Copies of the pipeline: product of the axes above it.
  constexpr i64 replicas() const {
    i64 n = 1;
    for (i32 a = 0; a < above; ++a) n *= mesh(0)[a]->size;
    return n;
  }
  constexpr i64 ranks_per_replica() const { return stages_list[stages() - 1].base + stages_list[stages() - 1].ranks; }
  constexpr i64 ranks() const { return replicas() * ranks_per_replica(); }

  /// Ranks are numbered replica first, then stage, then the stage's own axes, the innermost fastest.
  constexpr RankPlace place_of(i64 rank) const {
    RankPlace p;
    i64 replica = rank / ranks_per_replica(), inner = rank % ranks_per_replica();
    while (p.stage + 1 < stages() && inner >= stage(p.stage + 1).base) ++p.stage;
    inner -= stage(p.stage).base;
    Mesh const& m = mesh(p.stage);
    for (i32 a = 0; a < m.size(); ++a) p.at.push(0);
    for (i32 a = m.size() - 1; a >= 0; --a) {
      i64& from = a < above ? replica : inner;
      p.at[a] = static_cast<i32>(from % m[a]->size);
      from /= m[a]->size;
    }
    return p;
  }
  constexpr i64 rank_of(RankPlace const& p) const {
    Mesh const& m = mesh(p.stage);
    i64 replica = 0, inner = 0;
    for (i32 a = 0; a < m.size(); ++a) {
      i64& to = a < above ? replica : inner;
      to = to * m[a]->size + p.at[a];
    }
    return replica * ranks_per_replica() + stage(p.stage).base + inner;
  }

  /// How often a step inside `loop` runs in one pass.
  constexpr i64 executions(i32 loop) const {
    i64 n = 1;
    for (; loop >= 0; loop = loops[loop].parent) n *= loops[loop].count;
    return n;
  }
  /// Steps of a kind as the plan lists them; a loop's body counts once.
  constexpr i64 count(StepKind kind) const {
    i64 n = 0;
    for (auto const& s : steps) n += s.kind == kind;
    return n;
  }
  /// Steps of a kind that one pass runs.
  constexpr i64 executed(StepKind kind) const {
    i64 n = 0;
    for (auto const& s : steps) n += s.kind == kind ? executions(s.loop) : 0;
    return n;
  }
  constexpr bool inside(i32 scope, i32 outer) const {
    for (; scope >= 0; scope = scopes[scope].parent)
      if (scope == outer) return true;
    return false;
  }
  constexpr i32 output(char const* name) const {
    for (auto const& o : outputs)
      if (same_text(o.name.chars, name)) return o.value;
    return -1;
  }

  /// Global layer index of iteration `i` of the loops around a parameter or state; -1 outside numbered layers.
  /// @param i iteration of each loop, by loop id.
  constexpr i64 layer_index(LayerIndex const& l, auto const& i) const {
    i64 n = l.first;
    for (auto const& t : l.terms) n += t.stride * i[t.loop];
    return n;
  }

  /// Bytes of weights on the rank that holds most; defined in plan/memory.hpp.
  constexpr i64 weight_bytes_per_rank(StorageBytes const& bytes = f32_storage) const;

  /// The part of the plan inside layer L.
  template <class L>
  constexpr auto within() const;
  /// The part of the plan on one stage.
  constexpr auto on_stage(i32 s) const;
};

/// Steps of a plan that one execution of a layer, or one stage, runs.
struct PlanPart {
  Plan const* plan = nullptr;
  LayerInfo const* layer = nullptr;  ///< nullptr: any
  i32 stage = -1;                    ///< -1: any

  /// Steps of a kind in one execution of the layer. Where the layer stands in several places that differ (stages with
  /// other policies) there is no one answer: an error that says so.
  constexpr i64 count(StepKind kind) const {
    if (!layer) return count_inside(-1, kind);
    i64 found = -1;
    for (i32 s = 0; s < plan->scopes.size(); ++s) {
      if (plan->scopes[s].layer != layer || (stage >= 0 && plan->scopes[s].stage != stage)) continue;
      i64 const n = count_inside(s, kind);
      if (found >= 0 && n != found)
        capacity_exceeded("dovetail: this layer differs between stages; ask on_stage(s).within<Layer>()");
      found = n;
    }
    if (found < 0) capacity_exceeded("dovetail: the plan has no such layer");
    return found;
  }
  template <class L>
  constexpr PlanPart within() const {
    return {plan, layer_of<L>, stage};
  }

 private:
  constexpr i64 count_inside(i32 scope, StepKind kind) const {
    i64 n = 0;
    for (auto const& s : plan->steps)
      n += s.kind == kind && (stage < 0 || s.stage == stage) && (scope < 0 || plan->inside(s.scope, scope));
    return n;
  }
};

template <class L>
constexpr auto Plan::within() const {
  return PlanPart{this, layer_of<L>, -1};
}
constexpr auto Plan::on_stage(i32 s) const { return PlanPart{this, nullptr, s}; }

/// A plan while it is built.
struct PlanDraft {
  List<Step> steps{};
  List<Tensor> values{};
  List<Parameter> parameters{};
  List<State> states{};
  List<Stage> stages{};
  List<Loop> loops{};
  List<Scope> scopes{};
  List<Edge> edges{};
  List<Tie> ties{};
  List<i32> inputs{};
  List<Output> outputs{};
  i32 result = -1;
  i32 above = 0;
  Verdict verdict{};
};

/// A finished plan that owns its parts. `view()` is valid while this lives.
struct OwnedPlan {
  Array<Step> steps{};
  Array<Tensor> values{};
  Array<Parameter> parameters{};
  Array<State> states{};
  Array<Stage> stages{};
  Array<Loop> loops{};
  Array<Scope> scopes{};
  Array<Edge> edges{};
  Array<Tie> ties{};
  Array<i32> inputs{};
  Array<Output> outputs{};
  i32 result = -1;
  i32 above = 0;
  Verdict verdict{};

  constexpr OwnedPlan() = default;
  constexpr explicit OwnedPlan(PlanDraft const& d)
      : steps(d.steps),
        values(d.values),
        parameters(d.parameters),
        states(d.states),
        stages(d.stages),
        loops(d.loops),
        scopes(d.scopes),
        edges(d.edges),
        ties(d.ties),
        inputs(d.inputs),
        outputs(d.outputs),
        result(d.result),
        above(d.above),
        verdict(d.verdict) {}

  constexpr Plan view() const {
    Plan p;
    p.steps = {steps.begin(), steps.size()};
    p.values = {values.begin(), values.size()};
    p.parameters = {parameters.begin(), parameters.size()};
    p.states = {states.begin(), states.size()};
    p.stages_list = {stages.begin(), stages.size()};
    p.loops = {loops.begin(), loops.size()};
    p.scopes = {scopes.begin(), scopes.size()};
    p.edges = {edges.begin(), edges.size()};
    p.ties = {ties.begin(), ties.size()};
    p.inputs = {inputs.begin(), inputs.size()};
    p.outputs = {outputs.begin(), outputs.size()};
    p.result = result, p.above = above, p.verdict = verdict;
    return p;
  }
};

}  // namespace dovetail
