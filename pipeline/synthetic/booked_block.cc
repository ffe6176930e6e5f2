#include "pipeline/synthetic/booked_block.h"

#include <algorithm>
#include <cstring>
#include <utility>

#include "absl/strings/str_cat.h"
#include "planner/status.h"

namespace siphon {
namespace {

absl::Status TakeOnBooks(MemoryLedger& ledger, Bytes bytes, MemoryKind kind) {
  if (ledger.Take(bytes, kind)) return absl::OkStatus();
  return absl::ResourceExhaustedError(
      absl::StrCat("asked for ", FormatBytes(bytes), " of ", MemoryKindName(kind), ", but ",
                   FormatBytes(ledger.capacity() - ledger.used()), " of ",
                   FormatBytes(ledger.capacity()), " are free"));
}

}  // namespace

BookedBlock::Memory BookedBlock::Allocate(Bytes size) {
  if (size == Bytes(0)) return nullptr;
  return Memory(
      static_cast<std::byte*>(::operator new(static_cast<size_t>(size.value), kAlignment)));
}

absl::StatusOr<BookedBlock> BookedBlock::Take(MemoryLedger* ledger, Bytes size, MemoryKind kind) {
  SIPHON_RETURN_IF_ERROR(TakeOnBooks(*ledger, size, kind));
  BookedBlock block;
  block.ledger_ = ledger;
  block.kind_ = kind;
  block.size_ = size;
  block.memory_ = Allocate(size);
  return block;
}

BookedBlock::BookedBlock(BookedBlock&& other) noexcept
    : ledger_(std::exchange(other.ledger_, nullptr)),
      kind_(other.kind_),
      size_(std::exchange(other.size_, Bytes(0))),
      memory_(std::move(other.memory_)) {}

BookedBlock& BookedBlock::operator=(BookedBlock&& other) noexcept {
  if (this == &other) return *this;
  if (ledger_ != nullptr) ledger_->Give(size_, kind_);
  ledger_ = std::exchange(other.ledger_, nullptr);
  kind_ = other.kind_;
  size_ = std::exchange(other.size_, Bytes(0));
  memory_ = std::move(other.memory_);
  return *this;
}

BookedBlock::~BookedBlock() {
  if (ledger_ != nullptr) ledger_->Give(size_, kind_);
}

absl::Status BookedBlock::Resize(Bytes size) {
  SIPHON_CHECK(ledger_ != nullptr, "a block on no books has no size to change");
  if (size > size_) SIPHON_RETURN_IF_ERROR(TakeOnBooks(*ledger_, size - size_, kind_));
  Memory memory = Allocate(size);
  const Bytes kept = std::min(size, size_);
  if (kept > Bytes(0)) {
    std::memcpy(memory.get(), memory_.get(), static_cast<size_t>(kept.value));
  }
  memory_ = std::move(memory);
  if (size < size_) ledger_->Give(size_ - size, kind_);
  size_ = size;
  return absl::OkStatus();
}

}  // namespace siphon
