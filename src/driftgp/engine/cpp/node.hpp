// The base of every model in C++: the twin of `contract/protocol.py`, on records.
//
// A record is an array of eight-byte fields, so states and forecasts are `double *`; whole numbers lie among them as
// int64_t (`whole`). A node declares its fields in the order in which its Python twin does and keeps their offsets.

#pragma once

#include <cmath>
#include <cstdint>
#include <limits>
#include <memory>
#include <sstream>
#include <stdexcept>
#include <string>
#include <vector>

#include "driftgp.h"
#include "memory.hpp"
#include "parts.hpp"

namespace DRIFTGP_LEVEL {

// A whole number that lies in a record.
typedef int64_t Whole __attribute__((may_alias));
static inline Whole &whole(double *record, size_t at) { return *reinterpret_cast<Whole *>(record + at); }
static inline int64_t whole(const double *record, size_t at) { return *reinterpret_cast<const Whole *>(record + at); }

static inline bool all_finite(const double *values, size_t count) {
    bool finite = true;
    for (size_t i = 0; i < count; i++) finite &= bool(std::isfinite(values[i]));
    return finite;
}

// The numbers that a field of a state may have.
struct Range {
    double low, high;

    bool limits() const { return low <= high; }
    bool holds(const double *values, size_t count) const {
        VecInt inside = ~VecInt{};
        size_t i = 0;
        for (; i + W <= count; i += W) inside &= (load(values + i) >= low) & (load(values + i) <= high);
        bool all = true;
        for (int lane = 0; lane < W; lane++) all &= inside[lane] != 0;
        for (; i < count; i++) all &= values[i] >= low && values[i] <= high;
        return all;
    }
    bool holds(const Whole *values, size_t count) const {
        return std::all_of(values, values + count,
                           [this](int64_t v) { return v >= int64_t(low) && v <= int64_t(high); });
    }
    std::string described() const {
        constexpr double most = std::numeric_limits<double>::max();
        std::ostringstream text;
        if (high < most) text << "between " << low << " and " << high;
        else text << (low == 0.0 ? "finite and not negative" : low > 0.0 ? "finite and positive" : "finite");
        return text.str();
    }
};
constexpr Range ANYTHING{NAN, NAN};
constexpr Range FINITE{-std::numeric_limits<double>::max(), std::numeric_limits<double>::max()};
constexpr Range NOT_NEGATIVE{0.0, FINITE.high}, POSITIVE{std::numeric_limits<double>::denorm_min(), FINITE.high};
constexpr Range COUNTER{0.0, 4.6e18};  // below 2^62, so that counters never overflow

// The fields of a record, as they are declared; offsets are in numbers.
class Layout {
    std::string path;

  public:
    struct Field {
        std::string path;
        bool whole;
        size_t at, count;
        Range range;
    };
    std::vector<Field> fields;
    size_t size = 0;
    size_t kept = 0;  // numbers that nodes keep for the rest of a call, outside of the record (Memory::kept)

    size_t keep(size_t count) { return kept += count, kept - count; }
    size_t floats(const char *name, size_t count = 1, Range range = ANYTHING) { return add(name, false, count, range); }
    size_t wholes(const char *name, size_t count = 1, Range range = COUNTER) { return add(name, true, count, range); }
    // Fields of a part, declared by `declare`; where the part begins.
    template <class Declare>
    size_t part(const std::string &name, Declare declare) {
        std::string before = path;
        size_t start = size;
        path += name + ".";
        declare();
        path = before;
        return start;
    }
    // The fields of another layout; where they begin.
    size_t add(const Layout &other) {
        for (Field field : other.fields) {
            field.path = path + field.path, field.at += size;
            fields.push_back(field);
        }
        return size += other.size, size - other.size;
    }
    // Refuses a record in which a field has numbers out of its range.
    void check(const double *record) const {
        for (const Field &field : fields) {
            if (!field.range.limits()) continue;
            const double *values = record + field.at;
            const Range &range = field.range;
            bool fine = field.whole ? range.holds(reinterpret_cast<const Whole *>(values), field.count)
                                    : range.holds(values, field.count);
            if (!fine) throw std::invalid_argument("field " + field.path + " of a state must be " + range.described());
        }
    }

  private:
    size_t add(const char *name, bool whole, size_t count, Range range) {
        fields.push_back({path + name, whole, size, count, range});
        size += count;
        return size - count;
    }
};

// A value within two ends, or as far from 0 as a limit at most; NaN stays NaN.
static inline double clip(double value, double low, double high) { return std::min(std::max(value, low), high); }
static inline double limited(double value, double limit) { return clip(value, -limit, limit); }

// No number is farther out than this in its units: products of several of them are finite (protocol.py).
constexpr double FARTHEST_OUT = 1e60;
static inline double in_other_units(double value, double centre, double scale) {
    return limited((value - centre) / scale, FARTHEST_OUT);
}
// A centre and a scale for every input and every target: x in these units is (x − centre) / scale.
struct Units {
    const double *x_centre, *x_scale, *y_centre, *y_scale;

    // Brings input d, or target p, to these units; 0 stands where there is none yet.
    void input(double &x, int d, bool here = true) const {
        x = here ? in_other_units(x, x_centre[d], x_scale[d]) : 0.0;
    }
    void target(double &y, int p, bool here = true) const {
        y = here ? in_other_units(y, y_centre[p], y_scale[p]) : 0.0;
    }
    // All inputs, or all targets, of a row.
    void inputs(double *x, int D, bool here = true) const {
        for (int d = 0; d < D; d++) input(x[d], d, here);
    }
    void targets(double *y, int P, bool here = true) const {
        for (int p = 0; p < P; p++) target(y[p], p, here);
    }
};

// Every forecast begins with mean, variance and noise, P each. A node is a model's settings and the places of its
// fields: after `declare` nothing in it changes, so that several threads may use it at once.
class Node {
  protected:
    Layout own, told_own;  // the node's own fields of a state, and of a forecast

    // Fields are declared where the node is made; where they are, relative to the node's own record.
    size_t floats(const char *name, size_t count = 1, Range range = ANYTHING) { return own.floats(name, count, range); }
    size_t wholes(const char *name, size_t count = 1, Range range = COUNTER) { return own.wholes(name, count, range); }
    size_t told_floats(const char *name, size_t count) { return size_t(3) * P + told_own.floats(name, count); }

  public:
    int D = 0, P = 0;
    Node() = default;
    Node(int D, int P) : D(D), P(P) {}
    virtual ~Node() = default;

    // ---- records: called once, before anything else; offsets are relative to the node's own record
    virtual void declare(Layout &state) { state.add(own); }
    virtual void declare_forecast(Layout &forecast) {
        for (const char *name : {"mean", "variance", "noise"}) forecast.floats(name, P);
        forecast.add(told_own);
    }

    // ---- the contract (see contract/protocol.py); memory is the caller's, and is taken back to where it was (`Lease`)
    // Called before `start`: samples will come in these units, relative to the present ones.
    virtual void expect_units(double *, const Units &) const {}
    virtual void start(double *state, const double *X, const double *y, int64_t rows, Memory &memory) const = 0;
    virtual void forecast(const double *state, const double *x, double *made, Memory &memory) const = 0;
    // `known`: the forecast of this state at x, or nullptr
    virtual void learn(double *state, const double *x, const double *y, double elapsed, const double *known,
                       Memory &memory) const = 0;
    virtual void rescale(double *state, const Units &units, Memory &memory) const = 0;
    // Moves all past targets by a step, if the node has its own units (contract/protocol.py).
    virtual void move_level(double *, const double *) const {}
    // Whether to see inputs far beyond all before as they are (1), at a limit (−1), or as its record says (0); what
    // held until now, or NO_LIMIT (contract/protocol.py).
    static constexpr int NO_LIMIT = 2;
    virtual int follow_inputs(double *, int) const { return NO_LIMIT; }
    virtual bool follows_inputs(const double *) const { return false; }
    virtual void complete(double *, Memory &) const {}
    virtual bool rescales() const { return true; }  // whether `rescale` can be done
    virtual bool fills_gaps() const { return false; }
    virtual int voices() const { return 1; }  // normal distributions that a forecast holds
    // Where the mean of voice k is in a forecast; its variance and noise follow, P numbers each.
    size_t voice(int k) const { return size_t(k) * 3 * P; }
    // Standard deviation without what is added or taken away for single rows (contract/protocol.py).
    virtual double usual_std(const double *made, int p) const { return std::sqrt(made[P + p]); }
    // Largest distance of the median of a forecast from its mean (contract/protocol.py).
    virtual double median_reach(const double *made, int p) const { return std::sqrt(made[P + p]); }
    virtual bool normal() const { return true; }  // whether its law is a normal distribution
    // Throws std::invalid_argument if fields of a state, each of them in its range, contradict each other.
    virtual void check(const double *) const {}

    // ---- the law of a forecast, output p (see predictions/); the normal one unless a node says otherwise
    virtual double to_normal(const double *made, int p, double y) const {
        return (y - made[p]) / std::sqrt(made[P + p]);
    }
    virtual double from_normal(const double *made, int p, double z) const {
        return made[p] + z * std::sqrt(made[P + p]);
    }
    virtual double log_prob(const double *made, int p, double y) const {
        double z = to_normal(made, p, y);
        return -0.5 * (z * z + std::log(2.0 * 3.14159265358979323846 * made[P + p]));
    }
};

// The node that a description's part is, before its fields are declared (level.cpp).
std::unique_ptr<Node> make_node(const driftgp::Part &part, int D, int P);

}  // namespace DRIFTGP_LEVEL
