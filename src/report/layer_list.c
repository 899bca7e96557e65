/* layer_list.c: `snug layers`: the layer classes with their settings and Keras' defaults, as
 * layers.def has them. */
#include "base/real.h"
#include "base/say.h"
#include "nn/config.h"

#include <snug/train.h>
#include <stdio.h>

static bool is_unset(const sn_conf_field *f) {
    return f->number == SN_UNSET || f->number == SN_NO_AXIS || f->number == SN_NO_ENTRY;
}

/* "units=0", "strides=1", "activation=linear", "layer": the default where there is one. */
static const char *setting(const sn_conf_field *f, char *text, size_t size) {
    if (f->text)
        snprintf(text, size, "%s=%s", f->key, f->text[0] ? f->text : "none");
    else if (f->kind == SN_CONF_LAYER || f->kind == SN_CONF_LAYERS || f->kind == SN_CONF_CALL)
        snprintf(text, size, "%s", f->key);
    else if (f->kind == SN_CONF_FLAG)
        snprintf(text, size, "%s=%s", f->key, f->number != 0 ? "true" : "false");
    else
        sn_print(text, size, is_unset(f) ? "%s" : "%s=%g", f->key, f->number);
    return text;
}

static snug_status print_text(const sn_layer_class *cls, const snug_writer *w, snug_error *err) {
    SNUG_TRY(sn_say(w, err, "%s\n", cls->class_name));
    char line[120] = "   ";
    int used = 3;
    for (int i = 0; i < cls->n_fields; i++) {
        char text[80];
        setting(&cls->fields()[i], text, sizeof text);
        const int n = snprintf(line + used, sizeof line - (size_t)used, " %s", text);
        if (used + n < 96) {
            used += n;
            continue;
        }
        SNUG_TRY(sn_say(w, err, "%.*s\n", used, line));
        used = snprintf(line, sizeof line, "    %s", text);
    }
    return used > 3 ? sn_say(w, err, "%.*s\n", used, line) : SNUG_OK;
}

static snug_status print_json(const sn_layer_class *cls, const snug_writer *w, snug_error *err) {
    SNUG_TRY(sn_say(w, err, "{\"class\":\"%s\",\"settings\":[", cls->class_name));
    for (int i = 0; i < cls->n_fields; i++) {
        char text[80];
        SNUG_TRY(sn_say(w, err, "%s\"%s\"", i ? "," : "",
                        setting(&cls->fields()[i], text, sizeof text)));
    }
    return sn_say(w, err, "]}");
}

snug_status snug_report_layers(int style, const snug_writer *out, snug_error *err) {
    SNUG_NEEDS(err, out);
    const bool json = style & SNUG_REPORT_JSON;
    for (int i = 0; i < sn_n_layer_classes; i++) {
        if (json)
            SNUG_TRY(sn_say(out, err, i ? "," : "["));
        SNUG_TRY((json ? print_json : print_text)(&sn_layer_classes[i], out, err));
    }
    return json ? sn_say(out, err, "]\n") : SNUG_OK;
}
