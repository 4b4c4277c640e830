/* What all devices share. In: a message; out: text. */
#include "runtime/device.h"

void rt_say(Text *why, const char *format, ...) {
    if (!why) return;
    va_list args;
    va_start(args, format);
    ir_text_vformat(why, format, args);
    va_end(args);
}
