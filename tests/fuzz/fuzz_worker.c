/* Fuzz target: what `moesol run` and its workers say to each other (a kernel in the worker may have
 * written anything into the pipe), and the command line that --resume finds in a record. */
#include <string.h>

#include "../../profiler/command_text.h"
#include "../../profiler/worker_protocol.h"
#include "fuzz.h"

static void try_command(const char *text) {
    struct error err = {0};
    char **words, joined[4096], **again;
    int count, again_count;
    if (command_text_split(text, &count, &words, &err)) {
        fuzz_check_refused(&err);
        return;
    }
    command_text_join(count, words, joined, sizeof joined);
    struct error second = {0};
    if (command_text_split(joined, &again_count, &again, &second) == 0) {
        fuzz_check(count == again_count, "another number of words", joined);
        for (int i = 0; i < count; i++)
            fuzz_check(strcmp(words[i], again[i]) == 0, "another word", joined);
        free(again);
    }
    free(words);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
    static struct worker_job job;
    struct worker_message message;
    struct error of_job = {0}, of_message = {0};
    char *text = malloc(size + 1);
    memcpy(text, data, size);
    text[size] = '\0';
    if (worker_job_parse(text, size, &job, &of_job)) {
        fuzz_check_refused(&of_job);
    } else {
        char *written = worker_job_write(&job);
        fuzz_check(written != NULL, "a job that cannot be written", text);
        free(written);
    }
    if (worker_message_parse(text, size, &message, &of_message))
        fuzz_check_refused(&of_message);
    try_command(text);
    free(text);
    return 0;
}
