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
    {&dovetail::square_sum, &square_sum},
    {&dovetail::rms_scale, &rms_scale},
    {&dovetail::rotate, &rotate},
    {&dovetail::append, &host::append<Reference>},
    {&dovetail::attend, &attend, true},
    {&dovetail::take_rows, &host::take_rows<Reference>},
    {&dovetail::choose, &host::choose<Reference>},
};

}  // namespace dovetail::kernels::reference
