/* posix_spawn and waitpid. */
#include "program.h"

#include <errno.h>
#include <spawn.h>
#include <stdio.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

extern char **environ;

int program_self(char *path, size_t size, struct error *err) {
    ssize_t length = readlink("/proc/self/exe", path, size - 1);

    if (length <= 0)
        return error_set(err, EXIT_FAILED, "cannot find this command: /proc/self/exe: %s",
                         strerror(errno));
    path[length] = '\0';
    return 0;
}

int program_run(char *const *arguments, struct error *err) {
    posix_spawn_file_actions_t actions;
    pid_t pid;
    int status;

    posix_spawn_file_actions_init(&actions);
    posix_spawn_file_actions_adddup2(&actions, 2, 1); /* our own results alone go to stdout */
    int failed = posix_spawnp(&pid, arguments[0], &actions, NULL, arguments, environ);
    posix_spawn_file_actions_destroy(&actions);
    if (failed)
        return error_set(err, EXIT_FAILED, "cannot start %.200s: %s", arguments[0],
                         strerror(failed));
    while (waitpid(pid, &status, 0) < 0)
        if (errno != EINTR)
            return error_set(err, EXIT_FAILED, "%.200s: %s", arguments[0], strerror(errno));
    if (WIFSIGNALED(status))
        return error_set(err, EXIT_FAILED, "%.200s was killed: %s", arguments[0],
                         strsignal(WTERMSIG(status)));
    if (WEXITSTATUS(status) == EXIT_INTERRUPTED)
        return error_set(err, EXIT_INTERRUPTED, "interrupted");
    if (WEXITSTATUS(status) != 0)
        return error_set(err, EXIT_FAILED, "%.200s failed: exit code %d", arguments[0],
                         WEXITSTATUS(status));
    return 0;
}
