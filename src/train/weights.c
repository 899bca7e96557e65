/* weights.c: weights to and from safetensors. Every tensor of the file is found and compared with
 * the model before the first one is read, so a file that does not fit changes nothing. A file that
 * cannot be read to its end leaves the model torn: it has weights of two origins. */
#include "train/model.h"

#include "base/size.h"
#include "model/safetensors.h"

static snug_status alloc_array(const snug_model *m, size_t n, size_t elem_bytes, size_t *bytes,
                               void **out, snug_error *err) {
    if (!sn_size_mul(n, elem_bytes, bytes))
        return sn_fail(err, SNUG_E_OVERFLOW, "%zu weights exceed the address space", n);
    return sn_alloc(m->engine, SN_MEM_MODEL, *bytes, out, err);
}

snug_status snug_model_save_weights(snug_model *m, const char *path, snug_error *err) {
    if (!m || !path)
        return sn_fail(err, SNUG_E_INVALID,
                       "snug_model_save_weights: model and path must not be NULL");
    if (sn_state_torn(m->state))
        return sn_fail(err, SNUG_E_TORN,
                       "a step stopped half-way through its updates; its weights are not saved");
    const size_t n = snug_model_n_weights(m);
    size_t bytes = 0;
    void *block;
    SNUG_TRY(alloc_array(m, n, sizeof(sn_st_tensor), &bytes, &block, err));
    sn_st_tensor *const tensors = block;
    snug_status status = SNUG_OK;
    for (size_t i = 0; i < n && status == SNUG_OK; i++)
        status = snug_model_weight(m, i, &tensors[i].name, &tensors[i].view, err);
    if (status == SNUG_OK)
        status = sn_safetensors_save(m->engine, path, tensors, n, err);
    sn_free(m->engine, SN_MEM_MODEL, block, bytes);
    return status;
}

static snug_status find_all(const snug_model *m, const sn_safetensors *file, const char *path,
                            const sn_st_entry **entries, snug_error *err) {
    for (size_t i = 0; i < snug_model_n_weights(m); i++) {
        const sn_net_var *v = &m->network->vars[i];
        SNUG_TRY(sn_safetensors_find(file, v->name, &entries[i], err));
        for (size_t k = 0; k < i; k++)
            if (entries[k] == entries[i])
                return sn_fail(err, SNUG_E_FORMAT,
                               "%s: '%s' could be %s and %s; give its tensors their full names",
                               path, entries[i]->name, m->network->vars[k].name, v->name);
        char a[192], b[192];
        if (!sn_dims_equal(&entries[i]->type, &v->type))
            return sn_fail(err, SNUG_E_SHAPE,
                           "%s is %s in %s and %s in the model; the file is of another model",
                           v->name, snug_type_print(&entries[i]->type, a, sizeof a), path,
                           snug_type_print(&v->type, b, sizeof b));
    }
    return SNUG_OK;
}

static snug_status read_all(snug_model *m, sn_safetensors *file, const sn_st_entry *const *entries,
                            snug_error *err) {
    snug_view view;
    for (size_t i = 0; i < snug_model_n_weights(m); i++)
        SNUG_TRY(snug_model_weight(m, i, NULL, &view, err)); /* room for all before the first */
    snug_status status = SNUG_OK;
    for (size_t i = 0; i < snug_model_n_weights(m) && status == SNUG_OK; i++) {
        status = snug_model_weight(m, i, NULL, &view, err);
        if (status == SNUG_OK)
            status = sn_safetensors_read(file, entries[i], &view, err);
    }
    if (status != SNUG_OK)
        sn_state_tear(m->state);
    return status;
}

/* A torn model is whole again with all weights from one file and an optimizer that starts anew. */
static snug_status mend(snug_model *m, snug_error *err) {
    for (uint32_t i = (uint32_t)snug_model_n_weights(m); i < sn_state_count(m->state); i++)
        SNUG_TRY(sn_state_restart(m->state, i, err));
    sn_model_start_anew(m);
    sn_state_mend(m->state);
    return SNUG_OK;
}

/* A file may hold more than the model has: other layers, averages. It is no list without end. */
static size_t tensors_expected(const snug_model *m) {
    return 2 * snug_model_n_weights(m) + 2000;
}

snug_status snug_model_load_weights(snug_model *m, const char *path, snug_error *err) {
    if (!m || !path)
        return sn_fail(err, SNUG_E_INVALID,
                       "snug_model_load_weights: model and path must not be NULL");
    size_t bytes = 0;
    void *block = NULL;
    sn_safetensors *file;
    SNUG_TRY(sn_safetensors_open(m->engine, path, tensors_expected(m), &file, err));
    snug_status status =
        alloc_array(m, snug_model_n_weights(m), sizeof(const sn_st_entry *), &bytes, &block, err);
    if (status != SNUG_OK)
        goto done;
    const sn_st_entry **entries = block;
    status = find_all(m, file, path, entries, err);
    if (status == SNUG_OK)
        status = read_all(m, file, entries, err);
    if (status == SNUG_OK && sn_state_torn(m->state))
        status = mend(m, err);
    sn_free(m->engine, SN_MEM_MODEL, block, bytes);
done:
    sn_safetensors_close(file);
    return status;
}

snug_status snug_model_reset_states(snug_model *m, snug_error *err) {
    if (!m)
        return sn_fail(err, SNUG_E_INVALID, "snug_model_reset_states: the model must not be NULL");
    for (uint32_t i = 0; i < sn_state_count(m->state); i++)
        if (m->network->vars[i].kept)
            SNUG_TRY(sn_state_restart(m->state, i, err));
    return SNUG_OK;
}
