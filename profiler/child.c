/* Starts, reads, kills and reaps worker processes. */
#include "child.h"

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/signalfd.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "strays.h"
#include "worker_protocol.h"

/* A worker that sends more than this without a newline is broken. */
static const size_t most_line_bytes = (size_t)64 << 20;
/* Reads of what a worker prints before its time is looked at again: it may print without end. */
static const int most_log_reads = 16;
/* How long a killed process may take to die; one that a driver holds never does. */
static const double kill_limit_s = 60;

double child_now_s(void) {
    struct timespec now;
    clock_gettime(CLOCK_MONOTONIC, &now);
    return (double)now.tv_sec + (double)now.tv_nsec * 1e-9;
}

int child_signal_fd(struct error *err) {
    struct sigaction hang_up;
    sigset_t signals;
    sigemptyset(&signals);
    sigaddset(&signals, SIGINT);
    sigaddset(&signals, SIGTERM);
    /* Under nohup SIGHUP is ignored and must stay so; once blocked it would be queued. */
    if (!sigaction(SIGHUP, NULL, &hang_up) && hang_up.sa_handler != SIG_IGN)
        sigaddset(&signals, SIGHUP);
    signal(SIGPIPE, SIG_IGN);
    signal(SIGXFSZ, SIG_IGN);
    if (sigprocmask(SIG_BLOCK, &signals, NULL))
        return error_set(err, EXIT_FAILED, "cannot block signals: %s", strerror(errno));
    int fd = signalfd(-1, &signals, SFD_CLOEXEC | SFD_NONBLOCK);
    if (fd < 0)
        return error_set(err, EXIT_FAILED, "cannot watch for signals: %s", strerror(errno));
    return fd;
}

/* --- start ----------------------------------------------------------------------------------- */

/* Runs in the new process between fork and exec: async-signal-safe calls only. */
static void become_worker(pid_t parent, int job_fd, int message_fd, int log_fd) {
    static char name[] = "moesol", command[] = "worker";
    char *arguments[] = {name, command, NULL};
    struct rlimit no_core = {0, 0};
    sigset_t none;
    setpgid(0, 0);
    prctl(PR_SET_PDEATHSIG, SIGKILL);
    if (getppid() != parent)
        _exit(127); /* the parent died before the line above */
    setrlimit(RLIMIT_CORE, &no_core);
    signal(SIGPIPE, SIG_DFL);
    signal(SIGXFSZ, SIG_DFL);
    sigemptyset(&none);
    sigprocmask(SIG_SETMASK, &none, NULL);
    if (dup2(job_fd, 0) < 0 || dup2(log_fd, 1) < 0 || dup2(log_fd, 2) < 0 ||
        dup2(message_fd, WORKER_MESSAGE_FD) < 0)
        _exit(127);
    execv("/proc/self/exe", arguments);
    _exit(127);
}

/* A pipe whose ends lie above the descriptors that the worker's own take. */
static int make_pipe(int ends[2], struct error *err) {
    int low[2];
    if (pipe2(low, O_CLOEXEC))
        return error_set(err, EXIT_FAILED, "cannot make a pipe: %s", strerror(errno));
    for (int i = 0; i < 2; i++) {
        ends[i] = fcntl(low[i], F_DUPFD_CLOEXEC, 10);
        close(low[i]);
    }
    if (ends[0] >= 0 && ends[1] >= 0)
        return 0;
    for (int i = 0; i < 2; i++)
        if (ends[i] >= 0)
            close(ends[i]);
    ends[0] = ends[1] = -1;
    return error_set(err, EXIT_FAILED, "cannot make a pipe: too many open files");
}

static void close_all(int (*pipes)[2], int count) {
    for (int i = 0; i < count; i++)
        for (int end = 0; end < 2; end++)
            if (pipes[i][end] >= 0)
                close(pipes[i][end]);
}

/* A job is a few kilobytes at most, which a pipe takes whether or not the worker reads. */
static int send_job(int fd, const char *job, struct error *err) {
    size_t length = strlen(job);
    while (length > 0) {
        ssize_t written = write(fd, job, length);
        if (written < 0 && errno == EINTR)
            continue;
        if (written < 0 && errno == EPIPE)
            return 0; /* it died already: reading will tell how */
        if (written < 0)
            return error_set(err, EXIT_FAILED, "cannot write to the worker: %s", strerror(errno));
        job += written;
        length -= (size_t)written;
    }
    return 0;
}

int child_start(struct child *child, const char *job, struct error *err) {
    enum { JOB, MESSAGES, LOG, PIPES };
    int pipes[PIPES][2] = {{-1, -1}, {-1, -1}, {-1, -1}};
    memset(child, 0, sizeof *child);
    child->message_fd = child->log_fd = child->pid_fd = child->delay_fd = -1;
    /* What a worker starts and leaves behind comes to this process, which ends it (strays_end()).
     */
    prctl(PR_SET_CHILD_SUBREAPER, 1);
    for (int i = 0; i < PIPES; i++)
        if (make_pipe(pipes[i], err))
            goto fail;
    pid_t parent = getpid();
    child->pid = fork();
    if (child->pid < 0) {
        child->pid = 0;
        error_set(err, EXIT_FAILED, "cannot start a worker: %s", strerror(errno));
        goto fail;
    }
    if (child->pid == 0)
        become_worker(parent, pipes[JOB][0], pipes[MESSAGES][1], pipes[LOG][1]);
    setpgid(child->pid, child->pid); /* in both, as either may come first */
    child->pid_fd = (int)syscall(SYS_pidfd_open, child->pid, 0); /* -1: an old kernel */
    child->started = strays_start_of(child->pid);
    child->delay_fd = open("/proc/thread-self/schedstat", O_RDONLY | O_CLOEXEC);
    child->message_fd = pipes[MESSAGES][0];
    child->log_fd = pipes[LOG][0];
    pipes[MESSAGES][0] = pipes[LOG][0] = -1;
    fcntl(child->message_fd, F_SETFL, O_NONBLOCK);
    fcntl(child->log_fd, F_SETFL, O_NONBLOCK);
    int sent = send_job(pipes[JOB][1], job, err);
    close_all(pipes, PIPES);
    if (sent)
        child_end(child);
    return sent;
fail:
    close_all(pipes, PIPES);
    return -1;
}

/* --- read ------------------------------------------------------------------------------------ */

/* Appends what the descriptor has. Returns 1 for some bytes, 0 at its end, -1 for nothing now, -2
 * with *err. */
static int fill(int fd, struct child_buffer *buffer, struct error *err) {
    if (buffer->used + 65537 > buffer->capacity) {
        size_t capacity = buffer->capacity ? 2 * buffer->capacity : 131072;
        char *grown = capacity <= most_line_bytes ? realloc(buffer->text, capacity) : NULL;
        if (!grown) {
            error_set(err, EXIT_FAILED, "a worker sent a line of more than %zu bytes",
                      buffer->used);
            return -2;
        }
        buffer->text = grown;
        buffer->capacity = capacity;
    }
    ssize_t got = read(fd, buffer->text + buffer->used, 65536);
    if (got > 0)
        buffer->used += (size_t)got;
    if (got < 0)
        return errno == EAGAIN || errno == EINTR ? -1 : 0;
    return got > 0;
}

static void drop(struct child_buffer *buffer, size_t bytes) {
    memmove(buffer->text, buffer->text + bytes, buffer->used - bytes);
    buffer->used -= bytes;
}

static void keep_last_line(struct child *child, const char *line, size_t length) {
    size_t out = 0;
    for (size_t i = 0; i < length && out < sizeof child->last_line - 1; i++)
        child->last_line[out++] = (unsigned char)line[i] < 32 || line[i] == 127 ? '?' : line[i];
    child->last_line[out] = '\0';
}

/* Reads what the worker printed and keeps its last line that is not empty. */
static void read_log(struct child *child) {
    struct error ignored = {0};
    int got;
    for (int i = 0; i < most_log_reads && child->log_fd >= 0 &&
                    (got = fill(child->log_fd, &child->log, &ignored)) != -1;
         i++) {
        char *newline;
        while ((newline = memchr(child->log.text, '\n', child->log.used)) != NULL) {
            size_t length = (size_t)(newline - child->log.text);
            if (length > 0)
                keep_last_line(child, child->log.text, length);
            drop(&child->log, length + 1);
        }
        if (got == 1 && child->log.used < 4096)
            continue;
        if (child->log.used > 0)
            keep_last_line(child, child->log.text, child->log.used);
        child->log.used = 0;
        if (got == 1)
            continue;
        close(child->log_fd);
        child->log_fd = -1;
    }
}

/* Hands out the first whole line of the buffer, if it holds one. */
static bool take_line(struct child *child, const char **line, size_t *length) {
    struct child_buffer *buffer = &child->messages;
    char *newline = buffer->used ? memchr(buffer->text, '\n', buffer->used) : NULL;
    if (!newline)
        return false;
    *newline = '\0';
    *line = buffer->text;
    *length = (size_t)(newline - buffer->text);
    child->line_bytes = *length + 1;
    return true;
}

/* How long a thread was ready to run so far without a core to run on; 0 where the kernel does
 * not say. On a busy machine a line is read later than it came, by what this grows. */
static double run_delay_s(int fd) {
    char text[96];
    unsigned long long delay_ns = 0;
    ssize_t got = fd >= 0 ? pread(fd, text, sizeof text - 1, 0) : 0;
    text[got > 0 ? got : 0] = '\0';
    return sscanf(text, "%*u %llu", &delay_ns) == 1 ? 1e-9 * (double)delay_ns : 0;
}

static int wait_ms(double deadline_s) {
    double left_s = deadline_s - child_now_s();
    if (left_s <= 0)
        return 0;
    return left_s > 3600 ? 3600 * 1000 : (int)(left_s * 1000) + 1;
}

/* When the bytes came, had there always been a core for this thread. */
static void note_arrival(struct child *child, double delay_before_s) {
    child->read_s = child_now_s() - (run_delay_s(child->delay_fd) - delay_before_s);
}

enum child_event child_read(struct child *child, double deadline_s, int signal_fd,
                            const char **line, size_t *length, struct error *err) {
    if (child->line_bytes)
        drop(&child->messages, child->line_bytes);
    child->line_bytes = 0;
    for (;;) {
        if (take_line(child, line, length))
            return CHILD_LINE;
        if (child->message_fd < 0)
            return CHILD_CLOSED;
        struct pollfd fds[4] = {{signal_fd, POLLIN, 0},
                                {child->message_fd, POLLIN, 0},
                                {child->log_fd, POLLIN, 0},
                                {child->pid_fd, POLLIN, 0}};
        double delay_s = run_delay_s(child->delay_fd);
        int ready = poll(fds, 4, wait_ms(deadline_s));
        if (ready < 0 && errno != EINTR) {
            error_set(err, EXIT_FAILED, "cannot wait for the worker: %s", strerror(errno));
            return CHILD_ERROR;
        }
        if (ready > 0 && fds[0].revents)
            return CHILD_INTERRUPTED;
        if (ready > 0 && fds[2].revents)
            read_log(child);
        int got = ready > 0 && fds[1].revents ? fill(child->message_fd, &child->messages, err) : -1;
        if (got == 1)
            note_arrival(child, delay_s);
        if (got == -2)
            return CHILD_ERROR;
        if (got == 0) {
            close(child->message_fd);
            child->message_fd = -1;
        }
        /* Dead, and nothing more in the pipe, which a process that it left behind may hold open. */
        if (got == -1 && ready > 0 && fds[3].revents)
            return CHILD_CLOSED;
        if (got == -1 && child_now_s() >= deadline_s)
            return CHILD_TIMEOUT;
    }
}

/* --- end ------------------------------------------------------------------------------------- */

void child_wait(struct child *child, double grace_s) {
    const struct timespec pause = {0, 2 * 1000 * 1000};
    double deadline_s = child_now_s() + grace_s;
    while (child->pid > 0 && !child->reaped) {
        /* WNOWAIT: the zombie keeps its process group's number from being given to others. */
        siginfo_t info = {0};
        if (waitid(P_PID, (id_t)child->pid, &info, WEXITED | WNOHANG | WNOWAIT) || info.si_pid)
            return;
        if (child_now_s() >= deadline_s)
            return;
        read_log(child);
        nanosleep(&pause, NULL);
    }
}

/* A process in the middle of a driver's call dies when that returns, which may be never. */
static void reap(struct child *child) {
    struct pollfd dead = {child->pid_fd, POLLIN, 0};
    kill(-child->pid, SIGKILL);
    if (child->pid_fd >= 0 && poll(&dead, 1, (int)(kill_limit_s * 1000)) == 0) {
        child->stuck = true;
        return;
    }
    while (waitpid(child->pid, &child->wait_status, 0) < 0 && errno == EINTR)
        ;
    child->reaped = true;
}

void child_end(struct child *child) {
    if (child->pid > 0 && !child->reaped && !child->stuck) {
        reap(child);
        child->strays_left = !strays_end(child->started);
    }
    read_log(child);
    if (child->message_fd >= 0)
        close(child->message_fd);
    if (child->log_fd >= 0)
        close(child->log_fd);
    if (child->pid_fd >= 0)
        close(child->pid_fd);
    if (child->delay_fd >= 0)
        close(child->delay_fd);
    child->message_fd = child->log_fd = child->pid_fd = child->delay_fd = -1;
    free(child->messages.text);
    free(child->log.text);
    memset(&child->messages, 0, sizeof child->messages);
    memset(&child->log, 0, sizeof child->log);
}

void child_reason(const struct child *child, char *text, size_t size) {
    int status = child->wait_status;
    const char *colon = child->last_line[0] ? ": " : "";
    if (child->stuck) {
        snprintf(text, size, "process %d does not end after SIGKILL: a driver holds it%s%s",
                 (int)child->pid, colon, child->last_line);
    } else if (WIFSIGNALED(status)) {
        const char *name = sigabbrev_np(WTERMSIG(status));
        snprintf(text, size, "killed by SIG%s (%s)%s%s", name ? name : "?",
                 strsignal(WTERMSIG(status)), colon, child->last_line);
    } else {
        snprintf(text, size, "worker exited with code %d before the case was finished%s%s",
                 WEXITSTATUS(status), colon, child->last_line);
    }
}
