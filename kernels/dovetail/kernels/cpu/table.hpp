// SPDX-License-Identifier: MIT
// The kernels of Cpu, by op.
#pragma once
#include <dovetail/kernels/cpu/attention.hpp>
#include <dovetail/kernels/cpu/elementwise.hpp>
#include <dovetail/kernels/cpu/matmul.hpp>
#include <dovetail/kernels/cpu/norm.hpp>
#include <dovetail/kernels/cpu/rotary.hpp>
#include <dovetail/kernels/host/cache.hpp>
#include <dovetail/kernels/host/choice.hpp>
#include <dovetail/kernels/host/embedding.hpp>
#include <dovetail/plan/builtin_ops.hpp>

namespace dovetail::kernels::cpu {

inline constexpr KernelRow<Cpu> table[] = {
    {&dovetail::matmul, &matmul},
    {&dovetail::lookup, &host::lookup<Cpu>},
    {&dovetail::add, &host::add<Cpu>},
    {&dovetail::multiply, &multiply},
    {&dovetail::silu, &silu},
    {&dovetail::square_sum, &square_sum},
    {&dovetail::rms_scale, &rms_scale},
    {&dovetail::rotate, &rotate},
    {&dovetail::append, &host::append<Cpu>},
    {&dovetail::attend, &attend, true},
    {&dovetail::take_rows, &host::take_rows<Cpu>},
    {&dovetail::choose, &host::choose<Cpu>},
};

}  // namespace dovetail::kernels::cpu
