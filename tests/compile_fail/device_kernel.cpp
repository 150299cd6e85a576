// SPDX-License-Identifier: MIT
// An op of the user's that no device has a kernel for.
// expect: device/kernel
// expect: docs/errors/device-kernel\.md
// expect: device_kernel<.*twice.*Reference
#include <dovetail/device/reference.hpp>
#include <dovetail/dovetail.hpp>
#include <dovetail/run/runs_on.hpp>
namespace dt = dovetail;

inline constexpr dt::Op twice{.name = "twice", .elementwise = true};
void run_twice(dt::KernelCall<dt::Reference> const& call) {
  for (dt::i64 i = 0; i < call.operands[0].rows * call.operands[0].width; ++i)
    call.results[0].as<double>()[i] = 2 * call.operands[0].as<double>()[i];
}
constexpr dt::KernelRow<dt::Reference> rows[] = {{&twice, &run_twice}};

struct Twice {
  static constexpr dt::Value apply(dt::Builder& b, dt::Value x) { return dt::ops::unary(b, twice, x); }
};
struct Layout : dt::Sequential<dt::TokenEmbedding<dt::EmbeddingConfig{64, 8}>, Twice> {};

constexpr auto& plan = dt::plan_of<Layout>;
#ifdef FAIL
static_assert(dt::runs_on<Layout, dt::Reference>);
#else
static_assert(dt::runs_on<Layout, dt::Reference, rows>);
#endif
static_assert(plan.ranks() == 1);
static_assert(plan.stages() == 1);
static_assert(dt::weight_bytes_per_rank(plan, dt::f32_storage) > 4);
static_assert(plan.result >= 0 && plan.values[plan.result].dims.size() == 3);
