#include "pipeline/synthetic/synthetic_boundaries.h"

#include <string>
#include <utility>

#include "absl/strings/str_cat.h"
#include "pipeline/synthetic/keyed_bytes.h"
#include "pipeline/synthetic/synthetic_keys.h"
#include "planner/status.h"

namespace siphon {
namespace {

bool IsTowardsInput(Boundary boundary) {
  return boundary == Boundary::kInput || boundary == Boundary::kInputGradient;
}

std::string Describe(Boundary boundary, MicrobatchId microbatch) {
  return absl::StrCat(BoundaryName(boundary), " of microbatch ", microbatch.value);
}

}  // namespace

void SyntheticBoundaries::BeginStep(int64_t step, int microbatches) {
  step_ = step;
  blocks_.clear();
  blocks_.resize(static_cast<size_t>(microbatches));
}

uint64_t SyntheticBoundaries::KeyOf(Boundary boundary, MicrobatchId microbatch) const {
  const bool is_gradient =
      boundary == Boundary::kOutputGradient || boundary == Boundary::kInputGradient;
  // The layer whose output crosses.
  const int layer = IsTowardsInput(boundary) ? sizes_.stage.begin - 1 : sizes_.stage.end - 1;
  return SyntheticKey(is_gradient ? SyntheticContent::kOutputGradient : SyntheticContent::kOutput,
                      {.step = step_, .layer = layer, .microbatch = microbatch.value});
}

absl::Status SyntheticBoundaries::TakeRoom(Boundary boundary, MicrobatchId microbatch) {
  if (IsThere(boundary, microbatch)) return absl::OkStatus();
  absl::StatusOr<BookedBlock> block = BookedBlock::Take(
      ledger_, IsTowardsInput(boundary) ? sizes_.input : sizes_.output, MemoryKind::kBoundary);
  if (!block.ok()) {
    return Annotate(block.status(),
                    absl::StrCat("memory for the ", Describe(boundary, microbatch)));
  }
  At(boundary, microbatch) = *std::move(block);
  return absl::OkStatus();
}

absl::Status SyntheticBoundaries::Fill(Boundary boundary, MicrobatchId microbatch) {
  SIPHON_RETURN_IF_ERROR(TakeRoom(boundary, microbatch));
  FillKeyed(BytesOf(boundary, microbatch), KeyOf(boundary, microbatch));
  return absl::OkStatus();
}

absl::Status SyntheticBoundaries::Check(Boundary boundary, MicrobatchId microbatch) const {
  const absl::Span<const std::byte> bytes = BytesOf(boundary, microbatch);
  const std::optional<size_t> differs = FirstDifference(bytes, KeyOf(boundary, microbatch));
  if (!differs.has_value()) return absl::OkStatus();
  std::string whose;
  for (int other = 0; other < static_cast<int>(blocks_.size()); ++other) {
    if (FirstDifference(bytes, KeyOf(boundary, MicrobatchId(other))).has_value()) continue;
    whose = absl::StrCat("; it is that of microbatch ", other);
  }
  return absl::DataLossError(absl::StrCat("the ", Describe(boundary, microbatch), ": byte ",
                                          *differs, " of ", bytes.size(),
                                          " is not what the other stage makes", whose));
}

}  // namespace siphon
