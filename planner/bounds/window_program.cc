#include "planner/bounds/window_program.h"

#include <algorithm>
#include <cstddef>
#include <map>
#include <optional>
#include <utility>

#include "absl/strings/str_cat.h"

namespace siphon {
namespace {

// No step is longer than so many times the schedule's longest path, or the bound ends there.
constexpr double kLongest = 64;
constexpr double kNanosPerSecond = 1e9;

using Terms = std::vector<LinearTerm>;

void Append(Terms& terms, const Terms& more, double factor = 1) {
  for (const LinearTerm& term : more) {
    terms.push_back({term.column, term.coefficient * factor});
  }
}

// One term a column.
Terms Merged(const Terms& terms) {
  std::map<int, double> coefficients;
  for (const LinearTerm& term : terms) coefficients[term.column] += term.coefficient;
  Terms merged;
  for (const auto& [column, coefficient] : coefficients) merged.push_back({column, coefficient});
  return merged;
}

// What becomes of the activations of one window, in bytes and in time.
struct WindowTerms {
  Terms dropped;
  Terms recompute;
  Terms link;
  Terms uplink;
};

// What a worker has away for the whole step, but for its use.
struct StandingTerms {
  Terms away;
  Terms on_lenders;
  Terms link_out, link_in;
  Terms uplink_out, uplink_in;
};

class Builder {
 public:
  Builder(const BoundFacts& facts, LayerChoices choices) : facts_(facts), choices_(choices) {
    made_.unit = std::max(Nanos(1), facts.paths.step_time());
    for (const WorkerMemory& memory : facts.memory) {
      const Bytes all = memory.parameters + memory.gradients + memory.optimizer_state;
      byte_unit_ = std::max(byte_unit_, static_cast<double>(all.value));
      for (const MemoryWindow& window : memory.windows) {
        byte_unit_ =
            std::max(byte_unit_, static_cast<double>((window.stash + window.queued).value));
      }
    }
    made_.step_time = Program().AddColumn(Time(facts.paths.step_time()), kLongest, 1);
  }

  WindowProgram Build() {
    for (size_t worker = 0; worker < facts_.memory.size(); ++worker) {
      standing_.push_back(AddStanding(static_cast<int>(worker)));
    }
    windows_.resize(facts_.memory.size());
    for (const WindowedWorker& windowed : facts_.windowed) AddWorker(windowed);
    for (size_t worker = 0; worker < facts_.memory.size(); ++worker) {
      AddStepTraffic(static_cast<int>(worker));
    }
    AddSharedTraffic();
    AddCores();
    return std::move(made_);
  }

 private:
  LinearProgram& Program() { return made_.program; }
  double Time(Nanos time) const {
    return static_cast<double>(time.value) / static_cast<double>(made_.unit.value);
  }
  double Size(Bytes bytes) const { return static_cast<double>(bytes.value) / byte_unit_; }
  // Units of bytes in a unit of time.
  double Rate(BytesPerSecond rate) const {
    return static_cast<double>(rate.value) / kNanosPerSecond *
           static_cast<double>(made_.unit.value) / byte_unit_;
  }
  int Cause(std::string text) {
    made_.causes.push_back(std::move(text));
    return static_cast<int>(made_.causes.size()) - 1;
  }
  // Which ways a worker's bytes may go.
  struct Ways {
    bool links = false;
    bool host = false;
  };
  Ways WaysOf(int worker) const {
    return {.links = facts_.limits.link_out[worker].value > 0,
            .host = FastestOut(facts_.limits.uplink[worker]).value > 0};
  }
  int Part(Bytes most) { return Program().AddColumn(0, Size(most)); }

  StandingTerms AddStanding(int worker) {
    StandingTerms terms;
    const WorkerMemory& memory = facts_.memory[worker];
    const Ways ways = WaysOf(worker);
    const bool host_steps = facts_.host_steps[worker].open;
    // Where the host may make the new parameters, they need not leave; and what it has of them and
    // of gradients anyway is not moved again, so that these crossings are counted with its steps'.
    const Terms parameters = AddStanding(
        memory.parameters, {.host_out = host_steps ? 0.0 : 1.0, .host_in = host_steps ? 0.0 : 1.0},
        ways, terms);
    const Terms gradients =
        AddStanding(memory.gradients, {.host_out = host_steps ? 0.0 : 1.0}, ways, terms);
    Terms state = AddStanding(memory.optimizer_state, {}, ways, terms);
    if (host_steps) AddHostSteps(worker, parameters, gradients, std::move(state), terms);
    return terms;
  }

  // Optimizer state that stays with the host; each of parameters in and gradients out is the larger
  // of what was swapped to the host and what the host's steps move.
  void AddHostSteps(int worker, const Terms& parameters, const Terms& gradients, Terms state,
                    StandingTerms& terms) {
    const WorkerMemory& memory = facts_.memory[worker];
    const HostStep& host_step = facts_.host_steps[worker];
    const LinearTerm stepped{Part(memory.optimizer_state), 1};
    terms.away.push_back(stepped);
    state.push_back(stepped);
    AddAtMost(state, Size(memory.optimizer_state));
    const auto larger = [&](const Terms& swapped, double moved) {
      const int column = Program().AddColumn(0, kLongest);
      Program().AddRow({{column, 1}, {stepped.column, -moved}}, 0);
      if (!swapped.empty()) Program().AddRow({{column, 1}, {swapped.back().column, -1}}, 0);
      return LinearTerm{column, 1};
    };
    // Replicas may share what comes in.
    const double shared = facts_.replicas > 1 ? 0 : host_step.parameters;
    terms.uplink_in.push_back(larger(parameters, shared));
    terms.uplink_out.push_back(larger(gradients, host_step.gradients));
  }

  // How often, at least, a byte that is away with the host crosses the uplink.
  struct Crossings {
    double host_out = 1;
    double host_in = 1;
  };
  // Bytes of one kind, over links and over the uplink.
  Terms AddStanding(Bytes bytes, Crossings crossings, Ways ways, StandingTerms& terms) {
    Terms all;
    if (bytes == Bytes(0)) return all;
    if (ways.links) {
      all.push_back({Part(bytes), 1});
      Append(terms.on_lenders, {all.back()});
      Append(terms.link_out, {all.back()});
      Append(terms.link_in, {all.back()});
    }
    if (ways.host) {
      all.push_back({Part(bytes), 1});
      Append(terms.uplink_out, {all.back()}, crossings.host_out);
      Append(terms.uplink_in, {all.back()}, crossings.host_in);
    }
    Append(terms.away, all);
    AddAtMost(all, Size(bytes));
    return all;
  }

  void AddAtMost(const Terms& terms, double most) {
    Terms less;
    Append(less, terms, -1);
    if (!less.empty()) Program().AddRow(std::move(less), -most);
  }

  void AddWorker(const WindowedWorker& windowed) {
    const WorkerMemory& memory = facts_.memory[windowed.worker];
    std::vector<int> segments;
    Terms path{{made_.step_time, 1}};
    for (const Segment& segment : windowed.segments) {
      segments.push_back(Program().AddColumn(Time(segment.least), kLongest));
      path.push_back({segments.back(), -1});
    }
    Program().AddRow(std::move(path), Time(windowed.head));
    std::vector<WindowTerms>& windows = windows_[windowed.worker];
    const std::vector<int> whole = AddWholeLayers(windowed.worker);
    for (const MemoryWindow& window : memory.windows) {
      windows.push_back(choices_ == LayerChoices::kWhole
                            ? WholeWindow(windowed.worker, window, whole)
                            : FractionalWindow(windowed.worker, window));
      AddCover(windowed.worker, window, windows.back());
    }
    const int recompute = Cause(absl::StrCat("recomputation on worker ", windowed.worker));
    const int links = Cause(absl::StrCat("links of worker ", windowed.worker));
    const int uplink = Cause(absl::StrCat("the uplink of worker ", windowed.worker));
    for (size_t index = 0; index < segments.size(); ++index) {
      const WindowTerms* before = index > 0 ? &windows[index - 1] : nullptr;
      const WindowTerms* behind = index < windows.size() ? &windows[index] : nullptr;
      if (before != nullptr) {
        Terms own{{segments[index], 1}};
        Append(own, before->recompute, -1);
        Program().AddRow(std::move(own), Time(windowed.segments[index].least_with_recompute),
                         recompute);
      }
      const Terms none;
      const auto& limits = facts_.limits;
      AddLinks(segments[index], windowed.worker, behind != nullptr ? behind->link : none,
               before != nullptr ? before->link : none, links);
      AddUplinks(segments[index], {limits.uplink[windowed.worker]},
                 behind != nullptr ? behind->uplink : none,
                 before != nullptr ? before->uplink : none, uplink);
    }
  }

  WindowTerms FractionalWindow(int worker, const MemoryWindow& window) {
    WindowTerms terms;
    for (const LayerKind& kind : facts_.memory[worker].layers) {
      const int64_t count = facts_.Count(worker, window, kind);
      if (count == 0) continue;
      const int column = Part(kind.stash * count);
      terms.dropped.push_back({column, 1});
      terms.recompute.push_back({column, Time(kind.recompute) / Size(kind.stash)});
    }
    AddAtMost(terms.dropped, Size(window.stash));
    const Bytes all = window.stash + window.queued;
    const Ways ways = WaysOf(worker);
    if (ways.links) terms.link.push_back({Part(all), 1});
    if (ways.host) terms.uplink.push_back({Part(all), 1});
    Terms sum = terms.dropped;
    Append(sum, terms.link);
    Append(sum, terms.uplink);
    AddAtMost(sum, Size(all));
    return terms;
  }

  // For each kind of layer how many are dropped, away over links, away over the uplink.
  static constexpr int kWays = 3;
  std::vector<int> AddWholeLayers(int worker) {
    std::vector<int> columns;
    if (choices_ != LayerChoices::kWhole) return columns;
    const Ways ways = WaysOf(worker);
    for (const LayerKind& kind : facts_.memory[worker].layers) {
      Terms all;
      for (const bool open : {true, ways.links, ways.host}) {
        columns.push_back(Program().AddColumn(0, open ? kind.layers : 0));
        Program().columns.back().kind = ColumnKind::kInteger;
        all.push_back({columns.back(), 1});
      }
      AddAtMost(all, kind.layers);
    }
    return columns;
  }

  WindowTerms WholeWindow(int worker, const MemoryWindow& window, const std::vector<int>& whole) {
    WindowTerms terms;
    const std::vector<LayerKind>& layers = facts_.memory[worker].layers;
    for (size_t index = 0; index < layers.size(); ++index) {
      const int64_t waiting = facts_.Count(worker, window, layers[index]) / layers[index].layers;
      const double bytes = Size(layers[index].stash * waiting);
      const double time = Time(layers[index].recompute * waiting);
      const int* columns = &whole[kWays * index];
      terms.dropped.push_back({columns[0], bytes});
      terms.recompute.push_back({columns[0], time});
      terms.link.push_back({columns[1], bytes});
      terms.uplink.push_back({columns[2], bytes});
    }
    return terms;
  }

  void AddCover(int worker, const MemoryWindow& window, const WindowTerms& terms) {
    Terms away = terms.dropped;
    Append(away, terms.link);
    Append(away, terms.uplink);
    Append(away, standing_[worker].away);
    Program().AddRow(std::move(away), Size(window.excess));
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
    Program().AddRow(Merged(room), -Size(spare));
  }

  void AddLinks(int time, int worker, const Terms& out, const Terms& in, int cause) {
    AddCarried(time, facts_.limits.link_out[worker], out, cause);
    AddCarried(time, facts_.limits.link_in[worker], in, cause);
  }

  // `bytes` fit into the time of that column at that rate.
  void AddCarried(int time, BytesPerSecond rate, const Terms& bytes, int cause) {
    if (bytes.empty() || rate == kUnlimitedRate) return;
    Terms row{{time, Rate(rate)}};
    Append(row, bytes, -1);
    Program().AddRow(std::move(row), 0, cause);
  }

  // The same, both ways over some uplinks.
  void AddUplinks(int time, const std::vector<UplinkRates>& uplinks, const Terms& out,
                  const Terms& in, int cause) {
    std::optional<Terms> out_row = CarriedOut(uplinks, out);
    std::optional<Terms> in_row = CarriedIn(uplinks, in);
    if (!out_row.has_value() && !in_row.has_value()) return;
    for (const UplinkRates& uplink : uplinks) {
      const int both = Program().AddColumn(0, kLongest);
      const int out_alone = Program().AddColumn(0, kLongest);
      const int in_alone = Program().AddColumn(0, kLongest);
      Program().AddRow({{time, 1}, {both, -1}, {out_alone, -1}, {in_alone, -1}}, 0, cause);
      if (out_row.has_value()) {
        out_row->push_back({both, Rate(uplink.out_both)});
        out_row->push_back({out_alone, Rate(uplink.out_alone)});
      }
      if (in_row.has_value()) {
        in_row->push_back({both, Rate(uplink.in_both)});
        in_row->push_back({in_alone, Rate(uplink.in_alone)});
      }
    }
    if (out_row.has_value()) Program().AddRow(*std::move(out_row), 0);
    if (in_row.has_value()) Program().AddRow(*std::move(in_row), 0);
  }

  // Less what is moved; none where nothing limits it.
  static std::optional<Terms> CarriedOut(const std::vector<UplinkRates>& uplinks,
                                         const Terms& bytes) {
    for (const UplinkRates& uplink : uplinks) {
      if (FastestOut(uplink) == kUnlimitedRate) return std::nullopt;
    }
    return Negative(bytes);
  }
  static std::optional<Terms> CarriedIn(const std::vector<UplinkRates>& uplinks,
                                        const Terms& bytes) {
    for (const UplinkRates& uplink : uplinks) {
      if (FastestIn(uplink) == kUnlimitedRate) return std::nullopt;
    }
    return Negative(bytes);
  }
  static std::optional<Terms> Negative(const Terms& bytes) {
    if (bytes.empty()) return std::nullopt;
    Terms negative;
    Append(negative, bytes, -1);
    return negative;
  }

  void AddStepTraffic(int worker) {
    Terms link;
    for (const WindowTerms& window : windows_[worker]) Append(link, window.link);
    const StandingTerms& standing = standing_[worker];
    Terms out = link;
    Append(out, standing.link_out);
    Append(link, standing.link_in);
    AddLinks(made_.step_time, worker, out, link, Cause(absl::StrCat("links of worker ", worker)));
    const auto [up, down] = UplinkTraffic(worker);
    AddUplinks(made_.step_time, {facts_.limits.uplink[worker]}, up, down,
               Cause(absl::StrCat("the uplink of worker ", worker)));
  }

  std::pair<Terms, Terms> UplinkTraffic(int worker) const {
    Terms out = standing_[worker].uplink_out;
    Terms in = standing_[worker].uplink_in;
    for (const WindowTerms& window : windows_[worker]) {
      Append(out, window.uplink);
      Append(in, window.uplink);
    }
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
      AddUplinks(made_.step_time, shared.uplinks, out, in, Cause(shared.name));
    }
  }

  void AddCores() {
    if (facts_.most_together == 0) return;
    constexpr double kThousandths = 1000;
    Terms row{{made_.step_time, static_cast<double>(facts_.most_together) / kThousandths}};
    for (const std::vector<WindowTerms>& windows : windows_) {
      for (const WindowTerms& window : windows) Append(row, window.recompute, -facts_.replicas);
    }
    Program().AddRow(std::move(row), Time(facts_.work), Cause("the cores that all workers share"));
  }

  const BoundFacts& facts_;
  const LayerChoices choices_;
  double byte_unit_ = 1;
  WindowProgram made_;
  std::vector<StandingTerms> standing_;            // [worker]
  std::vector<std::vector<WindowTerms>> windows_;  // [worker][window]
};

}  // namespace

WindowProgram BuildWindowProgram(const BoundFacts& facts, LayerChoices choices) {
  return Builder(facts, choices).Build();
}

}  // namespace siphon
