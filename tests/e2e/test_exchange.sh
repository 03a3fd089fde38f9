#!/bin/sh
# Models in and out: a run forked, weights alone, a folder of Hugging Face written, opened, sampled,
# evaluated and trained on; keys follow the file; what does not fit is one sentence.
. "$(dirname "$0")/tiny.sh"
cd "$work"
quiet() { "$STROBE" "$@" >log 2>&1 || fail "$*: $(cat log)"; }
train() { quiet train tiny.conf --max_iters=50 "$@"; }
weights() { sha256sum <"$1/model.safetensors"; }
printf '0 1 2 3 1 4 5 0 2' >ids
logits() {
    "$STROBE" eval "$1" --dtype=float32 --ids=ids --logits="$2" 2>/dev/null || fail "logits of $1"
}

# A fork goes on where the run ended, with its optimizer's state and its batches.
train --bias=true --out_dir=whole
quiet train tiny.conf --bias=true --max_iters=25 --out_dir=half
train --init_from=half --out_dir=fork
[ "$(weights whole/ckpt/000050)" = "$(weights fork/ckpt/000050)" ] || fail "a fork differs"
grep -q '^bias = true' fork/config.conf || fail "the keys of the model do not follow the run"
grep -q "^init_from = .*/half" fork/config.conf || fail "config.conf forgets what it began with"
expect 0 '# The run itself began with init_from = ' "$STROBE" config fork
"$STROBE" config whole >out && grep -q 'itself began' out && fail "$(cat out)"
quiet compare tiny.conf --max_iters=26 --init_from=scratch,half --out_dir=both
quiet compare tiny.conf --max_iters=26 --init_from="scratch,$work/half" --out_dir=paths
grep -q '^bias = true' paths/*_half/config.conf || fail "a variant does not follow the run"
train --init_from=half/ckpt/000025 --init_weights_only=true --out_dir=weights
[ "$(weights whole/ckpt/000050)" = "$(weights weights/ckpt/000050)" ] && fail "states were taken"
grep -q '"iter":1,' weights/log.jsonl || fail "weights alone do not begin at iteration 0"
expect 2 'set --max_iters to more' "$STROBE" train tiny.conf --init_from=whole --max_iters=40 \
    --out_dir=more
expect 2 'uses SGD: take the weights alone' "$STROBE" train tiny.conf --init_from=whole \
    --optimizer=sgd --out_dir=more
expect 2 'has n_layer = 2, not 3: leave n_layer out' "$STROBE" train tiny.conf --init_from=whole \
    --n_layer=3 --out_dir=more
expect 2 'has positions for block_size = 32, not 64' "$STROBE" train tiny.conf \
    --init_from=whole --block_size=64 --out_dir=more
expect 2 'there is no nothing, and no published model' "$STROBE" train tiny.conf \
    --init_from=nothing --out_dir=more
expect 2 'has vocab_size = 0, not 20' "$STROBE" train tiny.conf --init_from=whole --vocab_size=20 \
    --out_dir=more
tr a-e v-z <text >other && quiet data other --from=other
expect 2 'has other tokens than the data set' "$STROBE" train tiny.conf --init_from=whole \
    --dataset=other --data_dir=data --out_dir=more
[ ! -e more ] || fail "a refused training leaves a directory"

# Tokens that only vocab_size adds are no reason to refuse the data set of the run.
train --vocab_size=300 --max_iters=25 --out_dir=wide
train --init_from=wide --out_dir=wider
# Before the key init_weights_only these tokens were left out of the softmax: a warning.
sed 's/\\ninit_weights_only = false//' wide/ckpt/000025/state.json >state
grep -q init_weights_only state && fail "the key is still there"
cp state wide/ckpt/000025/state.json && sha256sum <state | cut -c1-64 >wide/ckpt/000025/DONE
expect 0 'now they take part' "$STROBE" eval wide

# A fork without a checkpoint begins again with the same weights; a run is not replaced by itself.
train --init_from=half --init_weights_only=true --out_dir=begun --max_iters=0
[ ! -e begun/ckpt ] || fail "max_iters=0 saves"
quiet train begun --init_from=resume --max_iters=50
[ "$(weights begun/ckpt/000050)" = "$(weights weights/ckpt/000050)" ] || fail "random weights"
expect 2 'which the new run would replace' "$STROBE" train tiny.conf --init_from=half \
    --out_dir=half --overwrite
[ -e half/ckpt/000025/DONE ] || fail "the run was replaced"
# A configuration that leaves the keys of the model to what it begins with can be continued.
grep -v '^n_\|^block' tiny.conf >follows.conf && echo 'init_from = half' >>follows.conf
quiet train follows.conf --max_iters=30 --out_dir=follows
quiet train follows.conf --max_iters=50 --out_dir=follows --init_from=resume
[ "$(weights whole/ckpt/000050)" = "$(weights follows/ckpt/000050)" ] || fail "continued by CONFIG"

# Continuing a run does not need what it began with.
rm -r half
quiet train fork --init_from=resume --max_iters=60
grep -q "^init_from = .*/half" fork/config.conf || fail "a continued run forgets its beginning"

# Out to Hugging Face's form, and in again: the same bits.
quiet export whole --to=hf
[ "$(ls exports/whole-hf)" = "config.json
model.safetensors
tokenizer.json
tokenizer_config.json" ] || fail "$(ls exports/whole-hf)"
logits whole a.npy && logits exports/whole-hf b.npy
expect 2 'a.npy exists already' "$STROBE" eval whole --ids=ids --logits=a.npy
cmp a.npy b.npy || fail "an exported model has other logits"
quiet export exports/whole-hf --to=hf --out=again
cmp exports/whole-hf/model.safetensors again/model.safetensors || fail "a round trip changes bits"
expect 2 'exists already' "$STROBE" export whole --to=hf
expect 2 '--to takes hf, nanogpt' "$STROBE" export whole --to=gguf
quiet export fork --to=hf --out=plain
expect 2 'strobe train CONFIG --init_from=plain' "$STROBE" train plain
expect 0 'a new run with the keys of whole and new weights; to begin with its weights, add --init' \
    env STROBE_LOG=info "$STROBE" train whole --out_dir=anew --max_iters=1
train --bias=false --gelu=tanh --out_dir=bare
expect 0 'those written are zeros' env STROBE_LOG=info "$STROBE" export bare --to=hf
grep -q '"activation_function": "gelu_new"' exports/bare-hf/config.json || fail "gelu"
rm a.npy b.npy && logits bare a.npy && logits exports/bare-hf b.npy
od -An -tf4 -w4 -j128 a.npy >a && od -An -tf4 -w4 -j128 b.npy >b
paste a b | awk '{ d = $1 - $2; if (d < 0) d = -d; if (d > m) m = d }
    END { exit !(NR > 50 && m < 1e-5) }' || fail "zeros for missing biases change the logits"
train --n_kv_head=1 --out_dir=groups
expect 1 'a key head for each query head' "$STROBE" export groups --to=hf

# What another program wrote: sampled, evaluated, trained on with fewer positions.
expect 0 '' "$STROBE" sample exports/whole-hf --num_samples=1 --max_new_tokens=9
expect 2 'name a data set' "$STROBE" eval exports/whole-hf
loss() { "$STROBE" eval "$@" --json | sed -n 's/.*"val_loss": \([0-9.]*\).*/\1/p'; }
few="--eval_iters=2 --batch_size=4"
# shellcheck disable=SC2086
x=$(loss whole) y=$(loss exports/whole-hf --dataset=tiny --data_dir=data $few)
awk "BEGIN { d = $x - $y; exit !(d < 0.3 && d > -0.3) }" || fail "val loss $x, exported $y"
# Several models at once: a table; one that cannot be opened has a warning.
"$STROBE" eval whole exports/whole-hf nothing --dataset=tiny --data_dir=data --eval_iters=2 \
    --batch_size=4 >table 2>log || fail "$(cat log)"
awk 'NR > 1 && $3 > 1 && $3 < 2 { n++ } END { exit n != 2 }' table || fail "$(cat table)"
grep -q 'warning: nothing is neither' log || fail "$(cat log)"
train --init_from=exports/whole-hf --block_size=16 --out_dir=short
expect 2 'has other tokens than the data set' "$STROBE" train tiny.conf \
    --init_from=exports/whole-hf --dataset=other --data_dir=data --out_dir=more
grep -q '^block_size = 16' short/config.conf || fail "block_size"

# nanoGPT's ckpt.pt: the optimizer's state goes along, so a training goes on with the same bits.
train --bias=true --max_iters=25 --out_dir=quarter
quiet export quarter --to=nanogpt
[ "$(ls exports/quarter)" = "ckpt.pt
meta.pkl" ] || fail "$(ls exports/quarter)"
train --init_from=exports/quarter/ckpt.pt --out_dir=handed
[ "$(weights whole/ckpt/000050)" = "$(weights handed/ckpt/000050)" ] || fail "ckpt.pt changes bits"
expect 0 'iteration 25, best val loss' "$STROBE" info exports/quarter/ckpt.pt
quiet export exports/quarter/ckpt.pt --to=hf --out=through
quiet export quarter --to=hf --out=direct
cmp direct/model.safetensors through/model.safetensors || fail "two ways to hf differ"
expect 0 "nanoGPT computes GELU exactly" "$STROBE" export bare --to=nanogpt
head -c 5000 exports/quarter/ckpt.pt >cut.pt
expect 1 'cut.pt' "$STROBE" info cut.pt

# What a model is.
expect 0 'gpt, n_layer = 2, n_head = 2, n_embd = 32, block_size = 32, with biases' "$STROBE" info \
    exports/whole-hf
expect 0 'iteration 25' "$STROBE" info exports/quarter
expect 0 'iteration 50, best val loss' "$STROBE" info whole
expect 0 '"format": "a folder of Hugging Face"' "$STROBE" info exports/whole-hf --json
expect 2 'tiny.conf is not a model' "$STROBE" info tiny.conf

# A folder that does not fit together.
broken() { # WORDS SED
    rm -rf broken && cp -r exports/whole-hf broken && sed -i "$2" broken/config.json
    expect 1 "$1" "$STROBE" sample broken
}
broken 'has no tensor h.2.ln_1.weight' 's/"n_layer": 2/"n_layer": 3/'
broken 'which a GPT with n_layer = 1 lacks' 's/"n_layer": 2/"n_layer": 1/'
broken 'by the sizes of the model it is (8,48)' 's/"n_embd": 32/"n_embd": 48/'
broken 'model_type is llama' 's/"gpt2"/"llama"/'
broken 'layer_norm_epsilon is 1e-06' 's/1e-5/1e-6/'
broken 'activation_function is relu' 's/"gelu"/"relu"/'
broken 'there is no lm_head.weight' '/"tie_word/s/true/false/'
broken 'is not JSON' 's/,$//'
rm broken/model.safetensors
cp exports/whole-hf/config.json broken && : >broken/pytorch_model.bin
expect 1 'pytorch_model.bin is not a zip file' "$STROBE" sample broken
HOME=$work/none XDG_CACHE_HOME='' HF_HOME='' HF_HUB_CACHE='' expect 1 \
    'put model.safetensors of https://huggingface.co/openai-community/gpt2-medium into' \
    "$STROBE" sample gpt2-medium
HOME=$work/none XDG_CACHE_HOME='' HF_HOME='' HF_HUB_CACHE='' expect 1 \
    'downloads https://huggingface.co/openai-community/gpt2-medium/' "$STROBE" info gpt2-medium
expect 2 'gpt2, gpt2-medium' "$STROBE" sample gpt2-small
echo "fork, weights alone, export, import and their refusals"
