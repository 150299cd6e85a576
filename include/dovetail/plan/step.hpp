// SPDX-License-Identifier: MIT
// What a plan is made of: tensors (the values), steps, loops, stages, parameters, states, edges and ties. Plain
// constexpr data that the printer, the queries and the executor all read; nothing here computes.
#pragma once
#include <dovetail/meta/verdict.hpp>
#include <dovetail/plan/op.hpp>

namespace dovetail {

inline constexpr int max_nesting = 3;  ///< loops inside one another around a parameter

/// A step computes an op, redistributes a value along one axis, sends it to another stage, or opens a loop.
enum class StepKind : std::uint8_t {
  compute,
  all_reduce,      ///< Partial to Whole
  reduce_scatter,  ///< Partial to Split
  all_gather,      ///< Split to Whole
  all_to_all,      ///< Split to another Split
  slice,           ///< Whole to Split: local
  own,             ///< Split to Shared: a local mask to what is owned
  share_reduce,    ///< Shared to Split: a sum among the ranks that hold the same follower
  send,            ///< a value of one stage becomes a value of another
  loop,
  accumulate,  ///< a gradient joins its accumulator
  tie,         ///< gradients of a tied parameter are exchanged between stages
};
/// `step::all_reduce`, as queries spell it.
namespace step {
using enum StepKind;
}

constexpr char const* name_of(StepKind k) {
  constexpr char const* names[] = {"compute", "all_reduce",   "reduce_scatter", "all_gather", "all_to_all", "slice",
                                   "own",     "share_reduce", "send",           "loop",       "accumulate", "tie"};
  return names[static_cast<int>(k)];
}
/// Redistributions that move data between the ranks of an axis.
constexpr bool communicates(StepKind k) {
  return (k >= StepKind::all_reduce && k <= StepKind::all_to_all) || k == StepKind::share_reduce;
}

/// The part of a training step that a step belongs to; inference is `forward`.
enum class Phase : std::uint8_t { forward, backward, weight, finish };

/// Who makes a value, and how long it stands.
enum class ValueClass : std::uint8_t { input, temporary, saved, state, parameter, gradient };

/// A value of the plan: one tensor in one placement. A redistribution makes a new value of the same origin.
struct Tensor {
  Dims dims{};
  Places places{};
  Storage storage = Storage::activation;
  ValueClass value_class = ValueClass::temporary;
  i32 stage = 0;
  i32 loop = -1;    ///< innermost loop it lives in
  i32 step = -1;    ///< step that defines it; -1 for inputs, parameters, states and block arguments
  i32 origin = -1;  ///< the value that it is a redistribution of; itself where it is none
};

/// Layer index = first + sum of stride * iteration over the loops around it.
struct LayerTerm {
  i32 loop = -1;
  i64 stride = 0;
};
/// Which numbered layer a parameter or state is of, in any iteration of the loops around it.
struct LayerIndex {
  i64 first = -1;  ///< -1: not in a numbered layer
  Vec<LayerTerm, max_nesting> terms{};
};

/// A weight of the model as its stage stores it.
struct Parameter {
  Name name{};  ///< role path; `*` stands for the layer index
  LayerIndex layer{};
  i32 value = -1;  ///< the leaf: where it is stored
  i32 stage = 0;
  i32 loop = -1;
  bool placed = false;
  bool tied = false;  ///< another stage holds a copy of the same name
  i32 gradient = -1;
};

/// What outlives a run: the KV cache of one layer.
struct State {
  Name name{};
  LayerIndex layer{};
  i32 value = -1;
  i32 stage = 0;
  i32 loop = -1;
};

/// A parameter as a step uses it: its leaf value, or what a step before moved it to.
struct ParameterUse {
  i32 parameter = -1;
  i32 value = -1;
};
/// A value as a step uses it. A witness is looked at for its placement only.
struct OperandUse {
  i32 value = -1;
  bool witness = false;
};

/// One thing that the ranks of a stage do together: an op, a redistribution, a send, or a loop.
struct Step {
  StepKind kind = StepKind::compute;
  Op const* op = nullptr;  ///< for compute
  Vec<OperandUse, max_operands> operands{};
  Vec<ParameterUse, max_parameters> parameters{};
  Vec<i32, max_results> results{};
  Numbers numbers{};
  i32 state = -1;
  i32 stage = 0;  ///< for send: the receiving stage
  i32 loop = -1;  ///< loop it is in; for kind loop: the loop around it
  i32 body = -1;  ///< for kind loop: which one
  i32 axis = -1;  ///< for redistributions: index in the stage's mesh
  i32 scope = 0;  ///< layer it belongs to
  Place from{}, to{};
  Phase phase = Phase::forward;
};

/// A carried sum over iterations (gradients of captured values).
struct CarriedSum {
  i32 part = -1, total = -1;
};

/// A body of steps that runs `count` times; what it yields is its argument the next time.
struct Loop {
  i32 begin = 0, end = 0;  ///< steps of the body
  i32 count = 1;
  i32 initial = -1, argument = -1, yielded = -1, result = -1;
  i32 parent = -1;
  i32 twin = -1;  ///< the forward loop that a backward loop mirrors
  bool reverse = false;
  Vec<CarriedSum, 8> sums{};
};

/// One stage of a pipeline, or the whole plan where there is none: its mesh and where its ranks begin.
struct Stage {
  Mesh mesh{};
  i64 ranks = 1;   ///< of one replica, without the axes above the pipeline
  i64 base = 0;    ///< first rank inside a replica
  i32 layers = 0;  ///< numbered layers that it runs
};

/// A node of the tree of layers: the type where there is one, and the role path.
struct Scope {
  LayerInfo const* layer = nullptr;
  Name path{};
  i32 parent = -1;
  i32 stage = 0;
  i32 loop = -1;
};

/// A value that one stage sends to another.
struct Edge {
  i32 step = -1;
  i32 from_stage = 0, to_stage = 0;
  i32 sent = -1, received = -1;
};
/// One parameter that two stages hold.
struct Tie {
  i32 first = -1, second = -1;  ///< parameters of one name on two stages
};
/// A value that a layer made known by name.
struct Output {
  Name name{};
  i32 value = -1;
};

}  // namespace dovetail
