// SPDX-License-Identifier: MIT
// By hand: a residual is added to a partial sum, so every rank would add it once. The same holds of a bias.
// expect: placement/needs
// expect: docs/errors/placement-needs\.md
// expect: op<.*add
// expect: operand<1>
// expect: Tp, (Needs=)?dovetail::typed::Whole, (Got=)?dovetail::typed::Partial
// expect: use<.*all_reduce
#include <dovetail/comm/threads.hpp>
#include <dovetail/typed/typed.hpp>
namespace dt = dovetail;
using namespace dovetail::typed;

struct Tp : dt::Axis<"tp", 3> {};
using Hidden = Tensor<float, Shape<Of<dt::batch, 4>, Of<dt::embed, 8>>, On<Tp, Whole>>;
using Inner = Tensor<float, Shape<Of<dt::batch, 4>, Of<dt::ffn, 24>>, On<Tp, Split<dt::ffn>>>;
using Down = Tensor<float, Shape<Of<dt::embed, 8>, Of<dt::ffn, 24>>, On<Tp, Split<dt::ffn>>>;

Hidden down_and_residual(dt::ThreadCommunicator& c, dt::ThreadCommunicator::Group const& group, Hidden const& x,
                         Inner const& h, Down const& down) {
#ifdef FAIL
  return all_reduce<Tp>(c, group, add(x, contract(h, down)));
#else
  return add(x, all_reduce<Tp>(c, group, contract(h, down)));
#endif
}
