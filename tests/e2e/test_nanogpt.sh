#!/bin/sh
# What users of nanoGPT type: its configuration files as they are, its commands for a CPU, and runs
# named by --out_dir.
. "$(dirname "$0")/tiny.sh"
cd "$work"
export STROBE_LOG=info
"$STROBE" data shakespeare_char --from=text >log 2>&1 || fail "data: $(cat log)"

cat >train_shakespeare_char.py <<'EOF'
# train a miniature character-level shakespeare model
# good for debugging and playing on macbooks and such

out_dir = 'out-shakespeare-char'
eval_interval = 250 # keep frequent because we'll overfit
eval_iters = 200
log_interval = 10 # don't print too too often

# we expect to overfit on this small dataset, so only save when val improves
always_save_checkpoint = False

wandb_log = False # override via command line if you like
wandb_project = 'shakespeare-char'
wandb_run_name = 'mini-gpt'

dataset = 'shakespeare_char'
gradient_accumulation_steps = 1
batch_size = 64
block_size = 256 # context of up to 256 previous characters

# baby GPT model :)
n_layer = 6
n_head = 6
n_embd = 384
dropout = 0.2

learning_rate = 1e-3 # with baby networks can afford to go a bit higher
max_iters = 5000
lr_decay_iters = 5000 # make equal to max_iters usually
min_lr = 1e-4 # learning_rate / 10 usually
beta2 = 0.99 # not super necessary potentially

warmup_iters = 100 # not super necessary potentially

# on macbook also add
# device = 'cpu'  # run on cpu only
# compile = False # do not torch compile the model
EOF
cat >train_gpt2.py <<'EOF'
# config for training GPT-2 (124M) down to very nice loss of ~2.85 on 1 node of 8X A100 40GB
wandb_log = True
wandb_project = 'owt'
wandb_run_name='gpt2-124M'
batch_size = 12
block_size = 1024
gradient_accumulation_steps = 5 * 8
max_iters = 600000
lr_decay_iters = 600000
eval_interval = 1000
eval_iters = 200
log_interval = 10
weight_decay = 1e-1
EOF

# The command for a CPU, with fewer iterations and a smaller model.
short="--device=cpu --compile=False --eval_iters=2 --log_interval=1 --block_size=16 --batch_size=4"
short="$short --n_layer=1 --n_head=2 --n_embd=16 --max_iters=4 --lr_decay_iters=4 --dropout=0.0"
short="$short --warmup_iters=1 --threads=1"
# shellcheck disable=SC2086
expect 0 'has no such keys: compile, wandb_log, wandb_project, wandb_run_name, always_save_check' \
    "$STROBE" train train_shakespeare_char.py $short
grep -qx 'lr_decay_iters = 4' out-shakespeare-char/config.conf || fail "an override is lost"
expect 0 'gradient_accumulation_steps = 40' "$STROBE" config train_gpt2.py
expect 2 "leave dtype out" "$STROBE" train train_gpt2.py --dtype=float16

expect 0 'dataset = openwebtext' "$STROBE" config train_gpt2.py
printf "dataset = 'a'\nout_dir = dataset\n" >names.py
expect 0 'out_dir = a' "$STROBE" config names.py
for line in 'out_dir = os.environ["HOME"]' 'out_dir = f"out-{n_layer}"' 'dataset = ["a"]'; do
    echo "$line" >names.py
    expect 2 'no expression is evaluated' "$STROBE" config names.py
done
echo 'out_dir = dataset' >names.conf
expect 0 'out_dir = dataset' "$STROBE" config names.conf
expect 0 '# here auto means dtype = float32, replay = false, pad_vocab = 0' "$STROBE" config \
    names.conf --device=cpu

# Runs named by --out_dir.
few="--num_samples=1 --max_new_tokens=5 --device=cpu"
# shellcheck disable=SC2086
expect 0 '' "$STROBE" sample --out_dir=out-shakespeare-char $few
# shellcheck disable=SC2086
expect 0 '' "$STROBE" sample --init_from=out-shakespeare-char $few
# shellcheck disable=SC2086
expect 0 '' "$STROBE" sample --init_from=resume --out_dir=out-shakespeare-char $few
expect 0 'val loss' "$STROBE" eval --out_dir=out-shakespeare-char --device=cpu
expect 0 '4 iterations' "$STROBE" train --init_from=resume \
    --out_dir=out-shakespeare-char --max_iters=8
[ -e out-shakespeare-char/ckpt/000008/DONE ] || fail "not resumed: $(ls out-shakespeare-char/ckpt)"

# A fork has the configuration of its run.
expect 0 '2 iterations' "$STROBE" train --init_from=out-shakespeare-char --out_dir=fork \
    --max_iters=10
[ -e fork/ckpt/000010/DONE ] || fail "no fork: $(ls fork/ckpt)"

expect 2 'set --max_iters to more' "$STROBE" train --init_from=out-shakespeare-char --out_dir=none
[ ! -e none ] || fail "a fork that cannot begin left a folder"
# A new run with the keys of a fork begins with new weights, as its other commands say.
expect 0 'and new weights' "$STROBE" train fork --out_dir=again --max_iters=2
grep -qx 'init_from = scratch' again/config.conf || fail "a new run began with other weights"
expect 2 'missing contains no run to continue' "$STROBE" train --init_from=resume --out_dir=missing
expect 2 'needs --out_dir=NEW' "$STROBE" train --init_from=fork
expect 2 'runs/out contains no run to continue' "$STROBE" train --init_from=resume
expect 2 'strobe train CONFIG --init_from=nosuch' "$STROBE" train --init_from=nosuch --out_dir=none
cp -r fork other
expect 0 '2 iterations' "$STROBE" train init_from=resume out_dir=other --out_dir=fork \
    --max_iters=12
[ -e fork/ckpt/000012/DONE ] || fail "the last out_dir does not count"

# The defaults, which are nanoGPT's, with a data set.
# shellcheck disable=SC2086
expect 0 '' "$STROBE" train --dataset=shakespeare_char --out_dir=defaults $short
expect 2 'no configuration given' "$STROBE" train --max_iters=4

# A folder whose name looks like a setting.
cp -r out-shakespeare-char flash=true
# shellcheck disable=SC2086
expect 0 '' "$STROBE" sample flash=true $few
expect 0 '' "$STROBE" config flash=true
expect 0 '' "$STROBE" train flash=true --out_dir=from --max_iters=2
expect 0 '2 iterations' "$STROBE" train --init_from=flash=true --out_dir=forked --max_iters=10
expect 0 'bits/byte' "$STROBE" eval flash=true fork --device=cpu
expect 2 'there is no key nothing' "$STROBE" train train_gpt2.py flash=true --nothing=1
