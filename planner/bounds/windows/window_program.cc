#include "planner/bounds/windows/window_program.h"

#include <algorithm>
#include <cstddef>
#include <utility>

#include "absl/strings/str_cat.h"
#include "planner/bounds/windows/full_moment_rows.h"
#include "planner/bounds/windows/program_rows.h"
#include "planner/bounds/windows/standing_terms.h"
#include "planner/bounds/windows/step_end_rows.h"
#include "planner/bounds/windows/streamed_weights.h"
#include "planner/bounds/windows/window_columns.h"

namespace siphon {
namespace {

constexpr double kLongest = ProgramRows::kLongest;

using Terms = LinearTerms;

class Builder {
 public:
  Builder(const BoundFacts& facts, LayerChoices choices)
      : facts_(facts),
        choices_(choices),
        made_{.unit = std::max(Nanos(1), facts.paths.step_time())},
        rows_(made_, ByteUnit(facts)),
        step_ends_(facts, standing_, made_, rows_) {
    made_.step_time = Program().AddColumn(rows_.Time(facts.paths.step_time()), kLongest, 1);
  }

  WindowProgram Build() {
    for (size_t worker = 0; worker < facts_.memory.size(); ++worker) {
      standing_.push_back(AddStandingTerms(facts_, static_cast<int>(worker), made_, rows_));
    }
    windows_.resize(facts_.memory.size());
    streamed_.resize(facts_.memory.size());
    weights_.resize(facts_.memory.size());
    last_state_.resize(facts_.memory.size());
    segments_.resize(facts_.memory.size());
    for (const WindowedWorker& windowed : facts_.windowed) AddWorker(windowed);
    for (size_t worker = 0; worker < facts_.memory.size(); ++worker) {
      AddStepTraffic(static_cast<int>(worker));
      const Bytes fixed = facts_.memory[worker].fixed_excess;
      const Terms& away = standing_[worker].away;
      if (fixed > Bytes(0) && !away.empty()) Program().AddRow(away, rows_.Size(fixed));
    }
    AddSharedTraffic();
    for (const SharedUplinks& shared : facts_.limits.shared) {
      if (shared.workers.size() < 2) continue;
      const int cause = rows_.Cause(absl::StrCat(shared.name, " between backwards"));
      for (const StepSpan& span : facts_.joint.spans) AddSpan(span, shared, cause);
    }
    step_ends_.AddJoint();
    for (const FullMoment& moment : facts_.moments) {
      const std::vector<int>& segments = segments_[moment.worker];
      const MomentColumns columns{
          .window = windows_[moment.worker][moment.window],
          .weights = weights_[moment.worker][moment.window],
          .segments_behind = {segments.begin() + moment.window + 1, segments.end()}};
      AddFullMoment(facts_, moment, columns, standing_, made_, rows_);
    }
    AddCores();
    return std::move(made_);
  }

 private:
  LinearProgram& Program() { return made_.program; }
  // The most that a column stands for.
  static Bytes ByteUnit(const BoundFacts& facts) {
    Bytes most(1);
    for (const WorkerMemory& memory : facts.memory) {
      most = std::max(most, memory.parameters + memory.gradients + memory.optimizer_state);
      for (const MemoryWindow& window : memory.windows) {
        most = std::max(most, window.stash + window.queued);
      }
    }
    return most;
  }
  void AddWorker(const WindowedWorker& windowed) {
    const WorkerMemory& memory = facts_.memory[windowed.worker];
    std::vector<int>& segments = segments_[windowed.worker];
    Terms path{{made_.step_time, 1}};
    for (const Segment& segment : windowed.segments) {
      segments.push_back(Program().AddColumn(rows_.Time(segment.least), kLongest));
      path.push_back({segments.back(), -1});
    }
    Program().AddRow(std::move(path), rows_.Time(windowed.head));
    std::vector<WindowTerms>& windows = windows_[windowed.worker];
    WindowColumns columns(facts_, windowed.worker, choices_, made_, rows_);
    streamed_[windowed.worker] =
        AddStreamedWeights(facts_, windowed.worker, standing_[windowed.worker], made_);
    const StateAtFirst first = AddStateAtFirst(standing_[windowed.worker], made_);
    for (const MemoryWindow& window : memory.windows) {
      windows.push_back(columns.Add(window));
      const StandingTerms& standing = standing_[windowed.worker];
      const SwapWays ways = WaysOf(facts_, windowed.worker);
      weights_[windowed.worker].push_back(UsesAll(window) ? AddWeightsAway(standing, ways, made_)
                                                          : WeightsEverAway(standing, ways));
      if (UsesAll(window)) {
        LimitToStreamed(streamed_[windowed.worker], window, weights_[windowed.worker].back(),
                        made_);
      }
      const bool last = &window == &memory.windows.back();
      Terms away = weights_[windowed.worker].back().all;
      const Terms& state = windows.size() == 1 ? first.all : standing.state;
      Append(away, last ? StateAtLast(windowed, state) : state);
      AddCover(windowed.worker, window, windows.back(), away);
    }
    AddFirstUse(windowed, first);
    const int recompute = rows_.Cause(absl::StrCat("recomputation on worker ", windowed.worker));
    const int links = rows_.Cause(absl::StrCat("links of worker ", windowed.worker));
    const int uplink = rows_.Cause(absl::StrCat("the uplink of worker ", windowed.worker));
    for (size_t index = 0; index < segments.size(); ++index) {
      const WindowTerms* before = index > 0 ? &windows[index - 1] : nullptr;
      const WindowTerms* behind = index < windows.size() ? &windows[index] : nullptr;
      if (before != nullptr) {
        Terms own{{segments[index], 1}};
        Append(own, before->recompute, -1);
        Program().AddRow(std::move(own), rows_.Time(windowed.segments[index].least_with_recompute),
                         recompute);
      }
      Terms link_in, link_out, uplink_in, uplink_out;
      if (before != nullptr) {
        const WeightsAway& weights = weights_[windowed.worker][index - 1];
        link_in = before->link;
        uplink_in = before->uplink;
        Append(link_in, weights.link_in);
        Append(uplink_in, weights.uplink_in);
      }
      const int from = before != nullptr ? memory.windows[index - 1].place : 0;
      const int to = behind != nullptr ? memory.windows[index].place : kEndOfProgram;
      const StreamTraffic streams = StreamsWithin(streamed_[windowed.worker], from, to);
      Append(link_in, streams.link_in);
      Append(link_out, streams.link_out);
      Append(uplink_in, streams.uplink_in);
      Append(uplink_out, streams.uplink_out);
      if (behind != nullptr) {
        Append(link_out, behind->link);
        Append(uplink_out, behind->uplink);
        if (before != nullptr && UsesAll(memory.windows[index - 1])) {
          const WeightsAway& weights = weights_[windowed.worker][index];
          Append(link_out, weights.link_out);
          Append(uplink_out, weights.uplink_out);
        }
      } else {
        Append(link_in, last_state_[windowed.worker].link);
        Append(uplink_in, last_state_[windowed.worker].uplink);
      }
      AddLinks(segments[index], windowed.worker, link_out, link_in, links);
      rows_.AddUplinks(segments[index], {facts_.limits.uplink[windowed.worker]}, uplink_out,
                       uplink_in, uplink);
    }
    step_ends_.AddWorker(windowed, segments.back(), windows.back().recompute);
  }

  // Weights that are ever away are away when the step begins, and in before the first window, whose
  // microbatches have used them in their forwards.
  // State that was home then has left by the first window, as has what is away of its microbatches.
  void AddFirstUse(const WindowedWorker& windowed, const StateAtFirst& state) {
    const int worker = windowed.worker;
    const int time = Program().AddColumn(0, kLongest);
    Terms before{{made_.step_time, 1}, {time, -1}};
    for (size_t index = 1; index < segments_[worker].size(); ++index) {
      before.push_back({segments_[worker][index], -1});
    }
    Program().AddRow(std::move(before), 0);
    const bool uses_all = UsesAll(facts_.memory[worker].windows.front());
    const Terms parameters = uses_all ? standing_[worker].parameters : Terms();
    const SwapWays ways = WaysOf(facts_, worker);
    if (ways.links) {
      Terms out = windows_[worker].front().link;
      Append(out, state.link_out);
      AddLinks(time, worker, out, parameters.empty() ? Terms() : Terms{parameters.front()},
               rows_.Cause(absl::StrCat("links of worker ", worker)));
    }
    if (ways.host) {
      Terms out = windows_[worker].front().uplink;
      Append(out, state.uplink_out);
      rows_.AddUplinks(time, {facts_.limits.uplink[worker]}, out,
                       parameters.empty() ? Terms() : Terms{parameters.back()},
                       rows_.Cause(absl::StrCat("the uplink of worker ", worker)));
    }
  }

  // Whether the window's backwards use weights of all the worker's stages.
  bool UsesAll(const MemoryWindow& window) const {
    return !facts_.updates_within && std::all_of(window.waiting.begin(), window.waiting.end(),
                                                 [](int microbatches) { return microbatches > 0; });
  }

  // State that is away at the worker's last window, `most` (as StandingTerms::state), comes in
  // behind it.
  Terms StateAtLast(const WindowedWorker& windowed, const Terms& most) {
    const StandingTerms& standing = standing_[windowed.worker];
    if (!windowed.step.open) return most;
    Terms away;
    for (size_t place = 0; place < most.size(); ++place) {
      const LinearTerm& term = standing.state[place];
      const bool link = term.column == standing.state_link;
      if (!link && term.column != standing.state_uplink) {
        away.push_back(term);
        continue;
      }
      const int column = Program().AddColumn(0, Program().columns[term.column].upper);
      Program().AddRow({{most[place].column, 1}, {column, -1}}, 0);
      LastState& last = last_state_[windowed.worker];
      (link ? last.link : last.uplink).push_back({column, 1});
      away.push_back({column, 1});
    }
    return away;
  }

  // What several workers' windows move over shared uplinks within a span.
  void AddSpan(const StepSpan& span, const SharedUplinks& shared, int cause) {
    Terms out;
    Terms in;
    for (const WindowPlace& at : span.leaving) {
      if (Shares(shared, at.worker)) Append(out, windows_[at.worker][at.window].uplink);
    }
    for (const WindowPlace& at : span.returning) {
      if (!Shares(shared, at.worker)) continue;
      Append(in, windows_[at.worker][at.window].uplink);
      Append(in, weights_[at.worker][at.window].uplink_in);
      const bool last = at.window + 1 == static_cast<int>(windows_[at.worker].size());
      if (last && span.to == StepSpan::kOpen) Append(in, last_state_[at.worker].uplink);
    }
    if (out.empty() && in.empty()) return;
    const std::vector<int>& segments = segments_[span.worker];
    const int last = span.to == StepSpan::kOpen ? static_cast<int>(segments.size()) - 1 : span.to;
    const int time = Program().AddColumn(0, kLongest);
    Terms row;
    for (int index = span.from + 1; index <= last; ++index) row.push_back({segments[index], 1});
    row.push_back({time, -1});
    Program().AddRow(std::move(row), span.from == StepSpan::kOpen ? -HeadOf(span.worker) : 0);
    rows_.AddUplinks(time, shared.uplinks, out, in, cause);
  }

  double HeadOf(int worker) const {
    for (const WindowedWorker& windowed : facts_.windowed) {
      if (windowed.worker == worker) return rows_.Time(windowed.head);
    }
    return 0;
  }

  void AddCover(int worker, const MemoryWindow& window, const WindowTerms& terms,
                const Terms& standing) {
    Terms away = terms.dropped;
    Append(away, terms.link);
    Append(away, terms.uplink);
    Append(away, standing);
    Program().AddRow(std::move(away), rows_.Size(std::max(window.excess, window.excess_at_end)));
    const Bytes others = window.stash - window.own_stash;
    if (window.excess_at_end > others && !standing.empty()) {
      Program().AddRow(standing, rows_.Size(window.excess_at_end - others));
    }
    AddLenders(worker, terms);
  }

  void AddLenders(int worker, const WindowTerms& terms) {
    Bytes spare = facts_.limits.idle_memory;
    if (spare >= kUnlimitedBytes) return;
    Terms room;
    for (size_t other = 0; other < facts_.memory.size(); ++other) {
      const bool own = static_cast<int>(other) == worker;
      const int times = own ? facts_.replicas - 1 : facts_.replicas;
      if (times == 0) continue;
      if (facts_.memory[other].spare == kUnlimitedBytes) return;
      spare += facts_.memory[other].spare * times;
      Append(room, standing_[other].away, times);
    }
    Append(room, terms.link, -1);
    Append(room, standing_[worker].on_lenders, -1);
    AddMerged(Program(), room, -rows_.Size(spare));
  }

  void AddLinks(int time, int worker, const Terms& out, const Terms& in, int cause) {
    rows_.AddCarried(time, facts_.limits.link_out[worker], out, cause);
    rows_.AddCarried(time, facts_.limits.link_in[worker], in, cause);
  }

  void AddStepTraffic(int worker) {
    Terms link;
    for (const WindowTerms& window : windows_[worker]) Append(link, window.link);
    const StandingTerms& standing = standing_[worker];
    Terms out = link;
    const StreamTraffic streams = StreamsWithin(streamed_[worker], 0, kEndOfProgram);
    Append(link, streams.link_in);
    Append(out, streams.link_out);
    Append(out, standing.link_out);
    Append(link, standing.link_in);
    AddLinks(made_.step_time, worker, out, link,
             rows_.Cause(absl::StrCat("links of worker ", worker)));
    const auto [up, down] = UplinkTraffic(worker);
    rows_.AddUplinks(made_.step_time, {facts_.limits.uplink[worker]}, up, down,
                     rows_.Cause(absl::StrCat("the uplink of worker ", worker)));
  }

  std::pair<Terms, Terms> UplinkTraffic(int worker) const {
    Terms out = standing_[worker].uplink_out;
    Terms in = standing_[worker].uplink_in;
    for (const WindowTerms& window : windows_[worker]) {
      Append(out, window.uplink);
      Append(in, window.uplink);
    }
    const StreamTraffic streams = StreamsWithin(streamed_[worker], 0, kEndOfProgram);
    Append(out, streams.uplink_out);
    Append(in, streams.uplink_in);
    return {out, in};
  }

  void AddSharedTraffic() {
    for (const SharedUplinks& shared : facts_.limits.shared) {
      if (shared.workers.size() < 2) continue;
      std::vector<double> times(facts_.memory.size());
      for (const int worker : shared.workers) ++times[worker % facts_.memory.size()];
      Terms out;
      Terms in;
      for (size_t worker = 0; worker < times.size(); ++worker) {
        const auto [up, down] = UplinkTraffic(static_cast<int>(worker));
        if (times[worker] == 0) continue;
        Append(out, up, times[worker]);
        Append(in, down, times[worker]);
      }
      rows_.AddUplinks(made_.step_time, shared.uplinks, out, in, rows_.Cause(shared.name));
    }
  }

  void AddCores() {
    if (facts_.most_together == 0) return;
    constexpr double kThousandths = 1000;
    Terms row{{made_.step_time, static_cast<double>(facts_.most_together) / kThousandths}};
    for (const std::vector<WindowTerms>& windows : windows_) {
      for (const WindowTerms& window : windows) Append(row, window.recompute, -facts_.replicas);
    }
    Program().AddRow(std::move(row), rows_.Time(facts_.work),
                     rows_.Cause("the cores that all workers share"));
  }

  const BoundFacts& facts_;
  const LayerChoices choices_;
  WindowProgram made_;
  ProgramRows rows_;
  std::vector<StandingTerms> standing_;            // [worker]
  std::vector<std::vector<WindowTerms>> windows_;  // [worker][window]
  std::vector<std::vector<WeightsAway>> weights_;  // likewise
  std::vector<StreamedWeights> streamed_;          // [worker]
  // [worker]: optimizer state that is swapped and away at its last window.
  struct LastState {
    Terms link;
    Terms uplink;
  };
  std::vector<LastState> last_state_;
  std::vector<std::vector<int>> segments_;  // [worker], columns of their lengths
  StepEndRows step_ends_;
};

}  // namespace

WindowProgram BuildWindowProgram(const BoundFacts& facts, LayerChoices choices) {
  return Builder(facts, choices).Build();
}

}  // namespace siphon
