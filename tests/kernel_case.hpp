// SPDX-License-Identifier: MIT
// One kernel call as the executor would make it, for any device and any rank: whole tensors are given once, each rank
// gets its part by the placement rules of the library, and results go back to where they belong in the whole.
#pragma once
#include <algorithm>
#include <cmath>
#include <cstring>
#include <dovetail/device/device.hpp>
#include <dovetail/device/host_memory.hpp>
#include <dovetail/mesh/region.hpp>
#include <dovetail/plan/builtin_ops.hpp>
#include <limits>
#include <memory>
#include <vector>

#include "random_numbers.hpp"

namespace kernel_case {
using namespace dovetail;

/// What a rank is: its coordinate on one axis that splits one dim; by default the only rank there is.
struct Part {
  Mesh mesh{};
  Coordinate at{};
  Places places{};
};
inline Part part_of(DimInfo const* dim, AxisInfo const& axis, int rank) {
  Part p;
  p.mesh.push(&axis), p.at.push(rank), p.places[0] = split_on(dim);
  return p;
}

/// A whole tensor in doubles; sequences lie one after another.
struct Whole {
  Dims dims{};
  std::vector<double> values{};
  i32 inputs = 0;            ///< for a parameter that matmul reads
  bool read_plainly = true;  ///< for a parameter
};

/// A view with the segments it points to. Rows of caches lie `gap` apart, as they do where there is room to grow.
struct Held {
  View view{};
  std::vector<Segment> segments{};
  i64 room = 0;  ///< rows, gaps included

  Held(Dims const& dims, Part const& p, RunShape run) {
    bool const has_gaps = dims.size() > 1 && dims[1].symbol == Symbol::context;
    Range const mine = sequences_of(dims, p.places, p.mesh, p.at, run);
    for (i64 s = mine.lo; s < mine.hi && leading_symbols(dims); ++s) {
      Range const positions = positions_of(dims, p.places, p.mesh, p.at, run[s]);
      segments.push_back({s, positions, room});
      room += positions.size() + (has_gaps ? 3 : 0);
    }
    if (!leading_symbols(dims)) room = 1;
    view.dims = &dims, view.rows = has_gaps ? room : local_rows(dims, p.places, p.mesh, p.at, run);
    view.width = local_width(dims, p.places, p.mesh, p.at);
    for (i32 k = leading_symbols(dims); k < dims.size(); ++k) view.ranges[k] = held(dims[k], p.places, p.mesh, p.at);
    view.segments = {segments.data(), static_cast<i32>(segments.size())};
  }
  Held(Held const&) = delete;
};

/// Calls visit(index in the whole, index in the part) for every element that the part holds.
inline void for_each_element(Dims const& dims, Part const& p, RunShape run, auto const& visit) {
  Part const all;
  Held const whole(dims, all, run), local(dims, p, run);
  auto const row = [&](i64 whole_row, i64 local_row) {
    for (i64 i = 0; i < local.view.width; ++i) {
      i64 at = 0, scale = 1, rest = i;
      for (i32 k = dims.size() - 1; k >= leading_symbols(dims); --k) {
        Range const r = local.view.ranges[k];
        at += (r.lo + rest % r.size()) * scale;
        rest /= r.size(), scale *= dims[k].size;
      }
      visit(whole_row * whole.view.width + at, local_row * local.view.width + i);
    }
  };
  if (!leading_symbols(dims)) row(0, 0);
  for (Segment const& s : local.segments)
    for (i64 j = 0; j < s.range.size(); ++j) {
      i64 before = 0;  // rows of the sequences before: wholes have no gaps
      for (i64 q = 0; q < s.sequence; ++q) before += positions_of(dims, all.places, all.mesh, all.at, run[q]).size();
      row(before + s.range.lo + j, s.row + j);
    }
}

struct KernelCase {
  Op const* op = nullptr;
  std::vector<SequenceRun> run{};
  std::vector<Whole> operands{}, parameters{};
  Whole state{};
  Dims result{};
  Numbers numbers{};
  std::vector<ChoiceRule> rules{};
  bool in_place = false;
  bool moved = false;  ///< parameters come row-major, from a step that moved them

  RunShape shape() const { return {run.data(), static_cast<i32>(run.size())}; }
};

/// Elements of a tensor without gaps.
inline std::size_t size_of(Dims const& dims, std::vector<SequenceRun> const& run) {
  return static_cast<std::size_t>(whole_elements(dims, {run.data(), static_cast<i32>(run.size())}));
}
/// Multiples of 1/4096 in [-range, range]: exact on every device.
inline Whole random_whole(Dims const& dims, std::vector<SequenceRun> const& run, test::Random& random, i32 range = 2) {
  Whole w{dims, std::vector<double>(size_of(dims, run))};
  for (double& v : w.values) v = random.between(-4096 * range, 4096 * range) / 4096.0;
  return w;
}

/// Runs the kernel on one rank's part and calls visit(index in the whole, value) for all it made.
/// Element is what the result holds; a kernel that keeps a state is asked for the state.
template <class Element, class D>
void run_part(KernelCase const& c, D& device, Part const& p, auto const& visit) {
  using Scalar = typename D::Scalar;
  std::vector<std::unique_ptr<Held>> places;
  std::vector<HostMemory> memories;
  auto const view_of = [&](Whole const& w, auto zero) {
    using T = decltype(zero);
    auto const& place = *places.emplace_back(std::make_unique<Held>(w.dims, p, c.shape()));
    HostMemory& memory = memories.emplace_back(place.room * place.view.width * static_cast<i64>(sizeof(T)));
    if constexpr (std::is_floating_point_v<T>)  // whatever lies between sequences must not be read
      std::fill_n(memory.as<T>(), place.room * place.view.width, std::numeric_limits<T>::quiet_NaN());
    if (!w.values.empty())
      for_each_element(w.dims, p, c.shape(), [&](i64 whole, i64 local) {
        memory.as<T>()[local] = static_cast<T>(w.values[static_cast<std::size_t>(whole)]);
      });
    View v = place.view;
    v.memory = memory.get();
    return v;
  };
  Step step;
  step.op = c.op, step.numbers = c.numbers;
  KernelCall<D> call;
  call.device = &device, call.step = &step, call.sequences = c.shape();
  call.rules = {c.rules.data(), static_cast<i32>(c.rules.size())};
  int n = 0;
  for (Whole const& w : c.operands) call.operands[n++] = c.op == &lookup ? view_of(w, i32{}) : view_of(w, Scalar{});
  std::vector<typename D::Weight> weights;
  weights.reserve(c.parameters.size());
  for (Whole const& w : c.parameters) {
    auto const k = static_cast<int>(&w - c.parameters.data());
    if (c.moved) {
      call.parameters[k] = view_of(w, Scalar{});
      continue;
    }
    WeightShape shape;
    shape.dims = w.dims, shape.inputs = w.inputs, shape.read_plainly = w.read_plainly;
    for (i32 k = 0; k < w.dims.size(); ++k) shape.ranges[k] = held(w.dims[k], p.places, p.mesh, p.at);
    auto& weight = weights.emplace_back(device.make_weight(shape));
    auto const target = weight.fill_target();
    for_each_element(w.dims, p, c.shape(), [&](i64 whole, i64 local) {
      target[static_cast<std::size_t>(local)] = static_cast<Scalar>(w.values[static_cast<std::size_t>(whole)]);
    });
    device.finish(weight);
    call.parameters[k] = places.emplace_back(std::make_unique<Held>(w.dims, p, c.shape()))->view;
    call.weights[k] = &weight;
  }
  bool const keeps = c.state.dims.size() > 0;
  Whole const made{keeps ? c.state.dims : c.result};
  if (keeps) call.state = view_of(c.state, Scalar{});
  else if (c.in_place) call.results[0] = call.operands[0];
  else call.results[0] = view_of(made, Element{});
  Kernel<D> kernel = nullptr;
  for (auto const& row : D::kernels())
    if (row.op == c.op) kernel = row.run;
  kernel(call);
  auto const* const values = (keeps ? call.state : call.results[0]).template as<Element>();
  for_each_element(made.dims, p, c.shape(), [&](i64 whole, i64 local) { visit(whole, values[local]); });
}

/// Dims of what a kernel makes.
inline Dims const& made_dims(KernelCase const& c) { return c.state.dims.size() ? c.state.dims : c.result; }

/// What one rank alone makes of the whole.
template <class D>
std::vector<double> run_whole(KernelCase const& c, D& device) {
  std::vector<double> made(size_of(made_dims(c), c.run));
  run_part<typename D::Scalar>(c, device, Part{}, [&](i64 i, auto v) { made[static_cast<std::size_t>(i)] = v; });
  return made;
}

enum class Meets { side_by_side, as_sum };
/// What the ranks of an axis that splits `dim` make; an element that no rank made stays NaN.
template <class D>
std::vector<double> run_split(KernelCase const& c, D& device, DimInfo const* dim, AxisInfo const& axis, Meets meets) {
  double const start = meets == Meets::as_sum ? 0 : std::numeric_limits<double>::quiet_NaN();
  std::vector<double> made(size_of(made_dims(c), c.run), start);
  for (int rank = 0; rank < axis.size; ++rank)
    run_part<typename D::Scalar>(c, device, part_of(dim, axis, rank), [&](i64 i, auto v) {
      double& at = made[static_cast<std::size_t>(i)];
      at = meets == Meets::as_sum ? at + v : v;
    });
  return made;
}

}  // namespace kernel_case
