#include "planner/weight_offload/offload_program.h"

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <utility>

namespace siphon {
namespace {

// Of moving a byte out and in again. Dearer than any row's worth of idle time that a byte of memory
// saves: it keeps one weight from moving, at most, before and behind the operation.
constexpr double kPriceOfMemory = 8;

using Terms = std::vector<LinearTerm>;

class OffloadBuilder {
 public:
  OffloadBuilder(const WeightOffloadProblem& problem, OwnWeight own_weight)
      : problem_(problem), own_weight_(own_weight), count_(OperationCount(problem)) {
    made_.unit = ComputeTime(problem);
    made_.byte_unit = Bytes(1);
    Nanos transfers;
    for (int layer = 0; layer < Layers(); ++layer) {
      made_.byte_unit = std::max(made_.byte_unit, problem.layers[layer].weight);
      transfers += SendTime(problem, layer) + FetchTime(problem, layer);
    }
    // All weights but one out and in again around each operation, one after the other, twice a
    // step: no shortest step idles for longer.
    most_idle_ = 2 * Time(transfers) * static_cast<double>(count_);
  }

  OffloadProgram Build() {
    for (int operation = 0; operation < count_; ++operation) {
      made_.idle.push_back(Program().AddColumn(0, most_idle_, 1));
    }
    for (int layer = 0; layer < Layers(); ++layer) {
      if (problem_.layers[layer].weight > Bytes(0)) AddLayer(layer);
    }
    for (int operation = 0; operation < count_; ++operation) AddLink(operation);
    const std::vector<OperationMemory> memories = OperationMemories(problem_);
    for (int operation = 0; operation < count_; ++operation) {
      made_.lacked.push_back(AddMemory(operation, memories[operation].during));
    }
    return std::move(made_);
  }

 private:
  LinearProgram& Program() { return made_.program; }
  int Layers() const { return static_cast<int>(problem_.layers.size()); }
  double Time(Nanos time) const {
    return static_cast<double>(time.value) / static_cast<double>(made_.unit.value);
  }
  double Size(Bytes bytes) const {
    return static_cast<double>(bytes.value) / static_cast<double>(made_.byte_unit.value);
  }
  // Units of time for a unit of bytes.
  double TimeOfUnit(BytesPerSecond rate) const {
    constexpr double kNanosPerSecond = 1e9;
    return static_cast<double>(made_.byte_unit.value) * kNanosPerSecond /
           static_cast<double>(rate.value) / static_cast<double>(made_.unit.value);
  }
  // Of the paper's operation L - i + 1, from 0; F_i is the (L + i)-th.
  int BackwardOf(int layer) const { return Layers() - 1 - layer; }
  int ForwardOf(int layer) const { return Layers() + layer; }
  int IntervalOf(int layer, int operation) const {
    return (operation - BackwardOf(layer) + count_) % count_;
  }

  void AddLayer(int layer) {
    const double weight = Size(problem_.layers[layer].weight);
    const int forward = IntervalOf(layer, ForwardOf(layer));
    OffloadColumns columns{.layer = layer};
    for (int t = 0; t <= count_; ++t) {
      // Equation 5: all of it when B_i and F_i start. Equation 6: never more than |w_i|.
      const bool whole = t == 0 || t == forward || t == count_;
      columns.held.push_back(Program().AddColumn(whole ? weight : 0, weight));
      // Equation 7: |w_i| at most, all together; none before B_i has changed the weight.
      columns.sent.push_back(Program().AddColumn(0, t == 0 ? 0 : weight));
    }
    for (int t = 0; t < count_; ++t) {
      columns.fetched.push_back(Program().AddColumn(0, weight));
      // O >= 0.
      Program().AddRow({{columns.sent[t + 1], 1}, {columns.sent[t], -1}}, 0);
      // D >= 0.
      Program().AddRow({{columns.held[t], 1}, {columns.fetched[t], 1}, {columns.held[t + 1], -1}},
                       0);
      // Equation 6, second part: what is deleted and not back has been sent.
      if (t > 0) Program().AddRow({{columns.sent[t], 1}, {columns.held[t], 1}}, weight);
    }
    // Equation 3: not sent while its backward runs.
    Program().AddRow(
        {{made_.idle[BackwardOf(layer)], 1}, {columns.sent[1], -TimeOfUnit(problem_.out)}}, 0);
    columns.leaves = {AddAbsence(columns, 0, forward, weight),
                      AddAbsence(columns, forward, count_, weight)};
    made_.layers.push_back(std::move(columns));
  }

  // Equation 8: between two uses, of which each finds the whole weight, as much is deleted as is
  // fetched; all of it or nothing.
  int AddAbsence(const OffloadColumns& columns, int from, int to, double weight) {
    const int leaves = Program().AddColumn(0, 1);
    Program().columns[leaves].kind = ColumnKind::kInteger;
    Terms less{{leaves, weight}};
    Terms more{{leaves, -weight}};
    for (int t = from; t < to; ++t) {
      less.push_back({columns.fetched[t], -1});
      more.push_back({columns.fetched[t], 1});
    }
    Program().AddRow(std::move(less), 0);
    Program().AddRow(std::move(more), 0);
    return leaves;
  }

  // Equation 2: what is sent, or fetched, between two operations' starts fits into the time.
  void AddLink(int operation) {
    Terms out{{made_.idle[operation], 1}};
    Terms in = out;
    for (const OffloadColumns& columns : made_.layers) {
      const int t = IntervalOf(columns.layer, operation);
      out.push_back({columns.sent[t + 1], -TimeOfUnit(problem_.out)});
      out.push_back({columns.sent[t], TimeOfUnit(problem_.out)});
      in.push_back({columns.fetched[t], -TimeOfUnit(problem_.in)});
    }
    const double own = Time(DurationOf(problem_, operation));
    Program().AddRow(std::move(out), -own);
    Program().AddRow(std::move(in), -own);
  }

  // Equation 4. `during` is what the operation holds that is no weight: M_k less |w_k|.
  int AddMemory(int operation, Bytes during) {
    const Bytes own = problem_.layers[LayerOf(problem_, operation)].weight;
    if (own_weight_ == OwnWeight::kTwice) during += own;
    if (during + WeightBytes(problem_) <= problem_.capacity) return OffloadProgram::kNone;
    const double price = kPriceOfMemory * (TimeOfUnit(problem_.out) + TimeOfUnit(problem_.in));
    const int lacked = Program().AddColumn(0, Size(WeightBytes(problem_) + during), price);
    Terms row{{lacked, 1}};
    for (const OffloadColumns& columns : made_.layers) {
      row.push_back({columns.held[IntervalOf(columns.layer, operation)], -1});
    }
    Program().AddRow(std::move(row), -Size(problem_.capacity - during));
    return lacked;
  }

  const WeightOffloadProblem& problem_;
  const OwnWeight own_weight_;
  const int count_;
  double most_idle_ = 0;
  OffloadProgram made_;
};

}  // namespace

OffloadProgram BuildOffloadProgram(const WeightOffloadProblem& problem, OwnWeight own_weight) {
  return OffloadBuilder(problem, own_weight).Build();
}

}  // namespace siphon
