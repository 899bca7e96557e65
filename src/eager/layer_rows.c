/* layer_rows.c: rows of layers.def as recorded code sees them (include/snug/layer.h). */
#include "nn/config.h"

#include <math.h>
#include <snug/layer.h>

static const sn_layer_class *class_at(int row) {
    return row >= 0 && row < sn_n_layer_classes ? &sn_layer_classes[row] : NULL;
}

int snug_layer_row_at(int row, snug_layer_row *out) {
    const sn_layer_class *const cls = class_at(row);
    if (!cls || !out)
        return 0;
    *out = (snug_layer_row){.name = cls->class_name,
                            .arguments = cls->arguments,
                            .about = cls->about,
                            .traits = cls->traits,
                            .drops_masks = cls->mask == SN_MASK_DROP};
    return 1;
}

static bool has_number(const sn_conf_field *f) {
    return f->kind != SN_CONF_LAYER && f->kind != SN_CONF_LAYERS && f->number != SN_UNSET &&
           f->number != SN_NO_AXIS && f->number != SN_NO_ENTRY;
}

int snug_layer_setting_at(int row, int setting, snug_layer_setting *out) {
    const sn_layer_class *const cls = class_at(row);
    if (!cls || !out || setting < 0 || setting >= cls->n_fields)
        return 0;
    const sn_conf_field *const f = &cls->fields()[setting];
    *out = (snug_layer_setting){.key = f->key,
                                .numbers = f->kind == SN_CONF_INTS ? f->n : 0,
                                .text = f->text,
                                .number = has_number(f) ? f->number : (double)NAN};
    return 1;
}
