// SPDX-License-Identifier: MIT
// The kernels of Reference, by op.
#pragma once
#include <dovetail/kernels/host/cache.hpp>
#include <dovetail/kernels/host/choice.hpp>
#include <dovetail/kernels/host/embedding.hpp>
#include <dovetail/kernels/reference/attention.hpp>
#include <dovetail/kernels/reference/elementwise.hpp>
#include <dovetail/kernels/reference/matmul.hpp>
#include <dovetail/kernels/reference/norm.hpp>
#include <dovetail/kernels/reference/rotary.hpp>
#include <dovetail/plan/builtin_ops.hpp>

namespace dovetail::kernels::reference {

inline constexpr KernelRow<Reference> table[] = {
    {&dovetail::matmul, &matmul},
    {&dovetail::lookup, &host::lookup<Reference>},
    {&dovetail::add, &add},
    {&dovetail::multiply, &multiply},
    {&dovetail::silu, &silu},
    {&dovetail::gelu, &gelu},
    {&dovetail::gelu_tanh, &gelu_tanh},
    {&dovetail::scale, &scale},
    {&dovetail::softcap, &softcap},
    {&dovetail::add_row, &add_row},
    {&dovetail::element_sum, &element_sum},
    {&dovetail::center, &center},
    {&dovetail::square_sum, &square_sum},
    {&dovetail::rms_scale, &rms_scale},
    {&dovetail::rotate, &rotate},
    {&dovetail::append, &host::append<Reference>},
    {&dovetail::as_keys, &host::as_keys<Reference>},
    {&dovetail::attend, &attend, true},
    {&dovetail::mean_rows, &mean_rows},
    {&dovetail::take_rows, &host::take_rows<Reference>},
    {&dovetail::choose, &host::choose<Reference>},
};

}  // namespace dovetail::kernels::reference
