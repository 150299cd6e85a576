// SPDX-License-Identifier: MIT
// By hand: a partial sum goes into the next product before it is summed.
// expect: placement/needs
// expect: docs/errors/placement-needs\.md
// expect: op<.*matmul
// expect: operand<0>
// expect: Tp, (Needs=)?dovetail::typed::Whole, (Got=)?dovetail::typed::Partial
// expect: use<.*all_reduce
#include <dovetail/comm/threads.hpp>
#include <dovetail/typed/typed.hpp>
namespace dt = dovetail;
using namespace dovetail::typed;

struct Tp : dt::Axis<"tp", 3> {};
using Hidden = Tensor<float, Shape<Of<dt::batch, 4>, Of<dt::embed, 8>>, On<Tp, Whole>>;
using Up = Tensor<float, Shape<Of<dt::ffn, 24>, Of<dt::embed, 8>>, On<Tp, Split<dt::ffn>>>;
using Down = Tensor<float, Shape<Of<dt::embed, 8>, Of<dt::ffn, 24>>, On<Tp, Split<dt::ffn>>>;

using Result = Tensor<float, Shape<Of<dt::batch, 4>, Of<dt::ffn, 24>>, On<Tp, Split<dt::ffn>>>;

Result up_again(dt::ThreadCommunicator& c, dt::ThreadCommunicator::Group const& group, Hidden const& x, Up const& up,
                Down const& down) {
  auto const y = contract(contract(x, up), down);
#ifdef FAIL
  static_cast<void>(c), static_cast<void>(group);
  return contract(y, up);
#else
  return contract(all_reduce<Tp>(c, group, y), up);
#endif
}
