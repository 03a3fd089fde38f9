/* cases_chain.h - programs for the cases of CHAIN; a part of cases.c. */
#ifndef CHECK_CASES_CHAIN_H
#define CHECK_CASES_CHAIN_H

#include "graph/chain.h"

/* clang-format off */
#define IN(i)    {CHAIN_INPUT, i, 0}
#define OF(k)    {CHAIN_RESULT, k, 0}
#define JUST(x)  {CHAIN_CONSTANT, 0, x}
#define SHAPE(...) {DT_F32, (int)(sizeof((int64_t[]){__VA_ARGS__}) / sizeof(int64_t)), {__VA_ARGS__}}
#define DROPS(site) {.drop = {DROPOUT_POINTWISE, 51, 1337, site}}

/* Computes the clip coefficient from the squared norm of the gradient. */
static const struct chain clip_chain = {SHAPE(1), 4, 2, {
    {OP_SQRT, .operand = {IN(0)}},
    {OP_OFFSET, .attr = {.constant = {1e-6}}, .operand = {OF(0)}},
    {OP_DIV, .operand = {JUST(1), OF(1)}},
    {OP_AT_MOST, .attr = {.constant = {1}}, .operand = {OF(2)}}}, {0, 3}};

/* Has all kinds of broadcast, results that are used twice, and an output that a later step uses. */
#define ARITHMETIC(...) {SHAPE(__VA_ARGS__), 8, 2, { \
    {OP_MUL, .operand = {IN(0), IN(4)}}, \
    {OP_ADD, .operand = {OF(0), IN(3)}}, \
    {OP_SCALE, .attr = {.constant = {-0.3}}, .operand = {OF(1)}}, \
    {OP_DIV, .operand = {OF(2), IN(1)}}, \
    {OP_SUB, .operand = {IN(0), OF(3)}}, \
    {OP_DIV, .operand = {OF(4), IN(2)}}, \
    {OP_MUL, .operand = {OF(5), JUST(3)}}, \
    {OP_ADD, .operand = {OF(6), OF(1)}}}, {7, 3}}
static const struct chain arithmetic_chain = ARITHMETIC(5, 33), large_chain = ARITHMETIC(257, 513);

static const struct chain functions_chain = {SHAPE(3, 17), 8, 5, {
    {OP_LOG, .operand = {IN(0)}},
    {OP_TANH, .operand = {OF(0)}},
    {OP_EXP, .operand = {OF(1)}},
    {OP_SQRT, .operand = {OF(2)}},
    {OP_RSQRT, .operand = {OF(2)}},
    {OP_ERF, .operand = {OF(4)}},
    {OP_SUB, .operand = {JUST(2), OF(5)}},
    {OP_SIGMOID, .operand = {OF(0)}}}, {0, 3, 5, 6, 7}};

static const struct chain gelu_chain = {SHAPE(3, 5, 56), 5, 2, {
    {OP_GELU, .operand = {IN(0)}},
    {OP_DROPOUT, .attr = DROPS(5), .operand = {OF(0), IN(1)}},
    {OP_GELU_GRAD, .attr = {.gelu = {true}}, .operand = {OF(1), IN(2)}},
    {OP_GELU, .attr = {.gelu = {true}}, .operand = {OF(2)}},
    {OP_GELU_GRAD, .operand = {OF(3), OF(0)}}}, {1, 4}};

static const struct chain drop_chain = {SHAPE(67, 520), 4, 1, {
    {OP_DROPOUT, .attr = DROPS(5), .operand = {IN(0), IN(1)}},
    {OP_SCALE, .attr = {.constant = {0.5}}, .operand = {OF(0)}},
    {OP_DROPOUT, .attr = DROPS(6), .operand = {IN(0), IN(1)}},
    {OP_ADD, .operand = {OF(1), OF(2)}}}, {3}};

/* Casts f32 to bf16 and back to f32. */
static const struct chain cast_chain = {SHAPE(65, 129), 5, 3, {
    {OP_SCALE, .attr = {.constant = {1.7}}, .operand = {IN(0)}},
    {OP_CAST, .operand = {OF(0)}, .to = DT_BF16},
    {OP_MUL, .operand = {OF(1), IN(1)}},
    {OP_CAST, .operand = {OF(2)}, .to = DT_F32},
    {OP_ADD, .operand = {OF(3), OF(3)}}}, {4, 1, 2}};

static const struct chain sum_chain = {SHAPE(3, 136), 8, 1, {
    {OP_ADD, .operand = {IN(0), IN(1)}}, {OP_ADD, .operand = {OF(0), IN(2)}},
    {OP_ADD, .operand = {OF(1), IN(3)}}, {OP_ADD, .operand = {OF(2), IN(4)}},
    {OP_ADD, .operand = {OF(3), IN(5)}}, {OP_ADD, .operand = {OF(4), IN(6)}},
    {OP_ADD, .operand = {OF(5), IN(7)}}, {OP_ADD, .operand = {OF(6), IN(8)}}}, {7}};
static const struct chain elu_chain = {SHAPE(67, 129), 5, 2, {
    {OP_MUL, .operand = {IN(0), IN(2)}},
    {OP_ELU, .operand = {OF(0)}},
    {OP_ELU_GRAD, .operand = {IN(1), OF(1)}},
    {OP_RELU, .operand = {OF(2)}},
    {OP_WHERE_POSITIVE, .operand = {OF(1), OF(3)}}}, {4, 2}};
/* log(x) where y > 0, else 1 - x; then WHERE_POSITIVE of a constant. */
static const struct chain choice_chain = {SHAPE(67, 129), 6, 2, {
    {OP_LOG, .operand = {IN(0)}},
    {OP_WHERE_POSITIVE, .operand = {OF(0), IN(1)}},
    {OP_SUB, .operand = {JUST(1), IN(0)}},
    {OP_WHERE_NOT_POSITIVE, .operand = {OF(2), IN(1)}},
    {OP_ADD, .operand = {OF(1), OF(3)}},
    {OP_WHERE_POSITIVE, .operand = {JUST(1), OF(4)}}}, {4, 5}};
static const struct chain silu_chain = {SHAPE(67, 129), 4, 2, {
    {OP_SILU, .operand = {IN(0)}},
    {OP_MUL, .operand = {OF(0), IN(1)}},
    {OP_SILU_GRAD, .operand = {OF(1), IN(0)}},
    {OP_ADD, .operand = {OF(2), OF(0)}}}, {3, 1}};
/* clang-format on */

#endif
