/* torch_sample.h - a file that torch.save of PyTorch 2.11 wrote, in the form of nanoGPT's ckpt.pt:
 *
 *     w = Parameter([[1.5, -2, 0], [1e-30, 3e30, -0.0]]), twice in the model; b = Parameter([0.25])
 *     opt = AdamW([{'params': [w], 'weight_decay': 0.1}, {'params': [b]}], 6e-4, (0.9, 0.95))
 *     after one step with a gradient of w of ones and none of b
 *     {'model': OrderedDict('bias': b, 'wte.weight': w, 'lm_head.weight': w),
 *      'optimizer': opt.state_dict(),
 *      'model_args': {'n_layer': 1, 'dropout': 0.0, 'bias': True, 'vocab_size': None},
 *      'iter_num': 2000, 'best_val_loss': tensor(1.5),
 *      'config': {'out_dir': 'out', 'learning_rate': 6e-4, 'compile': False, 'seed': 1 << 40}} */
#ifndef EXCHANGE_TORCH_SAMPLE_H
#define EXCHANGE_TORCH_SAMPLE_H

/* clang-format off */
static const char torch_sample[] =
    "PK\3\4\0\0\10\10\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\17\0\23\0sample/data.pklFB\17\0ZZZZZZZZ"
    "ZZZZZZZ\200\2}q\0(X\5\0\0\0modelq\1ccollections\nOrderedDict\nq\2)Rq\3(X\4\0\0\0biasq\4ctorc"
    "h._utils\n_rebuild_tensor_v2\nq\5((X\7\0\0\0storageq\6ctorch\nFloatStorage\nq\7X\1\0\0\0000q"
    "\10X\3\0\0\0cpuq\11K\1tq\nQK\0K\1\205q\13K\1\205q\14\211h\2)Rq\15tq\16Rq\17X\n\0\0\0wte.weig"
    "htq\20h\5((h\6h\7X\1\0\0\0001q\21h\11K\6tq\22QK\0K\2K\3\206q\23K\3K\1\206q\24\211h\2)Rq\25tq"
    "\26Rq\27X\16\0\0\0lm_head.weightq\30h\5((h\6h\7h\21h\11K\6tq\31QK\0K\2K\3\206q\32K\3K\1\206q"
    "\33\211h\2)Rq\34tq\35Rq\36u}q\37X\11\0\0\0_metadataq h\2)Rq!(X\0\0\0\0q\"}q#X\7\0\0\0version"
    "q$K\1sX\3\0\0\0wteq%}q&h$K\1sX\7\0\0\0lm_headq'}q(h$K\1susbX\11\0\0\0optimizerq)}q*(X\5\0\0"
    "\0stateq+}q,K\0}q-(X\4\0\0\0stepq.h\5((h\6h\7X\1\0\0\0002q/h\11K\1tq0QK\0))\211h\2)Rq1tq2Rq3"
    "X\7\0\0\0exp_avgq4h\5((h\6h\7X\1\0\0\0003q5h\11K\6tq6QK\0K\2K\3\206q7K\3K\1\206q8\211h\2)Rq9"
    "tq:Rq;X\n\0\0\0exp_avg_sqq<h\5((h\6h\7X\1\0\0\0004q=h\11K\6tq>QK\0K\2K\3\206q\?K\3K\1\206q@"
    "\211h\2)RqAtqBRqCusX\14\0\0\0param_groupsqD]qE(}qF(X\14\0\0\0weight_decayqGG\?\271\231\231"
    "\231\231\231\232X\2\0\0\0lrqHG\?C\251*0U2aX\5\0\0\0betasqIG\?\354\314\314\314\314\314\315G\?"
    "\356ffffff\206qJX\3\0\0\0epsqKG>Ey\216\3420\214:X\7\0\0\0amsgradqL\211X\10\0\0\0maximizeqM"
    "\211X\7\0\0\0foreachqNNX\n\0\0\0capturableqO\211X\16\0\0\0differentiableqP\211X\5\0\0\0fused"
    "qQNX\26\0\0\0decoupled_weight_decayqR\210X\6\0\0\0paramsqS]qTK\0au}qU(hHG\?C\251*0U2ahIhJhKG"
    ">Ey\216\3420\214:hGG\?\204z\341G\256\24{hL\211hM\211hNNhO\211hP\211hQNhR\210hS]qVK\1aueuX\n"
    "\0\0\0model_argsqW}qX(X\7\0\0\0n_layerqYK\1X\7\0\0\0dropoutqZG\0\0\0\0\0\0\0\0h\4\210X\n\0\0"
    "\0vocab_sizeq[NuX\10\0\0\0iter_numq\\M\320\7X\15\0\0\0best_val_lossq]h\5((h\6h\7X\1\0\0\0005"
    "q^h\11K\1tq_QK\0))\211h\2)Rq`tqaRqbX\6\0\0\0configqc}qd(X\7\0\0\0out_dirqeX\3\0\0\0outqfX\15"
    "\0\0\0learning_rateqgG\?C\251*0U2aX\7\0\0\0compileqh\211X\4\0\0\0seedqi\212\6\0\0\0\0\0\1uu."
    "PK\7\10|\343\31\37\361\4\0\0\361\4\0\0PK\3\4\0\0\10\10\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0"
    "\26\0\13\0sample/.format_versionFB\7\0ZZZZZZZ1PK\7\10\267\357\334\203\1\0\0\0\1\0\0\0PK\3\4"
    "\0\0\10\10\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\31\08\0sample/.storage_alignmentFB4\0ZZZZZZZZ"
    "ZZZZZZZZZZZZZZZZZZZZZZZZZZZZZZZZZZZZZZZZZZZZ64PK\7\10\?wq\351\2\0\0\0\2\0\0\0PK\3\4\0\0\10"
    "\10\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\20\0@\0sample/byteorderFB<\0ZZZZZZZZZZZZZZZZZZZZZZZZ"
    "ZZZZZZZZZZZZZZZZZZZZZZZZZZZZZZZZZZZZlittlePK\7\10\205=\343\31\6\0\0\0\6\0\0\0PK\3\4\0\0\10"
    "\10\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\15\0\?\0sample/data/0FB;\0ZZZZZZZZZZZZZZZZZZZZZZZZZZ"
    "ZZZZZZZZZZZZZZZZZZZZZZZZZZZZZZZZZ\0\0\200>PK\7\10\374Z\246\333\4\0\0\0\4\0\0\0PK\3\4\0\0\10"
    "\10\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\15\0A\0sample/data/1FB=\0ZZZZZZZZZZZZZZZZZZZZZZZZZZZ"
    "ZZZZZZZZZZZZZZZZZZZZZZZZZZZZZZZZZZ\0\0\300\?\0\0\0\300\0\0\0\0`B\242\15\27v\27r\0\0\0\200PK"
    "\7\10<\220\272\"\30\0\0\0\30\0\0\0PK\3\4\0\0\10\10\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\15\0-"
    "\0sample/data/2FB)\0ZZZZZZZZZZZZZZZZZZZZZZZZZZZZZZZZZZZZZZZZZ\0\0\200\?PK\7\10jj\241\254\4\0"
    "\0\0\4\0\0\0PK\3\4\0\0\10\10\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\15\0A\0sample/data/3FB=\0ZZ"
    "ZZZZZZZZZZZZZZZZZZZZZZZZZZZZZZZZZZZZZZZZZZZZZZZZZZZZZZZZZZZ\315\314\314=\315\314\314=\315"
    "\314\314=\315\314\314=\315\314\314=\315\314\314=PK\7\10\361\331\11(\30\0\0\0\30\0\0\0PK\3\4"
    "\0\0\10\10\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\15\0-\0sample/data/4FB)\0ZZZZZZZZZZZZZZZZZZZZ"
    "ZZZZZZZZZZZZZZZZZZZZZ\315\314L=\315\314L=\315\314L=\315\314L=\315\314L=\315\314L=PK\7\10\317"
    "\24\312\211\30\0\0\0\30\0\0\0PK\3\4\0\0\10\10\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\15\0-\0sam"
    "ple/data/5FB)\0ZZZZZZZZZZZZZZZZZZZZZZZZZZZZZZZZZZZZZZZZZ\0\0\300\?PK\7\10o%\330\\\4\0\0\0\4"
    "\0\0\0PK\3\4\0\0\10\10\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\16\0@\0sample/versionFB<\0ZZZZZZZ"
    "ZZZZZZZZZZZZZZZZZZZZZZZZZZZZZZZZZZZZZZZZZZZZZZZZZZZZZ3\nPK\7\10\321\236gU\2\0\0\0\2\0\0\0PK"
    "\3\4\0\0\10\10\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\35\0003\0sample/.data/serialization_idFB/"
    "\0ZZZZZZZZZZZZZZZZZZZZZZZZZZZZZZZZZZZZZZZZZZZZZZZ1268567396964646261111413043232690064315PK"
    "\7\10\273\244\22\5(\0\0\0(\0\0\0PK\1\2\0\0\0\0\10\10\0\0\0\0\0\0|\343\31\37\361\4\0\0\361\4"
    "\0\0\17\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0sample/data.pklPK\1\2\0\0\0\0\10\10\0\0\0\0\0\0\267"
    "\357\334\203\1\0\0\0\1\0\0\0\26\0\0\0\0\0\0\0\0\0\0\0\0\0A\5\0\0sample/.format_versionPK\1\2"
    "\0\0\0\0\10\10\0\0\0\0\0\0\?wq\351\2\0\0\0\2\0\0\0\31\0\0\0\0\0\0\0\0\0\0\0\0\0\221\5\0\0sam"
    "ple/.storage_alignmentPK\1\2\0\0\0\0\10\10\0\0\0\0\0\0\205=\343\31\6\0\0\0\6\0\0\0\20\0\0\0"
    "\0\0\0\0\0\0\0\0\0\0\22\6\0\0sample/byteorderPK\1\2\0\0\0\0\10\10\0\0\0\0\0\0\374Z\246\333\4"
    "\0\0\0\4\0\0\0\15\0\0\0\0\0\0\0\0\0\0\0\0\0\226\6\0\0sample/data/0PK\1\2\0\0\0\0\10\10\0\0\0"
    "\0\0\0<\220\272\"\30\0\0\0\30\0\0\0\15\0\0\0\0\0\0\0\0\0\0\0\0\0\24\7\0\0sample/data/1PK\1\2"
    "\0\0\0\0\10\10\0\0\0\0\0\0jj\241\254\4\0\0\0\4\0\0\0\15\0\0\0\0\0\0\0\0\0\0\0\0\0\250\7\0\0s"
    "ample/data/2PK\1\2\0\0\0\0\10\10\0\0\0\0\0\0\361\331\11(\30\0\0\0\30\0\0\0\15\0\0\0\0\0\0\0"
    "\0\0\0\0\0\0\24\10\0\0sample/data/3PK\1\2\0\0\0\0\10\10\0\0\0\0\0\0\317\24\312\211\30\0\0\0"
    "\30\0\0\0\15\0\0\0\0\0\0\0\0\0\0\0\0\0\250\10\0\0sample/data/4PK\1\2\0\0\0\0\10\10\0\0\0\0\0"
    "\0o%\330\\\4\0\0\0\4\0\0\0\15\0\0\0\0\0\0\0\0\0\0\0\0\0(\11\0\0sample/data/5PK\1\2\0\0\0\0"
    "\10\10\0\0\0\0\0\0\321\236gU\2\0\0\0\2\0\0\0\16\0\0\0\0\0\0\0\0\0\0\0\0\0\224\11\0\0sample/v"
    "ersionPK\1\2\0\0\0\0\10\10\0\0\0\0\0\0\273\244\22\5(\0\0\0(\0\0\0\35\0\0\0\0\0\0\0\0\0\0\0\0"
    "\0\22\n\0\0sample/.data/serialization_idPK\6\6,\0\0\0\0\0\0\0\36\3-\0\0\0\0\0\0\0\0\0\14\0\0"
    "\0\0\0\0\0\14\0\0\0\0\0\0\0\357\2\0\0\0\0\0\0\270\n\0\0\0\0\0\0PK\6\7\0\0\0\0\247\15\0\0\0\0"
    "\0\0\1\0\0\0PK\5\6\0\0\0\0\14\0\14\0\357\2\0\0\270\n\0\0\0\0";
/* clang-format on */

#endif
