// Several nodes mixed by how well each has predicted of late: the twin of wrappers/bank.py.
//
// AGPs with windows of the same size see the same samples, so they share one window: it takes a sample once, and each
// of them is told what left it (see agp.hpp).

#pragma once

#include "agp.hpp"
#include "holding.hpp"
#include "laws.hpp"

namespace DRIFTGP_LEVEL {

class Bank : public Node {
    static constexpr double LOWEST = -12.0;  // as in bank.py
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
    double memory_rate = 1.0;
    std::vector<double> log_prior;
    std::vector<Member> members;
    std::vector<Window> windows;
    size_t log_weights = 0;
    size_t told_weights = 0, told = 0;  // in a forecast: where the weights are, and how many numbers it has
    std::vector<size_t> told_members;

    size_t count() const { return members.size(); }
    Mixture mixture(const double *made, int p) const {
        return Mixture(count(), made + told_weights, made + p, told_members.data(), size_t(P));
    }
    void share_window(Member &member) {
        AGP *agp = dynamic_cast<AGP *>(member.node.get());
        if (!agp || agp->T == 0) return;
        size_t i = 0;
        while (i < windows.size() && windows[i].T != agp->T) i++;
        if (i == windows.size()) windows.push_back({agp->T});
        member.shares = agp, member.window = i, agp->own_window = false;
    }
    double *window_of(double *state, const Member &member) const { return state + windows[member.window].state; }

    // The members' shares in the mixture.
    void find_weights(const double *state, double *weights) const {
        const double *logs = state + log_weights;
        double top = *std::max_element(logs, logs + count()), total = 0.0;
        for (size_t k = 0; k < count(); k++) total += weights[k] = std::exp(logs[k] - top);
        for (size_t k = 0; k < count(); k++) weights[k] /= total;
    }
    // Judges the members by what they said of the sample, on average over its targets.
    void judge(double *state, const double *x, const double *y, double elapsed, const double *made,
               double *scores) const {
        bool there = fills_gaps() || all_finite(x, D);
        int observed = 0;
        for (int p = 0; p < P; p++) observed += there && std::isfinite(y[p]);
        double best = -INFINITE;
        for (size_t k = 0; k < count(); k++) {
            const double *said = made + told_members[k];
            scores[k] = 0.0;
            for (int p = 0; p < P && observed > 0; p++)
                if (std::isfinite(y[p])) scores[k] += members[k].node->log_prob(said, p, y[p]) / observed;
            if (std::isnan(scores[k])) scores[k] = -INFINITE;
            best = std::max(best, scores[k]);
        }
        double keep = std::pow(memory_rate, elapsed), *logs = state + log_weights, top = -INFINITE;
        for (size_t k = 0; k < count(); k++) {
            logs[k] = keep * logs[k] + (1.0 - keep) * log_prior[k];
            if (best > -INFINITE) logs[k] += scores[k];  // where no member has a density, the target says nothing
            top = std::max(top, logs[k]);
        }
        for (size_t k = 0; k < count(); k++) logs[k] = std::max(logs[k] - top, LOWEST);
    }

  public:
    Bank(const driftgp::Part &part, int inputs, int outputs) {
        D = inputs, P = outputs;
        driftgp::Settings settings(part);
        memory_rate = settings.number("memory", 0.0, 1.0);
        log_prior = settings.numbers("log_prior", part.children.size(), std::numeric_limits<double>::lowest(), 0.0);
        settings.end(part.children.size());
        if (part.children.empty() || log_prior.size() != part.children.size())
            throw std::invalid_argument("a bank must have members, and log_prior a number for each of them");
        for (const driftgp::Part &child : part.children) {
            members.emplace_back();
            members.back().node = make_node(child, D, P);
            if (!members.back().node->normal())
                throw std::invalid_argument("members of a bank must predict normal distributions to be mixed");
            share_window(members.back());
        }
    }

    void declare(Layout &state) override {
        size_t start = state.size;
        log_weights = state.floats("log_weights", count()) - start;
        for (size_t i = 0; i < windows.size(); i++)
            windows[i].state = declare_window(state, "window_" + std::to_string(i), windows[i].T, D, P) - start;
        for (size_t k = 0; k < count(); k++)
            members[k].state =
                state.part("member_" + std::to_string(k), [&] { members[k].node->declare(state); }) - start;
    }
    void declare_forecast(Layout &forecast) override {
        size_t start = forecast.size;
        for (const char *name : {"mean", "variance", "noise"}) forecast.floats(name, P);
        told_weights = forecast.floats("weights", count()) - start;
        for (size_t k = 0; k < count(); k++)
            told_members.push_back(forecast.part("member_" + std::to_string(k), [&] {
                members[k].node->declare_forecast(forecast);
            }) - start);
        told = forecast.size - start;
    }
    bool normal() const override { return false; }
    bool fills_gaps() const override {
        return std::all_of(members.begin(), members.end(), [](const Member &m) { return m.node->fills_gaps(); });
    }
    bool rescales() const override {
        return std::all_of(members.begin(), members.end(), [](const Member &m) { return m.node->rescales(); });
    }

    void start(double *state, const double *X, const double *y, int64_t rows, Memory &memory) const override {
        std::copy(log_prior.begin(), log_prior.end(), state + log_weights);
        for (const Member &m : members)
            if (m.shares) m.shares->start_on(state + m.state, window_of(state, m), X, y, rows, memory);
            else m.node->start(state + m.state, X, y, rows, memory);
    }
    void forecast(const double *state, const double *x, double *made, Memory &memory) const override {
        for (size_t k = 0; k < count(); k++)
            members[k].node->forecast(state + members[k].state, x, made + told_members[k], memory);
        double *weights = made + told_weights;
        find_weights(state, weights);
        for (int p = 0; p < P; p++) {
            double mean = 0.0, variance = 0.0, noise = 0.0;
            for (size_t k = 0; k < count(); k++) mean += weights[k] * made[told_members[k] + p];
            for (size_t k = 0; k < count(); k++) {
                const double *said = made + told_members[k] + p;
                double apart = said[0] - mean;
                variance += weights[k] * (said[P] + apart * apart), noise += weights[k] * said[2 * P];
            }
            made[p] = mean, made[P + p] = variance, made[2 * P + p] = noise;
        }
    }
    void learn(double *state, const double *x, const double *y, double elapsed, const double *known,
               Memory &memory) const override {
        Lease lease(memory);
        if (!known) {
            double *made = memory.take(told);
            for (size_t k = 0; k < count(); k++)
                members[k].node->forecast(state + members[k].state, x, made + told_members[k], memory);
            known = made;
        }
        judge(state, x, y, elapsed, known, memory.take(count()));
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
        refuse_unless(all_finite(state + log_weights, count()), "log_weights", "finite");
        for (const Member &m : members)
            if (m.shares) m.shares->check_on(state + m.state, state + windows[m.window].state);
            else m.node->check(state + m.state);
    }

    // ---- the law: a mixture

    double to_normal(const double *made, int p, double y) const override { return mixture(made, p).to_normal(y); }
    double from_normal(const double *made, int p, double z) const override { return mixture(made, p).from_normal(z); }
    double log_prob(const double *made, int p, double y) const override { return mixture(made, p).log_prob(y); }
};

}  // namespace DRIFTGP_LEVEL
