// SPDX-License-Identifier: MIT
// What layouts cost before anything runs: reads a configuration, plans layouts given as text, and prints what each
// device stores, computes, receives and waits for, as text, JSON, a picture or a graph. No weights are read and no
// number is measured: all of them are asked of the plan that would run.
#include "finish_output.hpp"
#include "plan_options.hpp"

#include <dovetail/plan/compare.hpp>
#include <dovetail/plan/compare_json.hpp>
#include <dovetail/plan/compare_table.hpp>
#include <dovetail/plan/explain.hpp>
#include <dovetail/plan/graphviz.hpp>
#include <dovetail/plan/json.hpp>
#include <dovetail/plan/svg_compare.hpp>
#include <dovetail/run/model_config.hpp>
#include <optional>

using namespace plan_example;
namespace dt = dovetail;

namespace {

struct Source {
  std::string name{};
  dt::Model model{};
};

/// The model, called as its file or its directory is.
Source read_source(Options const& o) {
  std::filesystem::path const given = o.model.empty() ? o.config : o.model;
  auto const file = std::filesystem::absolute(o.model.empty() ? given : given / "config.json").lexically_normal();
  auto const name = file.filename() == "config.json" ? file.parent_path().filename() : file.stem();
  return {dt::excerpt(name.string()),
          o.model.empty() ? dt::model_from(dt::load_json(given), given.string()) : dt::read_model(given)};
}

/// A layout that was asked for: its plan, or why there is none.
struct Asked {
  std::string text{}, refusal{};
  std::optional<dt::LayoutPlan> planned{};
};

std::vector<Asked> plan_all(std::vector<std::string> const& texts, dt::Model const& model) {
  std::vector<Asked> all;
  for (auto const& text : texts) {
    Asked& asked = all.emplace_back(Asked{text, {}, {}});
    try {
      asked.planned = dt::plan_layout(dt::read_layout(text), model);
    } catch (dt::LayoutError const& e) {
      asked.refusal = e.what();
    } catch (dt::LayoutTextError const& e) {
      asked.refusal = e.what();
    }
  }
  return all;
}

/// What the layouts are asked at; without a number of requests each replica of each layout has one.
dt::Workload workload_of(Options const& o, std::vector<Asked> const& all) {
  dt::Workload work{o.sequences, o.context, o.tokens, o.bytes()};
  if (o.sequences) return work;
  work.sequences = 1;
  for (auto const& a : all)
    if (a.planned)
      work.sequences = (std::max)(work.sequences, (std::min)(most_sequences, dt::replicas_of(a.planned->view())));
  return work;
}

/// "smollm2-135m: 30 layers, 134.5 M parameters, f32".
std::string heading_of(Source const& source, std::vector<dt::LayoutFigures> const& figures, Options const& o) {
  std::string heading = source.name + ": " + dt::counted(source.model.layers, "layer");
  for (auto const& f : figures) {
    if (!f.ok()) continue;
    heading += ", " + dt::explaining::parameters_words(f.parameters) + " parameters";
    break;
  }
  return heading + ", " + o.dtype;
}

/// The figures, and for a single layout its plan, in the format that was asked for.
std::string told(Options const& o, std::string const& heading, std::vector<dt::LayoutFigures> const& figures,
                 dt::Workload const& work, dt::Plan const* plan) {
  if (o.format == "svg") return dt::compare_svg(figures, work, heading);
  if (o.format == "dot") return dt::graphviz(*plan);
  if (o.format == "json" && plan)
    return "{\"schema\":1,\n\"figures\":" + dt::compare_json(figures, work) + ",\n\"plan\":" + dt::to_json(*plan) +
           "}\n";
  if (o.format == "json") return dt::compare_json(figures, work);
  std::string text = heading + "\n";
  if (plan) {
    auto const run = work.prefill();
    text += "\nThe plan, with what a prefill needs:\n\n";
    text += dt::explain(*plan, {run.data(), static_cast<dt::i32>(run.size())}, work.bytes) + "\n";
  }
  return text + dt::compare_table(figures, work);
}

/// @return 1 where none of the layouts can be planned
int print(Options const& o) {
  Source const source = read_source(o);
  bool const one = o.compare.empty();
  std::vector<Asked> const all = plan_all(one ? std::vector{o.layout} : o.compare, source.model);
  dt::Workload const work = workload_of(o, all);
  std::vector<dt::LayoutFigures> figures;
  bool any = false;
  for (auto const& a : all) {
    figures.push_back(a.planned ? dt::figures_of(a.text, a.planned->view(), work)
                                : dt::refused_figures(a.text, a.refusal));
    any = any || figures.back().ok();
  }
  if (one && !any) throw std::runtime_error(figures[0].refusal);
  dt::Plan const plan = one ? all[0].planned->view() : dt::Plan{};
  std::string const text = told(o, heading_of(source, figures, o), figures, work, one ? &plan : nullptr);
  std::fwrite(text.data(), 1, text.size(), stdout);
  return any ? 0 : 1;
}

}  // namespace

int main(int count, char** arguments) {
  try {
    Options o;
    return finish_output("plan", read_options(count, arguments, o) ? print(o) : 0);
  } catch (flags::UsageError const& e) {
    std::fprintf(stderr, "plan: %s\nTry plan --help.\n", e.what());
    return 2;
  } catch (std::exception const& e) {
    std::fprintf(stderr, "plan: %s\n", e.what());
    return 1;
  }
}
