// SPDX-License-Identifier: MIT
// Matrix products by oneDNN. Weights are packed once, in the blocks that oneDNN asks for; a primitive is made for each
// (rows, outputs, inputs) at its first use and kept, with its memory objects. After that nothing here allocates; what
// oneDNN needs inside (a few small blocks an execution) is its own.
#pragma once
#include <dovetail/device/cpu/threads.hpp>
#include <dovetail/device/host_memory.hpp>
#include <map>
#include <oneapi/dnnl/dnnl.hpp>
#include <tuple>

/// What Cpu needs of oneDNN.
namespace dovetail::cpu {

/// The products of one rank. Not for two threads at a time.
class Products {
 public:
  explicit Products(int threads) : threads_(threads) {}

  /// Bytes of packed weights, or 0 where the row-major form is what oneDNN asks for.
  i64 packed_bytes(i64 outputs, i64 inputs) {
    auto const packed = packed_form(outputs, inputs);
    return packed == plain_form(outputs, inputs) ? 0 : static_cast<i64>(packed.get_size());
  }
  /// plain: (outputs, inputs) row-major; packed: packed_bytes() bytes.
  void pack(float* plain, void* packed, i64 outputs, i64 inputs) {
    named("pack", 0, outputs, inputs, [&] {
      dnnl::memory from(plain_form(outputs, inputs), engine_, plain);
      dnnl::memory to(packed_form(outputs, inputs), engine_, packed);
      dnnl::reorder(from, to).execute(stream_, from, to);
      stream_.wait();
    });
  }
  /// y[r, o] = sum over i of x[r, i] w[o, i]; weights as pack() left them, or row-major where not `packed`.
  /// x: (rows, inputs); y: (rows, outputs); all three above 0. @throws std::runtime_error with oneDNN's reason
  void run(float const* x, void const* weights, bool packed, float* y, i64 rows, i64 outputs, i64 inputs) {
    named("run", rows, outputs, inputs, [&] {
      use_threads(threads_);
      Product& p = product(rows, outputs, inputs, packed);
      p.x.set_data_handle(const_cast<float*>(x));  // oneDNN's handles are not const, what it reads is
      p.weights.set_data_handle(const_cast<void*>(weights));
      p.y.set_data_handle(y);
      p.scratch.set_data_handle(scratch_.get());
      dnnl_exec_arg_t const arguments[] = {{DNNL_ARG_SRC, p.x.get()},
                                           {DNNL_ARG_WEIGHTS, p.weights.get()},
                                           {DNNL_ARG_DST, p.y.get()},
                                           {DNNL_ARG_SCRATCHPAD, p.scratch.get()}};
      dnnl::error::wrap_c_api(dnnl_primitive_execute(p.primitive.get(), stream_.get(), 4, arguments),
                              "execution failed");
      stream_.wait();
    });
  }

 private:
  using Form = dnnl::memory::desc;
  static constexpr auto f32 = dnnl::memory::data_type::f32;
  static constexpr std::size_t most_products = 1024;  ///< kept at a time; a run has a few for each row count

  struct Product {
    dnnl::matmul primitive;
    dnnl::memory x, weights, y, scratch;
  };

  int threads_;
  dnnl::engine engine_{dnnl::engine::kind::cpu, 0};
  dnnl::stream stream_{engine_};
  HostMemory scratch_;
  std::map<std::tuple<i64, i64, i64, bool>, Product> products_;  ///< by rows, outputs, inputs, packed

  static Form rows_form(i64 rows, i64 width) { return Form({rows, width}, f32, dnnl::memory::dims{width, 1}); }
  static Form plain_form(i64 outputs, i64 inputs) {
    return Form({inputs, outputs}, f32, dnnl::memory::dims{1, inputs});
  }

  dnnl::matmul::primitive_desc describe(i64 rows, Form const& weights, i64 outputs, i64 inputs) {
    use_threads(threads_);
    dnnl::primitive_attr attributes;
    attributes.set_scratchpad_mode(dnnl::scratchpad_mode::user);
    return {dnnl::matmul::desc(rows_form(rows, inputs), weights, rows_form(rows, outputs)), attributes, engine_};
  }
  /// The form does not depend on the rows that will be multiplied: it is asked for with a typical number of them.
  Form packed_form(i64 outputs, i64 inputs) {
    Form const any({inputs, outputs}, f32, dnnl::memory::format_tag::any);
    return describe(32, any, outputs, inputs).weights_desc();
  }
  Product& product(i64 rows, i64 outputs, i64 inputs, bool packed) {
    auto const key = std::make_tuple(rows, outputs, inputs, packed);
    if (auto const found = products_.find(key); found != products_.end()) return found->second;
    Form const weights = packed ? packed_form(outputs, inputs) : plain_form(outputs, inputs);
    auto const description = describe(rows, weights, outputs, inputs);
    Form const scratch = description.scratchpad_desc();
    if (static_cast<i64>(scratch.get_size()) > scratch_.bytes() || !scratch_.get())
      scratch_ = HostMemory(static_cast<i64>(scratch.get_size()));
    if (products_.size() >= most_products) products_.clear();
    auto const memory = [&](Form const& form) { return dnnl::memory(form, engine_, DNNL_MEMORY_NONE); };
    return products_
        .emplace(key, Product{dnnl::matmul(description), memory(description.src_desc()),
                              memory(description.weights_desc()), memory(description.dst_desc()), memory(scratch)})
        .first->second;
  }
  void named(char const* what, i64 rows, i64 outputs, i64 inputs, auto const& body) {
    try {
      body();
    } catch (dnnl::error const& e) {
      throw std::runtime_error(std::string("matmul: oneDNN cannot ") + what + " a product of " + std::to_string(rows) +
                               " rows, " + std::to_string(outputs) + " outputs and " + std::to_string(inputs) +
                               " inputs: " + e.what());
    }
  }
};

}  // namespace dovetail::cpu
