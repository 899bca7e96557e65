/* recording.h: what the files of the recorder share.
 *
 * A tensor is in one of these states:
 *
 *     PENDING   a value of an open recording; no bytes
 *     READY     bytes in a storage, from an offset on
 *     VERSION   what a variable holds as long as nobody assigns it; no bytes of its own
 *     RECIPE    numbers that can be made at any time, one value or random ones; no bytes, no node
 *     POISONED  its run failed; every use says why
 *
 * Invariants:
 * 1. A recording's arrays of handles, tapes and sites cover every value and node appended by calls
 *    that succeeded; leaves and variables stand in the order of the graph's inputs and variables.
 * 2. Operands do not hold tensors: a value without a handle, a tape or an effect behind it is dead.
 * 3. A stamp (recording, value) of a tensor or variable counts only if what stands there now is
 *    this very leaf or variable: going back cuts graphs without looking for stamps.
 * 4. Storage of a READY tensor is never written: runs write fresh storage and variables' homes. */
#ifndef SN_RECORD_RECORDING_H
#define SN_RECORD_RECORDING_H

#include "budget/room.h"
#include "budget/share.h"
#include "exec/exec.h"
#include "record/record.h"
#include "memory/numbers.h"

#define SN_MAX_OPEN     4                  /* open extents of a trace */
#define SN_FEW_TAPES    31                 /* that have a bit of every mark (record_sets.c) */
#define SN_MAX_RECORDED 65536              /* nodes, after which a recording runs by itself */
#define SN_MAX_HELD     ((size_t)64 << 20) /* bytes of leaves that only the recording holds */
/* Nodes from which on a recording that tapes see stays where it is after a run. */
#define SN_LEAST_STAYING 1024
#define SN_MAX_LINKED    16 /* handles that values of before may get between two runs of it */
/* Of a mark: more tapes see the value than have a bit, and the rest is the number of a set. */
#define SN_MANY 0x80000000u
/* Operations behind the first assignment: a run is not interrupted from there on, so it must not
 * take much longer than a second. */
#define SN_MAX_WORK 2e10

typedef struct sn_storage {
    void *data;                   /* on the host; NULL: not there */
    struct sn_gpu_block *on_card; /* the same on the card; for those who see card.h */
    bool in_file;                 /* there from file_at on, and nowhere else */
    size_t file_at;
    struct sn_storage *next_slot, **slot_link; /* of slots: in the file, or on the host */
    size_t bytes;
    uint32_t refs, pins;        /* pins: who looks at `data` */
    sn_category category;       /* of own bytes */
    void (*release)(void *ctx); /* of foreign bytes; NULL: own ones */
    void *ctx;
    bool foreign, claimed; /* claimed: nobody else's, so on the ledger */
    bool counted;          /* in tensor_bytes or variable_bytes */
    size_t taken;          /* of the pool of pipelines, by a worker's recorder; else 0 */
    struct sn_storage *next_double, **double_link; /* of those that are large and on both sides */
} sn_storage;

/* Why a run failed, shared by all that it should have made. */
typedef struct {
    uint32_t refs;
    snug_error error;
} sn_poison;

typedef enum { SN_PENDING, SN_READY, SN_VERSION, SN_RECIPE, SN_POISONED } sn_tensor_state;

typedef struct sn_recording sn_recording;

struct snug_tensor {
    snug_recorder *r; /* NULL: the recorder is gone */
    uint32_t refs, pins;
    bool on_host; /* recorded there */
    sn_tensor_state state;
    snug_type type;
    sn_recording *rec; /* PENDING */
    sn_value value;
    snug_tensor *twin;   /* PENDING: the next handle of the same value */
    sn_storage *storage; /* READY */
    size_t offset;
    snug_variable *variable; /* VERSION: held */
    snug_tensor *next_reader, **reader_link;
    sn_recipe recipe;  /* RECIPE */
    sn_poison *poison; /* POISONED */
    uint64_t stamp;    /* serial of the recording in which it is value `leaf` */
    sn_value leaf;
    uint64_t born;  /* no recording made later than this is older than it */
    uint64_t id;    /* of its value where recordings have leaves of it; 0: none yet */
    uint32_t tapes; /* READY, VERSION: a mark; of those that are not younger than `marked` */
    uint64_t marked;
};

struct snug_variable {
    snug_recorder *r;
    uint32_t refs; /* of handles: the program can reach it */
    uint32_t uses; /* of recordings, versions and tapes */
    uint32_t id;
    snug_type type;
    char *name;
    size_t name_bytes;
    bool trainable, slot, on_host;
    bool torn;            /* a run stopped while it was written */
    bool mended;          /* torn, and assigned anew in the recording */
    sn_recipe init;       /* what a storage that is made late holds */
    sn_storage *storage;  /* NULL: not made yet */
    snug_tensor *readers; /* VERSION handles */
    uint64_t stamp;       /* serial of the recording that has it as variable `var` */
    sn_var var;
    const snug_tape *seen_by; /* the tape that noted it last, born then */
    uint64_t seen_at;
};

typedef struct {
    sn_storage *storage; /* held; NULL in a trace */
    size_t offset;
    snug_tensor *capture;    /* in a trace: held; NULL: an argument */
    snug_variable *variable; /* whose older version this is, kept for a tape: its use is held */
    uint64_t id; /* of the value, from run to run: other values may have the same bytes */
} sn_leaf;

/* A value of an earlier run that tapes may still want a gradient of: the node that made it was
 * taken along, the leaf has its bytes. Who reads it reads the leaf. */
typedef struct {
    sn_value value, leaf;
} sn_kept;

/* Of a value, the newest of them: 1 + where it is the leaf, the value; 0: nowhere. Counts only if
 * it is there: going back does not look. */
typedef struct {
    uint32_t as_leaf, as_value;
} sn_kin;

/* What a variable holds, for a tape that others with the same value are not seen by. */
typedef struct {
    sn_value value, of;      /* of SN_NO_VALUE: of an earlier run */
    snug_variable *variable; /* its use is held */
} sn_echo;

typedef struct {
    uint32_t slot;
    uint32_t host;  /* index into hosts; UINT32_MAX: a draw */
    int which;      /* -1: its next step begins; without a slot */
    int64_t own;    /* a key of this seed (sn_record_own_key); 0: no key */
    uint64_t place; /* own is an operation's sequence, this says who counts; 0: it is none */
} sn_asked;

/* A number of a sequence that the open call took. */
typedef struct {
    sn_host host;   /* whose; ask NULL: an operation's */
    uint64_t place; /* of the operation */
} sn_taken;

struct sn_recording {
    snug_recorder *r;
    uint64_t serial;
    sn_graph *graph;
    snug_tensor **handle; /* per value: its handles, chained by twin */
    size_t cap_handle;
    uint32_t *tapes; /* per value: a mark */
    size_t cap_tapes;
    uint64_t *site; /* per node */
    size_t cap_site;
    size_t n_values, n_nodes; /* covered by these arrays */
    size_t looked;            /* values it had when somebody last looked who holds them */
    sn_leaf *leaf;            /* per input */
    size_t n_leaf, cap_leaf;
    size_t n_brought;         /* of them: taken along for tapes */
    snug_variable **variable; /* per variable: its uses are held */
    size_t n_variable, cap_variable;
    size_t held_bytes;   /* of leaves that nobody else held when they came */
    size_t largest_held; /* of one of them */
    bool has_effects;
    bool on_host; /* and not on the card that there is */
    double work;  /* operations recorded since it has */
    sn_kept *kept;
    size_t n_kept, cap_kept;
    sn_kin *kin; /* per value, zeros where none was kept */
    size_t cap_kin;
    bool has_versions; /* leaves may be older versions of variables */
    uint32_t n_again;  /* so many first nodes ran before and are here for tapes */
    uint32_t n_tiny_nodes, n_tiny_values; /* so many first ones are known to need no plan */
    uint32_t n_past;                      /* so many first values are of runs before; 0: unknown */
    uint32_t n_looked; /* nodes it had when somebody last looked which of them tapes see */
    sn_value linked[SN_MAX_LINKED]; /* values of before that got handles since the last run */
    uint32_t n_linked;              /* more of them: not all are listed */
    sn_value *place; /* per value, and per slot: where a copy that is under way has them; */
    uint32_t *slot;  /* else nowhere (record_window.c) */
    size_t cap_place, cap_slot;
    sn_echo *echo;
    size_t n_echo, cap_echo;
    /* traces only */
    int n_open; /* extents that stand in for any */
    sn_recording *outer;
    sn_asked *asked;
    size_t n_asked, cap_asked;
    sn_host *hosts;
    size_t n_hosts, cap_hosts;
};

/* A value that a run gives. */
typedef struct {
    sn_value value, made; /* in the recording, and in the part of it that runs */
    bool held, kept;      /* by handles; by tapes */
} sn_result;

/* What a run without a plan gives, made by nodes. */
typedef struct {
    const sn_result *result;
    sn_leaf *stored; /* per value of the part that runs: where they are; not held */
    size_t n;
} sn_direct_values;

/* What a run is for, and of a recording that goes on what has come to it since it last ran. */
typedef struct {
    sn_recording *part; /* a recording of its own; NULL: it runs as a whole */
    sn_result *result;
    size_t n, cap;
} sn_window;

struct snug_tape {
    snug_recorder *r;
    struct sn_seat *seat;                  /* whose thread made it; NULL: that is gone */
    uint32_t bit;                          /* of marks; from SN_FEW_TAPES on: of sets */
    uint64_t born;                         /* serial: what was marked before is not of this tape */
    snug_tape *next, **link;               /* of all */
    snug_tape *next_active, **active_link; /* without a bit of marks: of one seat's */
    struct sn_seat *active_in;             /* that seat */
    bool persistent, watches, explicit, used;
    bool open;        /* gradients may still be asked for */
    uint64_t born_in; /* serial of the recording it was made in, which had so many nodes */
    uint32_t first_node, first_value;
    uint64_t end_in; /* the same of where it was stopped, and has seen nothing since; 0: nowhere */
    uint32_t end_node, end_value;
    snug_variable **watched; /* uses held, in order of first read */
    size_t n_watched, cap_watched;
    sn_numbers places; /* of variables in it */
};

struct snug_trace {
    snug_recorder *r;
    sn_recording *rec;
    bool open;
    int n_arguments;
    sn_value *outputs;
    int n_outputs;
    bool *needed; /* per node */
    size_t n_needed;
    snug_open_axes *axes; /* per argument; NULL: all extents are what they are */
    int n_axes;
};

/* A plan at hand for recordings of one structure. */
typedef struct sn_entry {
    uint64_t hash;
    uint64_t *key; /* what was hashed: equal keys, equal plans */
    size_t key_words;
    sn_graph *graph;  /* fused */
    uint32_t *params; /* per slot of a recording: of the graph; UINT32_MAX: gone */
    uint32_t n_params;
    uint32_t *origin; /* per node of the graph: of the recording */
    uint32_t n_origin;
    const struct sn_side *side; /* where it runs */
    sn_plan *plan;
    uint32_t *donor; /* per output: the leaf whose bytes it may take; UINT32_MAX: none */
    sn_session *session;
    bool *asked;        /* per variable: was to be left in the spill file; NULL: none */
    size_t arena_limit; /* the plan was made for, with what it spills not in memory; 0: none */
    size_t reserve;     /* it takes of a card beside that when it first runs; 0: it has run */
    uint64_t last_used;
    struct sn_entry *next;
} sn_entry;

/* A handle of the call under way, with its value. */
typedef struct {
    snug_tensor *tensor;
    sn_value value;
} sn_given;

/* What a thread has of its own (record_seat.c). Of the one that sits, the recorder's fields of
 * these names are the truth. */
typedef struct sn_seat {
    struct sn_seat *next;
    uint64_t thread; /* 0: nobody's yet */
    sn_recording *main, *now;
    uint32_t active_tapes;
    snug_tape *active_more; /* also of the one that sits */
    sn_given *given;
    size_t n_given, cap_given;
    sn_taken *taken;
    size_t n_taken, cap_taken;
    uint64_t site, place;
    bool on_host;
} sn_seat;

/* Tapes that see values: bits, from word `first` on. */
typedef struct {
    uint64_t *word; /* NULL: free */
    uint32_t first, n;
    uint32_t refs; /* of handles */
    uint32_t next_free;
    bool held, few; /* when somebody last looked; few: tapes that have a bit of marks, or none */
} sn_tape_set;

typedef struct {
    sn_tape_set *set;
    size_t cap_set;
    uint32_t n_set, n_used, free; /* free: chained, n_set - n_used of them */
    uint32_t limit;               /* of n_used, from which on somebody looks who has them */
    sn_numbers by_hash;
    uint64_t *taken, *open; /* numbers of tapes; and of them: whose gradients may be asked for */
    uint64_t *gone;         /* of them: their tapes are dropped, but sets may still have them */
    uint64_t *scratch;      /* zeros but for a set under way */
    size_t cap_taken, cap_open, cap_gone, cap_scratch, n_words, n_taken, n_gone;
} sn_tape_sets;

/* Bytes of a large result that nobody holds any more. */
#define SN_MAX_LEFT 8
typedef struct {
    void *data;
    size_t bytes;
} sn_left;

struct snug_recorder {
    snug_engine *engine;
    snug_recorder_hooks hooks;
    uint64_t site;
    uint64_t serial;          /* of the newest recording, tape or mark */
    sn_seat *seats, *seat;    /* the one that sits */
    sn_recording *main, *now; /* now: the innermost open trace, or main */
    sn_state *state;          /* empty: executors want one */
    sn_cpu_device device;
    sn_executor *executor;
    const struct sn_side *side; /* of steps that are worth the way there; else the host's */
    uint32_t n_sides;
    struct sn_card *card;        /* beside the host (card.h); NULL: there is none */
    sn_spill *file;              /* of slots that wait; NULL: there is none */
    sn_storage *in_file, *slots; /* in it, and not; chained by next_slot */
    size_t fed_bytes; /* values of so many are made on the host: plans bring them; 0: none yet */
    bool on_host;     /* who sits records for the host */
    sn_entry *entries;
    size_t n_entries;
    snug_tape *tapes;              /* all, chained by next */
    snug_tape *tape[SN_FEW_TAPES]; /* by bit */
    /* Marks of the first; with SN_MANY where there are more active ones. Explicit: watch given
     * variables. Open: gradients may still be asked for. */
    uint32_t active_tapes, watching_tapes, explicit_tapes, open_tapes;
    uint32_t gone_tapes; /* bits of dropped tapes that marks may still have */
    size_t n_open_tapes; /* all of them */
    sn_tape_sets sets;
    sn_given *given;
    size_t n_given, cap_given;
    uint32_t n_variables; /* made so far: ids */
    uint64_t seed, n_draws;
    sn_numbers sequences; /* of operations with a seed: how many keys were drawn, by place */
    uint64_t n_places;    /* given so far to operations in traces */
    uint64_t place;       /* of what comes outside of traces; 0: of all of it */
    sn_taken *taken;
    size_t n_taken, cap_taken;
    size_t live_tensors;  /* and variables, tapes, traces: what is still held */
    sn_share share;       /* of the budget, for the newest plan */
    size_t reserve_bytes; /* left to the caller */
    int plans_to_come;    /* like the next one, and that */
    int slots_to_come;    /* of each weight, with the first update */
    size_t weight_bytes;  /* of trainable variables, whether they have numbers or not */
    size_t tensor_bytes, variable_bytes;
    bool running, closed;
    bool judges;               /* plans are looked for, and not run */
    bool awaits;               /* what pipelines may still take is left to them */
    bool worker;               /* of a pipeline: one thread, buffers of the pool */
    sn_recording *spare;       /* cleared; NULL: none */
    sn_left left[SN_MAX_LEFT]; /* waits for the next run's results */
    size_t n_left, left_bytes;
    snug_tensor *free_tensors; /* chained by twin */
    size_t n_free_tensors;
    snug_recorder_info info;
    char miss[200];
};

/* --- record_tensor.c: storage ----------------------------------------------------------------- */
SNUG_CHECKED snug_status sn_storage_create(snug_recorder *r, sn_category cat, size_t bytes,
                                           sn_storage **out, snug_error *err);
/* With one hold, and of bytes what the other one has. */
SNUG_CHECKED snug_status sn_storage_like(snug_recorder *r, const sn_storage *like, sn_storage **out,
                                         snug_error *err);
SNUG_CHECKED snug_status sn_storage_adopt(snug_recorder *r, const void *data, size_t bytes,
                                          void (*release)(void *ctx), void *ctx, sn_storage **out,
                                          snug_error *err);
void sn_storage_hold(sn_storage *s);
/* A large one's bytes wait for the next run's results. NULL is legal. */
void sn_storage_drop(snug_recorder *r, sn_storage *s);
/* What still waits goes back. */
void sn_storage_free_left(snug_recorder *r);
sn_poison *sn_poison_create(snug_recorder *r, const snug_error *why);
/* Its bytes are among those that handles or variables hold, wherever they lie. */
void sn_storage_count(snug_recorder *r, sn_storage *s);
void sn_storage_uncount(snug_recorder *r, sn_storage *s);

/* --- record_place.c: on the host, on the card ------------------------------------------------- */
/* Bytes that are there already stay; others are copied, and larger ones move. */
SNUG_CHECKED snug_status sn_storage_to_host(snug_recorder *r, sn_storage *s, snug_error *err);
void sn_storage_leave_host(snug_recorder *r, sn_storage *s);
void sn_storage_leave_card(snug_recorder *r, sn_storage *s);
/* One who looked at the host's bytes does not any more. */
void sn_storage_unpin(snug_recorder *r, sn_storage *s);
SNUG_CHECKED snug_status sn_storage_read(snug_recorder *r, const sn_storage *s, size_t offset,
                                         void *to, size_t bytes, snug_error *err);

/* --- record_spill.c: in a file ---------------------------------------------------------------- */
/* Whether plans may keep bytes in files: there is a folder, and all runs on the host. */
bool sn_recorder_spills(const snug_recorder *r);
/* Moves what the plan spills there, or makes it there; what is there stays. */
SNUG_CHECKED snug_status sn_recording_to_file(const sn_recording *rec, const sn_plan *plan,
                                              snug_error *err);
bool sn_variable_in_file(const snug_variable *v);
/* A slot has bytes on the host now. */
void sn_storage_enter_slots(snug_recorder *r, sn_storage *s);
/* Who wants bytes that are not there: all large slots go to the file. Whether any went. */
bool sn_slots_make_way(snug_recorder *r);
/* Of a storage that is there: its bytes, or all of it to memory. */
SNUG_CHECKED snug_status sn_storage_from_file(snug_recorder *r, const sn_storage *s, size_t offset,
                                              void *to, size_t bytes, snug_error *err);
SNUG_CHECKED snug_status sn_storage_leave_for_host(snug_recorder *r, sn_storage *s,
                                                   snug_error *err);
void sn_storage_leave_slots(snug_recorder *r, sn_storage *s); /* and the file */
/* Bytes of the recording's variables that are there. */
size_t sn_recording_in_file(const sn_recording *rec);

/* --- tensor handles --------------------------------------------------------------------------- */
SNUG_CHECKED snug_status sn_tensor_create(snug_recorder *r, const snug_type *type,
                                          snug_tensor **out, snug_error *err);
/* Takes over one hold of the storage. */
void sn_tensor_make_ready(snug_tensor *t, sn_storage *s, size_t offset);
void sn_tensor_make_version(snug_tensor *t, snug_variable *v);
void sn_tensor_make_recipe(snug_tensor *t, const sn_recipe *recipe);
void sn_tensor_poison(snug_tensor *t, sn_poison *p);
/* Tapes that watch it and still live. */
uint32_t sn_tensor_tapes(const snug_tensor *t);
void sn_variable_use(snug_variable *v);
void sn_variable_unuse(snug_variable *v);
/* Its bytes, made from its recipe when they are not there yet. */
SNUG_CHECKED snug_status sn_variable_storage(snug_variable *v, snug_error *err);
/* What VERSION handles of the variable are seen by sees this value, too. */
SNUG_CHECKED snug_status sn_variable_mark(const snug_variable *v, sn_recording *rec,
                                          sn_value version, snug_error *err);
/* Takes VERSION handles of the variable, which are marked, into the recording, before it is written
 * there. */
void sn_variable_detach(snug_variable *v, sn_recording *rec, sn_value version);

/* --- recordings ------------------------------------------------------------------------------- */
SNUG_CHECKED snug_status sn_recording_create(snug_recorder *r, sn_recording **out, snug_error *err);
void sn_recording_drop_spare(snug_recorder *r); /* that waits to be used again */
void sn_recording_destroy(sn_recording *rec);
void sn_recording_link(sn_recording *rec, snug_tensor *t, sn_value v);
void sn_recording_unlink(snug_tensor *t);
/* The variable's index in the recording; brought in when it is new. */
SNUG_CHECKED snug_status sn_recording_variable(sn_recording *rec, snug_variable *v, sn_var *out,
                                               snug_error *err);
/* Its variables know their places in it again. */
void sn_recording_stamp(sn_recording *rec);
/* record_check.c: refuses nodes from `first` on by what lies in memory already, and says which. */
SNUG_CHECKED snug_status sn_recording_check_data(const sn_recording *rec, uint32_t first,
                                                 snug_error *err);
/* Whether the tensor's stamp says where its bytes are in this recording. */
bool sn_recording_stands(const sn_recording *rec, const snug_tensor *t);
SNUG_CHECKED snug_status sn_recording_leaf(sn_recording *rec, snug_tensor *t, sn_value *out,
                                           snug_error *err);

/* "matmul f32[32,10], train.py:41", of a node of the recording. */
const char *sn_recording_where(const sn_recording *rec, sn_node n, char *text, size_t size);
/* Whether the value is nothing but numbers to come: then what they are. */
bool sn_recording_recipe(const sn_recording *rec, sn_value v, sn_recipe *out);
SNUG_CHECKED snug_status sn_recording_keep(sn_recording *rec, sn_kept kept, snug_error *err);
SNUG_CHECKED snug_status sn_recording_reserve_kin(sn_recording *rec, size_t n_values,
                                                  snug_error *err);
void sn_recording_note_kin(sn_recording *rec, uint32_t i);            /* of kept; there is room */
sn_value sn_recording_kept_leaf(const sn_recording *rec, sn_value v); /* SN_NO_VALUE: none */
sn_value sn_recording_kept_value(const sn_recording *rec, sn_value leaf); /* the same */
/* Bytes for a value that tapes want a gradient of; the leaf holds them, too. */
SNUG_CHECKED snug_status sn_recording_stand_in(sn_recording *rec, sn_value value, sn_storage *s,
                                               size_t offset, sn_value *leaf, snug_error *err);
/* Bytes for a VERSION handle that tapes watch; they stay the variable's to them. */
SNUG_CHECKED snug_status sn_recording_version(sn_recording *rec, snug_tensor *t, sn_storage *s,
                                              snug_error *err);
/* What the tensor is in the call under way: used, and not linked yet. */
bool sn_record_given(const snug_recorder *r, const snug_tensor *t, sn_value *out);
/* The node that makes such numbers. */
sn_value sn_build_recipe(sn_builder *b, const snug_type *type, const sn_recipe *recipe);

/* --- record.c, record_tape.c ------------------------------------------------------------------ */
/* A closed recorder goes with its last handle. */
void sn_recorder_let_go(snug_recorder *r);
/* Its tapes that are active and watch see it from now on. */
SNUG_CHECKED snug_status sn_record_watch(snug_recorder *r, snug_variable *v, snug_error *err);
SNUG_CHECKED snug_status sn_recording_echo(sn_recording *rec, const sn_echo *echo, snug_error *err);
/* Those whose values are not there any more. */
void sn_recording_drop_echoes(sn_recording *rec, size_t n_values);
snug_status sn_variable_torn(const snug_variable *v, snug_error *err);
/* The tape has seen this variable; and the tapes that watch it. */
SNUG_CHECKED snug_status sn_tape_note(snug_tape *t, snug_variable *v, snug_error *err);
/* Those that are active and see what is read of it. */
SNUG_CHECKED snug_status sn_tapes_of_variable(snug_recorder *r, const snug_variable *v,
                                              uint32_t *out, snug_error *err);
/* Tells which operands and results of nodes from `first` on must outlive this run for them; how
 * many of these nodes they see. */
uint32_t sn_tape_wants(const sn_recording *rec, uint32_t first, void (*want)(void *ctx, sn_value v),
                       void *ctx);
/* Takes the nodes that open tapes see along into a fresh recording; stored[v] is where the bytes of
 * value v are now, NULL: nowhere. */
SNUG_CHECKED snug_status sn_tape_keep(const sn_recording *rec, const sn_leaf *stored,
                                      sn_recording *fresh, snug_error *err);
/* The same in place: the recording goes on with its nodes. `at` is where result's bytes are; and
 * then what is of this run becomes of the past, without leaves that nobody needs, unless all are
 * tiny. */
SNUG_CHECKED snug_status sn_tape_stand_in(sn_recording *rec, sn_value result, const sn_leaf *at,
                                          snug_error *err);
SNUG_CHECKED snug_status sn_tape_stay(sn_recording *rec, bool tiny, snug_error *err);
/* Bytes that were brought for tapes and that none of them needs any more go. */
SNUG_CHECKED snug_status sn_tape_prune(sn_recording *rec, snug_error *err);
/* Its arrays cover all values and nodes of the graph. */
SNUG_CHECKED snug_status sn_recording_cover(sn_recording *rec, snug_error *err);
/* A leaf on bytes that are there. */
SNUG_CHECKED snug_status sn_recording_bytes(sn_recording *rec, const snug_type *type, sn_storage *s,
                                            size_t offset, sn_value *out, snug_error *err);

/* --- record_sets.c: marks --------------------------------------------------------------------- */
/* A number that no tape has, from SN_FEW_TAPES on. */
SNUG_CHECKED snug_status sn_sets_take_number(snug_recorder *r, uint32_t *out, snug_error *err);
void sn_sets_give_number(snug_recorder *r, uint32_t number);
void sn_tape_set_open(snug_tape *t, bool open);
SNUG_CHECKED snug_status sn_sets_add(snug_recorder *r, uint32_t *mark, uint32_t more,
                                     snug_error *err);
SNUG_CHECKED snug_status sn_sets_of_tape(const snug_tape *t, uint32_t *out, snug_error *err);
/* The first tapes of `few`, and of those without a bit that are active the ones that are picked. */
typedef bool (*sn_tape_pick)(const snug_tape *t, const void *ctx);
SNUG_CHECKED snug_status sn_sets_of_active(snug_recorder *r, uint32_t few, sn_tape_pick pick,
                                           const void *ctx, uint32_t *out, snug_error *err);
uint32_t sn_sets_few(const snug_recorder *r, uint32_t mark); /* bits of the first tapes */
bool sn_sets_have(const snug_recorder *r, uint32_t mark, uint32_t number);
/* Whether an open tape is in the mark that is not in the other one. */
bool sn_sets_open_beside(const snug_recorder *r, uint32_t mark, uint32_t but);
void sn_sets_forget(snug_recorder *r, uint32_t number);
/* Marks lose all tapes that were dropped, whose numbers can be taken again; not while a plan
 * runs. */
void sn_sets_forget_gone(snug_recorder *r);
/* Sets that nobody has go; not in the middle of a call. */
void sn_sets_collect(snug_recorder *r);
void sn_sets_tidy(snug_recorder *r); /* the same where there are many, or no tapes that need them */
void sn_sets_clear(snug_recorder *r);
/* The handle has this mark. */
void sn_tensor_see(snug_tensor *t, uint32_t mark);

/* Without sets these are what they are of bits. */
SNUG_CHECKED static inline snug_status sn_marks_add(snug_recorder *r, uint32_t *mark, uint32_t more,
                                                    snug_error *err) {
    if ((*mark | more) & SN_MANY && *mark != more)
        return sn_sets_add(r, mark, more, err);
    *mark |= more;
    return SNUG_OK;
}

static inline bool sn_marks_have(const snug_recorder *r, uint32_t mark, uint32_t number) {
    return mark & SN_MANY ? sn_sets_have(r, mark, number)
                          : number < SN_FEW_TAPES && (mark >> number & 1);
}

/* Whether an open tape sees it. */
static inline bool sn_marks_open(const snug_recorder *r, uint32_t mark) {
    return mark & SN_MANY ? sn_sets_open_beside(r, mark, 0) : (mark & r->open_tapes) != 0;
}

/* --- record_seat.c ---------------------------------------------------------------------------- */
SNUG_CHECKED snug_status sn_seat_add(snug_recorder *r, uint64_t thread, sn_seat **out,
                                     snug_error *err);
/* Another one sits from now on; gives the one before. */
sn_seat *sn_seat_take(snug_recorder *r, sn_seat *s);
sn_recording *sn_seat_main(const snug_recorder *r, const sn_seat *s);
sn_recording *sn_seat_now(const snug_recorder *r, const sn_seat *s);
/* Runs the recording of whichever seat it is the open one of. */
SNUG_CHECKED snug_status sn_seat_flush(snug_recorder *r, const sn_recording *rec, snug_error *err);
SNUG_CHECKED snug_status sn_seat_flush_all(snug_recorder *r, snug_error *err);
/* Runs what other seats have recorded with the variable, or only who writes it. */
void sn_seat_settle(snug_recorder *r, const snug_variable *v, bool writers_only);
void sn_seat_clear(snug_recorder *r);

/* --- record_open.c ---------------------------------------------------------------------------- */
int64_t sn_open_extent(int k); /* what stands for it */
typedef struct {
    int n;
    int64_t size[SN_MAX_OPEN]; /* of a call */
} sn_open_sizes;
typedef enum { SN_OPEN_NO, SN_OPEN_YES, SN_OPEN_UNCLEAR } sn_open_kind;
/* Whether the number follows from open extents, and what it is with these sizes. */
sn_open_kind sn_open_read(const sn_open_sizes *s, int64_t w, int64_t *out);
bool sn_open_real(const sn_open_sizes *s, double r, double *out);
/* The same of a tensor of integers that was made in this trace. */
sn_open_kind sn_open_tensor(const sn_recording *rec, const snug_tensor *t);
SNUG_CHECKED snug_status sn_open_fill(const sn_open_sizes *s, const snug_tensor *t,
                                      snug_tensor **out, snug_error *err);

/* --- record_window.c -------------------------------------------------------------------------- */
/* Takes out what this run needs of what has come since the last one, where that can run alone. */
SNUG_CHECKED snug_status sn_window_open(sn_recording *rec, sn_window *w, snug_error *err);
void sn_window_close(snug_recorder *r, sn_window *w);

/* --- record_settle.c -------------------------------------------------------------------------- */
typedef struct {
    sn_recording *whole, *fresh; /* that was open, and that took its place */
    const sn_window *window;
    const sn_leaf *stored; /* per value of what ran: where its bytes are; NULL: there are none */
    uint32_t n_seen;       /* nodes that tapes see, where it ran as a whole */
    bool direct;           /* without a plan */
} sn_ran;
/* Whether the recording goes on with its nodes: then it must be open again. */
bool sn_ran_may_stay(const sn_ran *u);
SNUG_CHECKED snug_status sn_ran_stay(const sn_ran *u, snug_error *err);
/* Else what tapes see of it goes to the fresh one. */
SNUG_CHECKED snug_status sn_ran_move(const sn_ran *u, snug_error *err);

/* --- record_inline.c -------------------------------------------------------------------------- */
/* Variables that nobody can reach become the numbers they would start with. */
SNUG_CHECKED snug_status sn_recording_inline(sn_recording *rec, snug_error *err);

/* --- record_direct.c -------------------------------------------------------------------------- */
/* Whether so many so small values are better run without a plan. */
bool sn_direct_fits(const sn_recording *rec);
enum { SN_DIRECT_BYTES = 64 }; /* of a value, at most */
/* Bytes for each; storage: per value of the list, held. */
SNUG_CHECKED snug_status sn_direct_store(const sn_recording *rec, const sn_direct_values *values,
                                         sn_storage **storage, snug_error *err);
/* failed: the node that an error came from, where it came from one. */
SNUG_CHECKED snug_status sn_direct_run(const sn_recording *rec, const sn_direct_values *values,
                                       sn_node *failed, snug_error *err);

/* --- sides ------------------------------------------------------------------------------------ */
/* Large leaves may stay on the host, and be fed by the plan; and what else makes room. */
typedef struct {
    bool (*may_stay)(const sn_storage *s); /* its bytes lie on the host alone */
    snug_status (*leave)(snug_recorder *r, sn_storage *s,
                         snug_error *err);               /* they do from now on */
    bool (*left)(const snug_recorder *r, size_t *bytes); /* arenas included; false: unknown */
    /* Large storages that are on the host, too, but those that `keeps` says yes to, leave; whether
     * there were any. */
    bool (*drop_doubles)(snug_recorder *r, bool (*keeps)(const void *ctx, const sn_storage *s),
                         const void *ctx);
    /* All plans, *found too, with what they have there (arenas, parameters, captured runs): room
     * for another one. Whether there was any. */
    bool (*drop_plans)(snug_recorder *r, sn_entry **found);
} sn_feeding;

/* THE table of where recorded steps run and what they read and make lies: the host
 * (record_cache.c), and a card beside it (record_card.c). Values move to the side of the step that
 * reads them. */
typedef struct sn_side {
    uint64_t word;           /* of keys: plans of one side serve no other */
    bool counts_steps;       /* of plans: they come out of the room, too */
    bool in_process;         /* what arenas take here is the process' */
    bool keeps;              /* bytes of large results wait for the next run's */
    const sn_feeding *feeds; /* leaves that are too large for it; NULL: they are brought whole */
    const sn_device *(*device)(const snug_recorder *r);
    sn_executor *(*executor)(const snug_recorder *r);

    /* --- bytes --- */
    unsigned char *(*bytes)(const sn_storage *s); /* NULL: it has none here */
    snug_status (*create)(snug_recorder *r, sn_category cat, size_t bytes, sn_storage **out,
                          snug_error *err);
    snug_status (*bring)(snug_recorder *r, sn_storage *s, snug_error *err); /* all of it */
    snug_status (*copy_part)(snug_recorder *r, const sn_storage *from, size_t offset,
                             const sn_storage *to, snug_error *err);
    bool (*reads_from)(size_t offset); /* whether kernels read a part that begins there */
    size_t (*taken)(const snug_recorder *r, size_t bytes); /* of the memory here, by a storage */
    void (*wrote)(snug_recorder *r, sn_storage *s);        /* a run has written its bytes here */
    /* A new tensor's bytes go here at once; false: they are to lie on the host as all others. */
    bool (*copy)(snug_recorder *r, const snug_type *type, const void *data, snug_tensor **out);

    /* --- plans --- */
    /* Bytes an arena may have when `extra` more are taken first; 0: no limit. */
    snug_status (*find_room)(snug_recorder *r, const sn_recording *rec, size_t extra, size_t *room,
                             snug_error *err);
    void (*keep_within)(snug_recorder *r, size_t room); /* plans and arenas that are larger go */
    snug_status (*plan)(snug_recorder *r, const sn_room_ask *ask, sn_entry *e, sn_room_made *made,
                        snug_error *err);
    snug_status (*refuse)(const snug_recorder *r, const sn_recording *rec,
                          const sn_plan_floor *floor, size_t extra, snug_error *err);

    /* --- runs --- */
    snug_status (*prepare)(snug_recorder *r, const sn_entry *e, snug_error *err);
    void (*before)(snug_recorder *r, sn_session *s);
    void (*after)(snug_recorder *r, bool went_well);
} sn_side;

extern const sn_side sn_host_side;

/* --- record_card.c ---------------------------------------------------------------------------- */
/* The engine's GPU as the other side, where it has one. */
SNUG_CHECKED snug_status sn_card_open(snug_recorder *r, const sn_executor_options *o,
                                      snug_error *err);
void sn_card_stop(snug_recorder *r);  /* nothing runs there any more */
void sn_card_close(snug_recorder *r); /* when no tensor is left */
void sn_card_trim(snug_recorder *r);  /* plans of it are gone: arenas and free chunks go */

/* --- record_flush.c, record_cache.c ----------------------------------------------------------- */
SNUG_CHECKED snug_status sn_flush(snug_recorder *r, snug_error *err);
/* The plan of a recording whose outputs are named; makes it when there is none at hand. */
SNUG_CHECKED snug_status sn_cache_find(snug_recorder *r, const sn_recording *rec,
                                       const sn_side *side, size_t extra, sn_entry **out,
                                       snug_error *err);
/* Whether that would find one at hand. */
bool sn_cache_has(snug_recorder *r, const sn_recording *rec, const sn_side *side, size_t extra);
void sn_cache_clear(snug_recorder *r);
/* A plan that there was no memory for: the arena is as large as the largest plan at hand wants it,
 * and nothing else could run. */
void sn_cache_drop(snug_recorder *r, sn_entry *entry);
/* Other plans of the side go that want an arena of so many bytes, or more. */
void sn_cache_keep(snug_recorder *r, const sn_side *side, const sn_entry *only, size_t least);
/* What an update at the end of this step will take for slots. */
size_t sn_cache_slots(const snug_recorder *r);
/* Bytes that are left beside all but the results, which take `extra`. */
size_t sn_cache_left(const sn_share *share, size_t extra);
/* The largest value that some node of the recording makes: what it is, and where. */
const char *sn_cache_largest(const sn_recording *rec, char *text, size_t size);

#endif
