/* Finds processes in /proc and kills them. */
#include "strays.h"

#include <ctype.h>
#include <dirent.h>
#include <errno.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "child.h"

/* How long processes that a worker left behind are looked for and killed, and after how many looks
 * that find none there are none: this process may have children that are not the worker's. */
static const double strays_limit_s = 5;
static const int enough_empty_looks = 50;

struct process {
    pid_t parent, group, session;
    unsigned long long started; /* in ticks since the machine's start */
};

/* Fields 4 to 6 and 22 of /proc/PID/stat; the name before them may hold anything, a ')' included.
 */
static bool read_process(pid_t pid, struct process *process) {
    char path[64], text[1024];
    snprintf(path, sizeof path, "/proc/%d/stat", (int)pid);
    FILE *file = fopen(path, "re");
    size_t got = file ? fread(text, 1, sizeof text - 1, file) : 0;
    if (file)
        fclose(file);
    text[got] = '\0';
    const char *name_end = strrchr(text, ')');
    return name_end &&
           sscanf(name_end,
                  ") %*c %d %d %d %*d %*d %*u %*u %*u %*u %*u %*u %*u %*d %*d %*d %*d "
                  "%*d %*d %llu",
                  &process->parent, &process->group, &process->session, &process->started) == 4;
}

/* A session that is not this process's was made by a process of the worker's, so all in it goes:
 * killing a group leaves no moment in which one of it forks and gets away. In the own session a
 * group may hold others' processes. */
static void kill_stray(pid_t pid, const struct process *process) {
    if (process->session != getsid(0) && process->group > 1)
        kill(-process->group, SIGKILL);
    kill(pid, SIGKILL);
    waitpid(pid, NULL, WNOHANG);
}

/* Kills and reaps the children of this process that are as young as the worker. Returns how many
 * there were. */
static int kill_children_since(unsigned long long started) {
    int found = 0;
    DIR *proc = opendir("/proc");
    struct dirent *entry;
    while (proc && (entry = readdir(proc))) {
        struct process process;
        pid_t pid = isdigit((unsigned char)entry->d_name[0]) ? atoi(entry->d_name) : 0;
        if (pid <= 0 || !read_process(pid, &process) || process.parent != getpid() ||
            process.started < started)
            continue;
        found++;
        kill_stray(pid, &process);
    }
    if (proc)
        closedir(proc);
    return found;
}

unsigned long long strays_start_of(pid_t pid) {
    struct process process;
    return read_process(pid, &process) ? process.started : 0;
}

static bool has_no_children(void) {
    siginfo_t info;
    return waitid(P_ALL, 0, &info, WEXITED | WNOHANG | WNOWAIT) && errno == ECHILD;
}

/* Processes of a worker that left its process group. Their own children come up when they die, and
 * one that forks and exits all the time is missed by many a look at /proc: so this goes on until
 * this process has no children, or none was seen for a while. */
bool strays_end(unsigned long long started) {
    const struct timespec pause = {0, 2 * 1000 * 1000};
    double deadline_s = child_now_s() + strays_limit_s;
    int empty_looks = 0;
    while (started && !has_no_children()) {
        empty_looks = kill_children_since(started) ? 0 : empty_looks + 1;
        if (empty_looks == enough_empty_looks)
            return true;
        if (child_now_s() >= deadline_s)
            return false;
        nanosleep(&pause, NULL);
    }
    return true;
}
