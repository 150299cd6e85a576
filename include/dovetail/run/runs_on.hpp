// SPDX-License-Identifier: MIT
// Whether a device can run a plan: that it, or the user, has a kernel for every op. Asked while the program is compiled
// by `static_assert(dovetail::runs_on<Layout, Device>)`, and by the executor before it binds anything.
#pragma once
#include <dovetail/device/kernel.hpp>
#include <dovetail/plan/refuse.hpp>
#include <span>

namespace dovetail {

/// The row that runs an op: one of the user's, or the device's; nullptr where there is none.
template <class D>
constexpr KernelRow<D> const* kernel_row(Op const& op, std::span<KernelRow<D> const> own) {
  for (auto const& row : own)
    if (row.op == &op && row.run) return &row;
  for (auto const& row : D::kernels())
    if (row.op == &op && row.run) return &row;
  return nullptr;
}

/// First op of a plan that has no kernel; nullptr where each has one.
template <class D>
constexpr Op const* op_without_kernel(Plan const& plan, std::span<KernelRow<D> const> own = {}) {
  for (auto const& s : plan.steps)
    if (s.op && !kernel_row<D>(*s.op, own)) return s.op;
  return nullptr;
}

template <auto* MissingOp, class Device>
struct device_kernel {
  static_assert(MissingOp == nullptr,
                "device/kernel: a device has no kernel for an op of the plan; arguments: op, device; see "
                "docs/errors/device-kernel.md");
};
template <class Device>
struct device_kernel<static_cast<Op const*>(nullptr), Device> {};

namespace running {

/// No rows of the user's.
template <class D>
inline constexpr std::span<KernelRow<D> const> none{};

template <class Layout, class D, auto const& Own>
struct Runs {
  static constexpr bool planned = refusing::is_accepted<Layout>;
  static constexpr Op const* missing = planned ? op_without_kernel<D>(StaticPlan<Layout>::value, Own) : nullptr;
  static_assert(sizeof(device_kernel<missing, D>) > 0);
};

}  // namespace running

/// True where every op of the plan of a layout has a kernel, on the device or among the user's rows `Own`, a constant
/// array or span. An op without one is a compile error that names it; a layout that was refused stays at its own error.
template <class Layout, class D, auto const& Own = running::none<D>>
inline constexpr bool runs_on = sizeof(running::Runs<Layout, D, Own>) > 0;

}  // namespace dovetail
