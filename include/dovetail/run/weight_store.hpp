// SPDX-License-Identifier: MIT
// The weights of one rank: which slice of which parameter it holds, filled once from a source and packed by the device.
// A source is any function (name with its layer index, shape, room) that writes the slice row-major. Where a parameter
// is Partial on an axis, the first rank there holds its value and the others hold zeros.
#pragma once
#include <algorithm>
#include <dovetail/device/device.hpp>
#include <dovetail/plan/builtin_ops.hpp>
#include <dovetail/plan/plan.hpp>
#include <dovetail/run/run_error.hpp>
#include <functional>
#include <stdexcept>
#include <string>
#include <vector>

namespace dovetail {

/// Role path with the layer index in place of `*`.
inline std::string indexed_name(Name const& name, i64 layer) {
  std::string text;
  for (char const* c = name.chars; *c; ++c) text += *c == '*' ? std::to_string(layer) : std::string(1, *c);
  return text;
}

/// Calls f(iteration of all loops as one number, layer index) for every copy of a parameter or state.
template <class F>
void each_iteration(Plan const& plan, LayerIndex const& layer, i32 loop, F&& f) {
  std::vector<i64> at(static_cast<std::size_t>(plan.loops.size()), 0);
  for (i64 flat = 0; flat < plan.executions(loop); ++flat) {
    i64 rest = flat;
    for (i32 l = loop; l >= 0; l = plan.loops[l].parent) {
      at[static_cast<std::size_t>(l)] = rest % plan.loops[l].count;
      rest /= plan.loops[l].count;
    }
    i64 n = layer.first;
    for (auto const& t : layer.terms) n += t.stride * at[static_cast<std::size_t>(t.loop)];
    f(flat, n);
  }
}

/// Fills the room of one parameter's slice, row-major. Called on every rank, by all of them at once.
template <class Scalar>
using WeightSource = std::function<void(std::string const& name, WeightShape const& shape, std::span<Scalar> room)>;

/// The weights of one rank, by parameter and layer.
template <Device D>
class WeightStore {
 public:
  WeightStore(Plan const& plan, RankPlace const& place, D& device, WeightSource<typename D::Scalar> const& source)
      : plan_(plan), weights_(static_cast<std::size_t>(plan.parameters.size())) {
    for (i32 p = 0; p < plan.parameters.size(); ++p) {
      Parameter const& parameter = plan.parameters[p];
      if (parameter.stage != place.stage) continue;
      Tensor const& leaf = plan.values[parameter.value];
      Mesh const& mesh = plan.mesh(place.stage);
      WeightShape shape;
      shape.dims = leaf.dims;
      for (i32 k = 0; k < leaf.dims.size(); ++k) shape.ranges[k] = held(leaf.dims[k], leaf.places, mesh, place.at);
      find_uses(p, shape);
      bool value_here = true;
      for (i32 a = 0; a < mesh.size(); ++a) value_here = value_here && !(leaf.places[a].partial() && place.at[a]);
      each_iteration(plan, parameter.layer, parameter.loop, [&](i64, i64 layer) {
        std::string const name = indexed_name(parameter.name, layer);
        auto weight = device.make_weight(shape);
        auto const room = weight.fill_target();
        try {
          if (value_here) source(name, shape, room);
          else std::fill(room.begin(), room.end(), typename D::Scalar{});
          device.finish(weight);
        } catch (std::exception const& e) {
          throw WeightError(name, e.what());
        }
        logical_bytes_ += shape.elements() * D::bytes_of(Storage::weight);
        packed_bytes_ += weight.packed_bytes();
        weights_[static_cast<std::size_t>(p)].push_back(std::move(weight));
      });
    }
  }

  typename D::Weight const& at(i32 parameter, i64 iteration) const {
    return weights_[static_cast<std::size_t>(parameter)][static_cast<std::size_t>(iteration)];
  }
  /// Row-major memory of a parameter's leaf value, for the steps that move it.
  void* plain(i32 value, auto const& iteration_of) const {
    for (i32 p = 0; p < plan_.parameters.size(); ++p)
      if (plan_.parameters[p].value == value)
        return const_cast<void*>(static_cast<void const*>(at(p, iteration_of(plan_.parameters[p].loop)).plain()));
    return nullptr;
  }
  i64 logical_bytes() const { return logical_bytes_; }
  i64 packed_bytes() const { return packed_bytes_; }

 private:
  Plan plan_;
  std::vector<std::vector<typename D::Weight>> weights_;  ///< by parameter, then by iteration
  i64 logical_bytes_ = 0, packed_bytes_ = 0;

  /// Which trailing dims a matmul contracts, and whether anything reads the parameter as it is.
  void find_uses(i32 p, WeightShape& shape) const {
    i32 const leaf = plan_.parameters[p].value;
    for (auto const& s : plan_.steps) {
      for (auto const& o : s.operands) shape.read_plainly = shape.read_plainly || o.value == leaf;
      for (auto const& use : s.parameters) {
        if (use.parameter != p || use.value != leaf) continue;
        if (s.op != &matmul) {
          shape.read_plainly = true;
          continue;
        }
        Dims const& out = plan_.values[s.results[0]].dims;
        shape.inputs = 0;
        while (shape.inputs < shape.dims.size() &&
               !has_exactly(out, shape.dims[shape.dims.size() - 1 - shape.inputs].dim))
          ++shape.inputs;
      }
    }
  }
};

}  // namespace dovetail
