// SPDX-License-Identifier: MIT
// By hand: two axes split one dim, and the outer one is gathered while the inner one still cuts it.
// expect: placement/needs
// expect: use<.*all_gather
// expect: Tp, (Needs=)?dovetail::typed::Whole, (Got=)?dovetail::typed::Split<dovetail::embed>
#include <dovetail/comm/threads.hpp>
#include <dovetail/typed/typed.hpp>
namespace dt = dovetail;
using namespace dovetail::typed;

struct Dp : dt::Axis<"dp", 2> {};
struct Tp : dt::Axis<"tp", 3> {};
using Rows = Shape<Of<dt::batch, 4>, Of<dt::embed, 8>>;
using Stack = Tensor<float, Rows, On<Dp, Split<dt::embed>>, On<Tp, Split<dt::embed>>>;

Tensor<float, Rows, On<Dp, Whole>, On<Tp, Whole>> all(dt::ThreadCommunicator& c,
                                                      dt::ThreadCommunicator::Group const& along_dp,
                                                      dt::ThreadCommunicator::Group const& along_tp, Stack const& x) {
#ifdef FAIL
  return all_gather<Tp>(c, along_tp, all_gather<Dp>(c, along_dp, x));
#else
  return all_gather<Dp>(c, along_dp, all_gather<Tp>(c, along_tp, x));
#endif
}
