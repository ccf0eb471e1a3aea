// A description of a model, taken apart: the twin of driftgp/engine/description.py.
//
// Numbers come from outside, so every count is checked against the length of the description, and every setting against
// its range.

#pragma once

#include <cmath>
#include <cstddef>
#include <cstdint>
#include <limits>
#include <stdexcept>
#include <string>
#include <vector>

namespace driftgp {

// As in description.py. Stationary kernels come first: see `Term::stationary`.
enum PartKind {
    SE = 1,
    MATERN12 = 2,
    MATERN32 = 3,
    MATERN52 = 4,
    RATIONAL_QUADRATIC = 5,
    PERIODIC = 6,
    LINEAR = 7,
    CONSTANT = 8,
    SUM = 9,
    PRODUCT = 10,
    ADAPTIVE_GP = 20,
    STANDARDIZE = 21,
    WITHIN = 22,
    GAPS = 23,
    CALIBRATED = 24,
    WATCHED = 25,
    BANK = 26,
    LAST_VALUES = 27,
    GUARDED = 28,
    ANCHORED = 29,
    LAGGED = 30,
    BOUNDED = 31,
    AROUND = 36,
    CREDIBLE = 37,
};

// A part of a model that this library does not have.
struct Unknown : std::runtime_error {
    using std::runtime_error::runtime_error;
};

struct Part {
    int64_t kind = 0;
    std::vector<double> settings;
    std::vector<Part> children;
};

// Settings of a part, one after another, each refused if it is not what it should be.
class Settings {
    const Part &part;
    size_t next = 0;

    [[noreturn]] void refuse(const char *name, double value, const std::string &expected) const {
        throw std::invalid_argument("setting " + std::string(name) + " of part " + std::to_string(part.kind) +
                                    " must be " + expected + "; got " + std::to_string(value));
    }

  public:
    explicit Settings(const Part &part) : part(part) {}

    size_t left() const { return part.settings.size() - next; }
    // Any number within [low, high] that is not NaN.
    double number(const char *name, double low, double high) {
        if (left() == 0)
            throw std::invalid_argument("setting " + std::string(name) + " of part " + std::to_string(part.kind) +
                                        " is missing");
        double value = part.settings[next++];
        if (!(value >= low && value <= high))
            refuse(name, value, "within " + std::to_string(low) + " and " + std::to_string(high));
        return value;
    }
    double positive(const char *name) {
        double value = number(name, 0.0, std::numeric_limits<double>::max());
        if (value == 0.0) refuse(name, value, "positive");
        return value;
    }
    int64_t whole(const char *name, int64_t low, int64_t high) {
        double value = number(name, double(low), double(high));
        if (value != std::floor(value)) refuse(name, value, "a whole number");
        return int64_t(value);
    }
    bool flag(const char *name) { return whole(name, 0, 1) != 0; }
    // A vector: how many numbers there are, then the numbers.
    std::vector<double> numbers(const char *name, size_t most, double low, double high) {
        size_t count = size_t(whole(name, 0, int64_t(most)));
        std::vector<double> values;
        for (size_t i = 0; i < count; i++) values.push_back(number(name, low, high));
        return values;
    }
    // To be called after the last setting.
    void end(size_t children) const {
        if (left() != 0 || part.children.size() != children)
            throw std::invalid_argument("part " + std::to_string(part.kind) + " has " + std::to_string(left()) +
                                        " settings too many, or " + std::to_string(part.children.size()) +
                                        " parts in it where " + std::to_string(children) + " belong");
    }
};

// The tree that a flat list of numbers describes.
class Reader {
    static constexpr int DEEPEST = 64;
    const double *numbers;
    size_t count, at = 0;

    size_t size() {
        double value = number();
        if (!(value >= 0.0 && value <= double(count) && value == std::floor(value)))
            throw std::invalid_argument("a count in the description is out of range");
        return size_t(value);
    }
    double number() {
        if (at >= count) throw std::invalid_argument("the description ends too early");
        return numbers[at++];
    }
    Part part(int depth) {
        if (depth > DEEPEST) throw std::invalid_argument("the description is nested too deeply");
        Part read;
        double kind = number();
        if (!(std::fabs(kind) < 1e6 && kind == std::floor(kind)))
            throw std::invalid_argument("a kind is no whole number");
        read.kind = int64_t(kind);
        for (size_t left = size(); left > 0; left--) read.settings.push_back(number());
        for (size_t left = size(); left > 0; left--) read.children.push_back(part(depth + 1));
        return read;
    }

  public:
    Reader(const double *numbers, size_t count) : numbers(numbers), count(count) {}
    Part all() {
        Part read = part(0);
        if (at != count) throw std::invalid_argument("the description goes on after its end");
        return read;
    }
};

}  // namespace driftgp
