// SPDX-License-Identifier: MIT
// The first program: a model, a mesh and a layout as types, what is asked of the plan, and the plan on one screen. It
// needs a compiler and the headers, nothing else.
#include <cstdio>
#include <dovetail/dovetail.hpp>
#include <dovetail/plan/print.hpp>
namespace dt = dovetail;

struct Pp : dt::Axis<"pp", 2> {};  // named structs, so that compilers print your own words
struct Tp : dt::Axis<"tp", 3> {};

struct SmolLM2 : dt::Llama<dt::models::smollm2_135m> {};
struct Layout : dt::Pipelined<Pp, dt::TensorSharded<Tp, SmolLM2>> {};

constexpr auto& plan = dt::plan_of<Layout>;
static_assert(plan.ranks() == 6);
static_assert(plan.stage(0).layers == 15 && plan.stage(1).layers == 15);
static_assert(plan.within<dt::LlamaBlock<dt::models::smollm2_135m>>().count(dt::step::all_reduce) == 2);
static_assert(plan.weight_bytes_per_rank() < 110 * dt::MiB);

int main() { return std::fputs(dt::explain(plan).c_str(), stdout) < 0 || std::fflush(stdout) ? 1 : 0; }
