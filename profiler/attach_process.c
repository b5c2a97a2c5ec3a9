/* Starts an attached program, hears its calls and notices its end. */
#include "attach_process.h"

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <sys/wait.h>
#include <unistd.h>

#include "attach_wire.h"

static const int look_around_ms = 200; /* how often it is looked whether the program has ended */
static const int end_patience_ms = 10000;
static const int look_for_end_ms = 10;

/* --- start ----------------------------------------------------------------------------------- */

static int listen_at(const char *folder, const char *name, struct error *err) {
    struct sockaddr_un address = {.sun_family = AF_UNIX};
    int socket_fd = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);
    snprintf(address.sun_path, sizeof address.sun_path, "%s/%s", folder, name);
    if (socket_fd >= 0 && bind(socket_fd, (struct sockaddr *)&address, sizeof address) == 0 &&
        listen(socket_fd, ATTACH_LIBRARIES_MOST) == 0)
        return socket_fd;
    error_set(err, EXIT_FAILED, "attach: no socket: %s: %s", address.sun_path, strerror(errno));
    if (socket_fd >= 0)
        close(socket_fd);
    return -1;
}

static void set_environment(const struct attach_program *program, const char *device,
                            const char *library) {
    char path[128];
    snprintf(path, sizeof path, "%s/program", program->folder);
    setenv("MOESOL_ATTACH", path, 1);
    snprintf(path, sizeof path, "%s/library", program->folder);
    setenv("MOESOL_ATTACH_COLLECTOR", path, 1);
    setenv("CUDA_INJECTION64_PATH", library, 1);
    setenv("NVTX_INJECTION64_PATH", library, 1);
    setenv("CUDA_VISIBLE_DEVICES", device, 1);
}

/* In the child, until it is another program. What goes wrong is written to `failure`. */
static void become(const struct attach_program *program, char **argv, const char *device,
                   const char *library, pid_t worker, int failure) {
    int null = open("/dev/null", O_RDONLY);
    prctl(PR_SET_PDEATHSIG, SIGKILL);
    if (getppid() == worker && null >= 0 && dup2(null, 0) >= 0 && dup2(2, 1) >= 0) {
        set_environment(program, device, library);
        execvp(argv[0], argv);
    }
    int code = errno;
    ssize_t ignored = write(failure, &code, sizeof code);
    (void)ignored;
    _exit(127);
}

static int spawn(struct attach_program *program, char **argv, const char *device,
                 const char *library, struct error *err) {
    int failure[2], code = 0;
    pid_t worker = getpid();
    if (pipe2(failure, O_CLOEXEC))
        return error_set(err, EXIT_FAILED, "attach: no pipe: %s", strerror(errno));
    program->pid = fork();
    if (program->pid == 0)
        become(program, argv, device, library, worker, failure[1]);
    close(failure[1]);
    ssize_t got = program->pid > 0 ? read(failure[0], &code, sizeof code) : 0;
    close(failure[0]);
    if (program->pid < 0)
        return error_set(err, EXIT_FAILED, "attach: %.100s cannot be started: %s", argv[0],
                         strerror(errno));
    if (got == sizeof code)
        return error_set(err, EXIT_USAGE,
                         "attach: %.200s cannot be started: %s; give the program after --", argv[0],
                         strerror(code));
    return 0;
}

static char **split(const char *command, size_t bytes) {
    size_t count = 0;
    for (size_t i = 0; i < bytes; i++)
        count += command[i] == '\0';
    char **argv = count ? calloc(count + 1, sizeof *argv) : NULL;
    for (size_t i = 0; argv && i < count; i++) {
        argv[i] = (char *)command;
        command += strlen(command) + 1;
    }
    return argv;
}

int attach_start(const char *command, size_t command_bytes, const char *device, const char *library,
                 struct attach_program **out, struct error *err) {
    struct attach_program *program = calloc(1, sizeof *program);
    char **argv = split(command, command_bytes);
    if (!program || !argv) {
        error_set(err, EXIT_FAILED, "out of memory: an attached program");
        goto fail;
    }
    program->connection = program->listener = program->library_listener = -1;
    program->stage = "before it asked for a case";
    snprintf(program->word, sizeof program->word, "%s", argv[0]);
    snprintf(program->folder, sizeof program->folder, "/tmp/moesol-attach-XXXXXX");
    if (!mkdtemp(program->folder)) {
        program->folder[0] = '\0';
        error_set(err, EXIT_FAILED, "attach: no folder for sockets in /tmp: %s", strerror(errno));
        goto fail;
    }
    program->listener = listen_at(program->folder, "program", err);
    if (program->listener >= 0)
        program->library_listener = listen_at(program->folder, "library", err);
    if (program->library_listener < 0 || spawn(program, argv, device, library, err))
        goto fail;
    free(argv);
    *out = program;
    return 0;
fail:
    free(argv);
    attach_end(program);
    return -1;
}

static bool is_file(const char *path) {
    struct stat status;
    return stat(path, &status) == 0 && S_ISREG(status.st_mode);
}

void attach_source(const char *command, size_t command_bytes, char *path, size_t size) {
    const char *end = command + command_bytes;
    const char *first = command;
    snprintf(path, size, "%s", command_bytes && is_file(first) ? first : "");
    for (const char *word = command + strlen(command) + 1; word < end; word += strlen(word) + 1)
        if (is_file(word)) {
            snprintf(path, size, "%s", word);
            return;
        }
}

/* --- calls ----------------------------------------------------------------------------------- */

static pid_t peer_of(int socket_fd) {
    struct ucred who = {0};
    socklen_t length = sizeof who;
    return getsockopt(socket_fd, SOL_SOCKET, SO_PEERCRED, &who, &length) ? 0 : who.pid;
}

static void take_call(struct attach_program *program) {
    int connection = accept4(program->listener, NULL, NULL, SOCK_CLOEXEC);
    if (connection < 0)
        return;
    program->connection = connection;
    program->speaker = peer_of(connection);
}

/* A process that became another program calls again: what it was before is over. */
static void take_library(struct attach_program *program) {
    int connection = accept4(program->library_listener, NULL, NULL, SOCK_CLOEXEC);
    struct attach_greeting greeting;
    if (connection < 0)
        return;
    if (attach_receive(connection, &greeting, sizeof greeting) ||
        greeting.version != ATTACH_WIRE_VERSION) {
        close(connection);
        return;
    }
    struct attach_library library = {connection, peer_of(connection)};
    for (size_t i = 0; i < program->library_count; i++)
        if (program->libraries[i].pid == library.pid) {
            close(program->libraries[i].socket);
            program->libraries[i] = library;
            return;
        }
    if (program->library_count < ATTACH_LIBRARIES_MOST)
        program->libraries[program->library_count++] = library;
    else
        close(connection);
}

static void look_for_end(struct attach_program *program) {
    if (!program->ended && program->pid > 0 &&
        waitpid(program->pid, &program->wait_status, WNOHANG) == program->pid)
        program->ended = true;
}

static void wait_for_end(struct attach_program *program, int patience_ms) {
    for (int waited = 0; !program->ended && waited < patience_ms; waited += look_for_end_ms) {
        look_for_end(program);
        if (!program->ended)
            usleep(1000 * (useconds_t)look_for_end_ms);
    }
}

static int tell_end(struct attach_program *program, struct error *err) {
    char how[64] = "closed its socket";
    wait_for_end(program, 2000);
    if (program->ended && WIFSIGNALED(program->wait_status))
        snprintf(how, sizeof how, "was killed by SIG%s",
                 sigabbrev_np(WTERMSIG(program->wait_status)));
    else if (program->ended)
        snprintf(how, sizeof how, "ended with exit code %d", WEXITSTATUS(program->wait_status));
    return error_set(err, EXIT_FAILED, "attach: %.100s %s %s%s", program->word, how, program->stage,
                     program->connection < 0 ? "; it must read its cases by MOESOL_ATTACH, as "
                                               "kernels/torch/moesol.py does (doc/attach.md)"
                                             : "; its own messages say more");
}

/* --- lines ----------------------------------------------------------------------------------- */

static bool find_line(struct attach_program *program) {
    const char *end = memchr(program->buffer, '\n', program->filled);
    program->line_bytes = end ? (size_t)(end - program->buffer) + 1 : 0;
    return end;
}

static void drop_line(struct attach_program *program) {
    program->filled -= program->line_bytes;
    memmove(program->buffer, program->buffer + program->line_bytes, program->filled);
    program->line_bytes = 0;
}

/* 1: something came, 0: nothing yet, -1: the connection is closed. */
static int receive(struct attach_program *program) {
    ssize_t got = recv(program->connection, program->buffer + program->filled,
                       sizeof program->buffer - 1 - program->filled, 0);
    if (got > 0)
        program->filled += (size_t)got;
    if (got < 0 && errno == EINTR)
        return 0;
    return got > 0 ? 1 : -1;
}

/* Waits a while for whatever comes next. */
static int listen_once(struct attach_program *program, struct error *err) {
    bool called = program->connection >= 0;
    struct pollfd polled[2] = {{called ? program->connection : program->listener, POLLIN, 0},
                               {program->library_listener, POLLIN, 0}};
    poll(polled, 2, look_around_ms);
    if (polled[1].revents & POLLIN)
        take_library(program);
    if (!called && polled[0].revents & POLLIN) {
        take_call(program);
        return 0;
    }
    if (called && polled[0].revents)
        return receive(program) < 0 ? tell_end(program, err) : 0;
    look_for_end(program);
    if (!called && program->ended)
        return tell_end(program, err);
    return 0;
}

int attach_read_line(struct attach_program *program, const char **line, struct error *err) {
    drop_line(program);
    while (!find_line(program)) {
        if (program->filled == sizeof program->buffer - 1)
            return error_set(err, EXIT_FAILED,
                             "attach: %.100s sent a line of more than %zu bytes %s", program->word,
                             program->filled, program->stage);
        if (listen_once(program, err))
            return -1;
    }
    program->buffer[program->line_bytes - 1] = '\0';
    *line = program->buffer;
    return 0;
}

int attach_write_line(struct attach_program *program, const char *line, struct error *err) {
    if (attach_send(program->connection, line, strlen(line)) ||
        attach_send(program->connection, "\n", 1))
        return tell_end(program, err);
    return 0;
}

static bool is_closed(int socket_fd) {
    char byte;
    return recv(socket_fd, &byte, 1, MSG_PEEK | MSG_DONTWAIT) == 0;
}

int attach_collector(struct attach_program *program, struct error *err) {
    int found = -1;
    struct pollfd polled = {program->library_listener, POLLIN, 0};
    while (poll(&polled, 1, 0) > 0)
        take_library(program);
    for (size_t i = 0; i < program->library_count; i++) {
        if (is_closed(program->libraries[i].socket))
            continue;
        if (program->libraries[i].pid != program->speaker)
            return error_set(err, EXIT_FAILED,
                             "attach: %.100s uses CUDA in more than one process: %d beside %d, "
                             "which runs the forwards; its launches would be missed",
                             program->word, (int)program->libraries[i].pid, (int)program->speaker);
        found = program->libraries[i].socket;
    }
    if (found >= 0)
        return found;
    return error_set(err, EXIT_FAILED,
                     "attach: %.100s has not used CUDA in the process that asks for forwards "
                     "(pid %d): there is nothing to measure",
                     program->word, (int)program->speaker);
}

/* --- end ------------------------------------------------------------------------------------- */

static void remove_sockets(const struct attach_program *program) {
    char path[128];
    if (!program->folder[0])
        return;
    snprintf(path, sizeof path, "%s/program", program->folder);
    unlink(path);
    snprintf(path, sizeof path, "%s/library", program->folder);
    unlink(path);
    rmdir(program->folder);
}

void attach_end(struct attach_program *program) {
    if (!program)
        return;
    if (program->connection >= 0 && program->pending == REQUEST_CASE)
        attach_write_line(program, "{\"case\": null}", NULL);
    if (program->pid > 0 && !program->ended && program->pending == REQUEST_CASE)
        wait_for_end(program, end_patience_ms);
    if (program->pid > 0 && !program->ended) {
        kill(program->pid, SIGKILL);
        waitpid(program->pid, &program->wait_status, 0);
    }
    for (size_t i = 0; i < program->library_count; i++)
        close(program->libraries[i].socket);
    if (program->connection >= 0)
        close(program->connection);
    if (program->listener >= 0)
        close(program->listener);
    if (program->library_listener >= 0)
        close(program->library_listener);
    remove_sockets(program);
    free(program);
}
