#include "swap/device/nvme_mover.h"

#include <sys/mman.h>

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <string>
#include <utility>

#include "absl/strings/str_cat.h"
#include "planner/status.h"

namespace siphon {
namespace {

// Of one request that the kernel has no memory for right now, or that a signal has interrupted.
constexpr int kMostRetries = 100;

int64_t Down(int64_t offset, int64_t alignment) { return offset / alignment * alignment; }
int64_t Up(int64_t offset, int64_t alignment) { return Down(offset + alignment - 1, alignment); }

}  // namespace

NvmeMover::NvmeMover(const NvmeFile* file, std::unique_ptr<NvmeIo> io, NvmeMoverOptions options)
    : file_(file),
      options_(std::move(options)),
      alignment_(file->direct() ? kNvmeBlock : 1),
      io_(std::move(io)),
      buffers_(static_cast<size_t>(options_.depth)) {
  const auto bytes = static_cast<size_t>(options_.buffer.value);
  SIPHON_CHECK(bytes > 0 && bytes % kNvmeBlock == 0 && options_.depth > 0,
               "requests are whole blocks");
  if (options_.memory.empty()) {
    void* const memory = mmap(nullptr, bytes * buffers_.size(), PROT_READ | PROT_WRITE,
                              MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    SIPHON_CHECK(memory != MAP_FAILED, "there is memory for buffers");
    memory_ = static_cast<std::byte*>(memory);
  } else {
    SIPHON_CHECK(options_.memory.size() == bytes * buffers_.size(), "buffers fill their memory");
    memory_ = options_.memory.data();
  }
  for (size_t buffer = buffers_.size(); buffer > 0; --buffer) {
    buffers_[buffer - 1].memory = memory_ + (buffer - 1) * bytes;
    free_.push_back(static_cast<int>(buffer) - 1);
  }
}

// A drive that hangs may still write into the buffers: then they stay.
NvmeMover::~NvmeMover() {
  if (!hung_.ok()) {
    if (options_.keep_memory) options_.keep_memory();
    return;
  }
  if (!options_.memory.empty()) return;
  munmap(memory_, static_cast<size_t>(options_.BufferBytes().value));
}

std::vector<NvmeMover::Run> NvmeMover::RunsOf(absl::Span<const CopyPart> parts) {
  std::vector<Run> runs;
  for (const CopyPart& part : parts) {
    const bool out = part.to.on_drive();
    SIPHON_CHECK(out != part.from.on_drive(), "one side is on the drive");
    const auto bytes = static_cast<int64_t>(part.from.size());
    if (bytes == 0) continue;
    Piece piece{.offset = out ? part.to.offset() : part.from.offset(), .bytes = part.from.size()};
    (out ? piece.from = part.from.data() : piece.to = part.to.data());
    if (runs.empty() || runs.back().end != piece.offset) {
      runs.push_back({.begin = piece.offset, .end = piece.offset});
    }
    runs.back().end += bytes;
    runs.back().pieces.push_back(piece);
  }
  return runs;
}

void NvmeMover::AppendBlocks(size_t run, int64_t begin, int64_t end, int64_t alignment,
                             std::vector<Block>& blocks) const {
  for (int64_t at = begin; at < end;) {
    const int64_t io_begin = Down(at, alignment);
    const int64_t next = std::min(io_begin + options_.buffer.value, end);
    blocks.push_back({run, at, next, io_begin, Up(next, alignment)});
    at = next;
  }
}

// Whole blocks apart from what is not: only the latter has to be read before it is written.
std::vector<NvmeMover::Block> NvmeMover::BlocksOf(const std::vector<Run>& runs) const {
  std::vector<Block> blocks;
  for (size_t run = 0; run < runs.size(); ++run) {
    const auto [begin, end] = std::pair(runs[run].begin, runs[run].end);
    SIPHON_CHECK(begin >= 0 && end <= file_->bytes().value, "what is parked is within the file");
    const int64_t whole_begin = std::min(Up(begin, alignment_), end);
    const int64_t whole_end = std::max(Down(end, alignment_), whole_begin);
    AppendBlocks(run, begin, whole_begin, alignment_, blocks);
    AppendBlocks(run, whole_begin, whole_end, alignment_, blocks);
    AppendBlocks(run, whole_end, end, alignment_, blocks);
  }
  return blocks;
}

absl::Status NvmeMover::CopyTensors(const Run& run, const Buffer& buffer, CopyLane lane) const {
  const Block& block = buffer.block;
  const auto behind = [](int64_t offset, const Piece& piece) { return offset < piece.offset; };
  auto piece = std::upper_bound(run.pieces.begin(), run.pieces.end(), block.begin, behind) - 1;
  for (int64_t at = block.begin; at < block.end; ++piece) {
    const int64_t in_piece = at - piece->offset;
    const int64_t bytes = std::min(static_cast<int64_t>(piece->bytes) - in_piece, block.end - at);
    std::byte* const parked = buffer.memory + (at - block.io_begin);
    void* const to = lane == CopyLane::kOut ? parked : piece->to + in_piece;
    const void* const from = lane == CopyLane::kOut ? piece->from + in_piece : parked;
    if (options_.copy) {
      SIPHON_RETURN_IF_ERROR(options_.copy(to, from, static_cast<size_t>(bytes)));
    } else {
      std::memcpy(to, from, static_cast<size_t>(bytes));
    }
    at += bytes;
  }
  return absl::OkStatus();
}

absl::Status NvmeMover::RequestError(const Buffer& buffer, absl::string_view cause) const {
  const int64_t begin = buffer.block.io_begin + buffer.moved;
  return absl::InternalError(
      absl::StrCat("drive file ", file_->name(), ": ",
                   buffer.kind == NvmeRequest::Kind::kRead ? "reading " : "writing ",
                   buffer.block.io_end - begin, " bytes at ", begin, ": ", cause));
}

absl::Status NvmeMover::Request(int number) {
  const Buffer& buffer = buffers_[number];
  const int64_t begin = buffer.block.io_begin + buffer.moved;
  const absl::Status started =
      io_->Start({.kind = buffer.kind,
                  .offset = begin,
                  .buffer = absl::MakeSpan(buffer.memory + buffer.moved,
                                           static_cast<size_t>(buffer.block.io_end - begin)),
                  .tag = number});
  if (started.ok()) return started;
  Release(number);
  return RequestError(buffer, started.message());
}

absl::Status NvmeMover::Start(int number, NvmeRequest::Kind kind) {
  buffers_[number].kind = kind;
  buffers_[number].moved = 0;
  buffers_[number].retries = 0;
  return Request(number);
}

absl::Status NvmeMover::Begin(const std::vector<Run>& runs, const Block& block, CopyLane lane) {
  const int number = free_.back();
  free_.pop_back();
  Buffer& buffer = buffers_[number];
  buffer.block = block;
  buffer.in_use = true;
  if (lane == CopyLane::kIn || !block.IsWhole()) return Start(number, NvmeRequest::Kind::kRead);
  const absl::Status copied = CopyTensors(runs[block.run], buffer, lane);
  if (copied.ok()) return Start(number, NvmeRequest::Kind::kWrite);
  Release(number);
  return copied;
}

// What a request has moved, and what comes after it: the rest of it, the block's write, or nothing.
absl::Status NvmeMover::Advance(const std::vector<Run>& runs, CopyLane lane, int number,
                                int64_t result) {
  Buffer& buffer = buffers_[number];
  const auto failed = [&](absl::string_view cause) {
    Release(number);
    return RequestError(buffer, cause);
  };
  if (result == -EINTR || result == -EAGAIN) {
    return ++buffer.retries > kMostRetries ? failed(std::strerror(static_cast<int>(-result)))
                                           : Request(number);
  }
  if (result < 0) return failed(std::strerror(static_cast<int>(-result)));
  if (result == 0) {
    return failed(buffer.kind == NvmeRequest::Kind::kRead ? "the file ends before"
                                                          : "the drive takes nothing");
  }
  const int64_t whole = buffer.block.io_end - buffer.block.io_begin;
  if (buffer.moved + result < whole) {
    // Whole blocks of it count; the rest is asked for again.
    const int64_t moved = Down(buffer.moved + result, alignment_);
    if (moved == buffer.moved && ++buffer.retries > kMostRetries)
      return failed("no block is whole");
    buffer.moved = moved;
    return Request(number);
  }
  if (lane == CopyLane::kOut && buffer.kind == NvmeRequest::Kind::kRead) {
    const absl::Status copied = CopyTensors(runs[buffer.block.run], buffer, lane);
    if (copied.ok()) return Start(number, NvmeRequest::Kind::kWrite);
    Release(number);
    return copied;
  }
  const absl::Status copied =
      lane == CopyLane::kIn ? CopyTensors(runs[buffer.block.run], buffer, lane) : absl::OkStatus();
  Release(number);
  return copied;
}

absl::Status NvmeMover::FinishOne(const std::vector<Run>& runs, CopyLane lane, bool stop) {
  const absl::StatusOr<NvmeDone> done = io_->Next(options_.patience);
  if (!done.ok()) {
    hung_ = absl::InternalError(
        absl::StrCat("drive file ", file_->name(), ": ", done.status().message()));
    return hung_;
  }
  if (!stop) return Advance(runs, lane, done->tag, done->result);
  Release(done->tag);
  return absl::OkStatus();
}

void NvmeMover::Release(int number) {
  buffers_[number].in_use = false;
  free_.push_back(number);
}

bool NvmeMover::ChangesABlock() const {
  return std::any_of(buffers_.begin(), buffers_.end(),
                     [](const Buffer& buffer) { return buffer.in_use && !buffer.block.IsWhole(); });
}

absl::Status NvmeMover::MoveBlocks(const std::vector<Run>& runs, CopyLane lane) {
  const std::vector<Block> blocks = BlocksOf(runs);
  absl::Status status;
  for (size_t next = 0;;) {
    while (status.ok() && next < blocks.size() && !free_.empty()) {
      // Two runs may end and begin in one block: changed one after the other.
      const bool changes = lane == CopyLane::kOut && !blocks[next].IsWhole();
      if (changes && ChangesABlock()) break;
      status = Begin(runs, blocks[next++], lane);
    }
    if (free_.size() == buffers_.size() || !hung_.ok()) return status;
    const absl::Status finished = FinishOne(runs, lane, /*stop=*/!status.ok());
    status.Update(finished);
  }
}

absl::Status NvmeMover::Move(absl::Span<const CopyPart> parts) {
  SIPHON_RETURN_IF_ERROR(hung_);
  const std::vector<Run> runs = RunsOf(parts);
  if (runs.empty()) return absl::OkStatus();
  SIPHON_RETURN_IF_ERROR(file_->CheckWhole());
  const bool out = runs.front().pieces.front().from != nullptr;
  return MoveBlocks(runs, out ? CopyLane::kOut : CopyLane::kIn);
}

}  // namespace siphon
