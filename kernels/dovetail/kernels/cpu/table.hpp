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
    {&dovetail::gelu, &gelu},
    {&dovetail::gelu_tanh, &gelu_tanh},
    {&dovetail::scale, &scale},
    {&dovetail::softcap, &softcap},
    {&dovetail::add_row, &host::add_row<Cpu>},
    {&dovetail::element_sum, &element_sum},
    {&dovetail::center, &center},
    {&dovetail::square_sum, &square_sum},
    {&dovetail::rms_scale, &rms_scale},
    {&dovetail::rotate, &rotate},
    {&dovetail::append, &host::append<Cpu>},
    {&dovetail::as_keys, &host::as_keys<Cpu>},
    {&dovetail::attend, &attend, true},
    {&dovetail::mean_rows, &mean_rows},
    {&dovetail::take_rows, &host::take_rows<Cpu>},
    {&dovetail::choose, &host::choose<Cpu>},
};

}  // namespace dovetail::kernels::cpu
