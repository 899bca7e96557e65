/* process.c: reads /proc/self/status through the engine's I/O table. */
#include "report/process.h"

#include "base/system.h"

void sn_process_read(const snug_io *io, sn_process *out) {
    char text[4096];
    sn_system_text(io, "/proc/self/status", text, sizeof text);
    out->resident_bytes = sn_system_number(text, "VmRSS:") * 1024;
    out->peak_bytes = sn_system_number(text, "VmHWM:") * 1024;
}
