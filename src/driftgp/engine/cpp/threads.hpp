// All the cores, by threads that stay: a new one starts on the core of the one that made it, and has to wait there.
//
// Only entry.cpp includes this: what the standard library has of it must be compiled for every processor.

#pragma once

#include <atomic>
#include <condition_variable>
#include <mutex>
#include <system_error>
#include <thread>

#if defined(_WIN32)
#include <process.h>
#else
#include <csignal>
#include <unistd.h>
#endif

namespace driftgp {

// One share of some work, done by whoever comes first. The one who waits for it owns it.
struct Task {
    void (*work)(Task &task) = nullptr;
    Task *next = nullptr;
};

class Threads {
    std::mutex mutex;
    std::condition_variable wanted, done;
    Task *waiting = nullptr;  // tasks that nobody has begun
    int idle = 0;             // threads without a task
    const int process;

    // Signals are for the threads of the program: its main thread may be waiting for one.
    void add() noexcept {
#if !defined(_WIN32)
        sigset_t all, before;
        sigfillset(&all);
        pthread_sigmask(SIG_SETMASK, &all, &before);
#endif
        try {
            std::thread([this] { serve(); }).detach();
            idle++;
        } catch (const std::system_error &) {  // no further threads: the waiting ones do the work
        } catch (const std::bad_alloc &) {}
#if !defined(_WIN32)
        pthread_sigmask(SIG_SETMASK, &before, nullptr);
#endif
    }
    Task *take() {
        Task *task = waiting;
        if (task) waiting = task->next;
        return task;
    }
    [[noreturn]] void serve() {
        std::unique_lock<std::mutex> lock(mutex);
        for (;;) {
            idle--;
            while (Task *task = take()) work(*task, lock);
            idle++;
            wanted.wait(lock);
        }
    }
    void work(Task &task, std::unique_lock<std::mutex> &lock) {
        lock.unlock();
        task.work(task);
        lock.lock();
        // a task that is done is its own successor; its owner may give its memory back from now on
        task.next = &task;
        done.notify_all();
    }
    explicit Threads(int process) : process(process) {}

  public:
    // Does each of the tasks and returns when all are done. The calling thread does the first task, and then all tasks
    // that no other thread has begun. Tasks must not throw.
    void run(Task *const *tasks, int count) {
        std::unique_lock<std::mutex> lock(mutex);
        for (int i = count - 1; i > 0; i--) tasks[i]->next = waiting, waiting = tasks[i];
        while (idle < count - 1) {
            int before = idle;
            add();
            if (idle == before) break;
        }
        wanted.notify_all();
        work(*tasks[0], lock);
        for (;;) {
            bool all = true;
            for (int i = 0; i < count; i++) all = all && tasks[i]->next == tasks[i];
            if (all) break;
            if (Task *task = take()) work(*task, lock);
            else done.wait(lock);
        }
    }

    // Those of this process. They are never destroyed: at the end of the process they may be at work. A forked process
    // does not have its parent's threads, and makes its own.
    static Threads &here() {
        static std::atomic<Threads *> current{nullptr};
#if defined(_WIN32)
        const int process = _getpid();
#else
        const int process = int(getpid());
#endif
        Threads *found = current.load();
        if (found && found->process == process) return *found;
        Threads *made = new Threads(process);
        if (current.compare_exchange_strong(found, made)) return *made;
        delete made;  // another thread was first
        return *current.load();
    }
};

}  // namespace driftgp
