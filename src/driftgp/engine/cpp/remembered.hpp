// The last forecast of a call, kept for the step after it, which needs the same products.

#pragma once

#include "node.hpp"

namespace DRIFTGP_LEVEL {

// Values that followed from a state, after so many rows, and from a key: whose state, rows, key, values.
class Remembered {
    size_t place = 0, key_size = 0, count = 0;

  public:
    void declare(Layout &state, size_t numbers_of_key, size_t values) {
        key_size = numbers_of_key, count = values, place = state.keep(2 + key_size + count);
    }
    // Where to put the values.
    double *keep(const double *state, int64_t rows, const double *key, Memory &memory) const {
        if (!memory.kept) return memory.take(count);
        double *to = memory.kept + place;
        std::memcpy(to, &state, sizeof state);
        whole(to, 1) = rows;
        std::copy_n(key, key_size, to + 2);
        return to + 2 + key_size;
    }
    // The values, or nullptr.
    const double *find(const double *state, int64_t rows, const double *key, const Memory &memory) const {
        if (!memory.kept) return nullptr;
        const double *from = memory.kept + place, *of = nullptr;
        std::memcpy(&of, from, sizeof of);
        bool same = of == state && whole(from, 1) == rows;
        return same && std::memcmp(from + 2, key, key_size * sizeof(double)) == 0 ? from + 2 + key_size : nullptr;
    }
    void forget(const Memory &memory) const {
        if (memory.kept) memory.kept[place] = 0.0;
    }
};

}  // namespace DRIFTGP_LEVEL
