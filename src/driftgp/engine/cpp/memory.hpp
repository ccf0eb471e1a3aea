// Memory for the time of a call.

#pragma once

#include <algorithm>
#include <memory>
#include <stdexcept>
#include <vector>

#include "products.hpp"

namespace DRIFTGP_LEVEL {

// Memory that is given out piece by piece and taken back all at once; it grows to what a step needs and stays.
class Memory {
    // Not filled with zeros: what is never used takes no place in the machine's memory.
    class Block {
        std::unique_ptr<double[]> numbers;
        size_t count;

      public:
        explicit Block(size_t count) : numbers(new double[count]), count(count) {}
        double *data() { return numbers.get(); }
        size_t size() const { return count; }
    };
    std::vector<Block> blocks;
    size_t block = 0, used = 0;
    bool sealed = false;

  public:
    // Values that the next step of a call can use again, at the places from Layout::keep; all zeros at first. A null
    // pointer if nothing is kept.
    double *kept = nullptr;

    // Frees everything, and provides `count` numbers in one piece, so that a step within that limit cannot run out of
    // memory halfway. With `enough` a step must stay within it.
    void reset(size_t count, bool enough) {
        block = used = 0, sealed = enough, kept = nullptr;
        if (!blocks.empty() && blocks[0].size() >= count) return;
        blocks.clear();
        blocks.emplace_back(count);
    }
    double *take(size_t n) {
        n = (n + W - 1) / W * W + W;
        while (block < blocks.size() && used + n > blocks[block].size()) block++, used = 0;
        if (block == blocks.size()) {
#ifdef DRIFTGP_SEALED  // in the builds of the sanitisers
            if (sealed) throw std::logic_error("a step needs more memory than was set aside for it");
#endif
            blocks.emplace_back(std::max<size_t>(n + 8, 1 << 15));
        }
        if (used == 0) {  // begin where a whole vector does
            uintptr_t address = reinterpret_cast<uintptr_t>(blocks[block].data());
            used = (64 - address % 64) % 64 / 8;
        }
        double *p = blocks[block].data() + used;
        used += n;
        return p;
    }
    double *zeros(size_t n) {
        double *p = take(n);
        clear(p, n);
        return p;
    }
    int *wholes(size_t n) { return reinterpret_cast<int *>(take((n + 1) / 2)); }
    bool *flags(size_t n) { return reinterpret_cast<bool *>(take(n / sizeof(double) + 1)); }

    struct Mark {
        size_t block, used;
    };
    Mark mark() const { return {block, used}; }
    void back_to(Mark mark) { block = mark.block, used = mark.used; }  // what was taken since is free again
};

// What is taken from a memory while this lives is free again afterwards.
class Lease {
    Memory &memory;
    Memory::Mark mark;

  public:
    explicit Lease(Memory &memory) : memory(memory), mark(memory.mark()) {}
    ~Lease() { memory.back_to(mark); }
    Lease(const Lease &) = delete;
    Lease &operator=(const Lease &) = delete;
};

}  // namespace DRIFTGP_LEVEL
