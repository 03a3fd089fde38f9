#include "data/pickle.h"

#include <string.h>

/* The supported instructions, with Python's names. */
enum {
    MARK = '(',
    STOP = '.',
    BININT = 'J',
    BININT1 = 'K',
    BININT2 = 'M',
    BINUNICODE = 'X',
    EMPTY_DICT = '}',
    BINGET = 'h',
    LONG_BINGET = 'j',
    BINPUT = 'q',
    LONG_BINPUT = 'r',
    SETITEM = 's',
    SETITEMS = 'u',
    PROTO = 0x80,
    LONG1 = 0x8a,
    LONG4 = 0x8b,
    SHORT_BINUNICODE = 0x8c,
    BINUNICODE8 = 0x8d,
    MEMOIZE = 0x94,
    FRAME = 0x95,
    /* PICKLE_TORCH only. */
    NONE = 'N',
    NEWTRUE = 0x88,
    NEWFALSE = 0x89,
    BINFLOAT = 'G',
    EMPTY_LIST = ']',
    APPEND = 'a',
    APPENDS = 'e',
    LIST = 'l',
    DICT = 'd',
    EMPTY_TUPLE = ')',
    TUPLE = 't',
    TUPLE1 = 0x85,
    TUPLE2 = 0x86,
    TUPLE3 = 0x87,
    GLOBAL = 'c',
    STACK_GLOBAL = 0x93,
    REDUCE = 'R',
    BUILD = 'b',
    BINPERSID = 'Q',
};

enum { PROTOCOL_LEAST = 2, PROTOCOL_MOST = 5 };

/* Names for the message that refuses an instruction, for example because it imports or calls. */
static const struct {
    uint8_t code;
    const char *name;
} foreign[] = {
    {'c', "GLOBAL"},      {0x93, "STACK_GLOBAL"}, {'R', "REDUCE"},   {'b', "BUILD"},
    {'i', "INST"},        {'o', "OBJ"},           {0x81, "NEWOBJ"},  {0x92, "NEWOBJ_EX"},
    {'P', "PERSID"},      {'Q', "BINPERSID"},     {0x82, "EXT1"},    {0x83, "EXT2"},
    {0x84, "EXT4"},       {']', "EMPTY_LIST"},    {'a', "APPEND"},   {'e', "APPENDS"},
    {')', "EMPTY_TUPLE"}, {'t', "TUPLE"},         {'G', "BINFLOAT"},
};

/* The functions and classes that a file of tensors may refer to. */
static const struct pickle_name {
    const char *module, *name, *both;
} names[] = {
#define NAME(module, name)            \
    {                                 \
        module, name, module "." name \
    }
    NAME("collections", "OrderedDict"),
    NAME("torch._utils", "_rebuild_tensor_v2"),
    NAME("torch._utils", "_rebuild_parameter"),
    NAME("torch", "FloatStorage"),
    NAME("torch", "DoubleStorage"),
    NAME("torch", "BFloat16Storage"),
    NAME("torch", "HalfStorage"),
    NAME("torch", "IntStorage"),
    NAME("torch", "LongStorage"),
    NAME("torch", "ShortStorage"),
    NAME("torch", "CharStorage"),
    NAME("torch", "ByteStorage"),
    NAME("torch", "BoolStorage"),
#undef NAME
};

struct values {
    struct pickle_value *value;
    int count, capacity;
};

struct machine {
    const char *path;
    enum pickle_kind kind;
    const uint8_t *data;
    int64_t bytes, at; /* `at`: the next byte */
    int64_t begin;     /* the first byte of the current instruction */
    struct values stack, memo;
    int items; /* dictionaries and lists, and their entries and elements */
    struct arena *arena;
    bool stopped;
};

static enum status fail_at(const struct machine *m, const char *what)
{
    return fail(ST_FORMAT, "%s: byte %lld: %s", m->path, (long long)m->begin, what);
}

/* The next n <= 8 bytes as a little-endian number. */
static enum status take(struct machine *m, int n, uint64_t *ret)
{
    *ret = 0;
    if (n > m->bytes - m->at) return fail_at(m, "the file ends in the middle of an instruction");
    for (int i = 0; i < n; i++) *ret |= (uint64_t)m->data[m->at + i] << 8 * i;
    m->at += n;
    return ST_OK;
}

static enum status append(const struct machine *m, struct values *to, struct pickle_value v)
{
    if (to->count == PICKLE_ENTRIES_MOST) return fail_at(m, "it has too many values");
    ARENA_GROW(m->arena, to->value, to->count, to->capacity);
    to->value[to->count++] = v;
    return ST_OK;
}

static enum status push(struct machine *m, struct pickle_value v)
{
    return append(m, &m->stack, v);
}

static enum status push_number(struct machine *m, int bytes, bool is_signed)
{
    uint64_t bits;
    TRY(take(m, bytes, &bits));
    int unused = 64 - 8 * bytes;
    int64_t number = (int64_t)bits;
    if (is_signed && bytes) number = (int64_t)(bits << unused) >> unused;
    return push(m, (struct pickle_value){.type = PICKLE_NUMBER, .number = number});
}

/* Pushes an integer; the pickle has the number of its bytes, then the bytes. */
static enum status push_long(struct machine *m, int bytes_of_length)
{
    uint64_t n;
    TRY(take(m, bytes_of_length, &n));
    if (n > sizeof(int64_t)) return fail_at(m, "a number has more than 64 bits");
    return push_number(m, (int)n, true);
}

static enum status push_text(struct machine *m, int bytes_of_length)
{
    uint64_t n;
    TRY(take(m, bytes_of_length, &n));
    if (n > (uint64_t)(m->bytes - m->at)) return fail_at(m, "a text is longer than the file");
    const char *text = (const char *)m->data + m->at;
    m->at += (int64_t)n;
    return push(m, (struct pickle_value){.type = PICKLE_TEXT, .number = (int64_t)n, .text = text});
}

static enum status count_item(struct machine *m)
{
    return m->items++ < PICKLE_ENTRIES_MOST ? ST_OK : fail_at(m, "it has too many entries");
}

static enum status push_dict(struct machine *m)
{
    struct pickle_dict *d = ARENA_NEW(m->arena, struct pickle_dict, 1);
    TRY(push(m, (struct pickle_value){.type = PICKLE_DICT, .dict = d}));
    return count_item(m);
}

/* Stores the top of the stack in the memo. The memo is a list, because pickle numbers its entries
 * from 0 on. */
static enum status remember(struct machine *m, uint64_t index)
{
    const struct values *s = &m->stack;
    if (!s->count || s->value[s->count - 1].type == PICKLE_MARK)
        return fail_at(m, "there is no value to remember");
    if (index > (uint64_t)m->memo.count) return fail_at(m, "remembered values are out of order");
    if (index == (uint64_t)m->memo.count) return append(m, &m->memo, s->value[s->count - 1]);
    m->memo.value[index] = s->value[s->count - 1];
    return ST_OK;
}

static enum status recall(struct machine *m, int bytes)
{
    uint64_t index;
    TRY(take(m, bytes, &index));
    if (index >= (uint64_t)m->memo.count) return fail_at(m, "a value was not remembered before");
    return push(m, m->memo.value[index]);
}

static enum status add_item(struct machine *m, struct pickle_dict *d, const struct pickle_value *v)
{
    if (v[0].type == PICKLE_DICT) return fail_at(m, "a key is a dictionary");
    if (v[0].type == PICKLE_LIST || v[0].type == PICKLE_CALL || v[0].type == PICKLE_PERSISTENT)
        return fail_at(m, "a key is neither a text nor a number");
    TRY(count_item(m));
    ARENA_GROW(m->arena, d->item, d->count, d->capacity);
    d->item[d->count++] = (struct pickle_item){v[0], v[1]};
    return ST_OK;
}

/* Moves the values from `first` on, in pairs, into the dictionary at `dict`. */
static enum status set_items(struct machine *m, int dict, int first)
{
    struct values *s = &m->stack;
    if (dict < 0 || s->value[dict].type != PICKLE_DICT || (s->count - first) % 2)
        return fail_at(m, "entries do not belong to a dictionary");
    for (int i = first; i < s->count; i++)
        if (s->value[i].type == PICKLE_MARK) return fail_at(m, "a mark is not a value");
    for (int i = first; i < s->count; i += 2) TRY(add_item(m, s->value[dict].dict, &s->value[i]));
    s->count = dict + 1;
    return ST_OK;
}

static enum status find_mark(const struct machine *m, int *ret)
{
    int mark = m->stack.count - 1;
    while (mark >= 0 && m->stack.value[mark].type != PICKLE_MARK) mark--;
    *ret = mark;
    return mark < 0 ? fail_at(m, "there is no mark") : ST_OK;
}

static enum status set_marked(struct machine *m)
{
    int mark;
    TRY(find_mark(m, &mark));
    return set_items(m, mark - 1, mark + 1);
}

static enum status check_protocol(struct machine *m)
{
    uint64_t version;
    TRY(take(m, 1, &version));
    if (version >= PROTOCOL_LEAST && version <= PROTOCOL_MOST) return ST_OK;
    return fail(ST_FORMAT, "%s: a pickle of protocol %d; only 2 to 5 are read", m->path,
                (int)version);
}

static enum status stop(struct machine *m)
{
    if (m->stack.count != 1 || m->stack.value[0].type == PICKLE_MARK)
        return fail_at(m, "the pickle ends without a single value");
    if (m->at != m->bytes) return fail_at(m, "the file goes on after the end of the pickle");
    m->stopped = true;
    return ST_OK;
}

static enum status refuse(const struct machine *m, uint8_t code)
{
    const char *name = "";
    for (int i = 0; i < COUNT_OF(foreign); i++)
        if (foreign[i].code == code) name = foreign[i].name;
    return fail(ST_FORMAT,
                "%s: byte %lld is the instruction 0x%02x%s%s, which no %s needs: Strobe runs no "
                "code that a file contains",
                m->path, (long long)m->begin, code, *name ? " " : "", name,
                m->kind == PICKLE_TORCH ? "checkpoint of tensors"
                                        : "dictionary of texts and numbers");
}

/* --- instructions of PICKLE_TORCH ------------------------------------------------------------ */

/* *ret: the top n values of the stack, none of which may be a mark. */
static enum status top(const struct machine *m, int n, struct pickle_value **ret)
{
    const struct values *s = &m->stack;
    *ret = s->value;
    if (s->count < n) return fail_at(m, "an instruction lacks values");
    *ret = s->value + s->count - n;
    for (int i = 0; i < n; i++)
        if ((*ret)[i].type == PICKLE_MARK) return fail_at(m, "a mark is not a value");
    return ST_OK;
}

/* Replaces the values on the stack from `first` on by one value. */
static enum status replace(struct machine *m, int first, struct pickle_value v)
{
    m->stack.count = first;
    return push(m, v);
}

/* Moves the values from `first` on into a list. */
static enum status move_to_list(struct machine *m, struct pickle_list *l, int first)
{
    struct values *s = &m->stack;
    for (int i = first; i < s->count; i++) {
        TRY(count_item(m));
        ARENA_GROW(m->arena, l->item, l->count, l->capacity);
        l->item[l->count++] = s->value[i];
    }
    s->count = first;
    return ST_OK;
}

/* Replaces the values from `first` on by a list or tuple of these values. mark = 1: the value at
 * `first` is a mark and does not belong to the list. */
static enum status make_list(struct machine *m, int first, int mark, bool is_tuple)
{
    TRY(count_item(m));
    struct pickle_list *l = ARENA_NEW(m->arena, struct pickle_list, 1);
    l->is_tuple = is_tuple;
    TRY(move_to_list(m, l, first + mark));
    return replace(m, first, (struct pickle_value){.type = PICKLE_LIST, .list = l});
}

static enum status make_tuple(struct machine *m, int n)
{
    struct pickle_value *v;
    TRY(top(m, n, &v));
    return make_list(m, m->stack.count - n, 0, true);
}

static enum status make_marked_list(struct machine *m, bool is_tuple)
{
    int mark;
    TRY(find_mark(m, &mark));
    return make_list(m, mark, 1, is_tuple);
}

static enum status make_marked_dict(struct machine *m)
{
    int mark;
    TRY(find_mark(m, &mark));
    TRY(count_item(m));
    struct pickle_dict *d = ARENA_NEW(m->arena, struct pickle_dict, 1);
    m->stack.value[mark] = (struct pickle_value){.type = PICKLE_DICT, .dict = d};
    return set_items(m, mark, mark + 1);
}

/* Appends the values from `first` on to the list at `list`. */
static enum status append_items(struct machine *m, int list, int first)
{
    struct values *s = &m->stack;
    if (list < 0 || s->value[list].type != PICKLE_LIST || s->value[list].list->is_tuple)
        return fail_at(m, "elements do not belong to a list");
    TRY(move_to_list(m, s->value[list].list, first));
    s->count = list + 1;
    return ST_OK;
}

static enum status append_one(struct machine *m)
{
    struct pickle_value *v;
    TRY(top(m, 2, &v));
    return append_items(m, m->stack.count - 2, m->stack.count - 1);
}

static enum status append_marked(struct machine *m)
{
    int mark;
    TRY(find_mark(m, &mark));
    return append_items(m, mark - 1, mark + 1);
}

static enum status push_real(struct machine *m)
{
    uint64_t bits;
    TRY(take(m, 8, &bits));
    bits = __builtin_bswap64(bits);
    struct pickle_value v = {.type = PICKLE_REAL};
    memcpy(&v.real, &bits, sizeof bits);
    return push(m, v);
}

static bool equals(const char *text, int64_t n, const char *expected)
{
    return n == (int64_t)strlen(expected) && !memcmp(text, expected, (size_t)n);
}

static enum status push_name(struct machine *m, const char *module, int64_t module_bytes,
                             const char *name, int64_t name_bytes)
{
    for (int i = 0; i < COUNT_OF(names); i++)
        if (equals(module, module_bytes, names[i].module) &&
            equals(name, name_bytes, names[i].name))
            return push(m, (struct pickle_value){.type = PICKLE_NAME, .text = names[i].both});
    bool is_class = name_bytes && *name >= 'A' && *name <= 'Z';
    return fail(ST_FORMAT,
                "%s: byte %lld imports %.*s.%.*s, which no checkpoint of tensors needs: Strobe "
                "runs no code that a file contains%s",
                m->path, (long long)m->begin, (int)min_i64(module_bytes, 80), module,
                (int)min_i64(name_bytes, 80), name,
                is_class ? "; if it is the class of a model, save model.state_dict() instead of "
                           "the model"
                         : "");
}

static enum status take_line(struct machine *m, const char **ret, int64_t *ret_bytes)
{
    const char *line = (const char *)m->data + m->at;
    const char *end = memchr(line, '\n', (size_t)(m->bytes - m->at));
    if (!end) return fail_at(m, "the file ends in the middle of an instruction");
    *ret = line;
    *ret_bytes = end - line;
    m->at += *ret_bytes + 1;
    return ST_OK;
}

static enum status import_lines(struct machine *m)
{
    const char *module = NULL, *name = NULL;
    int64_t module_bytes = 0, name_bytes = 0;
    TRY(take_line(m, &module, &module_bytes));
    TRY(take_line(m, &name, &name_bytes));
    return push_name(m, module, module_bytes, name, name_bytes);
}

static enum status import_values(struct machine *m)
{
    struct pickle_value *v;
    TRY(top(m, 2, &v));
    if (v[0].type != PICKLE_TEXT || v[1].type != PICKLE_TEXT)
        return fail_at(m, "the name of an import is not text");
    m->stack.count -= 2;
    return push_name(m, v[0].text, v[0].number, v[1].text, v[1].number);
}

/* Makes a value of the function's name and its arguments; calls nothing. */
static enum status reduce(struct machine *m)
{
    struct pickle_value *v;
    TRY(top(m, 2, &v));
    if (v[0].type != PICKLE_NAME || v[1].type != PICKLE_LIST || !v[1].list->is_tuple)
        return fail_at(m, "a call is not one of a name with a tuple");
    if (strcmp(v[0].text, names[0].both) != 0)
        return replace(
            m, m->stack.count - 2,
            (struct pickle_value){.type = PICKLE_CALL, .text = v[0].text, .list = v[1].list});
    if (v[1].list->count) return fail_at(m, "an OrderedDict is made with arguments");
    m->stack.count -= 2;
    TRY(push_dict(m));
    m->stack.value[m->stack.count - 1].dict->is_ordered = true;
    return ST_OK;
}

/* Ignores the fields of an OrderedDict, such as the _metadata of a state_dict. */
static enum status ignore_fields(struct machine *m)
{
    struct pickle_value *v;
    TRY(top(m, 2, &v));
    if (v[0].type != PICKLE_DICT || !v[0].dict->is_ordered)
        return fail_at(m, "fields belong to something else than an OrderedDict");
    m->stack.count--;
    return ST_OK;
}

static enum status make_persistent(struct machine *m)
{
    struct pickle_value *v;
    TRY(top(m, 1, &v));
    if (v->type != PICKLE_LIST || !v->list->is_tuple)
        return fail_at(m, "what is stored outside of the pickle is not named by a tuple");
    v->type = PICKLE_PERSISTENT;
    return ST_OK;
}

static enum status run_torch(struct machine *m, uint8_t code)
{
    switch (code) {
    case NONE:
        return push(m, (struct pickle_value){.type = PICKLE_NONE});
    case NEWTRUE:
    case NEWFALSE:
        return push(m, (struct pickle_value){.type = PICKLE_BOOL, .number = code == NEWTRUE});
    case BINFLOAT:
        return push_real(m);
    case EMPTY_LIST:
    case EMPTY_TUPLE:
        return make_list(m, m->stack.count, 0, code == EMPTY_TUPLE);
    case APPEND:
        return append_one(m);
    case APPENDS:
        return append_marked(m);
    case LIST:
    case TUPLE:
        return make_marked_list(m, code == TUPLE);
    case DICT:
        return make_marked_dict(m);
    case TUPLE1:
    case TUPLE2:
    case TUPLE3:
        return make_tuple(m, code - TUPLE1 + 1);
    case GLOBAL:
        return import_lines(m);
    case STACK_GLOBAL:
        return import_values(m);
    case REDUCE:
        return reduce(m);
    case BUILD:
        return ignore_fields(m);
    case BINPERSID:
        return make_persistent(m);
    default:
        return refuse(m, code);
    }
}

static enum status run_one(struct machine *m, uint8_t code)
{
    uint64_t n;
    switch (code) {
    case PROTO:
        return check_protocol(m);
    case FRAME:
        return take(m, 8, &n); /* the length of a frame, which is not needed */
    case MARK:
        return push(m, (struct pickle_value){.type = PICKLE_MARK});
    case EMPTY_DICT:
        return push_dict(m);
    case SHORT_BINUNICODE:
        return push_text(m, 1);
    case BINUNICODE:
        return push_text(m, 4);
    case BINUNICODE8:
        return push_text(m, 8);
    case BININT:
        return push_number(m, 4, true);
    case BININT1:
        return push_number(m, 1, false);
    case BININT2:
        return push_number(m, 2, false);
    case LONG1:
        return push_long(m, 1);
    case LONG4:
        return push_long(m, 4);
    case MEMOIZE:
        return remember(m, (uint64_t)m->memo.count);
    case BINPUT:
        TRY(take(m, 1, &n));
        return remember(m, n);
    case LONG_BINPUT:
        TRY(take(m, 4, &n));
        return remember(m, n);
    case BINGET:
        return recall(m, 1);
    case LONG_BINGET:
        return recall(m, 4);
    case SETITEM:
        return set_items(m, m->stack.count - 3, m->stack.count - 2);
    case SETITEMS:
        return set_marked(m);
    case STOP:
        return stop(m);
    default:
        return m->kind == PICKLE_TORCH ? run_torch(m, code) : refuse(m, code);
    }
}

enum status pickle_read(enum pickle_kind kind, const char *path, const char *data, int64_t bytes,
                        struct arena *a, struct pickle_value *ret)
{
    struct machine m = {
        .path = path, .kind = kind, .data = (const uint8_t *)data, .bytes = bytes, .arena = a};
    if (bytes > PICKLE_BYTES_MOST)
        return fail(ST_FORMAT, "%s has %lld bytes, more than %d", path, (long long)bytes,
                    PICKLE_BYTES_MOST);
    if (bytes < 2 || m.data[0] != PROTO)
        return fail(ST_FORMAT, "%s is not a pickle of protocol 2 to 5", path);
    while (!m.stopped) {
        uint64_t code;
        m.begin = m.at;
        if (m.at == bytes) return fail_at(&m, "the file ends before the pickle does");
        TRY(take(&m, 1, &code));
        TRY(run_one(&m, (uint8_t)code));
    }
    *ret = m.stack.value[0];
    return ST_OK;
}

const struct pickle_value *pickle_find(const struct pickle_value *d, const char *key)
{
    if (d->type != PICKLE_DICT) return NULL;
    for (int i = d->dict->count - 1; i >= 0; i--) {
        const struct pickle_item *item = &d->dict->item[i];
        if (item->key.type == PICKLE_TEXT && equals(item->key.text, item->key.number, key))
            return &item->value;
    }
    return NULL;
}
