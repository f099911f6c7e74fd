/* A scan: some threads read directories ahead, the caller takes their frames in tree order.
 *
 * What waits is taken in tree order too, so the threads work right ahead of the caller.  They stop
 * when AHEAD bytes are ready.  The caller never waits for what nobody has begun: it reads that
 * directory itself, so a scan ends whatever the threads do, or if none could be started.
 */
#define _GNU_SOURCE
#include "scanner.h"

#include <errno.h>
#include <fcntl.h>
#include <locale.h>
#include <pthread.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "directory.h"
#include "nodes.h"
#include "opening.h"

#define AHEAD (16u << 20)       /* bytes that may be ready before the caller asks for them */
#define BATCH (256u << 10)      /* bytes handed out at once, unless one frame is larger */
#define STACK (1u << 20)        /* of a thread: the C library's name look-ups need some */
#define THREADS_MAX 64
#define STEAL (64u << 10)       /* frames from this size on are moved, not copied */

struct huai_scan {
    struct tree tree;
    struct owner_table owners;
    locale_t plain; /* the C locale: patterns match bytes, whatever the environment says */
    pthread_mutex_t lock;
    pthread_cond_t work, done;
    /* Everything below belongs to `lock`. */
    struct queue queue;
    struct node *root;     /* until it was consumed */
    struct node *position; /* the directory whose subdirectories are being consumed */
    size_t ready;          /* bytes of frames and names that were not consumed */
    unsigned idle;         /* threads without work */
    bool caller_waits, stopping;
    int error;
    /* Everything below belongs to the caller. */
    pthread_t threads[THREADS_MAX];
    unsigned thread_count;
    struct scratch scratch;
    struct buffer batch, lent;
};

static bool may_claim(const struct huai_scan *scan)
{
    return scan->queue.count && scan->ready < AHEAD && !scan->error;
}

static void fail(struct huai_scan *scan)
{
    scan->error = ENOMEM;
    pthread_cond_broadcast(&scan->work);
    pthread_cond_signal(&scan->done);
}

/* The first waiting directory, now ours; NULL after a failure. */
static struct node *claim(struct huai_scan *scan)
{
    struct node *node = queue_take(&scan->queue);
    node->state = RUNNING;
    if (node->parent && !node_queue_next(node->parent, &scan->queue)) {
        fail(scan);
        return NULL;
    }
    if (scan->idle && may_claim(scan))
        pthread_cond_signal(&scan->work);
    return node;
}

/* Move what a small or large buffer holds into `to`, leaving `from` empty. */
static bool keep(struct buffer *to, struct buffer *from)
{
    if (from->used >= STEAL) {
        void *data = realloc(from->data, from->used); /* trims; failing to is no failure */
        *to = (struct buffer){data ? data : from->data, from->used, from->used};
        *from = (struct buffer){0};
        return true;
    }
    *to = (struct buffer){0};
    if (!from->used)
        return true;
    to->data = malloc(from->used);
    if (!to->data)
        return false;
    memcpy(to->data, from->data, from->used);
    to->used = to->room = from->used;
    return true;
}

static bool set_path(struct scratch *scratch, const struct node *node)
{
    scratch->path.used = 0;
    if (!buffer_append(&scratch->path, node->path, node->length + 1))
        return false;
    for (size_t i = 0; i < node->length; i++)
        if (!scratch->path.data[i])
            scratch->path.data[i] = '/';
    scratch->directory_length = node->length;
    return true;
}

/* Read a claimed directory.  Called with the lock held, which is free meanwhile. */
static void work_on(struct huai_scan *scan, struct scratch *scratch, struct node *node)
{
    pthread_mutex_unlock(&scan->lock);
    bool complete = set_path(scratch, node) && !read_directory(&scan->tree, scratch) &&
                    keep(&node->frame, &scratch->frame) && keep(&node->names, &scratch->children);
    pthread_mutex_lock(&scan->lock);
    node->state = DONE;
    scan->ready += sizeof *node + node->frame.used + node->names.used;
    if (!complete || !node_queue_next(node, &scan->queue)) {
        fail(scan);
        return;
    }
    if (scan->idle && may_claim(scan))
        pthread_cond_signal(&scan->work);
    if (scan->caller_waits)
        pthread_cond_signal(&scan->done);
}

static void *run_thread(void *argument)
{
    struct huai_scan *scan = argument;
    struct scratch scratch = {0};
    uselocale(scan->plain);
    pthread_mutex_lock(&scan->lock);
    while (!scan->stopping && !scan->error) {
        if (may_claim(scan)) {
            struct node *node = claim(scan);
            if (node)
                work_on(scan, &scratch, node);
            continue;
        }
        scan->idle++;
        pthread_cond_wait(&scan->work, &scan->lock);
        scan->idle--;
    }
    pthread_mutex_unlock(&scan->lock);
    uselocale(LC_GLOBAL_LOCALE);
    scratch_free(&scratch);
    return NULL;
}

/* Fewer threads than asked for are a slower scan, no error.  Signals stay with the caller's thread. */
static void start_threads(struct huai_scan *scan, unsigned count)
{
    pthread_attr_t attributes;
    sigset_t all, before;
    if (pthread_attr_init(&attributes))
        return;
    pthread_attr_setstacksize(&attributes, STACK);
    sigfillset(&all);
    pthread_sigmask(SIG_SETMASK, &all, &before);
    while (scan->thread_count < count && scan->thread_count < THREADS_MAX) {
        pthread_t *thread = scan->threads + scan->thread_count;
        if (pthread_create(thread, &attributes, run_thread, scan))
            break;
        scan->thread_count++;
    }
    pthread_sigmask(SIG_SETMASK, &before, NULL);
    pthread_attr_destroy(&attributes);
}

static int prepare(struct huai_scan *scan, const char *root)
{
    struct stat status;
    scan->tree.root = open(root, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    if (scan->tree.root < 0 || fstat(scan->tree.root, &status))
        return errno;
    scan->tree.device = status.st_dev;
    scan->tree.quick = opening_is_quick(scan->tree.root);
    scan->plain = newlocale(LC_ALL_MASK, "C", (locale_t)0);
    if (!scan->plain)
        return errno;
    scan->root = node_make(NULL, "", 0);
    return scan->root && queue_add(&scan->queue, scan->root) ? 0 : ENOMEM;
}

struct huai_scan *huai_scan_open(const char *root, const struct huai_options *options, int *error)
{
    struct huai_scan *scan = calloc(1, sizeof *scan);
    if (!scan) {
        *error = ENOMEM;
        return NULL;
    }
    owners_init(&scan->owners);
    pthread_mutex_init(&scan->lock, NULL);
    pthread_cond_init(&scan->work, NULL);
    pthread_cond_init(&scan->done, NULL);
    scan->tree = (struct tree){.options = options, .owners = &scan->owners, .root = -1};
    *error = prepare(scan, root);
    if (*error) {
        huai_scan_close(scan);
        return NULL;
    }
    start_threads(scan, options->threads - 1); /* the caller is one of them */
    return scan;
}

/* Wait until `node` was read, reading what waits meanwhile.  False after a failure. */
static bool complete(struct huai_scan *scan, struct node *node)
{
    while (!scan->error && node->state != DONE) {
        if (node->state == WAITING || may_claim(scan)) {
            /* Nothing waits before the next node in tree order: the queue hands out that one. */
            struct node *claimed = claim(scan);
            if (claimed)
                work_on(scan, &scan->scratch, claimed);
            continue;
        }
        scan->caller_waits = true;
        pthread_cond_wait(&scan->done, &scan->lock);
        scan->caller_waits = false;
    }
    return !scan->error;
}

/* The next node in tree order, not consumed yet; NULL at the end. */
static struct node *next_node(struct huai_scan *scan)
{
    if (scan->root)
        return scan->root;
    while (scan->position && !scan->position->first) {
        struct node *parent = scan->position->parent;
        node_free(scan->position);
        scan->position = parent;
    }
    return scan->position ? scan->position->first : NULL;
}

/* Its frame was taken: go on with what lies below it, or after it. */
static void consume(struct huai_scan *scan, struct node *node)
{
    scan->ready -= sizeof *node + node->frame.used + node->names.used;
    scan->root = NULL;
    node_unlink(node);
    buffer_free(&node->frame);
    if (node->first)
        scan->position = node;
    else
        node_free(node);
}

/* Fill the batch, or lend one frame that is larger than a batch. */
static void collect(struct huai_scan *scan)
{
    struct node *node;
    while ((node = next_node(scan)) && complete(scan, node)) {
        if (scan->batch.used && node->frame.used > BATCH - scan->batch.used)
            return;
        if (node->frame.used > BATCH) {
            scan->lent = node->frame;
            scan->ready -= node->frame.used;
            node->frame = (struct buffer){0};
            consume(scan, node);
            return;
        }
        if (!buffer_append(&scan->batch, node->frame.data, node->frame.used)) {
            fail(scan);
            return;
        }
        consume(scan, node);
    }
}

const void *huai_scan_next(struct huai_scan *scan, size_t *length, int *error)
{
    locale_t before = uselocale(scan->plain);
    scan->batch.used = 0;
    buffer_free(&scan->lent);
    pthread_mutex_lock(&scan->lock);
    collect(scan);
    if (scan->idle && may_claim(scan))
        pthread_cond_signal(&scan->work);
    *error = scan->error;
    pthread_mutex_unlock(&scan->lock);
    int refused = *error ? owners_failure(&scan->owners) : 0;
    if (refused)
        *error = -refused;
    uselocale(before);
    const struct buffer *filled = scan->lent.used ? &scan->lent : &scan->batch;
    *length = filled->used;
    return *error || !filled->used ? NULL : filled->data;
}

void huai_scan_close(struct huai_scan *scan)
{
    pthread_mutex_lock(&scan->lock);
    scan->stopping = true;
    pthread_cond_broadcast(&scan->work);
    pthread_mutex_unlock(&scan->lock);
    for (unsigned i = 0; i < scan->thread_count; i++)
        pthread_join(scan->threads[i], NULL);
    node_free(scan->root);
    while (scan->position) {
        struct node *parent = scan->position->parent;
        node_free(scan->position);
        scan->position = parent;
    }
    free(scan->queue.nodes);
    owners_free(&scan->owners);
    scratch_free(&scan->scratch);
    buffer_free(&scan->batch);
    buffer_free(&scan->lent);
    if (scan->plain)
        freelocale(scan->plain);
    if (scan->tree.root >= 0)
        close(scan->tree.root);
    pthread_cond_destroy(&scan->work);
    pthread_cond_destroy(&scan->done);
    pthread_mutex_destroy(&scan->lock);
    free(scan);
}
