#ifndef SIPHON_PARTITIONER_NODE_SET_H_
#define SIPHON_PARTITIONER_NODE_SET_H_

#include <cstddef>
#include <cstdint>
#include <utility>
#include <vector>

namespace siphon {

// A set of small numbers, for the nodes of a graph. All sets of one graph have one capacity.
class NodeSet {
 public:
  explicit NodeSet(size_t capacity = 0) : words_((capacity + kBits - 1) / kBits) {}

  bool Contains(size_t node) const { return (words_[node / kBits] >> (node % kBits) & 1U) != 0; }
  void Insert(size_t node) { words_[node / kBits] |= uint64_t{1} << (node % kBits); }
  void InsertAll(const NodeSet& other) {
    for (size_t word = 0; word < words_.size(); ++word) words_[word] |= other.words_[word];
  }
  bool IsSubsetOf(const NodeSet& other) const {
    for (size_t word = 0; word < words_.size(); ++word) {
      if ((words_[word] & ~other.words_[word]) != 0) return false;
    }
    return true;
  }

  friend bool operator==(const NodeSet&, const NodeSet&) = default;
  template <typename H>
  friend H AbslHashValue(H state, const NodeSet& set) {
    return H::combine(std::move(state), set.words_);
  }

 private:
  static constexpr size_t kBits = 64;
  std::vector<uint64_t> words_;
};

}  // namespace siphon

#endif  // SIPHON_PARTITIONER_NODE_SET_H_
