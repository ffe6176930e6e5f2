#include "planner/bounds/windows/program_rows.h"

#include <algorithm>
#include <cstddef>
#include <map>
#include <optional>
#include <utility>

namespace siphon {
namespace {

constexpr double kNanosPerSecond = 1e9;

std::optional<LinearTerms> Negative(const LinearTerms& bytes) {
  if (bytes.empty()) return std::nullopt;
  LinearTerms negative;
  Append(negative, bytes, -1);
  return negative;
}

// Less what is moved; none where nothing limits it.
std::optional<LinearTerms> CarriedOut(const std::vector<UplinkRates>& uplinks,
                                      const LinearTerms& bytes) {
  for (const UplinkRates& uplink : uplinks) {
    if (FastestOut(uplink) == kUnlimitedRate) return std::nullopt;
  }
  return Negative(bytes);
}
std::optional<LinearTerms> CarriedIn(const std::vector<UplinkRates>& uplinks,
                                     const LinearTerms& bytes) {
  for (const UplinkRates& uplink : uplinks) {
    if (FastestIn(uplink) == kUnlimitedRate) return std::nullopt;
  }
  return Negative(bytes);
}
}  // namespace

void Append(LinearTerms& terms, const LinearTerms& more, double factor) {
  for (const LinearTerm& term : more) {
    terms.push_back({term.column, term.coefficient * factor});
  }
}

void AddMerged(LinearProgram& program, const LinearTerms& terms, double least) {
  std::map<int, double> coefficients;
  for (const LinearTerm& term : terms) coefficients[term.column] += term.coefficient;
  LinearTerms merged;
  for (const auto& [column, coefficient] : coefficients) {
    if (coefficient != 0) merged.push_back({column, coefficient});
  }
  if (!merged.empty()) program.AddRow(std::move(merged), least);
}

ProgramRows::ProgramRows(WindowProgram& made, Bytes byte_unit)
    : made_(made), byte_unit_(static_cast<double>(byte_unit.value)) {}

double ProgramRows::Time(Nanos time) const {
  return static_cast<double>(time.value) / static_cast<double>(made_.unit.value);
}

double ProgramRows::Size(Bytes bytes) const {
  return static_cast<double>(bytes.value) / byte_unit_;
}

double ProgramRows::Rate(BytesPerSecond rate) const {
  return static_cast<double>(rate.value) / kNanosPerSecond * static_cast<double>(made_.unit.value) /
         byte_unit_;
}

double ProgramRows::TimeOfUnit(double nanos_a_byte) const {
  return nanos_a_byte * byte_unit_ / static_cast<double>(made_.unit.value);
}

int ProgramRows::Cause(std::string text) {
  made_.causes.push_back(std::move(text));
  return static_cast<int>(made_.causes.size()) - 1;
}

int ProgramRows::Part(Bytes most) { return made_.program.AddColumn(0, Size(most)); }

void ProgramRows::AddAtMost(const LinearTerms& terms, double most) {
  LinearTerms less;
  Append(less, terms, -1);
  if (!less.empty()) made_.program.AddRow(std::move(less), -most);
}

void ProgramRows::AddCarried(int time, BytesPerSecond rate, const LinearTerms& bytes, int cause) {
  if (bytes.empty() || rate == kUnlimitedRate) return;
  LinearTerms row{{time, Rate(rate)}};
  Append(row, bytes, -1);
  made_.program.AddRow(std::move(row), 0, cause);
}

void ProgramRows::AddUplinks(int time, const std::vector<UplinkRates>& uplinks,
                             const LinearTerms& out, const LinearTerms& in, int cause) {
  std::optional<LinearTerms> out_row = CarriedOut(uplinks, out);
  std::optional<LinearTerms> in_row = CarriedIn(uplinks, in);
  if (!out_row.has_value() && !in_row.has_value()) return;
  for (size_t index = 0; index < uplinks.size(); ++index) {
    const UplinkRates& uplink = uplinks[index];
    // Equal ones are as one that has all their time.
    const auto first = std::find(uplinks.begin(), uplinks.end(), uplink) - uplinks.begin();
    if (static_cast<size_t>(first) < index) continue;
    const auto equal = static_cast<double>(std::count(uplinks.begin(), uplinks.end(), uplink));
    const int both = made_.program.AddColumn(0, kLongest * equal);
    const int out_alone = made_.program.AddColumn(0, kLongest * equal);
    const int in_alone = made_.program.AddColumn(0, kLongest * equal);
    made_.program.AddRow({{time, equal}, {both, -1}, {out_alone, -1}, {in_alone, -1}}, 0, cause);
    if (out_row.has_value()) {
      out_row->push_back({both, Rate(uplink.out_both)});
      out_row->push_back({out_alone, Rate(uplink.out_alone)});
    }
    if (in_row.has_value()) {
      in_row->push_back({both, Rate(uplink.in_both)});
      in_row->push_back({in_alone, Rate(uplink.in_alone)});
    }
  }
  if (out_row.has_value()) made_.program.AddRow(*std::move(out_row), 0);
  if (in_row.has_value()) made_.program.AddRow(*std::move(in_row), 0);
}

void ProgramRows::AddUplink(const LinearTerms& time, const UplinkRates& uplink,
                            const LinearTerms& out, const LinearTerms& in) {
  // out_weight * out + in_weight * in <= most * time
  const auto add = [&](double out_weight, double in_weight, double most) {
    LinearTerms row;
    Append(row, time, most);
    Append(row, out, -out_weight);
    Append(row, in, -in_weight);
    AddMerged(made_.program, row, 0);
  };
  const bool limits_out = FastestOut(uplink) != kUnlimitedRate && !out.empty();
  const bool limits_in = FastestIn(uplink) != kUnlimitedRate && !in.empty();
  if (limits_out) add(1, 0, Rate(FastestOut(uplink)));
  if (limits_in) add(0, 1, Rate(FastestIn(uplink)));
  if (!limits_out || !limits_in) return;
  const double out_alone = Rate(uplink.out_alone);
  const double in_alone = Rate(uplink.in_alone);
  const double out_both = Rate(uplink.out_both);
  const double in_both = Rate(uplink.in_both);
  const bool in_turns = out_both * in_alone + in_both * out_alone < out_alone * in_alone;
  if (in_turns) {
    add(in_alone, out_alone, out_alone * in_alone);
    return;
  }
  if (out_alone > out_both) add(in_both, out_alone - out_both, out_alone * in_both);
  if (in_alone > in_both) add(in_alone - in_both, out_both, in_alone * out_both);
}

void ProgramRows::AddShared(const LinearTerms& time, const SharedUplinks& shared,
                            const LinearTerms& out, const LinearTerms& in) {
  if (out.empty() && in.empty()) return;
  if (shared.uplinks.size() == 1) {
    AddUplink(time, shared.uplinks.front(), out, in);
    return;
  }
  const int all = made_.program.AddColumn(0, kLongest);  // the time, at most
  LinearTerms row = time;
  row.push_back({all, -1});
  AddMerged(made_.program, row, 0);
  AddUplinks(all, shared.uplinks, out, in, -1);
}

}  // namespace siphon
