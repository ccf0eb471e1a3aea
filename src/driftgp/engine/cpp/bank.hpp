// Several nodes mixed by how well each has predicted recently: the twin of wrappers/bank.py.
//
// AGPs with windows of the same size see the same samples, so they share one window. It takes a sample once, and each
// AGP is told which sample left it (see agp.hpp).

#pragma once

#include <optional>

#include "agp.hpp"
#include "holding.hpp"
#include "laws.hpp"
#include "plausible.hpp"

namespace DRIFTGP_LEVEL {

class Bank : public Node {
    // as in bank.py
    static constexpr double HARM_MEMORY = 50.0, HARMLESS = 0.5, HARMFUL = 0.7, NO_ERROR = 1e-300, MAJORITY = 0.5;
    static constexpr double RATE = 0.4, SHARE = 0.002, GIVEN = SHARE / (1.0 - (1.0 - SHARE) * (1.0 - RATE));
    static constexpr double TWIN_MEMORY = 100.0, CAUTION = 5.0, STACK_RATE = 0.998;
    static constexpr double RIDGE = 100.0, HALFWAY = 0.5, LARGEST = 1e140, FARTHEST = 2.0;
    struct Member {
        std::unique_ptr<Node> node;
        AGP *shares = nullptr;   // the same node, if its window is a shared one
        size_t window = 0;       // which one
        size_t state = 0;        // where its state begins
    };
    struct Window {
        int T;
        size_t state = 0;
    };
    std::vector<double> prior;  // V
    std::vector<int> corrected;  // voices that have a twin, C
    std::vector<Member> members;
    std::vector<Window> windows;
    size_t weights = 0, errors = 0, last = 0, products = 0, squares = 0, alone = 0, twin = 0, A = 0, b = 0, error = 0,
           stack = 0, harm = 0;
    std::optional<Span> span;
    // in a forecast: where the weights, the shift, errors known and twins are, and how many numbers it has
    size_t told_weights = 0, told_shift = 0, told_last = 0, told_twins = 0, told = 0;
    std::vector<size_t> told_members, told_voices;

    size_t count() const { return members.size(); }
    size_t voices_in_all() const { return prior.size(); }
    Mixture mixture(const double *made, int p) const {
        return Mixture(voices_in_all(), made + told_weights, made + p, told_voices.data(), size_t(P));
    }
    LimitedMixture law(const double *made, int p) const {
        return LimitedMixture(mixture(made, p), std::sqrt(made[P + p]));
    }
    static double bounded(double value) { return limited(value, LARGEST); }
    void share_window(Member &member) {
        AGP *agp = dynamic_cast<AGP *>(member.node.get());
        if (!agp || agp->T == 0) return;
        size_t i = 0;
        while (i < windows.size() && windows[i].T != agp->T) i++;
        if (i == windows.size()) windows.push_back({agp->T});
        member.shares = agp, member.window = i, agp->own_window = false;
    }
    double *window_of(double *state, const Member &member) const { return state + windows[member.window].state; }

    // Share of a voice's last error that its twin expects to come again, and by how much the twin is better.
    double rho(const double *state, size_t at) const {
        double scale = state[squares + at] + CAUTION * state[alone + at];
        return clip(state[products + at] / (scale > 0.0 ? scale : 1.0), 0.0, 1.0);
    }
    double ratio(const double *state, size_t at) const {
        if (!(state[alone + at] > 0.0)) return 1.0;
        return clip(state[twin + at] / state[alone + at], 1e-3, 1.0);
    }
    void ask_members(const double *state, const double *x, double *made, Memory &memory) const {
        for (size_t k = 0; k < count(); k++)
            members[k].node->forecast(state + members[k].state, x, made + told_members[k], memory);
        std::copy_n(state + last, corrected.size() * P, made + told_last);
        vote(state, made, memory);
    }
    // Brings each voice that is not plausible to the limit, and gives it no weight unless all of them are so, or those
    // that are sure of it have most of the weight.
    void vote(const double *state, double *made, Memory &memory) const {
        Lease lease(memory);
        size_t V = voices_in_all(), first_twin = V - corrected.size();
        double *w = made + told_weights, *wild = memory.zeros(V), *sure = memory.zeros(V), all = 0.0, kept = 0.0;
        for (int p = 0; p < P; p++) {
            Span::Limits limits = span->limits(state, p);
            for (size_t v = 0; v < V; v++) {
                double *said = made + told_voices[v] + p;
                if (v >= first_twin) {
                    size_t original = corrected[v - first_twin];
                    correct_twin(state, made, v - first_twin, p), wild[v] += wild[original], sure[v] += sure[original];
                }
                Span::Limits::Verdict verdict = limits.apply(said[0], said[P], said[2 * P]);
                wild[v] += verdict == Span::Limits::WILD, sure[v] += verdict == Span::Limits::SURE;
            }
        }
        double sum = 0.0, earned = 0.0, share = 1.0, surely = 0.0;
        for (size_t v = 0; v < V; v++) sum += state[weights + v];
        for (size_t v = 0; v < V; v++)
            if (sure[v] > 0.0 && wild[v] == 0.0) surely += state[weights + v] / sum;
        for (size_t v = 0; v < V; v++) wild[v] += sure[v] > 0.0 && surely <= MAJORITY;
        for (size_t v = 0; v < V; v++) kept += w[v] = wild[v] > 0.0 ? 0.0 : state[weights + v] / sum;
        if (!(kept > 0.0))
            for (size_t v = 0; v < V; v++) w[v] = state[weights + v] / sum;
        // What the prior alone gives to a voice counts less where it would be most of the mixture's variance.
        auto given = [&](size_t v) { return std::min(w[v], GIVEN * prior[v]); };
        for (size_t v = 0; v < V; v++) earned += w[v] - given(v);
        for (int p = 0; p < P && earned > 0.0; p++) {
            double middle = 0.0, own = 0.0, more = 0.0;
            for (size_t v = 0; v < V; v++) middle += (w[v] - given(v)) / earned * made[told_voices[v] + p];
            for (size_t v = 0; v < V; v++) {
                const double *said = made + told_voices[v] + p;
                double square = said[P] + (said[0] - middle) * (said[0] - middle);
                own += (w[v] - given(v)) * square, more += given(v) * square;
            }
            if (more > own) share = std::min(share, own / more);
        }
        for (size_t v = 0; v < V; v++) all += w[v] = w[v] - given(v) + share * given(v);
        for (size_t v = 0; v < V; v++) w[v] /= all;
    }
    // Twin c of a voice, for output p.
    void correct_twin(const double *state, double *made, size_t c, int p) const {
        size_t at = c * P + p;
        const double *original = made + told_voices[corrected[c]] + p;
        double *said = made + told_twins + c * 3 * P + p, gained = ratio(state, at);
        said[0] = original[0] + rho(state, at) * state[last + at];
        said[P] = original[P] * gained, said[2 * P] = original[2 * P] * gained;
    }
    // Targets that are there, at inputs that can be learned from, and zeros elsewhere.
    double *counted(const double *x, const double *y, Memory &memory) const {
        bool usable = fills_gaps() || all_finite(x, D);
        double *counts = memory.take(P);
        for (int p = 0; p < P; p++) counts[p] = usable && std::isfinite(y[p]);
        return counts;
    }
    // Soft Bayes, by the densities of the outputs that are there.
    void weigh(double *state, const double *counts, const double *y, const double *made, double *scores) const {
        size_t V = voices_in_all();
        int there = 0;
        for (int p = 0; p < P; p++) there += counts[p] > 0.0;
        double best = -INFINITE, expected = 0.0, total = 0.0, *w = state + weights;
        for (size_t v = 0; v < V; v++) {
            const double *said = made + told_voices[v];
            scores[v] = 0.0;
            for (int p = 0; p < P; p++)
                if (counts[p] > 0.0) {
                    double z = (y[p] - said[p]) / std::sqrt(said[P + p]);
                    scores[v] += (normal_log_pdf(z) - 0.5 * std::log(said[P + p])) / there;
                }
            if (std::isnan(scores[v])) scores[v] = -INFINITE;
            best = std::max(best, scores[v]), total += w[v];
        }
        for (size_t v = 0; v < V; v++) w[v] /= total;
        if (best > -INFINITE) {  // a target so far out that no voice has a density there says nothing
            for (size_t v = 0; v < V; v++) expected += w[v] * (scores[v] = std::exp(scores[v] - best));
            if (expected > 0.0)
                for (size_t v = 0; v < V; v++) w[v] *= 1.0 - RATE + RATE * scores[v] / expected;
        }
        total = 0.0;
        for (size_t v = 0; v < V; v++) total += w[v] = (1.0 - SHARE) * w[v] + SHARE * prior[v];
        for (size_t v = 0; v < V; v++) w[v] /= total;
    }
    // How far the mixture of output p is moved by what its stacking regression says.
    double limited_shift(const double *state, int p, double stacked) const {
        double limit = FARTHEST * std::sqrt(state[error + p]);
        return limited(HALFWAY * stacked, limit);
    }
    // Recursive ridge regression of y − m̄ on m_k − m̄, for each output by itself.
    void restack(double *state, const double *counts, const double *y, const double *made, Memory &memory) const {
        Lease lease(memory);
        int V = int(voices_in_all()), ld = padded(V);
        double *d = memory.zeros(ld), *S = memory.zeros(size_t(V) * ld);
        state[errors] = std::min(state[errors] + 1.0, TWIN_MEMORY);
        for (int p = 0; p < P; p++) {
            if (counts[p] == 0.0) continue;
            double middle = 0.0;
            for (int v = 0; v < V; v++) middle += made[told_weights + v] * made[told_voices[v] + p];
            for (int v = 0; v < V; v++) d[v] = bounded(made[told_voices[v] + p] - middle);
            double e = bounded(y[p] - middle), &square = state[error + p];
            double moved = 0.0;
            for (int v = 0; v < V; v++)
                if (made[told_weights + v] > 0.0) moved += state[stack + size_t(p) * V + v] * d[v];
            moved = e - limited_shift(state, p, moved);
            double worse = std::log((moved * moved + NO_ERROR) / (e * e + NO_ERROR));
            state[harm + p] += (limited(worse, 1.0) - state[harm + p]) / HARM_MEMORY;
            square += (e * e - square) / state[errors];
            double *sums = state + A + size_t(p) * V * V, *target = state + b + size_t(p) * V, ridge = RIDGE * square;
            for (int i = 0; i < V; i++) {
                for (int j = 0; j < V; j++) sums[i * V + j] = STACK_RATE * sums[i * V + j] + d[i] * d[j];
                target[i] = STACK_RATE * target[i] + d[i] * e;
            }
            if (!(ridge > 0.0 && std::isfinite(ridge))) continue;
            for (int i = 0; i < V; i++) {
                std::copy_n(sums + i * V, V, S + size_t(i) * ld);
                S[size_t(i) * ld + i] += ridge;
            }
            if (!factorise(V, S, ld)) continue;  // numbers too far apart: the coefficients stay
            double *a = state + stack + size_t(p) * V;
            std::copy_n(target, V, a);
            solve(V, S, ld, a);
        }
    }
    // Learns how much of the error that each twin knew came again.
    void correct(double *state, const double *counts, const double *y, const double *made) const {
        const double rate = 1.0 - 1.0 / TWIN_MEMORY;
        for (size_t c = 0; c < corrected.size(); c++)
            for (int p = 0; p < P; p++) {
                if (counts[p] == 0.0) continue;
                size_t at = c * P + p;
                double wrong = bounded(y[p] - made[told_voices[corrected[c]] + p]), before = made[told_last + at];
                double rest = bounded(y[p] - made[told_twins + c * 3 * P + p]);
                state[products + at] = rate * state[products + at] + before * wrong;
                state[squares + at] = rate * state[squares + at] + before * before;
                state[alone + at] += (wrong * wrong - state[alone + at]) / state[errors];
                state[twin + at] += (rest * rest - state[twin + at]) / state[errors];
                state[last + at] = wrong;
            }
    }

  public:
    Bank(const driftgp::Part &part, int inputs, int outputs) : Node(inputs, outputs) {
        driftgp::Settings settings(part);
        std::vector<double> twins =
            settings.numbers("corrected", part.children.size(), 0.0, double(part.children.size()) - 1.0);
        prior = settings.numbers("prior", 1 << 12, 0.0, 1.0);
        settings.end(part.children.size());
        if (part.children.empty()) throw std::invalid_argument("a bank must have members");
        for (const driftgp::Part &child : part.children) {
            members.emplace_back();
            members.back().node = make_node(child, D, P);
            if (!members.back().node->normal())
                throw std::invalid_argument("members of a bank must predict normal distributions to be mixed");
            share_window(members.back());
        }
        std::vector<int> firsts{0};
        for (const Member &m : members) firsts.push_back(firsts.back() + m.node->voices());
        for (double k : twins) {
            if (k != std::floor(k)) throw std::invalid_argument("corrected must be whole numbers");
            for (int v = firsts[int(k)]; v < firsts[int(k) + 1]; v++) corrected.push_back(v);
        }
        if (prior.size() != size_t(firsts.back()) + corrected.size())
            throw std::invalid_argument("prior must have a number for each voice and each twin");
        size_t V = voices_in_all(), C = corrected.size();
        weights = floats("weights", V, NOT_NEGATIVE), errors = floats("count", 1, {0.0, TWIN_MEMORY});
        last = floats("last", C * P), products = floats("products", C * P), squares = floats("squares", C * P);
        alone = floats("own", C * P), twin = floats("twin", C * P), A = floats("A", P * V * V), b = floats("b", P * V);
        error = floats("error", P), stack = floats("stack", P * V), harm = floats("harm", P, {-1.0, 1.0});
        span.emplace(own, P);
        for (size_t i = 0; i < windows.size(); i++)
            windows[i].state = declare_window(own, "window_" + std::to_string(i), windows[i].T, D, P);
        told_weights = told_floats("weights", V), told_shift = told_floats("shift", P);
        told_last = told_floats("last", C * P), told_twins = told_floats("twins", C * 3 * P);
    }

    void declare(Layout &state) override {
        size_t start = state.size;
        Node::declare(state);
        for (size_t k = 0; k < count(); k++)
            members[k].state =
                state.part("member_" + std::to_string(k), [&] { members[k].node->declare(state); }) - start;
    }
    void declare_forecast(Layout &forecast) override {
        size_t start = forecast.size;
        Node::declare_forecast(forecast);
        for (size_t k = 0; k < count(); k++)
            told_members.push_back(forecast.part("member_" + std::to_string(k), [&] {
                members[k].node->declare_forecast(forecast);
            }) - start);
        for (size_t k = 0; k < count(); k++)
            for (int v = 0; v < members[k].node->voices(); v++)
                told_voices.push_back(told_members[k] + members[k].node->voice(v));
        for (size_t c = 0; c < corrected.size(); c++) told_voices.push_back(told_twins + c * 3 * P);
        told = forecast.size - start;
    }
    bool normal() const override { return false; }
    bool fills_gaps() const override {
        return std::all_of(members.begin(), members.end(), [](const Member &m) { return m.node->fills_gaps(); });
    }
    bool rescales() const override {
        return std::all_of(members.begin(), members.end(), [](const Member &m) { return m.node->rescales(); });
    }

    void expect_units(double *state, const Units &units) const override {
        for (const Member &m : members) m.node->expect_units(state + m.state, units);
    }
    void start(double *state, const double *X, const double *y, int64_t rows, Memory &memory) const override {
        std::copy(prior.begin(), prior.end(), state + weights);
        for (int64_t i = 0; i < rows; i++)
            for (int p = 0; p < P; p++) span->widen(state, p, y[i * P + p]);
        for (const Member &m : members)
            if (m.shares) m.shares->start_on(state + m.state, window_of(state, m), X, y, rows, memory);
            else m.node->start(state + m.state, X, y, rows, memory);
    }
    void forecast(const double *state, const double *x, double *made, Memory &memory) const override {
        ask_members(state, x, made, memory);
        const double *w = made + told_weights;
        size_t V = voices_in_all();
        for (int p = 0; p < P; p++) {
            double middle = 0.0, variance = 0.0, noise = 0.0, stacked = 0.0;
            double lowest = INFINITE, highest = -INFINITE;
            for (size_t v = 0; v < V; v++) {
                double mean = made[told_voices[v] + p];
                middle += w[v] * mean;
                if (w[v] > 0.0) lowest = std::min(lowest, mean), highest = std::max(highest, mean);
            }
            for (size_t v = 0; v < V; v++) {
                const double *said = made + told_voices[v] + p;
                double apart = said[0] - middle;
                variance += w[v] * (said[P] + apart * apart), noise += w[v] * said[2 * P];
                if (w[v] > 0.0) stacked += state[stack + p * V + v] * apart;
            }
            double trust = clip((HARMFUL - state[harm + p]) / (HARMFUL - HARMLESS), 0.0, 1.0);
            double shift = trust * limited_shift(state, p, stacked);
            // no voice that votes is moved beyond the limits, so the median stays within them too
            Span::Limits limits = span->limits(state, p);
            shift = std::max(shift, std::min(limits.low - lowest, 0.0));
            shift = std::min(shift, std::max(limits.high - highest, 0.0));
            made[told_shift + p] = shift;
            made[p] = middle + shift, made[P + p] = variance, made[2 * P + p] = noise;
        }
    }
    void learn(double *state, const double *x, const double *y, double elapsed, const double *known,
               Memory &memory) const override {
        Lease lease(memory);
        if (!known) {
            double *made = memory.take(told);
            ask_members(state, x, made, memory);
            known = made;
        }
        const double *counts = counted(x, y, memory);
        if (std::any_of(counts, counts + P, [](double there) { return there > 0.0; })) {
            weigh(state, counts, y, known, memory.take(voices_in_all()));
            restack(state, counts, y, known, memory);
            correct(state, counts, y, known);
            for (int p = 0; p < P; p++)
                if (counts[p] > 0.0) span->widen(state, p, y[p]);
        }
        double *room = memory.take(D + P);
        for (size_t i = 0; i < windows.size(); i++) {
            double *window = state + windows[i].state;
            Leaving leaving = push(window, windows[i].T, D, P, x, y, room);
            for (size_t k = 0; k < count(); k++) {
                const Member &m = members[k];
                const double *said = known + told_members[k];
                if (m.shares && m.window == i)
                    m.shares->learn_on(state + m.state, window, leaving, x, y, elapsed, said, memory);
            }
        }
        for (size_t k = 0; k < count(); k++) {
            const Member &m = members[k];
            if (!m.shares) m.node->learn(state + m.state, x, y, elapsed, known + told_members[k], memory);
        }
    }
    void rescale(double *state, const Units &units, Memory &memory) const override {
        size_t V = voices_in_all();
        for (int p = 0; p < P; p++) {
            double scale = units.y_scale[p], square = scale * scale;
            for (size_t c = 0; c < corrected.size(); c++) {
                size_t at = c * P + p;
                state[last + at] /= scale;
                for (size_t sums : {products, squares, alone, twin}) state[sums + at] /= square;
            }
            for (size_t i = 0; i < V * V; i++) state[A + p * V * V + i] /= square;
            for (size_t i = 0; i < V; i++) state[b + p * V + i] /= square;
            state[error + p] /= square;
        }
        span->rescale(state, units);
        for (size_t i = 0; i < windows.size(); i++)
            rescale_window(state + windows[i].state, windows[i].T, D, P, units, [&](int t) {
                return std::any_of(members.begin(), members.end(), [&](const Member &m) {
                    return m.shares && m.window == i && m.shares->weighs(state + m.state, t);
                });
            });
        for (const Member &m : members)
            if (m.shares) m.shares->rescale_on(state + m.state, window_of(state, m), units, false, memory);
            else m.node->rescale(state + m.state, units, memory);
    }
    void complete(double *state, Memory &memory) const override {
        for (const Member &m : members)
            if (m.shares) m.shares->complete_on(state + m.state, window_of(state, m), memory);
            else m.node->complete(state + m.state, memory);
    }
    void check(const double *state) const override {
        double total = 0.0;
        for (size_t v = 0; v < voices_in_all(); v++) total += state[weights + v];
        refuse_unless(total > 0.0, "weights", "not all 0");
        span->check(state);
        for (const Member &m : members) m.node->check(state + m.state);
    }

    // ---- the law: a mixture

    double to_normal(const double *made, int p, double y) const override {
        return law(made, p).to_normal(y - made[told_shift + p]);
    }
    double from_normal(const double *made, int p, double z) const override {
        return law(made, p).from_normal(z) + made[told_shift + p];
    }
    double log_prob(const double *made, int p, double y) const override {
        return law(made, p).log_prob(y - made[told_shift + p]);
    }
};

}  // namespace DRIFTGP_LEVEL
