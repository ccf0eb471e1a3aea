// Memory for the time of a call.

#pragma once

#include <algorithm>
#include <vector>

#include "products.hpp"

namespace DRIFTGP_LEVEL {

// Memory that is given out piece by piece and taken back all at once; it grows to what a step needs and stays.
class Memory {
    std::vector<std::vector<double>> blocks;
    size_t block = 0, used = 0;

  public:
    void reset() { block = used = 0; }
    double *take(size_t n) {
        n = (n + W - 1) / W * W + W;
        while (block < blocks.size() && used + n > blocks[block].size()) block++, used = 0;
        if (block == blocks.size()) blocks.emplace_back(std::max<size_t>(n + 8, 1 << 15));
        if (used == 0) {  // begin where a whole vector does
            uintptr_t address = reinterpret_cast<uintptr_t>(blocks[block].data());
            used = (64 - address % 64) % 64 / 8;
            if (used + n > blocks[block].size()) blocks[block].resize(n + 16), used = 0;
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
