// SPDX-License-Identifier: MIT
// The error of a run: what failed, on which rank, in which stage and step, at which tensor. Every exception that leaves
// the executor is one, so that a user sees where in the plan it happened whatever threw it.
#pragma once
#include <dovetail/meta/integer.hpp>
#include <stdexcept>
#include <string>
#include <utility>

namespace dovetail {

/// A parameter that a rank could not be given; the executor makes a RunError of it.
class WeightError : public std::runtime_error {
 public:
  WeightError(std::string name, std::string const& what) : std::runtime_error(what), tensor(std::move(name)) {}
  std::string tensor;  ///< with its layer index
};

/// A failure of a run, with rank, stage, step and tensor.
class RunError : public std::runtime_error {
 public:
  RunError(std::string const& what, i64 on_rank, i32 on_stage, i32 in_step, std::string const& step_name,
           std::string const& tensor_name)
      : std::runtime_error("rank " + std::to_string(on_rank) + ", stage " + std::to_string(on_stage) + ", step " +
                           std::to_string(in_step) + " (" + step_name + "), tensor " + tensor_name + ": " + what),
        rank(on_rank),
        stage(on_stage),
        step(in_step),
        tensor(tensor_name) {}
  i64 rank;
  i32 stage, step;
  std::string tensor;
};

}  // namespace dovetail
