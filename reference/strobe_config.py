"""Reads Strobe's configuration files in Python, for programs that must run the same configuration.

Only the keys that determine a training step are kept; other keys of a file are ignored.
Standard library only.
"""
import os

# Strobe's defaults (src/config/fields.c; docs/CONFIG.md) of the keys that a training step depends
# on.
DEFAULTS = {
    "n_layer": 12, "n_head": 12, "n_embd": 768, "d_ff": 0, "vocab_size": 0, "block_size": 1024,
    "dropout": 0.0, "bias": False,
    "gelu": "erf", "pad_vocab": "auto", "batch_size": 12, "gradient_accumulation_steps": 1,
    "seed": 1337,
    "learning_rate": 6e-4, "weight_decay": 0.1, "beta1": 0.9, "beta2": 0.95, "grad_clip": 1.0,
}


def _value(key, text):
    """Converts the text of a value to the type of the key's default."""
    default = DEFAULTS[key]
    if isinstance(default, bool):
        if text not in ("true", "false"):
            raise ValueError(f"{key} must be true or false, not {text}")
        return text == "true"
    return type(default)(text)


def _bare(text):
    """A value without quotes and without a trailing comment."""
    text = text.strip()
    if text[:1] in ("'", '"'):
        return text[1:text.index(text[0], 1)]
    for i, c in enumerate(text):
        if c == "#" and (i == 0 or text[i - 1].isspace()):
            return text[:i].strip()
    return text


def read(path, overrides=()):
    """The values of the keys in DEFAULTS, from `path` and the overrides ("--key=value"); follows
    includes."""
    config = dict(DEFAULTS)
    _read_into(config, path)
    for text in overrides:
        key, equals, value = text.lstrip("-").partition("=")
        if not equals or key not in DEFAULTS:
            raise ValueError(f"{text}: expected --key=value with a key of {', '.join(DEFAULTS)}")
        config[key] = _value(key, value)
    return config


def _read_into(config, path):
    with open(path, encoding="utf-8") as f:
        lines = f.read().splitlines()
    for number, line in enumerate(lines, 1):
        line = line.strip()
        if not line or line.startswith("#"):
            continue
        key, equals, value = (part.strip() for part in line.partition("="))
        if not equals:
            raise ValueError(f"{path}:{number}: expected `key = value`, found `{line}`")
        if key == "include":
            _read_into(config, os.path.join(os.path.dirname(path), _bare(value)))
        elif key in DEFAULTS:
            config[key] = _value(key, _bare(value))
