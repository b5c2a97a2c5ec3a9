/* gnuplot as a child process. The script comes on standard input and the picture goes to standard
 * output, so that no file name ever stands in a script. */
#include "gnuplot.h"

#include <errno.h>
#include <fcntl.h>
#include <spawn.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

extern char **environ;

bool gnuplot_available(void) {
    const char *path = getenv("PATH");
    char *copy = strdup(path ? path : ""), *rest = copy, *folder;
    bool found = false;

    while (copy && !found && (folder = strsep(&rest, ":"))) {
        char file[4096];
        snprintf(file, sizeof file, "%s/gnuplot", folder[0] ? folder : ".");
        found = access(file, X_OK) == 0;
    }
    free(copy);
    return found;
}

/* -d: no start-up file of the user changes the picture. Returns the wait status, -1 with *err. */
static int spawn_and_wait(int script_fd, int picture_fd, int message_fd, struct error *err) {
    char *const arguments[] = {"gnuplot", "-d", "-", NULL};
    posix_spawn_file_actions_t actions;
    pid_t pid;
    int status;

    posix_spawn_file_actions_init(&actions);
    posix_spawn_file_actions_adddup2(&actions, script_fd, 0);
    posix_spawn_file_actions_adddup2(&actions, picture_fd, 1);
    posix_spawn_file_actions_adddup2(&actions, message_fd, 2);
    int failed = posix_spawnp(&pid, "gnuplot", &actions, NULL, arguments, environ);
    posix_spawn_file_actions_destroy(&actions);
    if (failed)
        return error_set(err, EXIT_FAILED,
                         "cannot start gnuplot: %s; `apt-get install gnuplot-nox` brings it",
                         strerror(failed));
    while (waitpid(pid, &status, 0) < 0)
        if (errno != EINTR)
            return error_set(err, EXIT_FAILED, "gnuplot: %s", strerror(errno));
    return status;
}

/* gnuplot shows the line, a caret and then what is wrong: the last line that is not empty. */
static void last_message(FILE *messages, char *text, size_t size) {
    char line[256];

    text[0] = '\0';
    rewind(messages);
    while (fgets(line, sizeof line, messages)) {
        line[strcspn(line, "\n")] = '\0';
        if (line[strspn(line, " ^")])
            snprintf(text, size, "%s", line);
    }
}

static int draw(FILE *script, int picture_fd, struct error *err) {
    FILE *messages = tmpfile();
    char message[256];

    if (!messages)
        return error_set(err, EXIT_FAILED, "cannot make a temporary file: %s", strerror(errno));
    int status = spawn_and_wait(fileno(script), picture_fd, fileno(messages), err);
    last_message(messages, message, sizeof message);
    fclose(messages);
    if (status == -1)
        return -1;
    if (!WIFEXITED(status) || WEXITSTATUS(status) != 0)
        return error_set(err, EXIT_FAILED, "gnuplot failed: %s",
                         message[0] ? message : "it gave no reason");
    struct stat picture;
    if (fstat(picture_fd, &picture) != 0 || picture.st_size == 0)
        return error_set(err, EXIT_FAILED, "gnuplot made no picture: %s",
                         message[0] ? message : "it gave no reason; is the disk full?");
    return 0;
}

/* Rewinds and gives the child the file's start. */
static int rewind_script(FILE *script, struct error *err) {
    if (fflush(script) != 0 || ferror(script) || lseek(fileno(script), 0, SEEK_SET) != 0)
        return error_set(err, EXIT_FAILED, "cannot write the gnuplot script: %s", strerror(errno));
    return 0;
}

int gnuplot_draw(FILE *script, FILE *picture, struct error *err) {
    if (rewind_script(script, err) != 0 || draw(script, fileno(picture), err) != 0)
        return -1;
    if (fseek(picture, 0, SEEK_END) != 0)
        return error_set(err, EXIT_FAILED, "cannot read gnuplot's picture: %s", strerror(errno));
    return 0;
}

int gnuplot_run(FILE *script, const char *path, struct error *err) {
    char temporary[4096];

    if (rewind_script(script, err) != 0)
        return -1;
    if (snprintf(temporary, sizeof temporary, "%s.XXXXXX", path) >= (int)sizeof temporary)
        return error_set(err, EXIT_FAILED, "cannot write: %.80s...: the name is too long", path);
    int picture_fd = mkostemp(temporary, O_CLOEXEC);
    if (picture_fd < 0)
        return error_set(err, EXIT_FAILED, "cannot write: %s: %s", path, strerror(errno));
    int result = draw(script, picture_fd, err);
    mode_t mask = umask(0);
    umask(mask);
    if (fchmod(picture_fd, 0666 & ~mask) != 0 || close(picture_fd) != 0)
        result = error_set(err, EXIT_FAILED, "cannot write: %s: %s", path, strerror(errno));
    if (result == 0 && rename(temporary, path) != 0)
        result = error_set(err, EXIT_FAILED, "cannot write: %s: %s", path, strerror(errno));
    if (result != 0)
        unlink(temporary);
    return result;
}
