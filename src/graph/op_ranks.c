/* Collectives: each works in place on a range of state that every rank has, with N elements.
 *
 * ALL_REDUCE: all ranks get the sum. REDUCE_SCATTER: rank r gets the sum in its shard; the other
 * elements of its range become undefined. ALL_GATHER: all ranks get every rank's shard. BROADCAST:
 * all ranks get the data of rank 0. group_shard (backend/communicator.h) defines shards. Costs are
 * those of ring algorithms, which transfer the fewest bytes possible (Patarasu and Yuan, 2009,
 * "Bandwidth optimal all-reduce algorithms for clusters of workstations"). */
#include "graph/graph.h"
#include "graph/op_rules.h"

enum status shape_range(struct node *n, const struct type *in, const struct type *given,
                        struct type *out)
{
    if (in[0].rank != 1) return fail(ST_USAGE, "a collective needs a range of one dimension");
    if (n->attr.group.ranks < 1) return fail(ST_USAGE, "a collective needs at least one rank");
    return shape_same(n, in, given, out);
}

static struct cost cost_of_link(const struct node *n, const struct type *in, double times)
{
    double ranks = n->attr.group.ranks;
    return (struct cost){.bytes = times * (ranks - 1) / ranks * (double)type_bytes(&in[0])};
}

struct cost cost_all_reduce(const struct node *n, const struct type *in, const struct type *)
{
    return cost_of_link(n, in, 2);
}

struct cost cost_shards(const struct node *n, const struct type *in, const struct type *)
{
    return cost_of_link(n, in, 1);
}

/* The bytes of a rank that receives the range and forwards it. */
struct cost cost_broadcast(const struct node *n, const struct type *in, const struct type *)
{
    double bytes = n->attr.group.ranks > 1 ? (double)type_bytes(&in[0]) : 0;
    return (struct cost){.bytes = bytes};
}
