// SPDX-License-Identifier: MIT
// By hand: a gather of what every rank has already. What is done with the result afterwards is not reported as well.
// expect: placement/needs
// expect: docs/errors/placement-needs\.md
// expect: use<.*all_gather
// expect: leave_out
#include <dovetail/comm/threads.hpp>
#include <dovetail/typed/typed.hpp>
namespace dt = dovetail;
using namespace dovetail::typed;

struct Tp : dt::Axis<"tp", 3> {};
using Rows = Shape<Of<dt::batch, 4>, Of<dt::embed, 8>>;
using Hidden = Tensor<float, Rows, On<Tp, Whole>>;
#ifdef FAIL
using Given = Hidden;
#else
using Given = Tensor<float, Rows, On<Tp, Split<dt::embed>>>;
#endif

Hidden twice(dt::ThreadCommunicator& c, dt::ThreadCommunicator::Group const& group, Given const& x) {
  auto const y = all_gather<Tp>(c, group, x);
  return map([](float v) { return 2 * v; }, add(y, y));
}
