/* The short way of `Run.log`, compiled: a row of plain numbers is written into a buffer.
 *
 * A call that is anything else (another kind of value, an x-axis, no step, a run that ended) goes
 * on to the method in Python unchanged. So this may refuse what it likes; what it takes must come
 * out of a flush as if the method had taken it, and in the same order: before the method is called,
 * and whenever the queue is read, the buffered rows are moved there.
 *
 * The buffer is there for the slowest calls: it is used again and again, so that hardly any call
 * meets memory for the first time, which costs a page fault and with it more than all the rest.
 *
 * Everything that changes the buffer or the queue runs under the interpreter's lock without any
 * Python code in between: no signal's handler and no other thread sees half a row. Code may run
 * where names are learnt, as garbage may be collected there, and in calls to the method and to
 * `catch_up`; nothing borrowed is kept across those.
 */
#define PY_SSIZE_T_CLEAN
#define Py_LIMITED_API 0x030b0000 /* one binary for CPython 3.11 and later; costs no speed here */
#include <Python.h>
#include <time.h>

#ifdef Py_GIL_DISABLED
#error "without that lock the buffer would need one of its own: build without this file"
#endif

#define FIELDS 4     /* of a row in the queue: step, time, packed values, names; as in batches.py */
#define ARGUMENTS 5  /* of Shortcut: an older build, which takes fewer, is not used */
#define LAYOUTS 16   /* tuples of names that are remembered: loops log a few, in turns */
#define WIDEST 256   /* numbers in a row: a wider one is worth the long way */
#define CELLS 32768  /* of the buffer: 1 s of 20 numbers at 1 kHz and some more */
#define HEADER 3     /* cells before a row's numbers: its layout, step, time */

typedef union {
    double number;
    long long whole;
} Cell;

typedef struct {
    PyObject *names; /* a tuple of exact str; NULL: none yet */
    PyObject **each; /* its items, borrowed from it: a dict's own are compared by address */
    Py_ssize_t width;
} Layout;

typedef struct {
    PyObject_HEAD
    PyObject *rows;     /* the queue, a list; NULL once stopped */
    Py_ssize_t limit;   /* items in the queue beyond which its reader is waited for */
    PyObject *catch_up; /* what waits for it */
    PyObject *method;   /* `Run.log` of the run */
    PyObject *scalars;  /* a tuple of the types of one number, numpy's among them */
    int recent, next;   /* the layout that fitted last, and the one that is forgotten first */
    Layout layouts[LAYOUTS];
    int used; /* cells */
    Cell buffer[CELLS];
} Shortcut;

enum fit { FITS, OTHER_NAMES, REFUSED };

/* Move the buffered rows to the queue, all or none. Returns -1 with an exception for none. */
static int
moved(Shortcut *self)
{
    Py_ssize_t before = self->used ? PyList_Size(self->rows) : 0;

    for (Cell *row = self->buffer, *end = row + self->used; row < end;) {
        Layout *layout = &self->layouts[row[0].whole];
        PyObject *fields[FIELDS] = {
            PyLong_FromLongLong(row[1].whole),
            PyFloat_FromDouble(row[2].number),
            PyBytes_FromStringAndSize((char *)(row + HEADER), layout->width * (int)sizeof(Cell)),
            Py_NewRef(layout->names),
        };
        int failed = 0;
        for (int i = 0; i < FIELDS; i++) {
            failed = failed || fields[i] == NULL || PyList_Append(self->rows, fields[i]) < 0;
            Py_XDECREF(fields[i]);
        }
        if (failed) {
            PyList_SetSlice(self->rows, before, PyList_Size(self->rows), NULL);
            return -1;
        }
        row += HEADER + layout->width;
    }
    self->used = 0;
    return 0;
}

static int
same(PyObject *name, PyObject *known)
{
    return name == known || (PyUnicode_CheckExact(name) && PyUnicode_Compare(name, known) == 0);
}

/* Write the number of a numpy scalar, for which no Python code runs. Returns -1 for others. Types
 * are compared by address: a metaclass may hash and compare as it likes. */
static int
written_scalar(PyObject *scalars, PyObject *value, Cell *cell)
{
    Py_ssize_t i = 0, count = PyTuple_Size(scalars);

    while (i < count && PyTuple_GetItem(scalars, i) != (PyObject *)Py_TYPE(value)) {
        i++;
    }
    PyObject *number = i < count ? PyNumber_Float(value) : NULL;
    if (number == NULL) {
        PyErr_Clear();
        return -1;
    }
    cell->number = PyFloat_AsDouble(number);
    Py_DECREF(number);
    return 0;
}

/* Write a row's numbers, if its names are the layout's, in order, and all values are plain. */
static enum fit
written(const Layout *layout, PyObject *scalars, PyObject *metrics, Cell *cells)
{
    PyObject *name, *value;
    Py_ssize_t at = 0, i = 0;

    if (PyDict_Size(metrics) != layout->width) {
        return OTHER_NAMES;
    }
    while (PyDict_Next(metrics, &at, &name, &value)) {
        if (!same(name, layout->each[i])) {
            return OTHER_NAMES;
        }
        if (PyFloat_CheckExact(value)) {
            cells[i].number = PyFloat_AsDouble(value);
        } else if (PyLong_CheckExact(value) || PyBool_Check(value)) {
            cells[i].number = PyLong_AsDouble(value);
            if (cells[i].number == -1.0 && PyErr_Occurred()) { /* beyond float64 */
                return REFUSED;
            }
        } else if (written_scalar(scalars, value, &cells[i]) < 0) {
            return REFUSED;
        }
        i++;
    }
    return FITS;
}

/* Remember a row's names in place of the oldest, and empty the buffer, whose rows may be of those.
 * Returns where; -1 if a name is no plain string, or if what ran meanwhile ended the run. */
static int
learnt(Shortcut *self, PyObject *metrics)
{
    PyObject *list = PyDict_Keys(metrics);
    PyObject *names = list == NULL ? NULL : PyList_AsTuple(list);
    Py_ssize_t width = names == NULL ? 0 : PyTuple_Size(names);
    PyObject **each = PyMem_Malloc((size_t)(width + 1) * sizeof(PyObject *));
    int usable = width > 0 && width <= WIDEST && each != NULL;

    Py_XDECREF(list);
    for (Py_ssize_t i = 0; usable && i < width; i++) {
        each[i] = PyTuple_GetItem(names, i);
        usable = PyUnicode_CheckExact(each[i]);
    }
    if (!usable || self->rows == NULL || moved(self) < 0) {
        PyMem_Free(each);
        Py_XDECREF(names);
        return -1;
    }
    int at = self->next;
    self->next = (at + 1) % LAYOUTS;
    Py_XDECREF(self->layouts[at].names); /* strings: nothing runs when they go */
    PyMem_Free(self->layouts[at].each);
    self->layouts[at] = (Layout){names, each, width};
    return at;
}

/* Write a row into the buffer. Returns -1 where it is not for us. */
static int
buffered(Shortcut *self, PyObject *given, PyObject *metrics)
{
    Py_ssize_t width = PyDict_Size(metrics);
    long long step = PyLong_AsLongLong(given);
    enum fit fit = OTHER_NAMES;
    struct timespec now;
    int at = 0;

    if (width < 1 || width > WIDEST || (step == -1 && PyErr_Occurred())) {
        return -1;
    }
    if (self->rows == NULL || (self->used + HEADER + width > CELLS && moved(self) < 0)) {
        return -1;
    }
    for (int i = 0; i < LAYOUTS && fit == OTHER_NAMES; i++) {
        at = (self->recent + i) % LAYOUTS;
        fit = written(&self->layouts[at], self->scalars, metrics,
                      self->buffer + self->used + HEADER);
    }
    if (fit == OTHER_NAMES) {
        at = learnt(self, metrics);
        if (at < 0) {
            return -1;
        }
        fit = written(&self->layouts[at], self->scalars, metrics,
                      self->buffer + HEADER); /* which is empty */
    }
    if (fit != FITS || timespec_get(&now, TIME_UTC) != TIME_UTC) {
        return -1;
    }
    Cell *row = self->buffer + self->used;
    row[0].whole = self->recent = at;
    row[1].whole = step;
    /* By way of whole nanoseconds, as `time.time` does it. */
    row[2].number = (double)(now.tv_sec * 1000000000LL + now.tv_nsec) / 1e9;
    self->used += HEADER + (int)self->layouts[at].width;
    return 0;
}

static PyObject *
by_the_method(Shortcut *self, PyObject *const *args, Py_ssize_t given, PyObject *keywords)
{
    Py_ssize_t named = keywords == NULL ? 0 : PyTuple_Size(keywords);
    PyObject *positional = PyTuple_New(given);
    PyObject *rest = PyDict_New();
    PyObject *returned = NULL;
    int failed = positional == NULL || rest == NULL;

    for (Py_ssize_t i = 0; !failed && i < given; i++) {
        PyTuple_SetItem(positional, i, Py_NewRef(args[i]));
    }
    for (Py_ssize_t i = 0; !failed && i < named; i++) {
        failed = PyDict_SetItem(rest, PyTuple_GetItem(keywords, i), args[given + i]) < 0;
    }
    if (!failed) {
        returned = PyObject_Call(self->method, positional, rest);
    }
    Py_XDECREF(positional);
    Py_XDECREF(rest);
    return returned;
}

/* Whether a call is `log(step, metrics)`, `log(metrics, step)` or `log(metrics, step=step)`: of the
 * last, the keyword's value lies where the second argument would. `turned` tells the last two. */
static int
ours(PyObject *const *args, Py_ssize_t given, PyObject *keywords, int *turned)
{
    Py_ssize_t named = keywords == NULL ? 0 : PyTuple_Size(keywords);

    if (given + named != 2 || given < 1) {
        return 0;
    }
    *turned = PyDict_CheckExact(args[0]);
    if (named && !(*turned && PyUnicode_CompareWithASCIIString(PyTuple_GetItem(keywords, 0),
                                                               "step") == 0)) {
        return 0;
    }
    return PyLong_CheckExact(args[*turned]) && PyDict_CheckExact(args[!*turned]);
}

static PyObject *
shortcut_log(PyObject *object, PyObject *const *args, Py_ssize_t given, PyObject *keywords)
{
    Shortcut *self = (Shortcut *)object;
    int turned = 0;

    if (!ours(args, given, keywords, &turned) ||
        buffered(self, args[turned], args[!turned]) < 0) {
        PyErr_Clear(); /* of a look that came to nothing */
        if (self->rows != NULL && moved(self) < 0) {
            PyErr_Clear(); /* no memory: they stay where they are */
        }
        return by_the_method(self, args, given, keywords);
    }
    /* The first row in an empty buffer: those before it have been moved to the queue. */
    if (self->used == HEADER + self->layouts[self->recent].width &&
        PyList_Size(self->rows) > self->limit) {
        return PyObject_CallNoArgs(self->catch_up);
    }
    Py_RETURN_NONE;
}

static PyObject *
shortcut_move(PyObject *object, PyObject *Py_UNUSED(ignored))
{
    Shortcut *self = (Shortcut *)object;

    if (self->rows != NULL && moved(self) < 0) {
        return NULL;
    }
    Py_RETURN_NONE;
}

static PyObject *
shortcut_stop(PyObject *object, PyObject *nothing)
{
    PyObject *done = shortcut_move(object, nothing);

    Py_CLEAR(((Shortcut *)object)->rows);
    return done;
}

/* What is pickled is the method: a run says itself why it cannot be sent to another process. */
static PyObject *
shortcut_reduce(PyObject *object, PyObject *Py_UNUSED(ignored))
{
    return PyObject_CallMethod(((Shortcut *)object)->method, "__reduce__", NULL);
}

static PyObject *
shortcut_new(PyTypeObject *type, PyObject *args, PyObject *keywords)
{
    static char *names[] = {"rows", "limit", "catch_up", "method", "scalars", NULL};
    PyObject *rows, *catch_up, *method, *scalars;
    Py_ssize_t limit;

    if (!PyArg_ParseTupleAndKeywords(args, keywords, "O!nOOO!:Shortcut", names, &PyList_Type, &rows,
                                     &limit, &catch_up, &method, &PyTuple_Type, &scalars)) {
        return NULL;
    }
    Shortcut *self = (Shortcut *)PyType_GenericAlloc(type, 0); /* zeroed */
    if (self != NULL) {
        self->rows = Py_NewRef(rows);
        self->limit = limit;
        self->catch_up = Py_NewRef(catch_up);
        self->method = Py_NewRef(method);
        self->scalars = Py_NewRef(scalars);
    }
    return (PyObject *)self;
}

/* A run holds this, and this the run's method. The run can let go, and it alone: so no call finds
 * the method gone, not even while garbage is collected. */
static int
shortcut_traverse(PyObject *object, visitproc visit, void *arg)
{
    Shortcut *self = (Shortcut *)object;

    Py_VISIT(Py_TYPE(object));
    Py_VISIT(self->rows);
    Py_VISIT(self->catch_up);
    Py_VISIT(self->method);
    Py_VISIT(self->scalars);
    return 0; /* names are strings: no way back from them */
}

static void
shortcut_dealloc(PyObject *object)
{
    Shortcut *self = (Shortcut *)object;
    PyTypeObject *type = Py_TYPE(object);

    PyObject_GC_UnTrack(object);
    Py_XDECREF(self->rows);
    Py_XDECREF(self->catch_up);
    Py_XDECREF(self->method);
    Py_XDECREF(self->scalars);
    for (int i = 0; i < LAYOUTS; i++) {
        Py_XDECREF(self->layouts[i].names);
        PyMem_Free(self->layouts[i].each);
    }
    PyObject_GC_Del(object);
    Py_DECREF(type);
}

PyDoc_STRVAR(log_doc,
    "log($self, step=None, metrics=None, /, *more, **named)\n--\n\n"
    "Record numbers at a step: Python's, numpy's, torch's; nested dicts join with \"/\".\n\n"
    "The compiled way of `rlvitals.tracking.run.Run.log`, which says more.");

static PyMethodDef methods[] = {
    {"log", (PyCFunction)(void (*)(void))shortcut_log, METH_FASTCALL | METH_KEYWORDS, log_doc},
    {"move", shortcut_move, METH_NOARGS, "Move the buffered rows to the queue."},
    {"stop", shortcut_stop, METH_NOARGS, "Move them, and leave every later call to the method."},
    {"__reduce__", shortcut_reduce, METH_NOARGS, NULL},
    {NULL, NULL, 0, NULL},
};

static PyType_Slot slots[] = {
    {Py_tp_doc, "Shortcut(rows, limit, catch_up, method, scalars)\n--\n\nTakes a run's plain rows."},
    {Py_tp_new, shortcut_new},
    {Py_tp_methods, methods},
    {Py_tp_traverse, shortcut_traverse},
    {Py_tp_dealloc, shortcut_dealloc},
    {0, NULL},
};

static PyType_Spec spec = {
    .name = "rlvitals.tracking.shortcut.Shortcut",
    .basicsize = sizeof(Shortcut),
    .flags = Py_TPFLAGS_DEFAULT | Py_TPFLAGS_HAVE_GC | Py_TPFLAGS_IMMUTABLETYPE,
    .slots = slots,
};

static int
filled(PyObject *module)
{
    PyObject *type = PyType_FromModuleAndSpec(module, &spec, NULL);
    int failed = type == NULL || PyModule_AddObjectRef(module, "Shortcut", type) < 0;

    Py_XDECREF(type);
    failed = failed || PyModule_AddIntConstant(module, "ARGUMENTS", ARGUMENTS) < 0;
    return failed ? -1 : PyModule_AddIntConstant(module, "FIELDS", FIELDS);
}

static PyModuleDef_Slot module_slots[] = {{Py_mod_exec, filled}, {0, NULL}};

static PyModuleDef module = {
    .m_base = PyModuleDef_HEAD_INIT,
    .m_name = "shortcut",
    .m_doc = "The short way of `Run.log`, compiled.",
    .m_slots = module_slots,
};

PyMODINIT_FUNC
PyInit_shortcut(void)
{
    return PyModuleDef_Init(&module);
}
