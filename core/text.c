/* Which characters a screen would obey instead of showing. */
#include "text.h"

#include <stdbool.h>
#include <string.h>

size_t text_unsafe(const char *text) {
    const unsigned char *c = (const unsigned char *)text;
    if ((c[0] > 0 && c[0] < 0x20) || c[0] == 0x7f)
        return 1;
    if (c[0] == 0xc2 && c[1] >= 0x80 && c[1] <= 0x9f) /* C1 */
        return 2;
    if (c[0] == 0xd8 && c[1] == 0x9c) /* U+061C, Arabic letter mark */
        return 2;
    if (c[0] != 0xe2)
        return 0;
    /* U+200E and U+200F; U+2028 to U+202E: line separators, embeddings, overrides; U+2066 to
     * U+2069: isolates. */
    bool marks = c[1] == 0x80 && (c[2] == 0x8e || c[2] == 0x8f || (c[2] >= 0xa8 && c[2] <= 0xae));
    bool isolates = c[1] == 0x81 && c[2] >= 0xa6 && c[2] <= 0xa9;
    return marks || isolates ? 3 : 0;
}

void text_disarm(char *text) {
    while (*text) {
        size_t length = text_unsafe(text);
        memset(text, '?', length);
        text += length ? length : 1;
    }
}
